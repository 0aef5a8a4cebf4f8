"""Progress of long work: a command shows it, and otherwise it is dropped."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]
Listener = Callable[[str, int, int], None]

_listeners: list[Listener] = []


def of(doing: str) -> Report | None:
    """Returns a function to call with how many of how many parts are done, or None."""
    if not _listeners:
        return None
    listener = _listeners[-1]
    return lambda done, total: listener(doing, done, total)


@contextmanager
def shown_by(listener: Listener | None) -> Iterator[None]:
    """Has a listener called with what is being done inside, the parts done, and all parts."""
    if listener is None:
        yield
        return
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
