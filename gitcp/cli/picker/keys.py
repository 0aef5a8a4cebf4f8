"""The keys of the picker, and their help (`?`)."""

from typing import NamedTuple


class Key(NamedTuple):
    """A key as shown, its action, and its words for the hint line if it has any."""

    shown: str
    about: str
    hint: str = ""


LIST = (
    Key("j k ↓ ↑", "move; PgUp PgDn g G by more"),
    Key("[ ]", "previous, next conversation"),
    Key("1 2 3 4", "changes, conversation, reasons, not captured (also ← →)"),
    Key("Enter Tab", "go to the right side; Esc goes back"),
    Key("/", "find in prompts, conversation, reasons and paths", "find"),
    Key("space", "mark a row", "mark"),
    Key("d", "compare two marked rows, or one and this", "diff"),
    Key("w", "compare with the turn before, or with now", "now"),
    Key("f", "show or fold tool calls"),
    Key("t", "group rows by conversation, or sort by time"),
    Key("r", "restore: show what would change; y confirms", "restore"),
    Key("u", "undo the last restore", "undo"),
    Key("F", "fork: a new branch from here", "fork"),
    Key("W", "fork into a new work tree"),
    Key("l", "label; an empty label removes it", "label"),
    Key("c", "copy the command that resumes the conversation", "copy"),
    Key("e", "write the session as a page for a browser", "page"),
    Key("?", "these keys", "keys"),
    Key("q", "quit without changes", "quit"),
)
PANE = (
    Key("Enter", "go from a file to its lines"),
    Key("r", "restore the file that the cursor is on"),
    Key("h", "restore the hunk that the cursor is on (against now: w)"),
    Key("Esc", "back to the rows"),
)
PLAN = (
    Key("b f t", "both, only the files, only the conversation"),
    Key("T", "trust: restore what is withheld"),
    Key("y", "confirm: the present state is saved first"),
    Key("Esc n q", "leave it"),
)
# The keys in the hint line of a list, in this order, as many as fit.
HINTS = ("r", "/", "space", "d", "w", "u", "F", "l", "c", "e")


def hint(shown: str) -> Key:
    """Returns the key with this display."""
    return next(key for key in LIST if key.shown == shown)
