"""A progress line on the terminal, removed when the work is done."""

import sys
import time
from contextlib import suppress

from gitcp.cli.streams import write

# In seconds: what takes less is not shown, and how often the line is drawn.
SLOW = 0.5
EVERY = 0.1


class ProgressLine:
    """A line on stderr; `begin` starts the clock, and whatever else is printed clears it."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last = float("-inf")
        self._shown = False

    def begin(self) -> None:
        """Starts the clock: what follows has taken no time yet."""
        self._began = time.monotonic()

    def is_due(self) -> bool:
        """Whether a person has waited long enough to be told something, or something new."""
        now = time.monotonic()
        return now - self._began >= SLOW and now - self._last >= EVERY

    def show(self, text: str) -> None:
        """Draws the line, if it is due and there is a terminal; the text must be safe."""
        if not (self.is_due() and sys.stderr.isatty()):
            return
        import shutil

        self._last = time.monotonic()
        self._shown = True
        room = max(1, shutil.get_terminal_size().columns - 1)
        _draw(text[:room])

    def clear(self) -> None:
        """Takes the line away, if there is one."""
        if self._shown:
            self._shown = False
            _draw("")


def _draw(text: str) -> None:
    # A terminal that is gone is not a reason to fail.
    with suppress(OSError):
        write(f"\r{text}\x1b[K".encode("utf-8", "backslashreplace"), err=True)
