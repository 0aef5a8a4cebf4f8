"""A progress line on the terminal, removed when the work is done."""

import sys
import time

from gitcp.cli.streams import write

# In seconds: shorter work is not shown; and the time between two drawings of the line.
SLOW = 0.5
EVERY = 0.1


class ProgressLine:
    """A line on stderr; `begin` starts the clock, and any other output clears the line."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._last = float("-inf")
        self._shown = False

    def begin(self) -> None:
        """Starts the clock for the work that follows."""
        self._began = time.monotonic()

    def is_due(self) -> bool:
        """Whether the user has waited long enough for the line, or for a new text in it."""
        now = time.monotonic()
        return now - self._began >= SLOW and now - self._last >= EVERY

    def show(self, text: str) -> None:
        """Draws the line if it is due and there is a terminal; the text must be safe."""
        if not (self.is_due() and sys.stderr.isatty()):
            return
        import shutil

        self._last = time.monotonic()
        self._shown = True
        room = max(1, shutil.get_terminal_size().columns - 1)
        _draw(text[:room])

    def clear(self) -> None:
        """Removes the line, if there is one."""
        if self._shown:
            self._shown = False
            _draw("")


def _draw(text: str) -> None:
    write(f"\r{text}\x1b[K".encode("utf-8", "backslashreplace"), err=True)
