"""Requests of the picker to its reader thread (a page, a plan), and the answers."""

from typing import Literal, NamedTuple

from gitcp.cli.picker.timeline import Name

CHANGES, TALK, REASONS, SKIPPED = "changes", "talk", "reasons", "not captured"
TABS = (CHANGES, TALK, REASONS, SKIPPED)


class View(NamedTuple):
    """What to show: the state, the tab, and the width.

    `number` selects the checkpoint; None means the present state. `other` is the second of two
    marked rows.
    """

    number: str | None
    tab: str
    room: int
    now: bool = False
    tools: bool = False
    path: bytes | None = None
    other: str | None = None


Parts = Literal["both", "files", "conversation"]


class Wanted(NamedTuple):
    """What to plan: a restore of a state, a fork of it, or an undo.

    `number` selects the state, None for an undo; `name` is the name of the new branch. `hunk`
    are the lines, as shown, of the only hunk to restore.
    """

    number: str | None
    parts: Parts = "both"
    paths: tuple[bytes, ...] = ()
    name: str | None = None
    trust: bool = False
    hunk: tuple[str, ...] = ()


class Found(NamedTuple):
    """The rows found so far; `whole` says that all rows were searched."""

    names: frozenset[Name]
    whole: bool
