"""Validates fetched objects: sizes, commits, trees, names (docs/format.md, 11)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from gitcp.encryption.quarantine import QuarantineLimits, too_much
from gitcp.errors import CorruptError, GitcpError, TransferError
from gitcp.format import layout, safety
from gitcp.format import tree as trees
from gitcp.format.checkpoint import show_path
from gitcp.format.chunked import ChunkedName, read_list
from gitcp.format.commit import trailers_of
from gitcp.format.encrypted import encrypted_of
from gitcp.format.extent import Extent, Extents, held
from gitcp.format.safety import Reach
from gitcp.format.tree import DIRECTORY, GITLINK, LINK
from gitcp.git import transport
from gitcp.git.objects import BLOB, COMMIT, TREE
from gitcp.git.repository import Repository
from gitcp.git.transport import Limits

_TREE_LIMIT = 16 * 1024 * 1024
_TREES_LIMIT = 256 * 1024 * 1024
_COMMIT_LIMIT = 4 * 1024 * 1024
_MEMORY = 384 * 1024 * 1024
# gitcp decodes its own files in a checkpoint as a whole, except the conversation.
_OWN_LIMIT = 16 * 1024 * 1024
_DECODED = frozenset(
    name.log.encode() for name in (layout.DECISIONS, layout.STEPS, layout.REWRITES)
)
_FIELDS = 3
# Links with these names make git read a file elsewhere.
_NEVER_LINKS = frozenset({".gitmodules"})


class Rejection(NamedTuple):
    """Why something is refused; `unsafe` if it could write to a place where it must not.

    `error` is the class to raise if it is neither unsafe nor damaged, with its `hint`.
    """

    text: str
    unsafe: bool = False
    error: type[GitcpError] | None = None
    hint: str | None = None


# The objects that are new here: the kind and size of each, by its oid.
Incoming = Mapping[bytes, tuple[str, int]]


def list_incoming(
    quarantine: Repository,
    tips: Iterable[str],
    ours: Iterable[str],
    *,
    bounds: QuarantineLimits,
    limits: Limits,
) -> Incoming:
    """Lists the objects that the tips reach and none of ours does, within bounds.

    Raises:
        TransferError: the objects exceed a limit.
    """
    limits = limits._replace(memory=_MEMORY)
    git_dir = f"--git-dir={quarantine.git_dir}"
    revisions = [*tips, *(f"^{oid}" for oid in ours)]

    def ask(*args: str, data: bytes) -> bytes:
        ended = transport.run(
            [git_dir, *args],
            cwd=quarantine.git_dir,
            limits=limits,
            doing="checking fetched objects",
            data=data,
        )
        if ended.status:
            raise TransferError(
                f"the fetched objects cannot be read: {ended.reason()}",
                hint="nothing was adopted",
            )
        return ended.out

    listed = ask(
        "rev-list",
        "--objects",
        "--no-object-names",
        "--stdin",
        data="".join(f"{word}\n" for word in revisions).encode(),
    )
    described = ask("cat-file", "--batch-check", "--buffer", data=listed)
    incoming: dict[bytes, tuple[str, int]] = {}
    for line in described.splitlines():
        words = line.split()
        if len(words) != _FIELDS:
            raise TransferError(
                f"the object {line.partition(b' ')[0].decode('ascii', 'replace')}"
                " was not sent",
                hint="nothing was adopted",
            )
        kind, size = words[1].decode(), int(words[2])
        incoming[bytes.fromhex(words[0].decode())] = kind, size
        if size > bounds.file:
            raise too_much(f"a file of {size:,} bytes", "pullMaxFile")
    _refuse_too_much(incoming, bounds)
    return incoming


def _refuse_too_much(incoming: Incoming, bounds: QuarantineLimits) -> None:
    if len(incoming) > bounds.objects:
        raise too_much(f"{len(incoming):,} objects", "pullMaxObjects")
    commits = sum(kind == COMMIT for kind, _ in incoming.values())
    if commits > bounds.commits:
        raise too_much(f"{commits:,} commits", "pullMaxObjects")
    total = sum(size for _, size in incoming.values())
    if total > bounds.size:
        raise too_much(f"{total:,} bytes", "pullMaxSize")


class ObjectValidator:
    """Validates commits and the trees they hold; each object once."""

    def __init__(
        self,
        quarantine: Repository,
        incoming: Incoming,
        limit: Extent,
        base: bytes | None,
    ) -> None:
        """`limit` is how much a checkpoint may hold beyond the tree `base`."""
        self._objects = quarantine.objects
        self._incoming = incoming
        self._limit = limit
        self._base = base
        self._extents = Extents(self._entries_of, self._size_of)
        self._trees: dict[bytes, Reach | Rejection] = {}
        self._commits: dict[bytes, Rejection | None] = {}
        self._lists: dict[bytes, bool] = {}
        self._read = 0

    def line(self, tip: str) -> tuple[list[bytes], Rejection | None]:
        """Returns the new checkpoints of a branch, newest first, and what is wrong."""
        found: list[bytes] = []
        oid = bytes.fromhex(tip)
        try:
            if self._kind(oid) != COMMIT:
                return [], Rejection(f"{tip} is a {self._kind(oid)}, not a commit")
            while oid in self._incoming:
                rejection, parent = self._commit(oid)
                if rejection is not None:
                    return found, rejection
                if parent is None:
                    break
                found.append(oid)
                if not parent:
                    break
                oid = parent
        except CorruptError as exc:
            return found, Rejection(exc.message)
        except RecursionError:
            return found, Rejection("a directory is too deep", unsafe=True)
        return found, None

    def _kind(self, oid: bytes) -> str:
        known = self._incoming.get(oid)
        return known[0] if known else self._objects.header(oid)[0]

    def _size(self, oid: bytes) -> int:
        known = self._incoming.get(oid)
        return known[1] if known else self._objects.header(oid)[1]

    def _commit(self, oid: bytes) -> tuple[Rejection | None, bytes | None]:
        """Validates a commit; the parent is empty if there is none, None past the end.

        A line ends at the first commit that is not a checkpoint: the anchor.
        """
        if self._size(oid) > _COMMIT_LIMIT:
            return Rejection(f"the commit {oid.hex()} is too large"), None
        commit = self._objects.commit(oid)
        if trailers_of(commit) is None and encrypted_of(commit) is None:
            return None, None
        if len(commit.parents) > 1:
            return Rejection(f"the commit {oid.hex()} has more than one parent"), None
        if oid not in self._commits:
            below = self._tree(commit.tree, b"", 0)
            rejection = (
                below if isinstance(below, Rejection) else self._vast(commit.tree)
            )
            self._commits[oid] = (
                rejection
                or self._own_too_large(commit.tree)
                or self._no_lists(commit.tree)
            )
        parent = commit.parents[0] if commit.parents else b""
        return self._commits[oid], parent

    def _vast(self, root: bytes) -> Rejection | None:
        """Returns what is wrong if a few trees stand for too many paths or bytes."""
        # The names of its lists say how large the content behind each pointer is.
        self._objects.chunked.learn_of(root)
        extent = self._extents.beyond(root, self._base)
        if extent.within(self._limit):
            return None
        return Rejection(
            f"it {held(extent, self._limit)}",
            error=TransferError,
            hint="nothing of it was adopted; if you trust it, raise that setting with"
            " `git config`, and pull again",
        )

    def _own_too_large(self, root: bytes) -> Rejection | None:
        """Returns what is wrong if a record or a list is too large to be decoded."""
        entry = trees.lookup(root, layout.RESERVED, self._entries_of)
        found = self._entries_of(entry.oid) if entry is not None else {}
        sizes = {
            name: self._size_of(one.oid)
            for name, one in found.items()
            if one.mode != DIRECTORY
        }
        logs = found.get(layout.LOG)
        kinds = self._entries_of(logs.oid) if logs is not None else {}
        for name, one in kinds.items():
            if name in _DECODED and one.mode == DIRECTORY:
                sizes[layout.LOG + b"/" + name] = self._extents.of(one.oid).size
        for name, size in sizes.items():
            if size > _OWN_LIMIT:
                return Rejection(
                    f".gitcp/{show_path(name)} has {size:,} bytes; from elsewhere"
                    f" at most {_OWN_LIMIT:,} are allowed"
                )
        return None

    def _no_lists(self, root: bytes) -> Rejection | None:
        """Returns what is wrong if `.gitcp/chunks` holds anything but lists of chunks.

        `verify` would report it for as long as the checkpoint is here, and `purge` would
        not know what to do with it.
        """
        path = layout.RESERVED + b"/" + layout.CHUNKS
        lists = trees.lookup(root, path, self._entries_of)
        if lists is None or lists.oid not in self._incoming:
            return None
        if lists.mode != DIRECTORY:
            return Rejection(f"{_shown(path)} is not a directory")
        for name, entry in self._entries_of(lists.oid).items():
            if entry.oid not in self._lists:
                self._lists[entry.oid] = self._is_list(entry)
            if ChunkedName.parse(name) is None or not self._lists[entry.oid]:
                return Rejection(
                    f"{_shown(path + b'/' + name)} is not a list of chunks"
                )
        return None

    def _is_list(self, entry: trees.Entry) -> bool:
        if entry.mode != DIRECTORY:
            return False
        try:
            for _ in read_list(entry.oid, self._entries_of):
                pass
        except ValueError:
            return False
        return True

    def _entries_of(self, oid: bytes) -> trees.Tree:
        # New trees have been validated. Our own may be missing from a partial clone.
        with suppress(CorruptError):
            return trees.parse(self._objects.read(oid, TREE), len(oid))
        return {}

    def _size_of(self, oid: bytes) -> int:
        chunked = self._objects.chunked
        content = chunked.meant_by(oid)
        if content != oid:
            return chunked.name(content).size
        with suppress(CorruptError):
            return self._size(oid)
        return 0

    def _tree(self, oid: bytes, prefix: bytes, depth: int) -> Reach | Rejection:
        """Validates a tree, unless it is ours already: then it was validated before."""
        if oid not in self._incoming:
            return Reach()
        if depth > safety.DEPTH_LIMIT:
            return Rejection(f"{_shown(prefix)} is too deep", unsafe=True)
        found = self._trees.get(oid)
        if found is None:
            entries = self._entries(oid, prefix)
            if isinstance(entries, Rejection):
                return self._trees.setdefault(oid, entries)
            found = Reach()
            for name, entry in entries.items():
                if entry.mode != DIRECTORY:
                    found = found.around(name, None)
                    continue
                inner = self._tree(entry.oid, prefix + name + b"/", depth + 1)
                if isinstance(inner, Rejection):
                    return self._trees.setdefault(oid, inner)
                found = found.around(name, inner)
            self._trees[oid] = found
        if isinstance(found, Reach) and not found.fits(prefix, depth):
            return Rejection(
                f"{_shown(prefix)} holds a path that is too long or deep", unsafe=True
            )
        return found

    def _entries(self, oid: bytes, prefix: bytes) -> trees.Tree | Rejection:
        """Validates a tree, but not the trees in it."""
        size = self._size(oid)
        self._read += size
        if size > _TREE_LIMIT or self._read > _TREES_LIMIT:
            return Rejection(f"the directory {_shown(prefix)} has too many names")
        raw = self._objects.read(oid, TREE)
        try:
            entries = trees.parse(raw, len(oid))
        except ValueError as exc:
            return Rejection(f"the directory {_shown(prefix)} is malformed: {exc}")
        if trees.encode(entries) != raw:
            return Rejection(
                f"the directory {_shown(prefix)} is out of order", unsafe=True
            )
        for name, entry in entries.items():
            rejection = self._entry(prefix, name, entry)
            if rejection is not None:
                return rejection
        return entries

    def _entry(
        self, prefix: bytes, name: bytes, entry: trees.Entry
    ) -> Rejection | None:
        path = prefix + name
        problem = safety.name_problem(name)
        if problem is None and b".." in name.split(b"\\"):
            problem = "climbs out where a backslash divides names"
        if (
            problem is None
            and entry.mode == LINK
            and safety.spellings(name)[-1] in _NEVER_LINKS
        ):
            problem = "must not be a link"
        if problem is not None:
            return Rejection(f"the name {_shown(path)} {problem}", unsafe=True)
        if entry.mode not in safety.MODES:
            return Rejection(f"{_shown(path)} has the mode {entry.mode:o}", unsafe=True)
        if entry.mode == GITLINK:
            return None
        kind = self._kind(entry.oid)
        if kind != (TREE if entry.mode == DIRECTORY else BLOB):
            return Rejection(f"{_shown(path)} is a {kind}, which its mode contradicts")
        if entry.mode == LINK and self._size(entry.oid) > safety.PATH_LIMIT:
            return Rejection(f"the link {_shown(path)} is too long", unsafe=True)
        return None


def _shown(path: bytes) -> str:
    return show_path(path.removesuffix(b"/")) or "the root"


def joined(reasons: Sequence[str], shown: int = 3) -> str:
    """Returns the first of several reasons in a line, and how many more there are."""
    more = len(reasons) - shown
    return "; ".join(reasons[:shown]) + (f"; and {more} more" if more > 0 else "")
