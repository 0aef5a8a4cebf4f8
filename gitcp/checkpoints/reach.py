"""Reads checkpoints by their numbers as long as a branch leads to them."""

from collections.abc import Iterator

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import Assigned
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class Reach:
    """The branches of a repository, each walked as far as was asked for.

    `damaged` says of which branches nothing can be read.
    """

    def __init__(self, store: Store, *, known: bool = False) -> None:
        """`known` says that the entries were just read from branches: none is walked."""
        self._store = store
        self._known = known
        self._walks: dict[BranchKey, Iterator[Checkpoint]] = {}
        self._found: dict[BranchKey, dict[str, Checkpoint]] = {}
        self.damaged: dict[BranchKey, CorruptError] = {}

    def find(self, entry: Assigned) -> Checkpoint | None:
        """Returns the checkpoint behind a number as its branch has it now, or None.

        It may be damaged; so may what is above it on the branch.
        """
        if self._known:
            return self._store.checkpoint(entry.commit)
        found = self._found.setdefault(entry.key, {})
        if entry.id in found:
            return found[entry.id]
        if entry.key not in self._walks:
            self._walks[entry.key] = self._walk(entry.key)
        for checkpoint in self._walks[entry.key]:
            found[checkpoint.id] = checkpoint
            if checkpoint.id == entry.id:
                return checkpoint
        return None

    def _walk(self, key: BranchKey) -> Iterator[Checkpoint]:
        try:
            tip = self._store.standing(key).checkpoint
            if tip is not None:
                yield from self._store.line(tip)
        except CorruptError as exc:
            self.damaged[key] = exc


def readable(reach: Reach, entry: Assigned) -> Checkpoint | None:
    """Returns the checkpoint behind a number; None where it is gone or damaged."""
    checkpoint = reach.find(entry)
    if checkpoint is not None:
        try:
            _ = checkpoint.manifest
        except (CorruptError, FormatTooNewError):
            return None
    return checkpoint
