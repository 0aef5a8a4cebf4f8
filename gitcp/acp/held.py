"""Lines to the agent that wait for a checkpoint."""

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Held(NamedTuple):
    """Lines that waited: `first` goes to the agent as it is, the others as if they came now."""

    first: bytes = b""
    lines: Sequence[bytes] = ()


# Writes what the given function returns; no line goes to the agent between the two.
HandOver = Callable[[Callable[[], Held]], None]
