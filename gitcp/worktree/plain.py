"""Reads small ordinary files with as few system calls as possible, for very many files.

Most files of a work tree are ordinary. Every other file, and every doubtful one, is left to
`read`: nothing here waits, reads twice, or reports. Processes that do nothing else
(`plain_worker`) load this module, so it imports little.
"""

import os
import stat
from typing import NamedTuple

from gitcp.format.chunked import MAGIC as POINTER
from gitcp.format.index import Stat
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import EXECUTABLE, FILE, LINK
from gitcp.worktree import files
from gitcp.worktree.files import Root

# Reading a larger file takes so long that the system calls around it do not matter.
MOST = 1024 * 1024
DATABASE = b"SQLite format 3\0"
_LEFT = (DATABASE, POINTER)
_BILLION = 1_000_000_000
# The width of a number in the index.
_U32 = 0xFFFFFFFF


class Proof(NamedTuple):
    """What time stamps prove on one disk: a change after the `moment` gives another stamp.

    `by_change` says which stamp counts: that of the last change, or that of the content.
    """

    device: int
    moment: int
    by_change: bool

    def covers(self, status: os.stat_result) -> bool:
        """Whether any later change of a file will show in its stat."""
        stamp = status.st_ctime_ns if self.by_change else status.st_mtime_ns
        return stamp < self.moment and status.st_dev == self.device


class PlainFile(NamedTuple):
    """A file that was read: its id and content, and the stat that matches them."""

    oid: bytes
    stat: Stat
    data: bytes


class PlainReader:
    """Reads files of a work tree up to a size, if that `proof` covers them."""

    def __init__(
        self, root: Root, form: ObjectFormat, proof: Proof, most: int = MOST
    ) -> None:
        self._root = root
        self._form = form
        self._proof = proof
        self._most = min(most, MOST)

    def read(self, path: bytes) -> PlainFile | None:
        """Reads a file; None if it is not an ordinary one, or changed meanwhile."""
        try:
            directory, name = self._root.parent(path)
            # Not by its descriptor: opening a device may have effects.
            before = os.stat(name, dir_fd=directory, follow_symlinks=False)
            size = before.st_size
            if (
                not stat.S_ISREG(before.st_mode)
                or size > self._most
                or not self._proof.covers(before)
            ):
                return None
            fd = files.open_file(directory, name)
            try:
                # One byte less than was requested: the file ends there.
                data = os.read(fd, size + 1)
                after = os.fstat(fd)
            finally:
                os.close(fd)
        except OSError:
            return None
        if len(data) != size or not _same(before, after) or data.startswith(_LEFT):
            return None
        return PlainFile(self._form.oid("blob", data), index_stat(after), data)


def _same(one: os.stat_result, two: os.stat_result) -> bool:
    return (
        one.st_mtime_ns == two.st_mtime_ns
        and one.st_ctime_ns == two.st_ctime_ns
        and one.st_size == two.st_size
        and one.st_ino == two.st_ino
        and one.st_mode == two.st_mode
        and one.st_dev == two.st_dev
    )


def tree_mode(status: os.stat_result) -> int:
    """Returns the mode a file or link has in a tree."""
    if stat.S_ISLNK(status.st_mode):
        return LINK
    return EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE


def index_stat(status: os.stat_result) -> Stat:
    """Returns the stat data as the index holds it."""
    changed, changed_ns = divmod(status.st_ctime_ns, _BILLION)
    modified, modified_ns = divmod(status.st_mtime_ns, _BILLION)
    return Stat(
        changed & _U32,
        changed_ns,
        modified & _U32,
        modified_ns,
        status.st_dev & _U32,
        status.st_ino & _U32,
        tree_mode(status),
        status.st_uid & _U32,
        status.st_gid & _U32,
        status.st_size & _U32,
    )
