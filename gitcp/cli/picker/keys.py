"""The keys of the picker, and what `?` says of them."""

from typing import NamedTuple


class Key(NamedTuple):
    """A key as it is shown, what it does, and the words for the hint line if it has some."""

    shown: str
    about: str
    hint: str = ""


LIST = (
    Key("j k ↓ ↑", "move; PgUp PgDn g G by more"),
    Key("[ ]", "previous, next conversation"),
    Key("1 2 3 4", "changes, talk, reasons, not captured (also ← →)"),
    Key("Enter Tab", "into the right side; Esc goes back"),
    Key("/", "find in prompts, talk, reasons and paths", "find"),
    Key("space", "mark a row", "mark"),
    Key("d", "diff of two marked rows, or of one and this", "diff"),
    Key("w", "changes against the turn before, or against now", "now"),
    Key("f", "show or fold the tool calls in the talk"),
    Key("t", "rows by conversation, or by time"),
    Key("r", "restore: shows what would change, then y does it", "restore"),
    Key("u", "undo the last restore", "undo"),
    Key("F", "fork: a new branch from here", "fork"),
    Key("W", "fork into a new work tree"),
    Key("l", "label; an empty one takes it away", "label"),
    Key("c", "copy the command that resumes the conversation", "copy"),
    Key("e", "write the session as a page for a browser", "page"),
    Key("?", "these keys", "keys"),
    Key("q", "leave; nothing is changed", "quit"),
)
PANE = (
    Key("Enter", "from a file to its lines"),
    Key("r", "restore the file that the cursor is on"),
    Key("h", "restore the hunk that the cursor is on (against now: w)"),
    Key("Esc", "back to the rows"),
)
PLAN = (
    Key("b f t", "both, only the files, only the talk"),
    Key("T", "bring what a checkpoint made elsewhere may not bring unasked"),
    Key("y", "do it: what is there now is saved first"),
    Key("Esc n q", "leave it"),
)
# What the hint line of a list names, in this order, as far as there is room.
HINTS = ("r", "/", "space", "d", "w", "u", "F", "l", "c", "e")


def hint(shown: str) -> Key:
    """Returns the key that is shown so."""
    return next(key for key in LIST if key.shown == shown)
