"""Prints changes during a turn that may belong to another turn at the same time."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from gitcp.checkpoints.beside import Beside, Span
from gitcp.checkpoints.whose import Parted, Whose
from gitcp.cli import documents
from gitcp.cli.emit import Output
from gitcp.cli.file_lines import grouped_lines
from gitcp.cli.render import count
from gitcp.errors import GitcpError
from gitcp.format.tree import Change
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from gitcp.checkpoints.turn_of import Turn


class Together(NamedTuple):
    """The turns that overlap one turn, and the changes that may belong to them.

    `parted` is None if the turn ran alone, or if the changes cannot be told apart.
    """

    spans: tuple[Span, ...] = ()
    parted: Parted | None = None

    def own(self, path: bytes) -> bool:
        """Whether a change is the turn's own, as far as gitcp knows."""
        return self.parted is None or self.parted.own(path)

    def left_out(self, path: bytes) -> bool:
        """Whether a change is known to be another turn's."""
        return self.parted is not None and path in self.parted.others


def together(workspace: Workspace, turn: "Turn | None") -> Together:
    """Returns the turns that overlap a turn."""
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


def parted_lines(
    out: Output, changes: Sequence[Change], together: Together
) -> Iterator[str]:
    """Yields changes during a turn that may not be its own, under headings."""
    if together.parted is None:
        return
    for heading, spans_of in (
        ("Of these, also changed by {}", together.parted.also),
        ("Possibly also changed by {}", together.parted.unsure),
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
    """Returns changes that may not be the turn's own, for JSON."""
    parted = together.parted
    if parted is None:
        return {"unsure": [], "others": [], "also": []}
    listed = list(changes)
    unsure, others, also = parted.unsure, parted.others, parted.also
    return {
        "also": [_parted(one, also) for one in listed if one.path in also],
        "unsure": [_parted(one, unsure) for one in listed if one.path in unsure],
        "others": [_parted(one, others) for one in listed if one.path in others],
    }


def _parted(change: Change, spans_of: Mapping[bytes, Sequence[Span]]) -> dict[str, Any]:
    return {
        **documents.path_fields(change.path),
        "status": change.status,
        "numbers": [span.last.number for span in spans_of[change.path]],
    }
