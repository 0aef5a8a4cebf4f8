"""Decisions that wait for a checkpoint, each with the agent session that recorded it."""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.format.log import (
    AgentSession,
    Decision,
    Waiting,
    decode_waiting,
    encode_waiting,
)
from gitcp.names import check_text
from gitcp.project.workspace import Workspace

_NAME = "pending.jsonl"


def pending(workspace: Workspace) -> list[Decision]:
    """Returns the decisions that wait for a save, whichever agent recorded them.

    Raises:
        CorruptError: the file of decisions is damaged.
        StorageError: the file of decisions cannot be read.
    """
    return [one.entry for one in waiting(workspace.directory)]


def record(
    workspace: Workspace, entries: list[Decision], by: AgentSession | None = None
) -> None:
    """Keeps decisions for the next save, or for the next save of an agent's session.

    Raises:
        UsageError: a text is not valid Unicode.
        BusyError: a save or restore is under way.
        StorageError: the disk refused.
    """
    check_decisions(entries)
    # The time also distinguishes an entry from another with the same text.
    at = workspace.store.now()
    dated = [msgspec.structs.replace(entry, at=entry.at or at) for entry in entries]
    # A running save would otherwise clear entries that it has not read.
    with workspace.locked():
        _add(workspace.directory, [Waiting(entry, by) for entry in dated])


def check_decisions(entries: Iterable[Decision]) -> None:
    """Raises if an entry cannot be stored.

    Raises:
        UsageError: a text is not valid Unicode.
    """
    for entry in entries:
        check_text(entry.text, f"the {entry.kind}")
        check_text(entry.why or "", "the reason")
        for path in entry.paths:
            check_text(path, "the path")


def waiting(directory: Path) -> list[Waiting]:
    """Returns the decisions that wait in a work tree's directory.

    Raises:
        CorruptError: the file is damaged.
        StorageError: the file of decisions cannot be read.
    """
    with durable.storage("reading the pending decisions"):
        try:
            raw = (directory / _NAME).read_bytes()
        except FileNotFoundError:
            return []
    return list(decode_waiting(raw))


def _add(directory: Path, entries: Iterable[Waiting]) -> None:
    with durable.storage("recording the decision"):
        path = directory / _NAME
        before = path.read_bytes() if path.exists() else b""
        durable.replace(path, before + b"".join(map(encode_waiting, entries)))


def keep(directory: Path, left: Iterable[Waiting]) -> None:
    """Keeps only the decisions in `left`, after a save. The caller holds the work tree's lock.

    Raises:
        StorageError: the disk refused.
    """
    lines = b"".join(map(encode_waiting, left))
    with durable.storage("clearing the decisions that were saved"):
        if lines:
            durable.replace(directory / _NAME, lines)
        else:
            durable.remove(directory / _NAME)
