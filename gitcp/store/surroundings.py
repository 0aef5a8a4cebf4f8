"""What lies around a checkpoint in this repository: its number, and the state before it."""

from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import CorruptError, FormatTooNewError, StorageError, TransferError
from gitcp.format import tree
from gitcp.format.layout import BranchKey
from gitcp.store.checkpoint import Checkpoint, FileCounts
from gitcp.store.numbers import Numbers


class Surroundings(NamedTuple):
    """The list of numbers, and how to read a checkpoint by its commit."""

    numbers: Numbers
    read: Callable[[str], Checkpoint | None]

    def number_of(self, checkpoint: Checkpoint) -> int | None:
        """Returns the number of a checkpoint, or None."""
        return self.numbers.number_of(checkpoint)

    def changed(
        self, checkpoint: Checkpoint, first: Checkpoint | None = None
    ) -> FileCounts:
        """Counts what changed since the state before a checkpoint in its work tree.

        `first` is the oldest checkpoint of the same turn: what came before that counts.
        Of one that was not made here it is what it says of itself.
        """
        files = checkpoint.manifest.files
        own = FileCounts(files.added, files.modified, files.deleted)
        before = self.before(first or checkpoint)
        if before is None or not checkpoint.holds_files:
            return own
        if checkpoint.raw.parents[:1] == (before.oid,):
            return own
        counts = {"added": 0, "modified": 0, "deleted": 0}
        try:
            changes = tree.diff(
                before.files_tree, checkpoint.files_tree, checkpoint.objects.tree
            )
            for change in changes:
                counts[change.status] += 1
        except (CorruptError, TransferError):
            return own
        return FileCounts(**counts)

    def before(self, checkpoint: Checkpoint) -> Checkpoint | None:
        """Returns the state that was there before a checkpoint, in its work tree."""
        trailers = checkpoint.trailers
        key = BranchKey(trailers.session, trailers.branch)
        # Where the numbers cannot be read, nothing is known of what was before.
        with suppress(StorageError):
            for entry in self.numbers.before(checkpoint.id, key):
                with suppress(CorruptError, FormatTooNewError):
                    before = self.read(entry.commit)
                    if before is not None and before.holds_files:
                        return before
        return None
