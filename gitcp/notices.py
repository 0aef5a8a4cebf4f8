"""Notices beside the result of a call: a command prints them, a hook logs them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str], None]

_listeners: list[Listener] = []


class GitcpWarning(UserWarning):
    """Something that a program using gitcp should show to a person."""


def tell(text: str) -> None:
    """Passes a notice to the innermost listener; without one it is a Python warning."""
    if _listeners:
        _listeners[-1](text)
    else:
        import warnings  # noqa: PLC0415  hardly ever needed

        warnings.warn(text, GitcpWarning, stacklevel=3)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Has a listener told of what is noticed inside, each text once."""
    told: set[str] = set()

    def once(text: str) -> None:
        if text not in told:
            told.add(text)
            listener(text)

    _listeners.append(once)
    try:
        yield
    finally:
        _listeners.remove(once)
