"""Commits that were rewritten, from the hook that hears of it to the next checkpoint."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from gitcp import durable
from gitcp.format.log import Rewrite, decode_rewrites, encode_rewrite

# A rebase of more commits than that keeps the link of the last ones.
AT_MOST = 10_000
_NAME = "rewritten.jsonl"


def waiting(directory: Path) -> tuple[Rewrite, ...]:
    """Returns what goes into the next checkpoint of a work tree."""
    try:
        raw = (directory / _NAME).read_bytes()
    except OSError:
        return ()
    return tuple(decode_rewrites(raw))


def add(directory: Path, entries: Iterable[Rewrite]) -> None:
    """Keeps what was rewritten for the next checkpoint.

    Raises:
        StorageError: the disk refused.
    """
    new = [entry for entry in entries if entry.old != entry.new]
    if not new:
        return
    before = waiting(directory)
    with durable.storage("keeping which commits were rewritten"):
        durable.make_directories(directory, private=True)
        if len(before) + len(new) > AT_MOST:
            _write(directory, (*before, *new)[-AT_MOST:])
            return
        # In one write, so that hooks of two commands do not lose each other's.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        file = os.open(directory / _NAME, flags, 0o600)
        try:
            os.write(file, b"".join(map(encode_rewrite, new)))
        finally:
            os.close(file)


def forget(directory: Path, saved: Sequence[Rewrite]) -> None:
    """Leaves out what a checkpoint holds now; what came since stays."""
    if not saved:
        return
    held = set(saved)
    with durable.storage("clearing what was saved"):
        rest = [entry for entry in waiting(directory) if entry not in held]
        if rest:
            _write(directory, rest)
        else:
            durable.remove(directory / _NAME)


def _write(directory: Path, entries: Iterable[Rewrite]) -> None:
    durable.replace(directory / _NAME, b"".join(map(encode_rewrite, entries)))
