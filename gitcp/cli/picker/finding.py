"""Finds rows by words: in prompts first, then in paths, reasons and talk."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from gitcp import Checkpoint
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.spoken_turns import turns
from gitcp.checkpoints.turn_of import new_records
from gitcp.checkpoints.turns import Row
from gitcp.cli.picker.timeline import Name, name_of
from gitcp.cli.shown import whole_of
from gitcp.errors import GitcpError
from gitcp.format.checkpoint import show_path
from gitcp.project.workspace import Workspace

# Rows between two looks for something more urgent.
_PROMPTS = 64
_ROWS = 4
# What is kept of what was read, in characters.
_KEPT = 32 << 20
# Of one turn so much of the talk is looked through.
_TALK = 4 << 20


class Found(NamedTuple):
    """The rows that were found so far; `whole` says that all were looked through."""

    names: frozenset[Name]
    whole: bool


class Finder:
    """Looks rows through, and keeps what it has read for the next letter."""

    def __init__(self) -> None:
        self._prompts: dict[str, str] = {}
        self._others: dict[str, str] = {}
        self._size = 0

    def steps(
        self, workspace: Workspace, rows: Sequence[Row], words: str
    ) -> Iterator[Found]:
        """Yields what was found each time that there is more, and at the end."""
        wanted = words.casefold().split()
        reach = Reach(workspace.store, known=workspace.bare)
        found: set[Name] = set()
        for at, row in enumerate(rows):
            text = self._prompt(reach, row)
            if all(word in text for word in wanted):
                found.add(name_of(row))
            if at % _PROMPTS == _PROMPTS - 1:
                yield Found(frozenset(found), whole=False)
        yield Found(frozenset(found), whole=False)
        for at, row in enumerate(rows):
            if name_of(row) not in found:
                text = self._prompt(reach, row) + self._other(workspace, reach, row)
                if all(word in text for word in wanted):
                    found.add(name_of(row))
            if at % _ROWS == _ROWS - 1:
                yield Found(frozenset(found), whole=False)
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
                # What is damaged has nothing to be found in.
                with suppress(GitcpError):
                    text = "\n".join(_texts(workspace, checkpoint)).casefold()
            self._size += len(text)
            if self._size < _KEPT:
                self._others[key] = text
        return text


def _texts(workspace: Workspace, checkpoint: Checkpoint) -> Iterator[str]:
    """Yields the paths that a turn changed, its reasons, and what was said in it."""
    shown = whole_of(workspace, checkpoint)
    for change in shown.changes():
        yield show_path(change.path)
    for entry in shown.decisions(workspace.store):
        yield entry.text
        yield entry.why or ""
    if checkpoint.manifest.conversation is None:
        return
    first = shown.turn.checkpoints[0] if shown.turn is not None else checkpoint
    records = new_records(workspace.store, first, checkpoint)
    for turn in turns(records[-_TALK:]):
        yield turn.prompt or ""
        yield turn.answer
