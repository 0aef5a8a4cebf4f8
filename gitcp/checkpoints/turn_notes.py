"""Writes the note of an automatic checkpoint: its turn's subject, and its place in the turn."""

from collections.abc import Sequence

from gitcp.checkpoints.first_line import before_command, brief
from gitcp.clients import triggers

# Letters.
_LONGEST = 72


def asked_in(prompt: str) -> str:
    """Returns what a prompt asks, in a few words."""
    return brief(prompt, _LONGEST)


def shortened(note: str) -> str:
    """Returns a note of the usual length."""
    return brief(note, _LONGEST)


def turn_note(
    trigger: str,
    asked: str | None,
    tools: Sequence[str] = (),
    command: str | None = None,
) -> str | None:
    """Returns the note of a checkpoint in a turn that was asked for something."""
    if trigger == triggers.TURN_START:
        return f"before: {asked}" if asked else None
    what = None
    if trigger == triggers.BEFORE_COMMAND and command:
        what = before_command(command)
    elif trigger == triggers.TOOL and tools:
        what = ", ".join(dict.fromkeys(tools))
    if what is None:
        return asked
    return shortened(f"{what}: {asked}" if asked else what)
