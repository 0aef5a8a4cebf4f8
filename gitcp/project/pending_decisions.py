"""Decisions that wait for a checkpoint, each with the agent's session that it is of."""

from collections.abc import Iterable
from pathlib import Path

from gitcp import durable
from gitcp.format.log import Waiting, decode_waiting, encode_waiting

_NAME = "pending.jsonl"


def waiting(directory: Path) -> list[Waiting]:
    """Returns what waits in a work tree's directory.

    Raises:
        CorruptError: the file is damaged.
        StorageError: it cannot be read.
    """
    with durable.storage("reading the decisions that wait"):
        try:
            raw = (directory / _NAME).read_bytes()
        except FileNotFoundError:
            return []
    return list(decode_waiting(raw))


def add(directory: Path, entries: Iterable[Waiting]) -> None:
    """Keeps entries; the caller holds the work tree's lock.

    Raises:
        StorageError: the disk refused.
    """
    with durable.storage("keeping the decision"):
        path = directory / _NAME
        before = path.read_bytes() if path.exists() else b""
        durable.replace(path, before + b"".join(map(encode_waiting, entries)))


def keep(directory: Path, left: Iterable[Waiting]) -> None:
    """Forgets what was saved: these are left. The caller holds the work tree's lock.

    Raises:
        StorageError: the disk refused.
    """
    lines = b"".join(map(encode_waiting, left))
    with durable.storage("clearing the decisions that were saved"):
        if lines:
            durable.replace(directory / _NAME, lines)
        else:
            durable.remove(directory / _NAME)
