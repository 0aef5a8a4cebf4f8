"""Formats the notes that gitcp writes itself: replaces the ids in them by numbers."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from gitcp.store.checkpoint import Checkpoint

if TYPE_CHECKING:
    from gitcp.checkpoints.branch_index import ListedBranch
    from gitcp.store.store import Store

_TRIGGERS = frozenset({"restore", "before-restore"})
_BEGINNINGS = ("restored ", "before restoring ", "undid a restore: ")
_FORKED = r"forked from .+/.+:\d+"
_ID = r"\b[0-9a-f]{12}\b"


def note_of(checkpoint: Checkpoint) -> str:
    """Returns a checkpoint's note; if gitcp wrote it, with numbers in place of ids."""
    note = checkpoint.note or ""
    if re.fullmatch(_FORKED, note):
        origin = checkpoint.manifest.forked_from
        number = checkpoint.number_for(origin) if origin is not None else None
        return f"forked from #{number}" if number else note
    if checkpoint.trigger not in _TRIGGERS:
        return note
    return _with_numbers(note, checkpoint.number_for)


def note_of_tip(store: "Store", branch: "ListedBranch") -> str:
    """Returns the note of a branch's newest checkpoint, likewise."""
    if re.fullmatch(_FORKED, branch.note) and (tip := store.checkpoint(branch.commit)):
        return note_of(tip)
    return _with_numbers(branch.note, store.numbers.of)


def _with_numbers(note: str, number_for: Callable[[str], int | None]) -> str:
    """Returns a note with numbers in place of ids, if it begins as gitcp's notes do."""
    if not note.startswith(_BEGINNINGS):
        return note

    def number(match: re.Match[str]) -> str:
        found = number_for(match[0])
        return f"#{found}" if found else match[0]

    return re.sub(_ID, number, note)
