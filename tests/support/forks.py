"""Processes forked from the one that runs the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting_child() -> Iterator[int]:
    """A process forked here that does nothing, and lives on meanwhile."""
    reading, writing = os.pipe()
    number = os.fork()
    if number == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        yield number
    finally:
        os.close(writing)
        os.waitpid(number, 0)
