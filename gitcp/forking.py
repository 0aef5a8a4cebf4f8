"""What a forked process starts anew.

A lock that another thread of the parent holds stays locked in the child for ever, a
thread of the parent does not run there, and a descriptor shares the parent's file lock.
"""

import os
import weakref
from collections.abc import Callable

_alive: set[weakref.WeakMethod[Callable[[], None]]] = set()


def in_child(anew: Callable[[], None]) -> None:
    """Has a method called in every process forked from this one, while its object lives."""
    _alive.add(weakref.WeakMethod(anew, _alive.discard))


def _forked() -> None:
    for one in list(_alive):
        anew = one()
        if anew is not None:
            anew()


os.register_at_fork(after_in_child=_forked)
