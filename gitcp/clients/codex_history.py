"""Finds the rollouts that Codex keeps of a project."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gitcp.clients import codex, records
from gitcp.clients.client import ClientPlaces
from gitcp.clients.history import Kept, Leave, files, head, is_within


class _Meta(msgspec.Struct):
    id: Any = None
    cwd: Any = None
    source: Any = None


class _First(msgspec.Struct):
    type: Any = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


_FIRST = msgspec.json.Decoder(_First)
_META = msgspec.json.Decoder(_Meta)


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the rollouts of threads that began in a project, archived ones too.

    Leaves out threads that work for another one: their `source` is not a text.
    """
    home = codex.home_directory(places)
    for folder, pattern in (
        (home / "sessions", "*/*/*/rollout-*.jsonl"),
        (home / "archived_sessions", "rollout-*.jsonl"),
    ):
        for path, status in files(folder, pattern, leave):
            meta = _meta(head(path))
            if meta is None:
                if status.st_size:
                    leave(str(path), "its first record does not say what thread it is")
                continue
            if not isinstance(meta.source, str | None) or not meta.id:
                continue
            if isinstance(meta.cwd, str) and is_within(meta.cwd, roots):
                yield Kept(meta.id, path, status.st_mtime, status.st_size)


def _meta(raw: bytes) -> _Meta | None:
    first = records.decode_or(_FIRST, next(records.lines(raw), b""), _First())
    if first.type != "session_meta":
        return None
    meta = records.decode_or(_META, first.payload, _Meta())
    return meta if isinstance(meta.id, str) else None
