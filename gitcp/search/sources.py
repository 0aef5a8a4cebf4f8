"""Reads the sources of the index: segments of logs, and notes."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from gitcp.checkpoints.turns import INNER
from gitcp.clients.triggers import TURN_END
from gitcp.errors import CorruptError
from gitcp.format import log
from gitcp.format.layout import DECISIONS, SEGMENTS_PER_DIRECTORY, segment_path
from gitcp.search.passages import NOTES, PROMPTS, Span
from gitcp.store import log_lines
from gitcp.store.checkpoint import Checkpoint

OF_REASONS = DECISIONS.path + b"/"
_PLACE = re.compile(
    rb"(?:conversation/[^/]+|"
    + DECISIONS.path
    + rb")/([0-9a-f]{4})/([0-9a-f]{2})\.jsonl"
)
_SEGMENT = len(segment_path(0))


def is_segment(place: bytes) -> bool:
    """Whether a path below the logs is that of a segment to index.

    A checkpoint that was made elsewhere may have any path there.
    """
    return _PLACE.fullmatch(place) is not None


def place_before(place: bytes) -> bytes | None:
    """Returns the path of the segment before a segment; None for the first."""
    match = _PLACE.fullmatch(place)
    assert match is not None
    number = int(match[1], 16) * SEGMENTS_PER_DIRECTORY + int(match[2], 16)
    return place[:-_SEGMENT] + segment_path(number - 1) if number else None


class Counted:
    """Blocks of lines, and the number of lines so far."""

    def __init__(self, blocks: Iterator[log_lines.Block]) -> None:
        self._blocks = blocks
        self.count = 0

    def __iter__(self) -> Iterator[log_lines.Block]:
        for block in self._blocks:
            self.count += block.data.count(b"\n") + (not block.data.endswith(b"\n"))
            yield block


def reasons_in(
    blocks: Iterable[log_lines.Block],
) -> Iterator[tuple[Span, log.Decision]]:
    """Yields the entries of a segment of a decision log, with their places."""
    number = 0
    for block in blocks:
        at = block.start
        for line in block.data.splitlines(keepends=True):
            with suppress(CorruptError):
                for entry in log.decode_decisions(line, "a checkpoint"):
                    yield Span(at, len(line), number), entry
            at += len(line)
            number += 1


def note_text(checkpoint: Checkpoint) -> tuple[str, str]:
    """Returns the column for the note and label of a checkpoint, and their text."""
    manifest = checkpoint.manifest
    note = manifest.note or ""
    of_turn = manifest.trigger in INNER or manifest.trigger == TURN_END
    if of_turn and manifest.conversation is not None:
        # The conversation has the whole prompt.
        note = ""
    text = "\n".join(filter(None, (note, manifest.label)))
    return (PROMPTS if of_turn and not manifest.label else NOTES), text
