"""Programs that never stop writing, in one process; run by test_writers.py.

    python writer.py TREE LOG SEED SIZE NAME...

Each edit puts a token of its own into a file of TREE. It counts where the file had its
name before the edit and has it after: then `done TOKEN TIME PATH` goes to LOG. What an
edit takes out of the file that it has open is `gone TOKEN`: the program did that itself.
It makes an edit each LOG.pace seconds, more or less, and ends once that is empty.
"""

from __future__ import annotations

import os
import random
import re
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

TOKEN = re.compile(rb"<[0-9a-f]{12}>")
_SLOT = 14


class Writer:
    """Edits files in one of five ways each, which its name begins with."""

    def __init__(self, tree: Path, log: Path, seed: int, size: int) -> None:
        self._tree = tree
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._chance = random.Random(seed)
        self._seed = seed
        self._size = size
        self._number = 0

    def edit(self, name: str) -> None:
        """Makes one edit in the way that a file's name says."""
        self._number += 1
        token = b"<%04x%08x>" % (self._seed & 0xFFFF, self._number)
        ways: dict[str, Callable[[Path, bytes], bool]] = {
            "append": self._append,
            "slots": self._in_place,
            "whole": self._truncate,
            "saved": self._by_rename,
            "table": self._in_table,
        }
        path = self._tree / name
        try:
            counts = ways[path.name.split("-")[0]](path, token)
        except (FileNotFoundError, sqlite3.Error):
            return
        if counts:
            self._note(b"done %s %d %s" % (token, time.monotonic_ns(), name.encode()))

    def _note(self, line: bytes) -> None:
        os.write(self._log, line + b"\n")

    def _gone(self, content: bytes) -> None:
        found = TOKEN.findall(content)
        if found:
            self._note(b"\n".join(b"gone " + token for token in found))

    def _append(self, path: Path, token: bytes) -> bool:
        """A log; from time to time it begins again."""
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            named = _is_named(fd, path)
            if os.fstat(fd).st_size > self._size + 20_000:
                self._gone(os.pread(fd, os.fstat(fd).st_size, 0))
                os.ftruncate(fd, 0)
                os.write(fd, b"x" * self._size)
            os.write(fd, token + b"\n")
            return named and _is_named(fd, path)
        finally:
            os.close(fd)

    def _in_place(self, path: Path, token: bytes) -> bool:
        """A few bytes somewhere in a file, whose size stays."""
        fd = os.open(path, os.O_RDWR)
        try:
            named = _is_named(fd, path)
            slots = max(os.fstat(fd).st_size // _SLOT, 1)
            at = self._chance.randrange(slots) * _SLOT
            self._gone(os.pread(fd, 3 * _SLOT, max(at - _SLOT, 0)))
            os.pwrite(fd, token, at)
            return named and _is_named(fd, path)
        finally:
            os.close(fd)

    def _truncate(self, path: Path, token: bytes) -> bool:
        """The whole file again, into the same file."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            named = _is_named(fd, path)
            self._gone(os.pread(fd, os.fstat(fd).st_size, 0))
            os.ftruncate(fd, 0)
            os.write(fd, token + b"\n" + b"x" * self._size)
            return named and _is_named(fd, path)
        finally:
            os.close(fd)

    def _by_rename(self, path: Path, token: bytes) -> bool:
        """As editors save: what was read, and more, under a new name, then renamed."""
        old = path.read_bytes()
        if len(old) > self._size + 20_000:
            self._gone(old)
            old = b"y" * self._size
        # Ignored: until it has its name it is not an edit.
        new = path.with_name(f"{path.name}.swp")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        try:
            os.write(fd, old + token + b"\n")
            os.rename(new, path)
            return _is_named(fd, path)
        finally:
            os.close(fd)

    def _in_table(self, path: Path, token: bytes) -> bool:
        """A row of an SQLite database."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT)
        try:
            named = _is_named(fd, path)
            with sqlite3.connect(path, timeout=1, isolation_level=None) as connection:
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute("CREATE TABLE IF NOT EXISTS t (x TEXT)")
                connection.execute("INSERT INTO t VALUES (?)", (token.decode(),))
            connection.close()
            return named and _is_named(fd, path)
        finally:
            os.close(fd)


def _is_named(fd: int, path: Path) -> bool:
    """Whether a path leads to the file that is open."""
    mine = os.fstat(fd)
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return mine.st_nlink > 0 and (mine.st_ino, mine.st_dev) == (
        there.st_ino,
        there.st_dev,
    )


def main() -> None:
    tree, log, pace = Path(sys.argv[1]), Path(sys.argv[2]), Path(f"{sys.argv[2]}.pace")
    seed, size = map(int, sys.argv[3:5])
    names = sys.argv[5:]
    writer = Writer(tree, log, seed, size)
    chance = random.Random(seed)
    while seconds := pace.read_text():
        writer.edit(chance.choice(names))
        time.sleep(2 * chance.random() * float(seconds))


if __name__ == "__main__":
    main()
