"""Removes recorded conversations that a checkpoint holds, and writes one again on use."""

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from gitcp.agents import bindings
from gitcp.clients import acp_folder
from gitcp.clients.acp import NAME
from gitcp.clients.acp_folder import SessionFolder
from gitcp.errors import GitcpError
from gitcp.format.layout import LogName
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint

# A conversation to which nothing was added for so long, in seconds, is removed.
KEPT = 30 * 86_400.0
# The editor may wait for the end of the proxy: what takes longer than so many seconds is left
# to the next proxy.
_LIMIT = 3.0


def remove_old(root: Path, now: float) -> int:
    """Removes old conversations that checkpoints hold whole; returns how many.

    The folder of a session stays, with a few bytes: its id is not used for another one.
    A conversation stays if a turn is not in it yet, if a proxy has the session, or if the
    branch of its session does not hold all of it.
    """
    removed = 0
    deadline = time.monotonic() + _LIMIT
    for folder in acp_folder.folders(root):
        if time.monotonic() > deadline:
            break
        # What cannot be checked stays.
        with suppress(OSError, GitcpError):
            if folder.talk.stat().st_mtime < now - KEPT:
                with folder.at_rest() as free:
                    removed += free and _remove(folder)
    return removed


def write_again(folder: SessionFolder) -> None:
    """Writes a conversation that was removed to its place: its session continues.

    If no branch holds it any more, it begins again without its earlier turns.

    Raises:
        StorageError: the disk refused.
    """
    count = folder.stored()
    if count is not None:
        found: tuple[Checkpoint, LogName] | None = None
        with suppress(GitcpError):
            found = _held(folder)
        content = b"".join(islice(_lines(*found), count)) if found is not None else b""
        folder.write_again(content)


def _remove(folder: SessionFolder) -> bool:
    found = None if folder.turns() else _held(folder)
    if found is None:
        return False
    stored = _lines(*found)
    count = 0
    with folder.talk.open("rb") as talk:
        for line in talk:
            if line != next(stored, None):
                return False
            count += 1
    folder.put_away(count)
    return True


def _held(folder: SessionFolder) -> tuple[Checkpoint, LogName] | None:
    """Returns the newest checkpoint of a branch with its conversation, and that one's name.

    What a pull has put on top, or below it, is not the conversation that was here; nor is
    nothing, where a stranger left it out.
    """
    about = folder.about()
    if about is None:
        return None
    workspace: Workspace = open_workspace(about.cwd)
    bound = bindings.find(workspace, NAME, folder.name)
    if bound is None or bound.session is None:
        return None
    tip = workspace.store.tip(bound.session, bound.branch)
    line = workspace.store.line(tip) if tip is not None else ()
    name = LogName("conversation", bound.source)
    held = (one for one in line if logs.meta(one.log_tree, name, one.objects))
    own = next((one for one in held if one.origin.logs is None), None)
    return None if own is None else (own, name)


def _lines(tip: Checkpoint, name: LogName) -> Iterator[bytes]:
    rest = b""
    for data in logs.stream(tip.log_tree, name, tip.objects):
        *whole, rest = (rest + data).split(b"\n")
        yield from (line + b"\n" for line in whole)
