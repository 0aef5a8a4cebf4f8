"""Which of several checkpoints with one name is meant: the user's own come first.

Everyone who may push can put a checkpoint on a branch that is pulled, with the id, the label
and the commit of one of the user's own. What a name meant must not change by that.
"""

from collections.abc import Iterable

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store
from gitcp.trust.trusted_remotes import Trusting

# Made elsewhere; labelled here; made here, or by those whom the user trusts.
ELSEWHERE, LABELLED, OWN = range(3)


class Precedence:
    """Ranks the checkpoints of a store, as things are now."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._trusting = Trusting(store)

    def of(self, checkpoint: Checkpoint) -> int:
        """Returns the rank of a checkpoint; one that cannot be read has the lowest."""
        try:
            if checkpoint.origin.here or self._trusting.covers(checkpoint):
                return OWN
        except (CorruptError, FormatTooNewError):
            return ELSEWHERE
        given = self._store.labels.given(checkpoint)
        return LABELLED if given is not None and given.label else ELSEWHERE

    def can_own(self) -> bool:
        """Whether any checkpoint can count as the user's own; if not, none has to be read."""
        return self._store.seals.has_key or self._trusting.any

    def is_own(self, checkpoint: Checkpoint) -> bool:
        """Whether it was made here, or came from a remote that the user trusts."""
        return self.of(checkpoint) == OWN

    def first(self, matches: Iterable[Checkpoint]) -> list[Checkpoint]:
        """Returns the matches of the highest rank among them, in their order."""
        ranked = [(self.of(match), match) for match in matches]
        highest = max((rank for rank, _ in ranked), default=ELSEWHERE)
        return [match for rank, match in ranked if rank == highest]
