"""A store that caches checkpoints, because a page reads the same ones many times."""

import copy

from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class _Remembered(Store):
    """A store to read from as long as nothing is pruned."""

    def __init__(self, store: Store) -> None:
        self._found: dict[bytes, Checkpoint | None] = {}
        super().__init__(store.repository)
        self.allowance.limit = store.allowance.limit

    def checkpoint(self, oid: str | bytes) -> Checkpoint | None:
        """Does the same as `Store.checkpoint`, but returns the same object each time.

        Raises:
            CorruptError: the commit is missing or damaged.
        """
        raw = bytes.fromhex(oid) if isinstance(oid, str) else oid
        if raw not in self._found:
            self._found[raw] = super().checkpoint(raw)
        return self._found[raw]


def remembering(workspace: Workspace) -> Workspace:
    """Returns a workspace that reads each checkpoint only once."""
    again = copy.copy(workspace)
    again.store = _Remembered(workspace.store)
    return again
