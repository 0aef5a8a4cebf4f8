"""Resets what a forked process must not share with its parent (`os.fork`).

A lock that another thread of the parent holds stays locked in the child for ever, and a
thread of the parent does not run there. A descriptor shares the parent's file lock, or
keeps a pipe open whose end another process waits for.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, Any, Generic, Protocol, Self, TypeVar, overload
from weakref import WeakKeyDictionary, WeakSet

T = TypeVar("T")

# Descriptors that a child keeps, because the code that forks is using them.
kept: ContextVar[tuple[int, ...]] = ContextVar("gitcp_kept", default=())

_alive: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()
_processes: WeakSet["Piped"] = WeakSet()
_withheld: set[int] = set()
# Held while something is opened that no child may get; a fork waits for it.
_opening = threading.RLock()
# Loaded on use, also by threads. A module that is half loaded when its thread is gone
# could never be loaded in the child.
_LOADED_LATE = ("gitcp.", "pygit2")


def in_child(what: T, reset: Callable[[T], None]) -> None:
    """Calls `reset` with `what` in every process forked from this one, while it lives."""
    _alive[what] = reset


@contextmanager
def opening() -> Iterator[None]:
    """Keeps other threads from forking for as long as it takes to open something."""
    with _opening:
        yield


def withhold(fd: int) -> None:
    """Takes a descriptor from every child, until `release`; for use within `opening`."""
    _withheld.add(fd)


def release(fd: int) -> None:
    """Ends `withhold`; to be called before the descriptor is closed."""
    _withheld.discard(fd)


class Piped(Protocol):
    """A process with pipes to it."""

    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None


def started(process: Piped) -> None:
    """Takes the pipes to a process from every child; for use within `opening`."""
    _processes.add(process)


class computed(Generic[T]):  # noqa: N801  a decorator
    """A property that is computed once, without a lock that a fork could leave locked.

    Threads that ask at once may all compute it. All of them get the same one.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type[object], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[object]) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[object]) -> T: ...
    def __get__(self, instance: object, owner: type[object]) -> T | Self:
        if instance is None:
            return self
        found: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return found


def _before() -> None:
    _await_imports()
    _opening.acquire()


def _await_imports() -> None:
    """Waits until other threads have loaded their modules; skips those that this thread loads."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_LOADED_LATE) and getattr(
            getattr(module, "__spec__", None), "_initializing", False
        ):
            from importlib import import_module  # noqa: PLC0415  hardly ever

            # If the import fails, the thread that began it reports that.
            with suppress(Exception):
                import_module(name)


def _in_parent() -> None:
    _opening.release()


def _in_child() -> None:
    global _opening  # noqa: PLW0603  the one that is there belongs to the parent
    _opening = threading.RLock()
    _give_back()
    for what, reset in list(_alive.items()):
        reset(what)


def _give_back() -> None:
    """Replaces the parent's descriptors by ones of /dev/null.

    They cannot just be closed: their owner may close the same number again, when it
    belongs to another file.
    """
    taken = _withheld.difference(kept.get())
    _withheld.clear()
    for process in list(_processes):
        for stream in (process.stdin, process.stdout, process.stderr):
            # A closed stream has no number.
            with suppress(ValueError):
                taken |= {stream.fileno()} if stream is not None else set()
    if taken:
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in taken:
            os.dup2(nothing, fd, inheritable=False)
        os.close(nothing)


os.register_at_fork(
    before=_before, after_in_parent=_in_parent, after_in_child=_in_child
)
