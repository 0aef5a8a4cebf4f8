"""What a forked process starts anew.

A lock that another thread of the parent holds stays locked in the child for ever, a
thread of the parent does not run there, and a descriptor shares the parent's file lock.
"""

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """What does not survive a fork as it is."""

    def forked(self) -> None:
        """Starts anew, in the child."""


_alive: "weakref.WeakSet[Forked]" = weakref.WeakSet()


def in_child(what: Forked) -> None:
    """Has `what` start anew in every process forked from this one, while it lives."""
    _alive.add(what)


def _forked() -> None:
    for what in list(_alive):
        what.forked()


os.register_at_fork(after_in_child=_forked)
