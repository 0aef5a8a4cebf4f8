"""Purges chunked files: searches each as a whole, and cuts it into chunks again."""

from collections.abc import Collection
from typing import NamedTuple

from gitcp.errors import CorruptError
from gitcp.format import tree
from gitcp.format.chunked import ChunkedName
from gitcp.format.tree import DIRECTORY, Entry
from gitcp.git.objects import BLOB
from gitcp.git.transaction import Transaction
from gitcp.purge.redact import Eraser
from gitcp.worktree.chunks import ChunkWriter

# How many bytes are scanned at once, and how many of them again with the next ones: no
# purged value is longer than that, in any encoding.
_AT_ONCE = 16 << 20
_AGAIN = 1 << 20


class _File(NamedTuple):
    """A chunked file after the purge: its name, and its list."""

    name: ChunkedName
    root: bytes


class ChunkedPurge:
    """Decides the new content of chunked files, one checkpoint after another.

    `pointers` maps the pointers of changed files to new ones; `gone` are objects that they
    no longer need.
    """

    def __init__(self, opened: Transaction, eraser: Eraser | None) -> None:
        self._opened = opened
        self._objects = opened.objects
        self._eraser = eraser
        self._writer = ChunkWriter(opened, 0)
        self._files: dict[bytes, _File] = {}
        self.pointers: dict[bytes, bytes] = {}
        self.gone: set[bytes] = set()

    def look(self, lists: Entry | None) -> None:
        """Purges the files in a tree of lists; each once.

        Raises:
            CorruptError: a file cannot be read.
        """
        if lists is None:
            return
        self._objects.chunked.learn(lists.oid)
        for path, entry in self._objects.tree(lists.oid).items():
            name = ChunkedName.parse(path)
            if name is None or entry.mode != DIRECTORY:
                raise CorruptError(
                    f".gitcp/chunks/{path.decode('ascii', 'backslashreplace')} is not a"
                    " list of chunks",
                    hint="run `gitcp verify`",
                )
            if path not in self._files:
                self._files[path] = self._purged(name, entry.oid)

    def left(
        self, lists: Entry | None, root: bytes | None, paths: Collection[bytes]
    ) -> Entry | None:
        """Returns the lists that are still needed after some paths were removed."""
        if lists is None:
            return None
        before = self._objects.tree(lists.oid)
        needed = self._pointers_in(root) if paths else None
        made: dict[bytes, Entry] = {}
        for path in before:
            file = self._files[path]
            if needed is None or self._pointer(file.name) in needed:
                made[file.name.path] = Entry(DIRECTORY, file.root)
            else:
                self.gone |= tree.below(before[path].oid, self._opened.tree)
        if made == before:
            return lists
        self.gone.add(lists.oid)
        return Entry(DIRECTORY, self._opened.add_tree(made)) if made else None

    def _pointers_in(self, root: bytes | None) -> set[bytes]:
        return {entry.oid for _, entry in tree.walk(root, self._opened.tree)}

    def _pointer(self, name: ChunkedName) -> bytes:
        return self._objects.form.oid(BLOB, name.pointer)

    def _purged(self, name: ChunkedName, root: bytes) -> _File:
        if self._eraser is None or not self._holds(name.content, self._eraser):
            return _File(name, root)
        # The whole file in memory, because a value may span two parts of it.
        made = self._eraser.erased(b"".join(self._objects.content(name.content)))
        content = self._writer.write(iter([made]), len(made))
        assert content is not None
        new = _File(*self._writer.file(content))
        self.pointers[self._pointer(name)] = self._pointer(new.name)
        kept = tree.below(new.root, self._opened.tree)
        self.gone |= (tree.below(root, self._opened.tree) - kept) | {
            self._pointer(name)
        }
        return new

    def _holds(self, content: bytes, eraser: Eraser) -> bool:
        part = bytearray()
        for piece in self._objects.content(content):
            part += piece
            if len(part) >= _AT_ONCE:
                if eraser.holds(bytes(part)):
                    return True
                del part[:-_AGAIN]
        return eraser.holds(bytes(part))
