"""The result of a capture of the work tree."""

from typing import NamedTuple

from gitcp.format.checkpoint import Skipped
from gitcp.worktree.state import ScanState


class Snapshot(NamedTuple):
    """The work tree as captured; `tree` is None if there is no file at all.

    `tracked` are paths of this repository though no listing leads to them: ignored, or
    in a nested repository.
    """

    tree: bytes | None
    empty: tuple[bytes, ...]
    skipped: tuple[Skipped, ...]
    sparse: frozenset[bytes]
    tracked: frozenset[bytes]
    state: ScanState

    @property
    def lists(self) -> bytes | None:
        """The tree of the lists of its chunked files, if there is one."""
        return self.state.lists
