"""`gitcp ui`: a picker with a preview; the only command that loads Textual."""

import os
import sys

from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.errors import ConfirmationError, UsageError

_INSTALL = "install it: `pip install 'gitcp[ui]'`"


@command("ui")
def ui_command(out: Output) -> None:
    """Browse what happened, and choose a state to go back to.

    The left side lists the turns. The right side shows changes, conversation, reasons and
    what was not captured. `r` shows what a restore would change, and `y` carries it out.
    `?` lists the keys.
    """
    if not at_terminal(out):
        raise ConfirmationError(
            "the picker needs a terminal", hint="`gitcp log` lists the same rows"
        )
    if _is_dumb():
        raise UsageError(
            "this terminal cannot show the picker: TERM is not set, or `dumb`",
            hint="`gitcp log` lists the same rows",
        )
    if not _has_textual():
        raise UsageError(
            "the picker needs the library Textual, which is not installed",
            hint=_INSTALL,
        )
    run_picker(out)


def at_terminal(out: Output) -> bool:
    """Whether there is a terminal to draw on and to type at."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return not out.json and all(stream.isatty() for stream in streams)


def can_pick() -> bool:
    """Whether the picker can be shown here; does not load it."""
    return not _is_dumb() and _has_textual()


def run_picker(out: Output) -> None:
    """Shows the picker, and carries out the chosen action in the terminal."""
    from gitcp.cli.picker.run import run

    run(out)


def _is_dumb() -> bool:
    return os.environ.get("TERM", "") in {"", "dumb", "unknown"}


def _has_textual() -> bool:
    from importlib.util import find_spec

    return find_spec("textual") is not None
