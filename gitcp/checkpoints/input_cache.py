"""Caches the last full input of messages, so that its prefix is not parsed again.

Derived (docs/format.md, I7): for each branch and source the digest of the input's
beginning, and what it was stored as. Losing it costs time.
"""

import hashlib
from contextlib import suppress
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.errors import StorageError
from gitcp.format.log import Meta
from gitcp.project.workspace import Workspace

_NAME = "taken.json"
_MOST = 16


class CachedInput(msgspec.Struct, frozen=True):
    """The first `size` bytes of an input, and the totals they were stored as."""

    size: int
    sha256: str
    bytes: int
    digest: str


class SourceKey(NamedTuple):
    """A branch, and the source of its conversation."""

    session: str
    branch: str
    source: str

    def key(self) -> str:
        """Returns a text that no other branch and source share."""
        return msgspec.json.encode(self).decode()


def beginning(
    workspace: Workspace, source: SourceKey, raw: bytes, held: Meta
) -> int | None:
    """Returns how many bytes of an input are already stored, exactly as `held`."""
    entry = _load(workspace).get(source.key())
    if (
        entry is None
        or (entry.bytes, entry.digest) != (held.bytes, held.digest)
        or entry.size > len(raw)
        or _sha256(memoryview(raw)[: entry.size]) != entry.sha256
    ):
        return None
    return entry.size


def remember(
    workspace: Workspace, source: SourceKey, raw: bytes, size: int, held: Meta
) -> None:
    """Notes that the first `size` bytes of an input are stored as `held`."""
    entry = CachedInput(size, _sha256(memoryview(raw)[:size]), held.bytes, held.digest)
    known = _load(workspace)
    known.pop(source.key(), None)
    kept = dict(list(known.items())[-_MOST + 1 :])
    with suppress(StorageError), durable.storage("noting what was read"):
        durable.replace(
            workspace.directory / _NAME,
            msgspec.json.encode({**kept, source.key(): entry}),
            sync=False,
        )


def _load(workspace: Workspace) -> dict[str, CachedInput]:
    try:
        raw = (workspace.directory / _NAME).read_bytes()
        return msgspec.json.decode(raw, type=dict[str, CachedInput])
    except (OSError, msgspec.MsgspecError):
        return {}


def _sha256(data: memoryview) -> str:
    return hashlib.sha256(data).hexdigest()
