"""Makes one consistent file of a SQLite database and its write-ahead log.

gitcp only reads the user's files, and SQLite opens copies of them. But if a process never
stops writing, SQLite opens the originals, read-only, and without writing to the index of
the log beside them (`-shm`): its locks keep what it reads.
"""

import errno
import os
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from gitcp.worktree import files
from gitcp.worktree.clock import Clock
from gitcp.worktree.files import Root, Seen, seen_of
from gitcp.worktree.names import WAL

# The header of a write-ahead log changes when SQLite restarts the log.
_HEAD = 32
_TRIES = 4
_STEP = 1_000
_SMALLEST_PAGE = 512
_Both = tuple[Seen, Seen]


class Backup(NamedTuple):
    """A database in one file, and the stats of its two files, if a change of them will show.

    `made` is None if SQLite cannot read it. It is `torn` if that is because another
    process writes: its files, read one after the other, may not match.
    """

    made: Path | None
    seen: _Both | None = None
    torn: bool = False


@contextmanager
def backup_of(
    root: Root, clock: Clock, scratch: Path, path: bytes, fd: int
) -> Iterator[Backup]:
    """Backs up a database that is open as `fd`; the file is gone at the end.

    Raises:
        OSError: there is no room for it.
    """
    with tempfile.TemporaryDirectory(dir=scratch, prefix="sqlite-") as name:
        place = Path(name)
        copied, seen = _copied(root, clock, path, fd, place)
        found = Backup(place / "backup", seen)
        try:
            if copied:
                _back_up(f"file:{_quoted(place / 'copy')}?mode=rw", place, _size(place))
            else:
                at = Path(f"/proc/self/fd/{root.fd}")
                top = at.resolve() if at.exists() else Path(_path_of(root.fd))
                file = os.fsencode(top) + b"/" + path
                _back_up(f"file:{_quoted(file)}?mode=ro&readonly_shm=1", place, None)
        except (sqlite3.Error, ValueError) as exc:
            if getattr(exc, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from exc
            found = Backup(None, None, not copied)
        yield found


def _path_of(fd: int) -> str:
    """Returns the path of a directory if there is no /proc."""
    import fcntl  # noqa: PLC0415  macOS only

    raw = fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024))  # type: ignore[attr-defined]
    return os.fsdecode(raw.rstrip(b"\0"))


def _quoted(path: Path | bytes) -> str:
    return urllib.parse.quote(os.fsencode(path))


def _copied(
    root: Root, clock: Clock, path: bytes, fd: int, place: Path
) -> tuple[bool, _Both | None]:
    """Copies a database and its log as they were at one moment; whether that went well.

    If a log grows meanwhile, SQLite uses it up to the last complete transaction. If it
    was restarted, it has nothing that the database lacks.
    """
    for _ in range(_TRIES):
        before = os.fstat(fd)
        if not clock.shows_changes(before) and clock.wait(before):
            continue
        try:
            log = root.open(path + WAL)
        except OSError:
            return False, None
        try:
            status = os.fstat(log)
            head = os.pread(log, _HEAD, 0)
            _copy(fd, place / "copy")
            _copy(log, place / "copy-wal")
            same = head == os.pread(log, _HEAD, 0)
        finally:
            os.close(log)
        if same and seen_of(before) == seen_of(os.fstat(fd)):
            sure = clock.shows_changes(status)
            return True, (seen_of(before), seen_of(status)) if sure else None
    return False, None


def _copy(fd: int, target: Path) -> None:
    os.lseek(fd, 0, os.SEEK_SET)
    with target.open("wb") as file:
        for piece in files.chunks(fd):
            file.write(piece)
    os.lseek(fd, 0, os.SEEK_SET)


def _size(place: Path) -> int:
    return sum((place / name).stat().st_size for name in ("copy", "copy-wal"))


def _back_up(source: str, place: Path, most: int | None) -> None:
    """Backs a database up into the file `backup`, of at most `most` bytes.

    Raises:
        sqlite3.Error: it is damaged, or locked by another process.
        ValueError: its log says that it has more bytes than both files.
    """
    with (
        closing(sqlite3.connect(source, uri=True, isolation_level=None)) as opened,
        closing(sqlite3.connect(place / "backup", isolation_level=None)) as copy,
    ):
        copy.execute("PRAGMA synchronous = OFF")

        def check(_: int, left: int, total: int) -> None:
            del left
            if most is not None and total * _SMALLEST_PAGE > most:
                raise ValueError("a database that is larger than its files")

        if most is None:
            # A copy is of one moment, however many steps it takes.
            opened.execute("BEGIN")
            opened.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        opened.backup(copy, pages=_STEP, progress=check)
