"""Looks up what this repository knows of a checkpoint: number, label, previous state."""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import CorruptError, FormatTooNewError, StorageError, TransferError
from gitcp.format import tree
from gitcp.store.checkpoint import Checkpoint, FileCounts
from gitcp.store.labels import Labels
from gitcp.store.numbers import Numbers


class Surroundings(NamedTuple):
    """The list of numbers, the labels given later, and how to read a checkpoint by its commit."""

    numbers: Numbers
    labels: Labels
    read: Callable[[str], Checkpoint | None]

    def number_of(self, checkpoint: Checkpoint) -> int | None:
        """Returns the number of a checkpoint, or None."""
        return self.numbers.number_of(checkpoint)

    def number_for(self, ident: str) -> int | None:
        """Returns the number of a checkpoint with an id, or None."""
        return self.numbers.of(ident)

    def label_of(self, checkpoint: Checkpoint) -> str | None:
        """Returns the label of a checkpoint, or None."""
        return self.labels.label_of(checkpoint)

    def label_component_of(self, checkpoint: Checkpoint) -> str | None:
        """Returns the label of a checkpoint as a ref component, or None."""
        return self.labels.component_of(checkpoint)

    def changed(self, checkpoint: Checkpoint) -> FileCounts:
        """Counts what changed since the state before a checkpoint in its work tree."""
        return since(checkpoint, self.before(checkpoint))

    def before_turn(self, first: Checkpoint) -> Checkpoint | None:
        """Returns the state before a turn, by the turn's first checkpoint.

        The turn did not make what was there when it began.
        """
        return first if first.trailers.trigger == "turn-start" else self.before(first)

    def before(self, checkpoint: Checkpoint) -> Checkpoint | None:
        """Returns the state that was there before a checkpoint, in its work tree."""
        # If the numbers cannot be read, the earlier state is unknown.
        with suppress(StorageError):
            pruned: Collection[int] | None = None
            for entry in self.numbers.before(checkpoint.id, checkpoint.trailers.key):
                # A pruned checkpoint can be read until `gc` removes it. Once one is missing, all
                # before it may be: looking for each takes long while packs change.
                if pruned is not None and entry.number in pruned:
                    continue
                try:
                    before = self.read(entry.commit)
                    if before is not None and before.holds_files:
                        return before
                except FormatTooNewError:
                    continue
                except CorruptError:
                    if pruned is None:
                        pruned = self.numbers.fates().gone
        return None


def since(checkpoint: Checkpoint, before: Checkpoint | None) -> FileCounts:
    """Counts what differs between two states; without one, what a checkpoint says itself."""
    files = checkpoint.manifest.files
    own = FileCounts(files.added, files.modified, files.deleted)
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
