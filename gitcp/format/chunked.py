"""Large files stored in chunks: the pointer at their path, and their list (format.md, 27).

A chunked file is named by the id that git would give its content, and by its size. The
pointer, a small text, says no more than that name: equal contents have equal pointers.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gitcp.format.oid import PATTERN
from gitcp.format.tree import DIRECTORY, FILE, Entry, ReadTree, Tree, WriteTree

# Every pointer begins like this. A file of the user's that does is chunked, however small
# it is, so that none is ever taken for a pointer.
MAGIC = b"gitcp chunked file 1\n"
_TEXT = (
    "{name}\n"
    "This file is kept in chunks: the files below .gitcp/chunks/{name}/ of this commit,\n"
    "in the order of their paths, one after the other. `gitcp cat` and `gitcp restore` put\n"
    "them together; so does\n"
    "git ls-tree -r COMMIT .gitcp/chunks/{name}/ | cut -f1 | cut -d' ' -f3"
    " | while read i; do git cat-file blob $i; done\n"
)
_EMPTY, _TIMES = len(MAGIC + _TEXT.format(name="").encode()), _TEXT.count("{name}")
# Characters of a name: an id of either form, and a size.
_LENGTHS = {size + digits for size in (41, 65) for digits in range(1, 17)}
_NAME = re.compile(rf"({PATTERN})-(0|[1-9][0-9]{{0,15}})")
# A group ends with a chunk whose id ends in this byte, so that a chunk which is put in
# changes one group only, or when it has so many.
_LAST = 0
_MOST = 0x1000
_GROUPS = 0x10000


class ChunkedName(NamedTuple):
    """The name of a chunked file: the id of its whole content as a blob, and its size."""

    content: bytes
    size: int

    @property
    def path(self) -> bytes:
        """The directory of its list below `.gitcp/chunks`."""
        return f"{self.content.hex()}-{self.size}".encode()

    @property
    def pointer(self) -> bytes:
        """The text at the file's path in the tree."""
        return MAGIC + _TEXT.format(name=self.path.decode()).encode()

    @classmethod
    def parse(cls, path: bytes) -> "ChunkedName | None":
        """Returns the name that a directory below `.gitcp/chunks` gives, or None."""
        found = _NAME.fullmatch(path.decode("ascii", "replace"))
        if found is None:
            return None
        return cls(bytes.fromhex(found[1]), int(found[2]))


def may_be_pointer(size: int) -> bool:
    """Whether a pointer may have so many bytes: few other files have."""
    length, rest = divmod(size - _EMPTY, _TIMES)
    return not rest and length in _LENGTHS


def write_list(chunks: Iterable[bytes], write: WriteTree) -> bytes:
    """Stores the list of a file's chunks, given by their ids; returns the id of its tree.

    Raises:
        ValueError: there are more than a list can hold.
    """
    groups: dict[bytes, Entry] = {}
    group: dict[bytes, Entry] = {}

    def close() -> None:
        if len(groups) == _GROUPS:
            raise ValueError("more chunks than a list can hold")
        groups[b"%04x" % len(groups)] = Entry(DIRECTORY, write(group.copy()))
        group.clear()

    for oid in chunks:
        group[b"%03x" % len(group)] = Entry(FILE, oid)
        if oid[-1] == _LAST or len(group) == _MOST:
            close()
    if group or not groups:
        close()
    return write(groups)


def read_list(root: bytes, read: ReadTree) -> Iterator[bytes]:
    """Yields the ids of the chunks in a list, in order.

    Raises:
        ValueError: the tree is not a list of chunks.
    """
    for entry in _in_order(read(root), DIRECTORY):
        for inner in _in_order(read(entry.oid), FILE):
            yield inner.oid


def _in_order(entries: Tree, mode: int) -> Iterator[Entry]:
    for name in sorted(entries):
        if entries[name].mode != mode:
            raise ValueError("not a list of chunks")
        yield entries[name]
