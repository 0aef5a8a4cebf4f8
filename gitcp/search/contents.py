"""Searches the contents of files by git itself: each content once, the newest first."""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from gitcp.format import tree
from gitcp.format.layout import BranchKey
from gitcp.git.grep import Line, Search
from gitcp.search.hits import Hit
from gitcp.search.passages import FILES
from gitcp.search.read_back import Reader, Said, prompt_of
from gitcp.search.words import Query

# Only so many contents are searched, the newest.
MOST = 50_000
_NEWEST = (
    "SELECT t.oid, t.path, c.oid, c.ident, c.session, c.branch, c.created, c.agent"
    " FROM contents t JOIN checkpoints c ON c.n = t.checkpoint"
    " ORDER BY c.created DESC, c.n DESC LIMIT ?"
)


class _Content(NamedTuple):
    oid: bytes
    path: bytes
    commit: bytes
    ident: str
    key: BranchKey


class InFiles:
    """A search through the contents of files; git starts when the object is made."""

    def __init__(self, index: sqlite3.Connection, reader: Reader, query: Query) -> None:
        self._reader = reader
        self._query = query
        self._contents: dict[bytes, list[_Content]] = {}
        since = reader.filters.since
        for oid, path, commit, ident, session, branch, created, agent in index.execute(
            _NEWEST, (MOST,)
        ):
            key = BranchKey(session, branch)
            if since is not None and created < since:
                break
            if reader.wanted(ident, key, agent):
                content = _Content(oid, path, commit, ident, key)
                self._contents.setdefault(oid, []).append(content)
        words = [item.typed for item in query.items]
        self._search = Search(reader.repository, list(self._contents), words)

    def hits(self) -> Iterator[Hit]:
        """Yields a hit for each file that has all items of the query, the newest first."""
        shown: set[bytes] = set()
        for oid, lines in self._search.found():
            line = _best(lines, self._query)
            if line is None:
                continue
            # Report the place where the content was first.
            for content in reversed(self._contents[oid]):
                if content.path in shown:
                    continue
                hit = _hit(self._reader, content, line, self._query)
                if hit is not None:
                    shown.add(content.path)
                    yield hit
                    break

    def close(self) -> None:
        """Ends the search."""
        self._search.close()


def _best(lines: list[Line], query: Query) -> Line | None:
    """Returns the line with most items of the query; None if not all items are there."""
    best, most, together = None, 0, 0
    for line in lines:
        held = query.held(line.text.decode("utf-8", "replace"))
        together |= held
        if held.bit_count() > most:
            best, most = line, held.bit_count()
    return best if together == (1 << len(query.items)) - 1 else None


def _hit(reader: Reader, content: _Content, line: Line, query: Query) -> Hit | None:
    checkpoint = reader.checkpoint(content.ident, content.key, content.commit)
    if checkpoint is None:
        return None
    entry = tree.lookup(checkpoint.raw.tree, content.path, checkpoint.objects.tree)
    if entry is None or entry.oid != content.oid:
        return None
    said = Said(FILES, line.text.decode("utf-8", "replace"), line.number)
    return reader.made(checkpoint, said, query, content.path, prompt_of(checkpoint))
