"""A store that caches checkpoints: a page reads the same ones many times."""

import copy

from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class _Remembered(Store):
    """A store to read from, for as long as nothing is pruned."""

    def __init__(self, store: Store) -> None:
        self._found: dict[bytes, Checkpoint | None] = {}
        super().__init__(store.repository)
        self.allowance.limit = store.allowance.limit

    def checkpoint(self, oid: str | bytes) -> Checkpoint | None:
        """Returns what `Store.checkpoint` does, and the same object each time.

        Raises:
            CorruptError: the commit is missing or damaged.
        """
        raw = bytes.fromhex(oid) if isinstance(oid, str) else oid
        if raw not in self._found:
            self._found[raw] = super().checkpoint(raw)
        return self._found[raw]


def remembering(workspace: Workspace) -> Workspace:
    """Returns a workspace whose checkpoints are read once each."""
    again = copy.copy(workspace)
    again.store = _Remembered(workspace.store)
    return again
