"""Updates the index from the branches: adds new checkpoints, drops those that are gone."""

import sqlite3
import time
from contextlib import suppress
from typing import NamedTuple

from gitcp import progress
from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import GITLINK, Change
from gitcp.search import passages
from gitcp.search.beginnings import Beginnings
from gitcp.search.database import StaleIndexError
from gitcp.search.passages import COLUMNS, PATHS, Asked, Passage, Span
from gitcp.search.sources import (
    OF_REASONS,
    Counted,
    is_segment,
    note_text,
    place_before,
    reasons_in,
)
from gitcp.search.words import folded
from gitcp.store import log_lines
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# After so many seconds, or characters, additions are committed.
_STEP = 1.0
_TEXT = 32_000_000
# One in so many passages of the index may lead nowhere, and a few more.
_ORPHANS = 8
_FEW = 100

_DAMAGE = (CorruptError, FormatTooNewError, TransferError)


class Builder:
    """Adds to an index that is open for writing."""

    def __init__(self, store: Store, index: sqlite3.Connection) -> None:
        self._store = store
        self._index = index
        self._objects = store.repository.objects
        self._beginnings = Beginnings(store, index)
        self._text = 0
        self._began = 0.0
        # Messages on branches and checkpoints that were left out.
        self.unreadable: list[str] = []

    def is_current(self) -> bool:
        """Whether the index has everything that the branches have."""
        return self._tips() == self._refs()

    def _tips(self) -> dict[str, bytes]:
        return dict(self._index.execute("SELECT branch, oid FROM tips"))

    def _refs(self) -> dict[str, bytes]:
        refs = self._store.refs().items()
        return {"/".join(key): bytes.fromhex(oid) for key, oid in refs}

    def sync(self) -> None:
        """Updates the index to the present state of the branches.

        Commits in steps: if the process is killed, the next update continues from there.

        Raises:
            sqlite3.Error: the index is damaged, or the disk refused.
            StaleIndexError: the index must be discarded.
        """
        refs, tips = self._refs(), self._tips()
        if tips == refs:
            return
        self._begin()
        try:
            self._grow(
                {name: oid for name, oid in refs.items() if tips.get(name) != oid}
            )
            self._sweep(refs)
            self._index.execute("COMMIT")
        except BaseException:
            # A damaged index may not even roll back.
            with suppress(sqlite3.Error):
                self._index.execute("ROLLBACK")
            raise

    def _begin(self) -> None:
        self._index.execute("BEGIN IMMEDIATE")
        self._began = time.monotonic()
        self._text = 0

    def _step(self) -> None:
        """Commits the additions now and then."""
        if self._text >= _TEXT or time.monotonic() - self._began >= _STEP:
            self._index.execute("COMMIT")
            self._begin()

    # --- additions ------------------------------------------------------------------

    def _grow(self, moved: dict[str, bytes]) -> None:
        """Adds the new checkpoints of branches that moved."""
        new: dict[bytes, _New] = {}
        for name, oid in moved.items():
            self._find_new(name, oid, new)
        report = progress.of("indexing checkpoint")
        total = len(new)
        waiting = _by_age(new)[::-1]
        new.clear()
        while waiting:
            # Free the objects of a checkpoint before the next one is read.
            self._add(waiting.pop())
            if report is not None:
                report(total - len(waiting), total + 1)
            self._step()
        for name, oid in moved.items():
            known = self._known(oid)
            if known is not None and known.whole:
                self._index.execute(
                    "INSERT OR REPLACE INTO tips VALUES(?, ?)", (name, oid)
                )

    def _find_new(self, name: str, tip: bytes, new: "dict[bytes, _New]") -> None:
        """Finds the checkpoints of a branch that are not in the index, oldest first.

        They include those above an unreadable checkpoint, which may now be repaired.
        """
        found: list[Checkpoint] = []
        below: bytes | None = None
        whole = True
        try:
            start = self._store.checkpoint(tip)
            for one in self._store.line(start) if start is not None else ():
                known = self._known(one.oid)
                if one.oid in new or (known is not None and known.whole):
                    below = one.oid
                    break
                found.append(one)
        except _DAMAGE as exc:
            self.unreadable.append(f"a part of {name} is left out: {exc}")
            whole = False
        for one in reversed(found):
            new[one.oid] = _New(one, below, whole)
            below, whole = one.oid, True

    def _known(self, oid: bytes) -> "_Known | None":
        row = self._index.execute(
            "SELECT n, whole FROM checkpoints WHERE oid = ?", (oid,)
        ).fetchone()
        return _Known(*row) if row else None

    def _add(self, new: "_New") -> None:
        """Adds a checkpoint, and its new content."""
        checkpoint = new.checkpoint
        parent = self._known(new.below) if new.below is not None else None
        n = self._row(checkpoint, parent)
        before = len(self.unreadable)
        try:
            checkpoint.refuse_if_vast()
            held = checkpoint.manifest.conversation
            self._index.execute(
                "UPDATE checkpoints SET created = ?, agent = ? WHERE n = ?",
                (checkpoint.created.timestamp(), held.kind if held else None, n),
            )
            self._add_logs(checkpoint, n, self._log_tree(new.below))
            self._add_note(checkpoint, n)
            first = new.below is None
            self._add_files(
                self._beginnings.changes(checkpoint, n)
                if first
                else checkpoint.changes,
                n,
            )
        except _DAMAGE as exc:
            self.unreadable.append(f"{checkpoint.id} is left out: {exc}")
        sound = new.whole and len(self.unreadable) == before
        if sound and (parent is None or parent.whole):
            self._index.execute("UPDATE checkpoints SET whole = 1 WHERE n = ?", (n,))

    def _row(self, checkpoint: Checkpoint, parent: "_Known | None") -> int:
        """Adds a checkpoint's row to the index, and returns its number there."""
        known = self._known(checkpoint.oid)
        if known is not None:
            return known.n
        key = checkpoint.trailers.key
        made = self._index.execute(
            "INSERT INTO checkpoints(oid, parent, ident, session, branch, created, whole)"
            " VALUES(?, ?, ?, ?, ?, ?, 0)",
            (
                *(checkpoint.oid, parent.n if parent else None, checkpoint.id),
                *(key.session, key.branch, checkpoint.raw.epoch),
            ),
        ).lastrowid
        assert made is not None
        return made

    def _log_tree(self, oid: bytes | None) -> bytes | None:
        before = self._store.checkpoint(oid) if oid is not None else None
        return before.log_tree if before is not None else None

    def _add_logs(self, checkpoint: Checkpoint, n: int, before: bytes | None) -> None:
        for change in tree.diff(before, checkpoint.log_tree, self._objects.tree):
            if change.new is not None and is_segment(change.path):
                self._add_segment(checkpoint, n, change.path, change.new.oid)

    def _add_segment(
        self, checkpoint: Checkpoint, n: int, place: bytes, oid: bytes
    ) -> None:
        """Adds a segment of a log, unless another checkpoint has added it."""
        line, asked = self._before(checkpoint, place)
        row = self._index.execute(
            "SELECT n FROM sources WHERE key = ?", (oid,)
        ).fetchone()
        if row is not None:
            self._link(row[0], n, place, line)
            return
        self._index.execute("SAVEPOINT segment")
        try:
            source = self._index_segment(checkpoint, place, oid, asked)
        except _DAMAGE as exc:
            self._index.execute("ROLLBACK TO segment")
            self.unreadable.append(f"talk of {checkpoint.id} is left out: {exc}")
        else:
            self._link(source, n, place, line)
        self._index.execute("RELEASE segment")

    def _before(self, checkpoint: Checkpoint, place: bytes) -> tuple[int, Asked | None]:
        """Returns the number of lines before a segment in its log, and the last prompt."""
        before = place_before(place)
        tree_of = checkpoint.log_tree
        entry = before and tree.lookup(tree_of, before, self._objects.tree)
        row = (
            entry
            and self._index.execute(
                "SELECT sources.lines + adds.line, asked_source, asked_start FROM sources"
                " JOIN adds ON adds.source = sources.n WHERE key = ? LIMIT 1",
                (entry.oid,),
            ).fetchone()
        )
        if not row:
            return 0, None
        return row[0], Asked(row[1], row[2]) if row[1] is not None else None

    def _index_segment(
        self, checkpoint: Checkpoint, place: bytes, oid: bytes, asked: Asked | None
    ) -> int:
        """Adds the passages of a segment; returns its number as a source."""
        source = self._source(oid)
        foreign = checkpoint.origin.logs is not None
        longest = log_lines.LONGEST_FOREIGN if foreign else None
        lines = Counted(log_lines.blocks(self._objects.stream(oid), longest))
        if place.startswith(OF_REASONS):
            entries = reasons_in(lines)
            found = passages.reasons(entries)
        else:
            found = passages.talk(passages.records(lines), source, asked)
        last = asked
        for passage in found:
            self._add_passage(source, passage)
            last = passage.asked or last
        self._index.execute(
            "UPDATE sources SET lines = ?, asked_source = ?, asked_start = ? WHERE n = ?",
            (lines.count, *(last or (None, None)), source),
        )
        return source

    def _source(self, key: bytes) -> int:
        made = self._index.execute(
            "INSERT INTO sources(key, lines) VALUES(?, 0)", (key,)
        ).lastrowid
        assert made is not None
        return made

    def _link(self, source: int, n: int, place: bytes | None, line: int = 0) -> None:
        self._index.execute(
            "INSERT OR IGNORE INTO adds VALUES(?, ?, ?, ?)", (source, n, place, line)
        )

    def _add_passage(self, source: int, passage: Passage) -> None:
        span, asked = passage.span, passage.asked or (None, None)
        made = self._index.execute(
            "INSERT INTO passages(source, start, size, line, asked_source, asked_start, at)"
            " VALUES(?, ?, ?, ?, ?, ?, ?)",
            (source, *span, *asked, passage.at),
        )
        texts = [
            "\n".join(map(_indexed, passage.texts.get(name, ()))) for name in COLUMNS
        ]
        self._text += sum(map(len, texts))
        self._index.execute(
            f"INSERT INTO words(rowid, {', '.join(COLUMNS)})"
            " VALUES(?, ?, ?, ?, ?, ?, ?)",
            (made.lastrowid, *texts),
        )

    def _add_note(self, checkpoint: Checkpoint, n: int) -> None:
        """Adds a checkpoint's note and label; a turn's note is its prompt."""
        where, text = note_text(checkpoint)
        if text:
            self._once(b"n" + checkpoint.oid, Passage(Span(), {where: [text]}), n)

    def _add_files(self, changes: tuple[Change, ...], n: int) -> None:
        for change in changes:
            name = Passage(Span(), {PATHS: [show_path(change.path)]})
            self._once(b"p" + change.path, name, n)
            new = change.new
            # git searches contents, and does not know chunked files.
            if new and new.mode != GITLINK and new.oid not in self._objects.chunked:
                self._index.execute(
                    "INSERT OR REPLACE INTO contents VALUES(?, ?, ?)",
                    (n, change.path, new.oid),
                )

    def _once(self, key: bytes, passage: Passage, n: int) -> None:
        row = self._index.execute(
            "SELECT n FROM sources WHERE key = ?", (key,)
        ).fetchone()
        source = row[0] if row else self._source(key)
        if row is None:
            self._add_passage(source, passage)
        self._link(source, n, None)

    # --- removals -------------------------------------------------------------------

    def _sweep(self, refs: dict[str, bytes]) -> None:
        """Drops checkpoints that no branch reaches any more."""
        index = self._index
        for (name,) in index.execute("SELECT branch FROM tips").fetchall():
            if name not in refs:
                index.execute("DELETE FROM tips WHERE branch = ?", (name,))
        parents = dict(index.execute("SELECT n, parent FROM checkpoints"))
        alive: set[int] = set()
        for oid in refs.values():
            known = self._known(oid)
            n = known.n if known is not None else None
            while n is not None and n not in alive:
                alive.add(n)
                n = parents.get(n)
        dead = [(n,) for n in parents if n not in alive]
        if not dead:
            return
        index.executemany("DELETE FROM checkpoints WHERE n = ?", dead)
        index.executemany("DELETE FROM adds WHERE checkpoint = ?", dead)
        index.executemany("DELETE FROM contents WHERE checkpoint = ?", dead)
        for n, oid in self._beginnings.orphans():
            try:
                checkpoint = self._store.checkpoint(oid)
                if checkpoint is not None:
                    self._add_files(self._beginnings.changes(checkpoint, n), n)
            except _DAMAGE as exc:
                self.unreadable.append(f"files of a checkpoint are left out: {exc}")
                index.execute("UPDATE checkpoints SET whole = 0 WHERE n = ?", (n,))
        # The words of sources that no checkpoint has stay, and lead nowhere.
        index.execute("DELETE FROM sources WHERE n NOT IN (SELECT source FROM adds)")
        index.execute(
            "DELETE FROM passages WHERE source NOT IN (SELECT n FROM sources)"
        )
        (rows,) = index.execute("SELECT count(*) FROM words_docsize").fetchone()
        (used,) = index.execute("SELECT count(*) FROM passages").fetchone()
        if rows - used > _FEW + rows // _ORPHANS:
            raise StaleIndexError


class _New(NamedTuple):
    """A checkpoint to add, with the one below it on its branch, if that is `whole`."""

    checkpoint: Checkpoint
    below: bytes | None
    whole: bool


def _by_age(new: dict[bytes, _New]) -> list[_New]:
    """Returns checkpoints by time, but each after the one below it."""
    times: dict[bytes, int] = {}
    for oid, one in new.items():
        below = times.get(one.below, 0) if one.below is not None else 0
        times[oid] = max(one.checkpoint.raw.epoch, below)
    return [new[oid] for oid in sorted(new, key=times.__getitem__)]


class _Known(NamedTuple):
    """A checkpoint in the index, by its number there."""

    n: int
    whole: bool


def _indexed(text: str) -> str:
    """Returns a text in the form of the index, which itself ignores the case of ASCII."""
    return text if text.isascii() else folded(text)
