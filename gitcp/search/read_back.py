"""Reads hits back from git: a passage that git no longer holds is not a hit."""

import functools
import sqlite3
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gitcp.checkpoints import history, numbered
from gitcp.checkpoints.turns import INNER
from gitcp.clients.triggers import TURN_END
from gitcp.errors import CorruptError, FormatTooNewError, NotFoundError, TransferError
from gitcp.format import tree
from gitcp.format.checkpoint import IMPORT, show_path, timestamp
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import Assigned, places
from gitcp.project.workspace import Workspace
from gitcp.search import passages, spoken
from gitcp.search.hits import Filters, Hit
from gitcp.search.passages import PATHS, PROMPTS, REASONS
from gitcp.search.sources import OF_REASONS, note_text, reasons_in
from gitcp.search.words import Query
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.log_lines import LONGEST_FOREIGN, Block, blocks

_GONE = (CorruptError, FormatTooNewError, NotFoundError, TransferError)
# Bytes of contents that are cached, because hits are often in the same contents.
_KEPT = 64 << 20
# Up to so many checkpoints are looked up one by one; for more, all numbers are read at once.
_FEW = 64
_FIND = (
    "SELECT s.key, p.start, p.size, p.line, p.asked_source, p.asked_start, p.at,"
    " c.n, c.oid, c.ident, c.session, c.branch, c.created, c.agent, a.place, a.line"
    " FROM passages p JOIN sources s ON s.n = p.source JOIN adds a ON a.source = s.n"
    " JOIN checkpoints c ON c.n = a.checkpoint WHERE p.n = ? ORDER BY c.created, c.n"
)


class Row(NamedTuple):
    """A passage from the index, with a checkpoint that has it."""

    key: bytes
    start: int
    size: int
    line: int
    asked_source: int | None
    asked_start: int | None
    at: float | None
    n: int
    oid: bytes
    ident: str
    session: str
    branch: str
    created: float
    agent: str | None
    place: bytes | None
    lines_before: int


class Said(NamedTuple):
    """A text to search for words: its column, its line, its time, and its record."""

    where: str
    text: str
    line: int | None = None
    at: float | None = None
    value: Any = None


