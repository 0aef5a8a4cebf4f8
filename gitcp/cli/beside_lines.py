"""Says what lies beside a turn, and inside it: other turns, checkpoints before commands."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from gitcp import Checkpoint
from gitcp.checkpoints.beside import Beside, Span, read
from gitcp.checkpoints.history import prompt_of
from gitcp.checkpoints.whose import Parted, Whose
from gitcp.cli import documents
from gitcp.cli.emit import Output, one_line
from gitcp.cli.file_lines import grouped_lines
from gitcp.cli.layout import fit
from gitcp.cli.render import count, title_of
from gitcp.clients.client import BEFORE_COMMAND
from gitcp.errors import GitcpError
from gitcp.format.tree import Change
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    # `log` does without it.
    from gitcp.checkpoints.turn_of import Turn

# In a row of `log`.
_NAMED = 2
_LISTED = 10


class Together(NamedTuple):
    """The turns that overlap one turn, and what of its changes may be theirs.

    `parted` is None where the turn ran alone, or where nothing can be told apart.
    """

    spans: tuple[Span, ...] = ()
    parted: Parted | None = None

    def own(self, path: bytes) -> bool:
        """Whether a change is the turn's own, as far as is known."""
        return self.parted is None or self.parted.own(path)

    def left_out(self, path: bytes) -> bool:
        """Whether a change is known to be another's."""
        return self.parted is not None and path in self.parted.others


def together(workspace: Workspace, turn: "Turn | None") -> Together:
    """Returns what overlaps a turn."""
    store = workspace.store
    number = turn.end.number if turn is not None else None
    entry = store.numbers.find(number) if number is not None else None
    if entry is None:
        return Together()
    beside = Beside(store)
    spans = tuple(beside.of(entry))
    parted = None
    with suppress(GitcpError):
        parted = Whose(store, beside).of(entry) if spans else None
    return Together(spans, parted)


class _Other(NamedTuple):
    """A turn that ran at the same time; the checkpoint is None where it is gone."""

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
    """Yields a line for each: its number, its client, what it was asked."""
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
        # The turn's prompt, which ends the note, is there already.
        note = one_line(checkpoint.note or "").partition("`: ")
        yield fit(f"  inside   {name} {note[0]}{note[1][:1]}".rstrip(), columns)


def parted_lines(
    out: Output, changes: Sequence[Change], together: Together
) -> Iterator[str]:
    """Yields what changed during a turn and may not be its own, under headings."""
    if together.parted is None:
        return
    for heading, spans_of in (
        ("May be {}'s as well", together.parted.unsure),
        ("Changed meanwhile by {}", together.parted.others),
    ):
        groups: dict[str, list[Change]] = {}
        for change in changes:
            if change.path in spans_of:
                name = _names(spans_of[change.path])
                groups.setdefault(name, []).append(change)
        for name, found in groups.items():
            yield f"\n{heading.format(name)} ({count(len(found), 'file')})"
            yield from grouped_lines(out, found, {})


def _names(spans: Sequence[Span]) -> str:
    return " or ".join(f"#{span.last.number}" for span in spans) or "a restore"


def parted_documents(
    changes: Iterable[Change], together: Together
) -> dict[str, list[dict[str, Any]]]:
    """Returns what JSON says of changes that may not be the turn's own."""
    parted = together.parted
    unsure, others = (parted.unsure, parted.others) if parted else ({}, {})
    listed = list(changes)
    return {
        "unsure": [_parted(one, unsure) for one in listed if one.path in unsure],
        "others": [_parted(one, others) for one in listed if one.path in others],
    }


def _parted(change: Change, spans_of: Mapping[bytes, Sequence[Span]]) -> dict[str, Any]:
    return {
        **documents.path_fields(change.path),
        "status": change.status,
        "numbers": [span.last.number for span in spans_of[change.path]],
    }


def beside_documents(
    workspace: Workspace, spans: Iterable[Span]
) -> list[dict[str, Any]]:
    """Returns what JSON says of them."""
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
