"""Clears or reports files beside the store that may hold a purged value."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.agents import bindings, handover
from gitcp.clients import acp_folder
from gitcp.clients.acp_folder import SessionFolder
from gitcp.git.drop_unreachable import git_directories
from gitcp.ledger import page_cache
from gitcp.project import hook_log
from gitcp.project.workspace import Workspace
from gitcp.purge.redact import Eraser
from gitcp.secrets import cache
from gitcp.store import labels

_PENDING = "pending.jsonl"
_LARGEST = 200 << 20
# Files without text: the scanner's key and its cache, the index of the files.
_NO_TEXT = frozenset({cache.DIRECTORY, "scan", "key"})


def clear(workspace: Workspace, eraser: Eraser | None) -> None:
    """Removes values from gitcp's files beside its checkpoints.

    Those are pending decisions, labels, prompts that hooks keep, hooks' logs, pages that
    `gitcp resume --with` handed to a client, and the transcripts that `gitcp acp` wrote of
    this project's sessions, unless an agent is in one. Cached ledger commits are removed
    as a whole.

    Raises:
        BusyError: adding a turn to a session took more than ten seconds.
        StorageError: the disk refused.
    """
    if eraser is None:
        return
    page_cache.remove_all(workspace.repository)
    for path in _cleared(workspace):
        _clear(path, eraser)
    for folder in _sessions(workspace):
        with folder.at_rest() as free:
            for path in folder.said() if free else ():
                _clear(path, eraser)


def _clear(path: Path, eraser: Eraser) -> None:
    with durable.storage("removing files beside the store"):
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return
        erased = eraser.records(raw)
        if erased != raw:
            mode = path.stat().st_mode
            durable.replace(path, erased)
            path.chmod(mode & 0o777)


def left(
    workspace: Workspace, eraser: Eraser | None, *, dry_run: bool
) -> Iterator[str]:
    """Yields the other files of gitcp and the clients' transcripts that hold a value.

    A dry run leaves out the files that `clear` would remove it from.
    """
    if eraser is None:
        return
    mine = set(_cleared(workspace))
    for directory in _directories(workspace):
        for path in sorted(directory.rglob("*")):
            inner = path.relative_to(directory).parts[0]
            if inner in _NO_TEXT or (dry_run and inner == page_cache.DIRECTORY):
                continue
            if path not in mine and _holds(path, eraser):
                yield f"gitcp's own file {path}"
    said: set[Path] = set()
    for folder in _sessions(workspace):
        said |= {*folder.said()}
        holding = [path for path in folder.said() if _holds(path, eraser)]
        if holding and dry_run:
            with folder.at_rest() as free:
                holding = [] if free else holding
        yield from (f"gitcp's own file {path}" for path in holding)
    for path in sorted({*_of_clients(workspace)} - said):
        if _holds(path, eraser):
            yield f"the client's own conversation {path}"


def _of_clients(workspace: Workspace) -> Iterator[Path]:
    """Yields clients' transcripts: their own, and what restores wrote for the clients."""
    for one in bindings.latest_first(workspace):
        if one.transcript is not None:
            yield Path(one.transcript)
        yield from map(Path, one.written)
        for copied in one.copied:
            yield from Path(copied).rglob("*")


def _directories(workspace: Workspace) -> list[Path]:
    found = [git_dir / "gitcp" for git_dir in git_directories(workspace.repository)]
    return list(dict.fromkeys([workspace.repository.store_dir, *found]))


def _cleared(workspace: Workspace) -> Iterator[Path]:
    for directory in _directories(workspace):
        yield from (directory / _PENDING, directory / labels.NAME)
        yield from sorted(directory.glob("agents/*/*.json"))
        yield from sorted(directory.glob(f"{handover.FOLDER}/*.md"))
        log = directory / hook_log.NAME
        yield from (log, log.with_suffix(".log.1"))


def _sessions(workspace: Workspace) -> list[SessionFolder]:
    """Returns the sessions of this project that `gitcp acp` has recorded."""
    top = os.path.realpath(workspace.top)
    found = []
    for folder in acp_folder.folders(acp_folder.root(os.environ)):
        about = folder.about()
        if about is not None:
            here = os.path.realpath(about.cwd)
            if here == top or here.startswith(top + os.sep):
                found.append(folder)
    return found


def _holds(path: Path, eraser: Eraser) -> bool:
    with suppress(OSError):
        small = path.is_file() and path.stat().st_size <= _LARGEST
        return small and eraser.holds(path.read_bytes())
    return False
