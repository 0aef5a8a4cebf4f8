"""Writes bytes to stdout and stderr."""

import os
import sys
from contextlib import nullcontext, suppress
from typing import TextIO

from gitcp.errors import StorageError


def write(raw: bytes, *, err: bool = False) -> None:
    """Writes bytes at once, after the data that Python has buffered for the same stream.

    A stderr that cannot be written makes no command fail: that could not be reported.

    Raises:
        OSError: stdout cannot be written.
    """
    stream = sys.stderr if err else sys.stdout
    with suppress(OSError) if err else nullcontext():
        stream.flush()
        stream.buffer.write(raw)
        stream.buffer.flush()


def has_reader(stream: TextIO) -> bool:
    """Returns whether what is written to the stream can arrive.

    It cannot if the stream is a pipe or a socket, and its other end is closed.
    """
    import select

    poller = select.poll()
    poller.register(stream.fileno(), 0)
    return not poller.poll(0)


def discard(stream: TextIO) -> None:
    """Discards what the stream has buffered, and all that is written to it from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def discard_unwritten(status: int) -> int:
    """Discards what cannot be written and returns the exit status of the process.

    At exit Python would try once more to write it, report the error and exit with 120.
    """
    for stream in (sys.stderr, sys.stdout):
        if stream.closed:
            continue
        try:
            stream.flush()
        except OSError:
            discard(stream)
            if stream is sys.stdout:
                status = status or StorageError.exit_status
    return status
