"""Finds rows by words: in prompts first, then in paths, reasons and conversations."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from gitcp import Checkpoint
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.spoken_turns import turns
from gitcp.checkpoints.turn_of import new_records
from gitcp.checkpoints.turns import Row
from gitcp.cli.picker.timeline import Name, Named
from gitcp.cli.picker.views import Found
from gitcp.cli.shown import whole_of
from gitcp.errors import GitcpError
from gitcp.format.checkpoint import show_path
from gitcp.project.workspace import Workspace

# Rows to search before checking for more urgent work.
_PROMPTS = 64
_ROWS = 4
# Seconds between two displayed results.
_PAUSE = 0.25
# Characters of texts to cache.
_KEPT = 32 << 20
# Characters to search of one turn's conversation.
_TALK = 4 << 20


class Finder:
    """Searches rows, and caches their texts for the next letter."""

    def __init__(self) -> None:
        self._prompts: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._size = 0

    def steps(
        self, workspace: Workspace, rows: Sequence[Named], words: str
    ) -> Iterator[Found | None]:
        """Yields the rows found so far now and then, and at the end."""
        wanted = words.casefold().split()
        reach = Reach(workspace.store, known=workspace.bare)
        found: set[Name] = set()
        told = time.monotonic()

        def more() -> Found | None:
            """Returns the result so far, but not so often that drawing it takes long."""
            nonlocal told
            if time.monotonic() - told < _PAUSE:
                return None
            told = time.monotonic()
            return Found(frozenset(found), whole=False)

        for at, (name, row) in enumerate(rows):
            text = self._prompt(reach, row)
            if all(word in text for word in wanted):
                found.add(name)
            if at % _PROMPTS == 0:
                yield more()
        yield Found(frozenset(found), whole=False)
        for at, (name, row) in enumerate(rows):
            if name not in found:
                text = self._prompt(reach, row) + self._other(workspace, reach, row)
                if all(word in text for word in wanted):
                    found.add(name)
            if at % _ROWS == 0:
                yield more()
        yield Found(frozenset(found), whole=True)

    def _prompt(self, reach: Reach, row: Row) -> str:
        key = row.last.commit
        text = self._prompts.get(key)
        if text is None:
            checkpoint = readable(reach, row.last)
            told = (checkpoint.note, checkpoint.label) if checkpoint else ()
            text = self._prompts[key] = "\n".join(filter(None, told)).casefold()
        return text

    def _other(self, workspace: Workspace, reach: Reach, row: Row) -> str:
        key = row.last.commit
        text = self._others.get(key)
        if text is None:
            text = ""
            checkpoint = readable(reach, row.last)
            if checkpoint is not None:
                # A damaged checkpoint matches nothing.
                with suppress(GitcpError):
                    text = "\n".join(_texts(workspace, checkpoint)).casefold()
            self._size += len(text)
            if self._size < _KEPT:
                self._others[key] = text
        return text


def _texts(workspace: Workspace, checkpoint: Checkpoint) -> Iterator[str]:
    """Yields the paths that a turn changed, its reasons, and its conversation."""
    shown = whole_of(workspace, checkpoint)
    for change in shown.changes():
        yield show_path(change.path)
    for entry in shown.decisions(workspace):
        yield entry.text
        yield entry.why or ""
    if checkpoint.manifest.conversation is None:
        return
    first = shown.turn.checkpoints[0] if shown.turn is not None else checkpoint
    records = new_records(workspace.store, first, checkpoint, most=_TALK)
    for turn in turns(records[-_TALK:]):
        yield turn.prompt or ""
        yield turn.answer
