"""What the proxy says of its own: lines on stderr, which editors keep in a log."""

import sys
from contextlib import suppress


class StderrLog:
    """Writes each text once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def tell(self, text: str) -> None:
        """Writes a text as one line, control characters escaped."""
        line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
        if line not in self._told:
            self._told.add(line)
            with suppress(OSError, ValueError):
                sys.stderr.write(f"gitcp acp: {line}\n")
