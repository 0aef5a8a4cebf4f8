"""Reading objects, in this process (pygit2's Odb) and streamed (git cat-file)."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gitcp.errors import CorruptError
from gitcp.format import tree as trees
from gitcp.format.commit import Commit, parse_commit
from gitcp.git import process

if TYPE_CHECKING:
    import pygit2

# Above this an object is streamed, so that memory stays flat.
IN_MEMORY = 8 * 1024 * 1024
_CHUNK = 1024 * 1024
_CACHED_TREES = 20_000
# `<oid> <kind> <size>`; `<oid> missing` has one word less.
_HEAD_WORDS = 3

BLOB = "blob"
TREE = "tree"
COMMIT = "commit"
# By git's numbers: pygit2's enum is not loaded yet.
_KINDS = {1: COMMIT, 2: TREE, 3: BLOB, 4: "tag"}


def object_id(kind: str, data: bytes) -> bytes:
    """Returns the oid (20 raw bytes) of an object."""
    head = f"{kind} {len(data)}\0".encode()
    return hashlib.sha1(head + data, usedforsecurity=False).digest()


class Objects:
    """The objects of a repository; oids are 20 raw bytes.

    libgit2 checks each object against its id as it reads, so damage surfaces as an
    error and never as wrong bytes.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._batch: process.Process | None = None
        self._trees: dict[bytes, trees.Tree] = {}
        self._pinned: dict[bytes, trees.Tree] = {}

    @cached_property
    def _odb(self) -> "pygit2.Odb":
        # Loading takes as long as git needs for a scan, which is under way by then.
        import pygit2  # noqa: PLC0415

        self._id = pygit2.Oid
        self._errors = (pygit2.GitError, KeyError, OSError)
        return pygit2.Odb(str(self._directory))

    @contextmanager
    def few_reads(self) -> Iterator[None]:
        """Has git read the objects in here: it starts sooner than libgit2 loads.

        Worth it for a few hundred; each costs some ten times as much.
        """
        self._batch = process.start(
            ["cat-file", "--batch"], cwd=self._directory.parent, stdin=process.PIPE
        )
        try:
            yield
        finally:
            batch, self._batch = self._batch, None
            batch.communicate()

    def _ask(self, batch: process.Process, oid: bytes) -> tuple[str, bytes]:
        assert batch.stdin is not None
        assert batch.stdout is not None
        batch.stdin.write(oid.hex().encode() + b"\n")
        batch.stdin.flush()
        head = batch.stdout.readline().split()
        if len(head) != _HEAD_WORDS:
            raise KeyError(oid.hex())
        size = int(head[2])
        data = batch.stdout.read(size + 1)[:size]
        kind = head[1].decode()
        # Git does not compare what it reads with the id.
        if object_id(kind, data) != oid:
            raise ValueError("its content does not match its id")
        return kind, data

    def exists(self, oid: bytes) -> bool:
        """Whether the object is there."""
        odb = self._odb
        return odb.exists(self._id(raw=oid))

    def header(self, oid: bytes) -> tuple[str, int]:
        """Returns kind and size without reading the content.

        Raises:
            CorruptError: it is missing or damaged.
        """
        odb = self._odb
        try:
            kind, size = odb.read_header(self._id(raw=oid))
        except self._errors as exc:
            raise _damaged(oid, exc) from exc
        return _KINDS[kind], size

    def read(self, oid: bytes, kind: str) -> bytes:
        """Returns the content of an object.

        Raises:
            CorruptError: it is missing, damaged, or of another kind.
        """
        if self._batch is not None:
            try:
                found, data = self._ask(self._batch, oid)
            except (KeyError, ValueError, OSError) as exc:
                raise _damaged(oid, exc) from exc
        else:
            odb = self._odb
            try:
                number, data = odb.read(self._id(raw=oid))
            except self._errors as exc:
                raise _damaged(oid, exc) from exc
            found = _KINDS[number]
        if found != kind:
            raise CorruptError(
                f"the object {oid.hex()} is a {found}, not a {kind}",
                hint="run `gitcp verify` and `git fsck`",
            )
        return data

    def blob(self, oid: bytes) -> bytes:
        """Returns the content of a blob that fits in memory."""
        return self.read(oid, BLOB)

    def tree(self, oid: bytes) -> trees.Tree:
        """Returns a parsed tree; trees are cached.

        Raises:
            CorruptError: it is missing or no tree.
        """
        found = self._pinned.get(oid) or self._trees.get(oid)
        if found is None:
            try:
                found = trees.parse(self.read(oid, TREE))
            except ValueError as exc:
                raise _damaged(oid, exc) from exc
            if len(self._trees) >= _CACHED_TREES:
                self._trees.clear()
            self._trees[oid] = found
        return found

    def pin(self, raw: bytes) -> bytes:
        """Makes a tree readable that need not be stored, and returns its oid.

        The root tree without `.gitcp` is one: no commit holds it.
        """
        oid = object_id(TREE, raw)
        self._pinned[oid] = trees.parse(raw)
        return oid

    def commit(self, oid: bytes) -> Commit:
        """Returns a parsed commit.

        Raises:
            CorruptError: it is missing or no commit.
        """
        try:
            return parse_commit(self.read(oid, COMMIT))
        except ValueError as exc:
            raise _damaged(oid, exc) from exc

    def stream(self, oid: bytes) -> Iterator[bytes]:
        """Yields the content of a blob of any size in chunks.

        Raises:
            CorruptError: it is missing or damaged. The hash is checked here too: what
                was yielded before must not be kept then.
        """
        _, size = self.header(oid)
        if size <= IN_MEMORY:
            yield self.blob(oid)
            return
        reader = process.start(
            ["cat-file", "blob", oid.hex()], cwd=self._directory.parent
        )
        assert reader.stdout is not None
        digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        try:
            while chunk := reader.stdout.read(_CHUNK):
                digest.update(chunk)
                yield chunk
        finally:
            reader.stdout.close()
            reader.communicate()
        if reader.returncode or digest.digest() != oid:
            raise _damaged(oid, ValueError("its content does not match its id"))


def _damaged(oid: bytes, cause: Exception) -> CorruptError:
    if isinstance(cause, OSError):
        # Too many open files, or a failing disk: the object may well be whole.
        return CorruptError(
            f"the object {oid.hex()} cannot be read: {cause}",
            hint="run the command again once the disk is well; then `gitcp verify`",
        )
    missing = isinstance(cause, KeyError)
    return CorruptError(
        f"the object {oid.hex()} is {'missing' if missing else f'damaged: {cause}'}",
        hint="run `gitcp verify` to see which checkpoints need it",
    )
