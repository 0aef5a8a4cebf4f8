"""Lists the objects that a push would send to a remote without them, with their paths."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gitcp.errors import CorruptError
from gitcp.format import layout, tree
from gitcp.format.chunked import ChunkedName
from gitcp.format.commit import Trailers, trailers_of
from gitcp.format.ledger import ledger_trailers
from gitcp.format.tree import GITLINK, Change, Entry
from gitcp.git.above import commits_above
from gitcp.git.objects import Objects
from gitcp.git.repository import Repository
from gitcp.names import decode


class FirstSeen(NamedTuple):
    """The commit that first has an object; `trailers` if it is a checkpoint.

    `ledger` is the session's component if it is a ledger commit.
    """

    commit: str
    trailers: Trailers | None
    ledger: str | None = None


class Piece(NamedTuple):
    """A blob that a commit adds, at a path; without a blob, text of the commit."""

    origin: FirstSeen
    path: bytes
    oid: bytes | None
    text: bytes = b""


# In place of a remote's name: all remotes.
ANY = "*"
MESSAGE = b"(message)"
_CHUNKS = layout.RESERVED + b"/" + layout.CHUNKS + b"/"
NAMES = b"(names)"


def commits(
    repository: Repository,
    tips: Iterable[str],
    known: Iterable[str] = (),
    remote: str | None = None,
) -> list[str]:
    """Returns the commits that the tips reach and the remote lacks, oldest first.

    The remote has all commits that `known` or the remote-tracking branches of `remote` reach.
    """
    if remote is None:
        return commits_above(repository, tips, known)
    objects = repository.objects
    lines = [tip.encode() for tip in sorted(set(tips))]
    lines += [
        b"^" + oid.encode()
        for oid in sorted(set(known))
        if objects.exists(bytes.fromhex(oid))
    ]
    has = ["--not", "--remotes" if remote == ANY else f"--remotes={remote}"]
    out = repository.git(
        "rev-list",
        "--topo-order",
        "--reverse",
        "--stdin",
        *has,
        data=b"\n".join(lines) + b"\n",
    )
    return out.decode("ascii").split()


def content(objects: Objects, oid: bytes) -> Iterator[bytes]:
    """Yields the content of a piece; a pointer outside a checkpoint counts as a text.

    Raises:
        CorruptError: the object is missing or damaged.
    """
    return objects.content(oid) if oid in objects.chunked else objects.stream(oid)


def pieces(repository: Repository, chosen: Sequence[str]) -> Iterator[Piece]:
    """Yields the pieces of each commit that its first parent does not hold.

    Together these are all objects that the remote lacks: objects from another parent come
    with that parent's own commit.
    """
    objects = repository.objects
    for oid in chosen:
        commit = objects.commit(bytes.fromhex(oid))
        trailers = trailers_of(commit)
        steps = ledger_trailers(commit) if trailers is None else None
        origin = FirstSeen(oid, trailers, steps.session if steps is not None else None)
        before = None
        if commit.parents:
            try:
                before = objects.commit(commit.parents[0]).tree
            except CorruptError:
                # A shallow clone ends here, so the whole commit counts as new.
                before = None
        yield Piece(origin, MESSAGE, None, commit.message)
        names = [
            decode(part) or part
            for part in ((trailers.session, trailers.branch) if trailers else ())
        ]
        if steps is not None and before is None:
            names = [decode(steps.session) or steps.session]
        added: list[bytes] = [name.encode() for name in names]
        chunked = _Chunked(objects, commit.tree, before)
        for change in tree.diff(before, commit.tree, objects.tree):
            if change.new is None or chunked.takes(change):
                continue
            if change.old is None and not change.path.startswith(
                layout.RESERVED + b"/"
            ):
                added.append(change.path)
            if change.new.mode != GITLINK:
                yield Piece(origin, change.path, change.new.oid)
        for path, content in chunked.files():
            yield Piece(origin, path, content)
        if added:
            yield Piece(origin, NAMES, None, b"\n".join(added))


class _Chunked:
    """The chunked files that a commit adds: each is one piece, regardless of its chunks."""

    def __init__(self, objects: Objects, root: bytes, before: bytes | None) -> None:
        self._chunked = objects.chunked
        new = self._in(objects, root) - self._in(objects, before)
        self._lists = {content for content, _ in new}
        self._paths: dict[bytes, bytes] = {}

    def _in(self, objects: Objects, root: bytes | None) -> set[tuple[bytes, Entry]]:
        """Returns the contents that a root tree lists, with their lists."""
        read = objects.tree
        lists = self._chunked.learn_of(root) if root is not None else None
        return {
            (name.content, entry)
            for path, entry in (read(lists) if lists is not None else {}).items()
            if (name := ChunkedName.parse(path)) is not None
        }

    def takes(self, change: Change) -> bool:
        """Whether a change is of a chunk, or of a pointer, which it notes."""
        if change.path.startswith(_CHUNKS):
            # A chunk that no list names is scanned by itself.
            name = ChunkedName.parse(change.path.split(b"/")[2])
            return name is not None
        assert change.new is not None
        content = self._chunked.meant_by(change.new.oid)
        if content in self._lists:
            self._paths[content] = change.path
        return content != change.new.oid

    def files(self) -> Iterator[tuple[bytes, bytes]]:
        """Yields path and content of each chunked file."""
        for content in sorted(self._lists):
            path = self._chunked.name(content).path
            yield self._paths.get(content, _CHUNKS + path), content
