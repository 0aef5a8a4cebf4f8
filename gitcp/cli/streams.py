"""Writes bytes to stdout and stderr."""

import sys


def write(raw: bytes, *, err: bool = False) -> None:
    """Writes bytes at once, after the data that Python has buffered for the same stream.

    Raises:
        OSError: the stream cannot be written.
    """
    stream = sys.stderr if err else sys.stdout
    stream.flush()
    stream.buffer.write(raw)
    stream.buffer.flush()