class Reader:
    """Reads hits back, of one work tree's checkpoints or of all."""

    def __init__(
        self, workspace: Workspace, index: sqlite3.Connection, filters: Filters
    ) -> None:
        self._workspace = workspace
        self._store = workspace.store
        self._objects = workspace.repository.objects
        self._index = index
        self.filters = filters
        self._numbered = any(True for _ in self._store.numbers.newest_first())
        named = workspace.current()
        self._current = BranchKey.of(named.session, named.branch)
        self.repository = workspace.repository
        self._entries: dict[tuple[str, BranchKey], Assigned | None] = {}
        self._contents: OrderedDict[bytes, bytes] = OrderedDict()

    def hit(self, n: int, query: Query) -> Hit | None:
        """Returns the hit in a passage; None if git has none, or a filter excludes it."""
        rows = [Row(*row) for row in self._index.execute(_FIND, (n,))]
        if rows and rows[0].key.startswith(b"p") and rows[0].place is None:
            # For a path, use the last change.
            rows.reverse()
        for row in rows:
            if not self.wanted(
                row.ident, BranchKey(row.session, row.branch), row.agent
            ):
                continue
            since = self.filters.since
            if since is not None and max(row.at or 0, row.created) < since:
                continue
            checkpoint = self.checkpoint(
                row.ident, BranchKey(row.session, row.branch), row.oid
            )
            if checkpoint is not None:
                try:
                    return self._read(row, checkpoint, query)
                except _GONE:
                    continue
        return None

    def wanted(self, ident: str, key: BranchKey, agent: str | None) -> bool:
        """Whether a checkpoint is searched."""
        if self.filters.agent is not None and agent != self.filters.agent:
            return False
        if self.filters.everything or not self._numbered or key == self._current:
            return True
        place, trigger = self._made(ident, key)
        return trigger == IMPORT or place in places(self._store.numbers.place)

    def _made(self, ident: str, key: BranchKey) -> tuple[str | None, str | None]:
        """Returns the place and trigger of a checkpoint; None twice without a number."""
        if len(self._entries) < _FEW or (ident, key) in self._entries:
            entry = self._numbered_as(ident, key)
            return (entry.place, entry.trigger) if entry is not None else (None, None)
        return self._all_made.get((ident, key), (None, None))

    @functools.cached_property
    def _all_made(self) -> dict[tuple[str, BranchKey], tuple[str, str]]:
        """The place and trigger of all numbered checkpoints, by one reading of their list."""
        every = self._store.numbers.newest_first()
        return {(one.id, one.key): (one.place, one.trigger) for one in every}

    def _numbered_as(self, ident: str, key: BranchKey) -> Assigned | None:
        """Returns the entry of a checkpoint's number."""
        if (ident, key) not in self._entries:
            numbers = self._store.numbers
            number = numbers.of(ident, key)
            entry = numbers.find(number) if number is not None else None
            self._entries[ident, key] = entry
        return self._entries[ident, key]

    def checkpoint(self, ident: str, key: BranchKey, oid: bytes) -> Checkpoint | None:
        """Returns a checkpoint, found by its number; None if the number selects another."""
        entry = self._numbered_as(ident, key)
        try:
            found = (
                numbered.current(self._workspace, entry)
                if entry is not None
                else self._store.checkpoint(oid)
            )
        except _GONE:
            return None
        return found if found is not None and found.oid == oid else None

    def content(self, oid: bytes) -> bytes:
        """Returns the content of an object.

        Raises:
            CorruptError: the object is missing or damaged.
        """
        if oid not in self._contents:
            self._contents[oid] = self._objects.blob(oid)
            while (
                len(self._contents) > 1
                and sum(map(len, self._contents.values())) > _KEPT
            ):
                self._contents.popitem(last=False)
        return self._contents[oid]

    def made(
        self,
        checkpoint: Checkpoint,
        said: Said,
        query: Query,
        path: bytes | None,
        asked: str | None,
    ) -> Hit:
        """Returns the hit in a text."""
        at = said.at if said.at is not None else checkpoint.created.timestamp()
        return Hit(
            number=checkpoint.number,
            id=checkpoint.id,
            session=checkpoint.session,
            branch=checkpoint.branch,
            where=said.where,
            path=path,
            line=said.line,
            excerpt=query.excerpt(said.text),
            at=timestamp(at),
            prompt=asked,
            made_at=checkpoint.origin.where,
        )

    def _read(self, row: Row, checkpoint: Checkpoint, query: Query) -> Hit | None:
        if row.place is None:
            return self._read_own(row, checkpoint, query)
        entry = tree.lookup(checkpoint.log_tree, row.place, self._objects.tree)
        if entry is None or entry.oid != row.key:
            return None
        end = row.start + row.size if row.size >= 0 else None
        data = self.content(row.key)[row.start : end]
        foreign = checkpoint.origin.logs is not None
        longest = LONGEST_FOREIGN if foreign else None
        # Lines count from the beginning of the passage.
        lines = blocks([data], longest)
        first = row.lines_before + row.line + 1
        said = _best(
            _reasons(lines, first)
            if row.place.startswith(OF_REASONS)
            else _talk(lines, first, query),
            query,
            self.filters,
        )
        if said is None:
            return None
        if said.where == REASONS:
            prompt = prompt_of(checkpoint)
        elif said.where == PROMPTS:
            prompt = _first_prompt(said.value)
        else:
            prompt = self._asked(row)
        return self.made(checkpoint, said, query, None, prompt)

    def _read_own(self, row: Row, checkpoint: Checkpoint, query: Query) -> Hit | None:
        """Returns the hit in a checkpoint's note, or in a path that it changed."""
        if row.key.startswith(b"n"):
            said = _best([Said(*note_text(checkpoint))], query, self.filters)
            path = None
        else:
            path = row.key[1:]
            there = any(change.path == path for change in checkpoint.changes)
            named = Said(PATHS, show_path(path))
            said = _best([named], query, self.filters) if there else None
        if said is None:
            return None
        return self.made(checkpoint, said, query, path, prompt_of(checkpoint))

    def _asked(self, row: Row) -> str | None:
        """Returns the prompt that a passage answers."""
        if row.asked_source is None or row.asked_start is None:
            return None
        found = self._index.execute(
            "SELECT key FROM sources WHERE n = ?", (row.asked_source,)
        ).fetchone()
        if found is None:
            return None
        data = self.content(found[0])
        end = data.find(b"\n", row.asked_start)
        line = data[row.asked_start : end if end >= 0 else None]
        return next(
            (_first_prompt(one.value) for one in passages.records([Block(0, line)])),
            None,
        )


def _talk(lines: Iterable[Block], first: int, query: Query) -> Iterator[Said]:
    for record in passages.records(lines, query.may_be_in):
        at = spoken.time_of(record.value)
        for where, text in spoken.texts(record.value):
            yield Said(where, text, first + record.line, at, record.value)


def _reasons(lines: Iterable[Block], first: int) -> Iterator[Said]:
    for span, entry in reasons_in(lines):
        at = spoken.seconds(entry.at) if entry.at is not None else None
        yield Said(REASONS, passages.reason_text(entry), first + span.line, at)


def _best(texts: Iterable[Said], query: Query, filters: Filters) -> Said | None:
    """Returns the text with most items of the query; None if not all items are there."""
    best: Said | None = None
    most = 0
    together = 0
    for said in texts:
        if said.where not in filters.places:
            continue
        held = query.held(said.text)
        together |= held
        recent = filters.since is None or said.at is None or said.at >= filters.since
        if held.bit_count() > most and recent:
            best, most = said, held.bit_count()
    return best if together == (1 << len(query.items)) - 1 else None


def _first_prompt(value: Any) -> str | None:
    return next((text for where, text in spoken.texts(value) if where == PROMPTS), None)


def prompt_of(checkpoint: Checkpoint) -> str | None:
    """Returns the prompt of the turn that a checkpoint was made in."""
    if checkpoint.trigger in INNER or checkpoint.trigger == TURN_END:
        return history.prompt_of(checkpoint)
    return None
