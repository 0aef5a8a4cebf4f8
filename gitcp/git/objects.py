"""The interface to a repository's objects; `git.libgit` is the usual implementation."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext

from gitcp.errors import CorruptError
from gitcp.format import tree as trees
from gitcp.format.chunked import MAGIC, ChunkedName, read_list
from gitcp.format.commit import Commit, parse_commit
from gitcp.format.oid import ObjectFormat
from gitcp.git.chunked import ChunkedFiles

# Above this an object is streamed, so that memory stays flat.
IN_MEMORY = 8 * 1024 * 1024
# Each takes some 250 bytes.
_CACHED_ENTRIES = 600_000

BLOB = "blob"
TREE = "tree"
COMMIT = "commit"


# So many reads by git take as long as loading libgit2.
FEW = 600


class Objects(ABC):
    """The objects of a repository; oids are raw bytes, as long as `form` says.

    No implementation returns wrong bytes: if content and id differ, it raises.
    """

    def __init__(self, form: ObjectFormat) -> None:
        self.form = form
        self._trees: dict[bytes, trees.Tree] = {}
        self._pinned: dict[bytes, trees.Tree] = {}
        self._cached = 0
        self.chunked = ChunkedFiles(self.tree, form, self._is_sound)
        # In a partial clone: fetches those of some objects that are missing.
        self.fetch: Callable[[Objects, Iterable[bytes]], None] | None = None

    def bring(self, oids: Iterable[bytes]) -> None:
        """Fetches missing objects that a remote has promised.

        Of a chunked file these are its chunks.

        Raises:
            TransferError: no remote sends them.
        """
        if self.fetch is not None:
            self.fetch(self, self._pieces(oids))

    def _pieces(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        for oid in oids:
            if oid in self.chunked:
                yield from self.chunked.chunks(oid)
            else:
                yield oid

    def files(self, oid: bytes) -> trees.Tree:
        """Returns a tree of files: at the path of a chunked one is the id of its content.

        Raises:
            CorruptError: as `tree`.
        """
        return self.chunked.meant(self.tree(oid))

    def content(self, oid: bytes) -> Iterator[bytes]:
        """Yields the content of a file in pieces; see `files`.

        Raises:
            CorruptError: the object is missing or damaged. What was yielded before must not be
                kept then.
        """
        if oid not in self.chunked:
            yield from _no_pointer(self.stream(oid))
        elif _is_chunked(self, oid):
            yield from joined(self, self.chunked.name(oid), self.chunked.root(oid))
        else:
            yield from self.stream(oid)

    def _is_sound(self, listed: tuple[ChunkedName, bytes]) -> bool:
        try:
            for _ in joined(self, *listed):
                pass
        except CorruptError:
            return False
        return True

    @abstractmethod
    def exists(self, oid: bytes) -> bool:
        """Whether the object is there."""

    @abstractmethod
    def header(self, oid: bytes) -> tuple[str, int]:
        """Returns kind and size without reading the content.

        Raises:
            CorruptError: the object is missing or damaged.
        """

    @abstractmethod
    def read(self, oid: bytes, kind: str) -> bytes:
        """Returns the content of an object.

        Raises:
            CorruptError: the object is missing, damaged, or of another kind.
        """

    @abstractmethod
    def stream(self, oid: bytes) -> Iterator[bytes]:
        """Yields the content of a blob of any size in chunks.

        Raises:
            CorruptError: the object is missing or damaged. What was yielded before must not be
                kept then.
        """

    def streams(self, oids: Iterable[bytes]) -> Generator[Iterator[bytes], None, None]:
        """Yields the content of many blobs, each in chunks as `stream` does.

        Each has to be consumed before the next. `oids` may be taken ahead.
        """
        for oid in oids:
            yield self.stream(oid)

    def contents(self, oids: Iterable[bytes]) -> Generator[Iterator[bytes], None, None]:
        """Yields the contents of many files, each as `content` does; see `streams`."""
        order: deque[bytes] = deque()

        def plain() -> Iterator[bytes]:
            for oid in oids:
                order.append(oid)
                if oid not in self.chunked:
                    yield oid

        with closing(self.streams(plain())) as found:
            for content in found:
                while order[0] in self.chunked:
                    yield self.content(order.popleft())
                order.popleft()
                yield _no_pointer(content)
            while order:
                yield self.content(order.popleft())

    def few_reads(
        self,
        most: int = FEW,  # noqa: ARG002  most have one way to read
    ) -> AbstractContextManager[None]:
        """Prefers an early start to fast reading, for `most` reads inside."""
        return nullcontext()

    def expect(self, reads: int) -> None:  # noqa: B027  as above
        """Notes that about so many reads follow, among `few_reads`."""

    def blob(self, oid: bytes) -> bytes:
        """Returns the content of a blob that fits in memory."""
        return self.read(oid, BLOB)

    def tree(self, oid: bytes) -> trees.Tree:
        """Returns a parsed tree; trees are cached.

        Raises:
            CorruptError: the object is missing, or not a tree.
        """
        tree = self._pinned.get(oid) or self._trees.get(oid)
        if tree is None:
            try:
                tree = trees.parse(self.read(oid, TREE), self.form.size)
            except ValueError as exc:
                raise damaged(oid, exc) from exc
            self._cached += len(tree) + 1
            if self._cached > _CACHED_ENTRIES:
                self._trees.clear()
                self._cached = len(tree) + 1
            self._trees[oid] = tree
        return tree

    def pin(self, raw: bytes) -> bytes:
        """Makes a tree readable without storing it, and returns its oid.

        The root tree without `.gitcp` is one: no commit holds it.
        """
        oid = self.form.oid(TREE, raw)
        self._pinned[oid] = trees.parse(raw, self.form.size)
        return oid

    def commit(self, oid: bytes) -> Commit:
        """Returns a parsed commit.

        Raises:
            CorruptError: the object is missing, or not a commit.
        """
        try:
            return parse_commit(self.read(oid, COMMIT), self.form.size)
        except ValueError as exc:
            raise damaged(oid, exc) from exc


def size_of(objects: Objects, oid: bytes) -> int:
    """Returns the size of a file's content; see `Objects.files`.

    Raises:
        CorruptError: the object is missing or damaged.
    """
    if _is_chunked(objects, oid):
        return objects.chunked.name(oid).size
    return objects.header(oid)[1]


def joined(objects: Objects, name: ChunkedName, root: bytes) -> Iterator[bytes]:
    """Yields the content that a list of chunks has.

    Raises:
        CorruptError: a chunk is missing, or they are not what the name says.
    """
    left = name.size
    digest = objects.form.hasher(BLOB, left)
    try:
        for data in (
            piece
            for chunk in read_list(root, objects.tree)
            for piece in objects.stream(chunk)
        ):
            left -= len(data)
            if left < 0:
                break
            digest.update(data)
            yield data
    except ValueError as exc:
        raise damaged(name.content, exc) from exc
    if left or digest.digest() != name.content:
        raise damaged(name.content, ValueError("its chunks do not match its name"))


def _is_chunked(objects: Objects, oid: bytes) -> bool:
    """Whether a file's content is only there in chunks, as far as is known.

    git checks a whole blob by its id. A list is only what a checkpoint says.
    """
    return oid in objects.chunked and not objects.exists(oid)


def _no_pointer(content: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the content of a file, unless it would be taken for a pointer: none is stored so."""
    for piece in content:
        if piece.startswith(MAGIC):
            raise CorruptError(
                "it is a pointer to chunks that no list names",
                hint="run `gitcp verify`",
            )
        yield piece


def wrong_kind(oid: bytes, found: str, kind: str) -> CorruptError:
    """Returns the error for an object of another kind than it should be."""
    return CorruptError(
        f"the object {oid.hex()} is a {found}, not a {kind}",
        hint="run `gitcp verify` and `git fsck`",
    )


def damaged(oid: bytes, cause: Exception) -> CorruptError:
    """Returns the error for an object that cannot be read; a KeyError: it is missing."""
    if isinstance(cause, OSError):
        # Too many open files, or a failing disk: the object may well be whole.
        return CorruptError(
            f"the object {oid.hex()} cannot be read: {cause}",
            hint="run the command again once the disk works, then `gitcp verify`",
        )
    missing = isinstance(cause, KeyError)
    return CorruptError(
        f"the object {oid.hex()} is {'missing' if missing else f'damaged: {cause}'}",
        hint="run `gitcp verify` to see which checkpoints need it",
    )
