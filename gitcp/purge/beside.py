"""Files beside the store that may hold a purged value: cleared, or reported."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.agents import bindings
from gitcp.git.drop_unreachable import git_directories
from gitcp.project import hook_log
from gitcp.project.workspace import Workspace
from gitcp.purge.redact import Eraser
from gitcp.secrets import cache
from gitcp.store import labels

_PENDING = "pending.jsonl"
_LARGEST = 200 << 20
# No text: the scanner's key and its memory, the index of the files.
_NO_TEXT = frozenset({cache.DIRECTORY, "scan", "key"})


def clear(workspace: Workspace, eraser: Eraser | None) -> None:
    """Takes values out of decisions that wait, labels, prompts that hooks keep, and hooks' logs.

    Raises:
        StorageError: the disk refused.
    """
    if eraser is None:
        return
    for path in _cleared(workspace):
        with durable.storage("clearing what lies beside the store"):
            try:
                raw = path.read_bytes()
            except FileNotFoundError:
                continue
            erased = eraser.records(raw)
            if erased != raw:
                mode = path.stat().st_mode
                durable.replace(path, erased)
                path.chmod(mode & 0o777)


def left(workspace: Workspace, eraser: Eraser | None) -> Iterator[str]:
    """Says which other files of gitcp and which conversations of clients hold a value."""
    if eraser is None:
        return
    mine = set(_cleared(workspace))
    for directory in _directories(workspace):
        for path in sorted(directory.rglob("*")):
            inner = path.relative_to(directory).parts[0]
            if path not in mine and inner not in _NO_TEXT and _holds(path, eraser):
                yield f"gitcp's own file {path}"
    known = {one.transcript for one in bindings.latest_first(workspace)}
    for transcript in sorted(filter(None, known)):
        if _holds(Path(transcript), eraser):
            yield f"the client's own conversation {transcript}"


def _directories(workspace: Workspace) -> list[Path]:
    found = [git_dir / "gitcp" for git_dir in git_directories(workspace.repository)]
    return list(dict.fromkeys([workspace.repository.store_dir, *found]))


def _cleared(workspace: Workspace) -> Iterator[Path]:
    for directory in _directories(workspace):
        yield from (directory / _PENDING, directory / labels.NAME)
        yield from sorted(directory.glob("agents/*/*.json"))
        log = directory / hook_log.NAME
        yield from (log, log.with_suffix(".log.1"))


def _holds(path: Path, eraser: Eraser) -> bool:
    with suppress(OSError):
        small = path.is_file() and path.stat().st_size <= _LARGEST
        return small and eraser.holds(path.read_bytes())
    return False
