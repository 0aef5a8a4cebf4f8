"""Formats the short marks of a row of the timeline: counts of files, and flags."""

from collections.abc import Sequence

from gitcp.checkpoints.history import Listed
from gitcp.cli.emit import one_line
from gitcp.cli.render import SIGNS
from gitcp.format.tree import Change

STATUSES = ("added", "modified", "deleted")


def row_counts(listed: Listed, paths: tuple[bytes, ...] = ()) -> str:
    """Returns the numbers of requested files that a row changed.

    If some changes may be another turn's as well, the count has a question mark: `~1?`.
    """
    doubtful = {change.path for change in listed.unsure}
    changed: Sequence[int] = listed.changed
    unsure: Sequence[Change] = listed.unsure
    if listed.touched is not None:
        only = listed.touched[0]
        if len(listed.touched) == 1 and paths == (only.path,):
            return f"{SIGNS[only.status]}{'?' if only.path in doubtful else ''}"
        unsure = [one for one in listed.touched if one.path in doubtful]
        own = [one for one in listed.touched if one.path not in doubtful]
        changed = by_status(own)
    return " ".join(
        f"{sign}{count}{doubt}"
        for counts, doubt in ((changed, ""), (by_status(unsure), "?"))
        for count, sign in zip(counts, "+~-", strict=True)
        if count
    )


def by_status(changes: Sequence[Change]) -> list[int]:
    """Returns the numbers of added, modified and deleted files."""
    found = [change.status for change in changes]
    return list(map(found.count, STATUSES))


def row_mark(listed: Listed, *, full: bool) -> str:
    """Returns the marks of a row: its origin, its label, its trigger."""
    checkpoint = listed.checkpoint
    marks = []
    if checkpoint.origin.files is not None:
        marks.append(f"<{one_line(checkpoint.origin.files, 20)}>")
    if checkpoint.label:
        marks.append(f"({one_line(checkpoint.label)})")
    trigger = checkpoint.trigger
    if listed.by_hand:
        marks.append("[by hand]")
    elif listed.row.is_turn:
        # A part of a turn, alone in its row, does not show whether the turn has ended.
        if trigger != "turn-end" and not full:
            marks.append("[unfinished]")
    elif trigger not in {"manual", "turn-end"}:
        marks.append(f"[{one_line(trigger, 20)}]")
    return "".join(f"{mark} " for mark in marks)
