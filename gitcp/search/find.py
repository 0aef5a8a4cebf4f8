"""Searches: updates the index, queries it, and reads each hit back from git."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from itertools import islice
from typing import NamedTuple

from gitcp.errors import StorageError
from gitcp.project import search_files
from gitcp.project.workspace import Workspace
from gitcp.search import database
from gitcp.search.build import Builder
from gitcp.search.contents import InFiles
from gitcp.search.database import StaleIndexError
from gitcp.search.hits import Filters, Found, Hit
from gitcp.search.passages import COLUMNS, FILES
from gitcp.search.read_back import Reader
from gitcp.search.words import Item, Query

# One in so many hits may be in a file, if there are more hits elsewhere.
_FILES = 3
# The number of passages ranked at once; of passages with a phrase's words, fewer have the
# phrase.
_RANKED = 3_000
_RANKED_OF_PHRASE = 6_000
_LAST = 2**62
# The weight of a word in each column.
_WEIGHTS = "bm25(4.0, 2.0, 1.0, 6.0, 6.0, 3.0)"


class _Index(NamedTuple):
    connection: sqlite3.Connection
    unreadable: list[str]
    unkept: str | None = None


def search(workspace: Workspace, query: Query, filters: Filters) -> Found:
    """Returns the best hits for a query.

    Raises:
        ProgramNotFoundError: this Python's SQLite cannot search.
        BusyError: another process kept the index.
        StorageError: the disk refused even a temporary index.
        UnsupportedRepositoryError: the index's directory is a symbolic link.
        GitFailedError: git could not be started.
    """
    database.check_supported()
    if not query.items:
        return Found([], [])
    try:
        return _searched(workspace, query, filters)
    except (sqlite3.DatabaseError, StaleIndexError):
        _throw_away(workspace)
    try:
        return _searched(workspace, query, filters)
    except sqlite3.Error as exc:
        raise StorageError(
            f"the index of the search cannot be used: {exc}",
            hint=f"check the disk of {search_files.index_of(workspace.repository)}",
        ) from exc


def _throw_away(workspace: Workspace) -> None:
    repository = workspace.repository
    with suppress(StorageError):
        search_files.remove_where_there(
            repository, timeout=workspace.settings.lock_timeout
        )


def _searched(workspace: Workspace, query: Query, filters: Filters) -> Found:
    index = _open(workspace)
    with ExitStack() as stack:
        stack.callback(index.connection.close)
        reader = Reader(workspace, index.connection, filters)
        # git searches the files while SQLite queries the index.
        files = None
        if FILES in filters.places:
            files = stack.enter_context(
                closing(InFiles(index.connection, reader, query))
            )
        found = _in_index(index.connection, reader, query, filters)
        said = list(islice(found, filters.most))
        written = list(islice(files.hits(), filters.most)) if files is not None else []
    kept = filters.most - min(len(written), filters.most // _FILES)
    said = said[:kept]
    hits = said + written[: filters.most - len(said)]
    return Found(hits, index.unreadable, index.unkept)


def _in_index(
    index: sqlite3.Connection, reader: Reader, query: Query, filters: Filters
) -> Iterator[Hit]:
    """Yields the hits outside files, the best first; hits with all words in a row come first."""
    columns = [one for one in COLUMNS if one in filters.places]
    if not columns:
        return
    queries = [Query((query.phrase,)), query] if query.phrase else [query]
    seen: set[tuple[str, str]] = set()
    asked: set[int] = set()
    for each in queries:
        for n in _ranked(index, each, columns):
            if n in asked:
                continue
            hit = reader.hit(n, each)
            if hit is None:
                continue
            asked.add(n)
            # The index has a resumed conversation twice.
            if (key := (hit.where, hit.excerpt.text)) not in seen:
                seen.add(key)
                yield hit


def _ranked(
    index: sqlite3.Connection, query: Query, columns: list[str]
) -> Iterator[int]:
    """Yields the passages that match, the best first.

    Ranking takes some microseconds for each. If very many have the words, the rank means
    little: the newest so many are ranked and come first, then those before them, and so on.
    """
    # Counting passages with the words of a phrase in any order takes far less time.
    words = Query(tuple(Item((word,)) for item in query.items for word in item.words))
    expression, with_words = (_expression(each, columns) for each in (query, words))
    at_once = _RANKED if len(words.items) == len(query.items) else _RANKED_OF_PHRASE
    below = _LAST
    while below:
        row = index.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND rowid < ?"
            " ORDER BY rowid DESC LIMIT 1 OFFSET ?",
            (with_words, below, at_once - 1),
        ).fetchone()
        least = row[0] if row is not None else 0
        found = index.execute(
            "SELECT rowid FROM words WHERE words MATCH ? AND rank MATCH ?"
            " AND rowid >= ? AND rowid < ? ORDER BY rank",
            (expression, _WEIGHTS, least, below),
        )
        yield from (n for (n,) in found)
        below = least


def _expression(query: Query, columns: list[str]) -> str:
    items = " AND ".join(item.quoted for item in query.items)
    return f"{{{' '.join(columns)}}} : ({items})"


def _open(workspace: Workspace) -> _Index:
    """Opens the updated index; if it cannot be written, a temporary one."""
    try:
        return _open_kept(workspace)
    except (sqlite3.Error, StorageError) as exc:
        if isinstance(exc, sqlite3.Error) and not database.refused(exc):
            raise
        return _open_unkept(workspace, str(exc))


def _open_kept(workspace: Workspace) -> _Index:
    repository = workspace.repository
    with search_files.locked(
        repository, timeout=workspace.settings.lock_timeout
    ) as path:
        try:
            connection = database.open_to_write(path, repository)
        except OSError as exc:
            raise StorageError(f"{path} cannot be written: {exc.strerror}") from exc
        return _synced(workspace, connection)


def _synced(
    workspace: Workspace, connection: sqlite3.Connection, unkept: str | None = None
) -> _Index:
    try:
        builder = Builder(workspace.store, connection)
        builder.sync()
    except BaseException:
        connection.close()
        raise
    return _Index(connection, builder.unreadable, unkept)


def _open_unkept(workspace: Workspace, why: str) -> _Index:
    """Opens the existing index, if it is up to date; else makes a temporary one."""
    path = search_files.index_of(workspace.repository)
    with suppress(sqlite3.Error):
        connection = database.open_to_read(path)
        if Builder(workspace.store, connection).is_current():
            return _Index(connection, [])
        connection.close()
    return _synced(workspace, database.temporary(), why)
