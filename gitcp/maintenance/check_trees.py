"""Checks trees of checkpoints and the files in them; each object once."""

from collections.abc import Callable, Container

from gitcp.errors import CorruptError
from gitcp.format import chunked, layout, safety
from gitcp.format.chunked import ChunkedName
from gitcp.format.oid import form_of, is_object
from gitcp.format.safety import Reach
from gitcp.format.tree import DIRECTORY, GITLINK, Entry, Tree
from gitcp.git.objects import BLOB, TREE, Objects, joined
from gitcp.maintenance.problems import Problems
from gitcp.store.checkpoint import Checkpoint

# No pointer is larger than this, in bytes.
_POINTER = 1024


class TreeCheck:
    """Checks trees and blobs, and adds problems to `problems`."""

    def __init__(
        self,
        objects: Objects,
        problems: Problems,
        promised: Callable[[], Container[bytes]],
    ) -> None:
        """`promised` returns the missing objects that a remote has; it costs a walk."""
        self._objects = objects
        self._promised = promised
        self._problems = problems
        self._blobs: dict[bytes, str | None] = {}
        self._trees: dict[bytes, Reach] = {}
        self._chunked: dict[tuple[bytes, bytes], str | None] = {}
        self._pointers: dict[bytes, bool] = {}

    def check(self, oid: bytes, prefix: bytes, depth: int) -> Reach | None:
        """Checks a tree and everything below it; None if something is wrong there."""
        below = self._trees.get(oid)
        if below is None:
            entries = self._entries(oid, prefix.removesuffix(b"/"), depth)
            if entries is None:
                return None
            below = Reach()
            sound = True
            for name, entry in entries.items():
                path = prefix + name
                inner: Reach | None = None
                if not self._is_allowed(path, name, entry):
                    sound = False
                elif entry.mode == DIRECTORY:
                    inner = self.check(entry.oid, path + b"/", depth + 1)
                    sound = sound and inner is not None
                else:
                    sound = self._blob(path, entry) and sound
                below = below.around(name, inner)
            if not sound:
                return None
            self._trees[oid] = below
        if not below.fits(prefix, depth):
            self._problems.add(
                prefix, "holds a path that is too long or deep", unsafe=True
            )
            return None
        return below

    def _entries(self, oid: bytes, shown: bytes, depth: int) -> Tree | None:
        if depth > safety.DEPTH_LIMIT:
            self._problems.add(shown, "lies too deep", unsafe=True)
            return None
        if self._is_elsewhere(oid):
            return {}
        try:
            check_hash(self._objects, oid, TREE)
            return self._objects.tree(oid)
        except CorruptError as exc:
            self._problems.add(shown, exc.message, TREE, oid)
            return None

    def _is_allowed(self, path: bytes, name: bytes, entry: Entry) -> bool:
        problem = safety.name_problem(name)
        if problem is None and entry.mode not in safety.MODES:
            problem = f"has the mode {entry.mode:o}"
        if problem is not None:
            self._problems.add(path, f"the name {problem}", unsafe=True)
        return problem is None

    def _blob(self, path: bytes, entry: Entry) -> bool:
        if entry.mode == GITLINK:
            return True
        if entry.oid not in self._blobs:
            self._blobs[entry.oid] = self._damage(entry.oid)
        problem = self._blobs[entry.oid]
        if problem is None and not path.startswith(layout.RESERVED + b"/"):
            problem = self._without_list(entry.oid)
        if problem is not None:
            self._problems.add(path, problem, BLOB, entry.oid)
        return problem is None

    def _damage(self, oid: bytes) -> str | None:
        return None if self._is_elsewhere(oid) else _damage(self._objects, oid)

    def _without_list(self, oid: bytes) -> str | None:
        """Returns what is wrong with a pointer that no list names; None for other blobs."""
        objects = self._objects
        if objects.chunked.meant_by(oid) != oid or self._is_elsewhere(oid):
            return None
        if oid not in self._pointers:
            small = objects.header(oid)[1] <= _POINTER
            alone = small and objects.blob(oid).startswith(chunked.MAGIC)
            self._pointers[oid] = alone
        alone = self._pointers[oid]
        return "is a pointer to chunks that no list names" if alone else None

    def chunked(self, found: Checkpoint) -> None:
        """Checks the chunked files of a checkpoint; each content once."""
        lists = found.chunk_lists
        entries = self._objects.tree(lists) if lists is not None else {}
        for path, entry in entries.items():
            where = layout.RESERVED + b"/" + layout.CHUNKS + b"/" + path
            name = ChunkedName.parse(path)
            if name is None:
                self._problems.add(where, "is not the name of a list of chunks")
                continue
            if (path, entry.oid) not in self._chunked:
                problem = self._damaged_chunks(name, entry.oid)
                self._chunked[path, entry.oid] = problem
            problem = self._chunked[path, entry.oid]
            if problem is not None:
                self._problems.add(where, problem)

    def _damaged_chunks(self, name: ChunkedName, root: bytes) -> str | None:
        try:
            if any(
                map(self._is_elsewhere, chunked.read_list(root, self._objects.tree))
            ):
                return None
            for _ in joined(self._objects, name, root):
                pass
        except CorruptError as exc:
            return exc.message
        except ValueError:
            return "is not a list of chunks"
        return None

    def _is_elsewhere(self, oid: bytes) -> bool:
        """Whether only the remote of this partial clone has an object."""
        return (
            self._objects.fetch is not None
            and not self._objects.exists(oid)
            and oid in self._promised()
        )


def check_hash(objects: Objects, oid: bytes, kind: str) -> None:
    """Raises if an object's content does not match its id.

    Raises:
        CorruptError: the content does not match, or the object is missing.
    """
    if not is_object(oid, kind, objects.read(oid, kind)):
        raise CorruptError(f"the object {oid.hex()} is damaged")


def _damage(objects: Objects, oid: bytes) -> str | None:
    """Returns what is wrong with a blob, or None."""
    try:
        _, size = objects.header(oid)
        digest = form_of(oid).hasher(BLOB, size)
        for chunk in objects.stream(oid):
            digest.update(chunk)
    except CorruptError as exc:
        return exc.message
    return None if digest.digest() == oid else f"the object {oid.hex()} is damaged"
