"""State that a forked process has to reset.

A lock that another thread of the parent holds stays locked in the child for ever, a
thread of the parent does not run there, and a descriptor shares the parent's file lock.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

_alive: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()


def in_child(what: T, reset: Callable[[T], None]) -> None:
    """Calls `reset` with `what` in every process forked from this one, while it lives."""
    _alive[what] = reset


def _forked() -> None:
    for what, reset in list(_alive.items()):
        reset(what)


os.register_at_fork(after_in_child=_forked)
