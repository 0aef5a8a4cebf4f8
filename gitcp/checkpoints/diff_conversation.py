"""Compares two conversations by record, whatever their size."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from gitcp.clients import records
from gitcp.store import log_lines
from gitcp.store.checkpoint import Checkpoint

# The limit of records to show if one side was made elsewhere: parsed, a record takes many
# times the memory of its text.
_KEPT = 8 * 1024 * 1024
_KEPT_RECORDS = 100_000


class Records(NamedTuple):
    """The records that only one of two conversations has: how many, and the first."""

    total: int
    shown: tuple[bytes, ...]

    @property
    def whole(self) -> bool:
        """Whether all of them can be shown."""
        return self.total == len(self.shown)


class Conversations(NamedTuple):
    """Two conversations: how many records they share from the start, and what follows."""

    common: int
    removed: Records
    added: Records


def conversations(old: Checkpoint, new: Checkpoint) -> Conversations:
    """Returns how two conversations differ.

    Each is read once, piece by piece. If one was made elsewhere, the records to show
    are the first 8 MiB, 100,000 records at most, of those that differ.

    Raises:
        CorruptError: a segment is missing or damaged.
        TransferError: a checkpoint came from elsewhere and exceeds the size limit.
    """
    bounded = old.origin.logs is not None or new.origin.logs is not None
    before, after = _Side(old, bounded=bounded), _Side(new, bounded=bounded)
    common = 0
    same = True
    for left, right in zip_longest(before.records(), after.records()):
        same = same and left == right
        if same:
            common += 1
        else:
            before.keep(left)
            after.keep(right)
    return Conversations(common, before.only_here(), after.only_here())


class _Record(NamedTuple):
    """A record, or the SHA-256 of one that is too long to be kept."""

    data: bytes
    digest: bytes | None = None


class _Side:
    """One of two conversations, and the records that the other lacks."""

    def __init__(self, checkpoint: Checkpoint, *, bounded: bool) -> None:
        self._checkpoint = checkpoint
        self._bounded = bounded
        self._kept: list[bytes] = []
        self._left = _KEPT
        self._count = 0

    def records(self) -> Iterator[_Record]:
        """Yields the records; lines without one are left out."""
        longest = log_lines.LONGEST_FOREIGN if self._bounded else None
        for block in log_lines.blocks(self._checkpoint.conversation_stream(), longest):
            if block.digest is not None:
                yield _Record(b"", block.digest)
                continue
            for line in records.lines(block.data):
                if line.strip():
                    yield _Record(line)

    def keep(self, record: _Record | None) -> None:
        """Keeps a record that the other side does not have at this position."""
        if record is None:
            return
        self._count += 1
        if self._bounded:
            # Records after one that is left out would appear in the wrong place.
            self._left -= len(record.data)
            if record.digest is not None or len(self._kept) >= _KEPT_RECORDS:
                self._left = -1
            if self._left < 0:
                return
        self._kept.append(record.data)

    def only_here(self) -> Records:
        return Records(self._count, tuple(self._kept))
