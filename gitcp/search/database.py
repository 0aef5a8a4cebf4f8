"""The index as an SQLite file: opens and checks it, and discards a damaged one."""

import os
import sqlite3
from pathlib import Path

from gitcp.errors import ProgramNotFoundError
from gitcp.git.repository import Repository
from gitcp.search.passages import COLUMNS

# An index of another version is rebuilt from the start.
_VERSION = 2
# Bytes of memory for words before they are written: more memory means fewer merges, and a
# smaller index.
_MEMORY = 32 << 20
_MAPPED = 2 << 30
_TABLES = (
    # The checkpoint up to which each branch is indexed.
    "CREATE TABLE tips(branch TEXT PRIMARY KEY, oid BLOB NOT NULL) WITHOUT ROWID",
    # `parent` is the one below it on its branch; it is `whole` if it and all below could be
    # read. A first checkpoint has only the files that differ from those of its `base`.
    (
        "CREATE TABLE checkpoints(n INTEGER PRIMARY KEY, oid BLOB NOT NULL UNIQUE,"
        " parent INTEGER, ident TEXT NOT NULL, session TEXT NOT NULL, branch TEXT NOT NULL,"
        " created REAL NOT NULL, agent TEXT, whole INTEGER NOT NULL, base INTEGER)"
    ),
    "CREATE INDEX made_at ON checkpoints(created, n)",
    # A source is indexed once, even if many checkpoints have it: a segment of a log, a note,
    # a path. `asked_source` and `asked_start` are the last prompt up to its end.
    (
        "CREATE TABLE sources(n INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE,"
        " lines INTEGER NOT NULL, asked_source INTEGER, asked_start INTEGER)"
    ),
    # The checkpoint that adds a source to the one before, and the place in its logs.
    (
        "CREATE TABLE adds(source INTEGER NOT NULL, checkpoint INTEGER NOT NULL,"
        " place BLOB, line INTEGER NOT NULL, PRIMARY KEY(source, checkpoint)) WITHOUT ROWID"
    ),
    "CREATE INDEX added ON adds(checkpoint)",
    (
        "CREATE TABLE passages(n INTEGER PRIMARY KEY, source INTEGER NOT NULL,"
        " start INTEGER NOT NULL, size INTEGER NOT NULL, line INTEGER NOT NULL,"
        " asked_source INTEGER, asked_start INTEGER, at REAL)"
    ),
    "CREATE INDEX passages_of ON passages(source)",
    # Contents of files, searched in git itself.
    (
        "CREATE TABLE contents(checkpoint INTEGER NOT NULL, path BLOB NOT NULL,"
        " oid BLOB NOT NULL, PRIMARY KEY(checkpoint, path)) WITHOUT ROWID"
    ),
    (
        f"CREATE VIRTUAL TABLE words USING fts5({', '.join(COLUMNS)}, content='',"
        " tokenize='unicode61 remove_diacritics 0')"
    ),
)
# SQLite's errors if the disk does not allow writing an index.
_REFUSED = frozenset(
    {
        *(sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM),
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    }
)


class StaleIndexError(Exception):
    """So much of the index is obsolete that a new one is better."""


def refused(exc: sqlite3.Error) -> bool:
    """Whether an error means that the disk does not allow writing an index."""
    return getattr(exc, "sqlite_errorcode", 0) & 0xFF in _REFUSED


def check_supported() -> None:
    """Raises if this Python's SQLite cannot search.

    Raises:
        ProgramNotFoundError: SQLite was built without FTS5.
    """
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE tried USING fts5(words)")
    except sqlite3.OperationalError as exc:
        raise ProgramNotFoundError(
            f"the SQLite of this Python ({sqlite3.sqlite_version}) has no FTS5: {exc}",
            hint="use a Python whose SQLite has FTS5, for instance from Debian,"
            " Fedora, Homebrew or python.org; or use `gitcp log --grep`",
        ) from exc
    finally:
        connection.close()


def temporary() -> sqlite3.Connection:
    """Returns an empty index that is removed when it is closed."""
    return _prepared(sqlite3.connect("", isolation_level=None), new=True)


def open_to_write(path: Path, repository: Repository) -> sqlite3.Connection:
    """Opens the index, or makes it; the caller holds its lock.

    Raises:
        sqlite3.Error: the index is damaged, of another version, or the disk refused.
        OSError: the disk refused.
    """
    new = not path.exists()
    if new:
        # SQLite gives its files beside the index the same permissions.
        os.close(
            os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        )
        repository.access.adjust(path)
    connection = sqlite3.connect(path, isolation_level=None)
    return _prepared(connection, new=new)


def open_to_read(path: Path) -> sqlite3.Connection:
    """Opens an existing index for reading.

    Raises:
        sqlite3.Error: the index is missing, damaged or of another version.
    """
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None
    )
    return _prepared(connection)


def _prepared(
    connection: sqlite3.Connection, *, new: bool = False
) -> sqlite3.Connection:
    """Returns a connection that is ready; closes it if the index cannot be used."""
    try:
        _tune(connection)
        if new:
            _make(connection)
        _check(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _tune(connection: sqlite3.Connection) -> None:
    for setting in (
        # It counts before the first table is made, and does nothing after that.
        "page_size = 8192",
        # The file may have come with a repository, so its schema must not call functions.
        *("trusted_schema = OFF", "cell_size_check = ON"),
        *("synchronous = NORMAL", "temp_store = MEMORY"),
        *(f"mmap_size = {_MAPPED}", "cache_size = -65536"),
    ):
        connection.execute(f"PRAGMA {setting}")


def _make(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(
        "INSERT INTO words(words, rank) VALUES('hashsize', ?)", (_MEMORY,)
    )
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")


def _check(connection: sqlite3.Connection) -> None:
    """Raises unless the tables are exactly those that gitcp makes."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    found = {
        statement
        for (statement,) in connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
        )
    }
    own = {one for one in found if "'words_" not in one}
    if version != _VERSION or own != set(_TABLES):
        raise sqlite3.DatabaseError("it is not an index of this version")
