"""Formats the turns of a conversation: prompt, one line per tool, answer."""

from collections.abc import Iterator, Sequence

from gitcp.checkpoints.spoken_turns import SpokenTurn, ToolCall
from gitcp.cli.emit import Output, one_line, safe
from gitcp.cli.layout import age_of, fit, wrap

# Prompts and answers are indented; only headers begin at the edge.
_ASKED = "> "
_TOOL = "  * "
_ANSWERED = "  "
_TAB = 4


def turn_header(out: Output, number: int, turn: SpokenTurn) -> str:
    """Returns `Turn 3 · 5 min ago`."""
    try:
        when = [age_of(turn.at)] if turn.at is not None else []
    except (ValueError, OverflowError, OSError):
        # A record may hold any number.
        when = []
    return out.style(" · ".join([f"Turn {number}", *when]), bold=True)


def prompt_lines(out: Output, prompt: str, width: int | None) -> Iterator[str]:
    """Yields the lines of a prompt, each with a mark."""
    for line in _indented(prompt, _ASKED, width):
        yield out.style(line, fg="cyan")


def tool_lines(
    out: Output, tools: Sequence[ToolCall], tops: Sequence[str], width: int | None
) -> Iterator[str]:
    """Yields a line for each tool call; paths below one of the `tops` are relative to it."""
    for call in tools:
        argument = call.argument
        for top in tops:
            argument = argument.removeprefix(f"{top.rstrip('/')}/")
        text = f"{one_line(call.tool)} {one_line(argument)}".rstrip()
        yield out.style(fit(f"{_TOOL}{text}", width), dim=True)


def answer_lines(answer: str, width: int | None) -> Iterator[str]:
    """Yields an answer, indented."""
    yield from _indented(answer, _ANSWERED, width)


def _indented(text: str, prefix: str, width: int | None) -> Iterator[str]:
    room = max(1, width - len(prefix)) if width is not None else None
    for line in text.splitlines():
        for part in wrap(safe(line).expandtabs(_TAB).rstrip(), room):
            yield f"{prefix}{part}".rstrip()
