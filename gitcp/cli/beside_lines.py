"""Prints the turns that ran beside a turn, and the checkpoints inside it."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from gitcp import Checkpoint
from gitcp.checkpoints.beside import Span, read
from gitcp.checkpoints.history import prompt_of
from gitcp.cli.emit import one_line
from gitcp.cli.layout import fit
from gitcp.cli.render import title_of
from gitcp.clients.triggers import BEFORE_COMMAND
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    # `log` does not need it.
    from gitcp.checkpoints.turn_of import Turn

# How many turns a row of `log` names.
_NAMED = 2
_LISTED = 10


class _Other(NamedTuple):
    """A turn that ran at the same time; the checkpoint is None if it is gone."""

    span: Span
    checkpoint: Checkpoint | None

    @property
    def agent(self) -> str | None:
        held = self.checkpoint.manifest.conversation if self.checkpoint else None
        return held.kind if held is not None else None

    @property
    def prompt(self) -> str | None:
        return prompt_of(self.checkpoint) if self.checkpoint else None


def beside_mark(spans: Sequence[Span]) -> str:
    """Returns `beside #37`, for a row of a list."""
    names = [f"#{span.last.number}" for span in spans[:_NAMED]]
    more = [f"+{len(spans) - _NAMED}"] if len(spans) > _NAMED else []
    return " ".join(["beside", *names, *more])


def beside_lines(
    workspace: Workspace, spans: Sequence[Span], columns: int | None
) -> Iterator[str]:
    """Yields a line for each turn: its number, its client, its prompt."""
    for other in _others(workspace, spans[:_LISTED]):
        client = title_of(other.agent) if other.agent else "another conversation"
        asked = f' "{one_line(other.prompt)}"' if other.prompt else ""
        text = f"  beside   #{other.span.last.number} {client}:{asked}".rstrip(":")
        yield fit(text, columns)
    if len(spans) > _LISTED:
        yield f"  beside   … and {len(spans) - _LISTED} more"


def inside_lines(turn: "Turn", columns: int | None) -> Iterator[str]:
    """Yields a line for each checkpoint that was made in a turn before a command."""
    inner = [one for one in turn.checkpoints[:-1] if one.trigger == BEFORE_COMMAND]
    for checkpoint in inner[-_LISTED:]:
        name = f"#{checkpoint.number}" if checkpoint.number else checkpoint.id
        # Cut the turn's prompt, which ends the note: the output has it already.
        note = one_line(checkpoint.note or "").partition("`: ")
        yield fit(f"  inside   {name} {note[0]}{note[1][:1]}".rstrip(), columns)


def beside_documents(
    workspace: Workspace, spans: Iterable[Span]
) -> list[dict[str, Any]]:
    """Returns these turns for JSON."""
    return [
        {
            "number": other.span.last.number,
            "id": other.span.last.id,
            "session": other.checkpoint.session if other.checkpoint else None,
            "branch": other.checkpoint.branch if other.checkpoint else None,
            "agent": other.agent,
            "prompt": other.prompt,
        }
        for other in _others(workspace, spans)
    ]


def _others(workspace: Workspace, spans: Iterable[Span]) -> Iterator[_Other]:
    for span in spans:
        checkpoint = None
        with suppress(GitcpError):
            checkpoint = read(workspace.store, span.last)
            if checkpoint is not None:
                _ = checkpoint.manifest
        yield _Other(span, checkpoint)
