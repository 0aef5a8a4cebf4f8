"""Runs a command between two checkpoints."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gitcp.checkpoints.finish_restore import Restored
from gitcp.checkpoints.first_line import LEFT_OUT, brief, holds_secret
from gitcp.checkpoints.restore import restore
from gitcp.checkpoints.restore_request import request_restore
from gitcp.checkpoints.save import save
from gitcp.errors import GitcpError
from gitcp.format.log import Decision
from gitcp.git.command import tee
from gitcp.project.workspace import Workspace
from gitcp.secrets import dotenv
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, Saved

_KEPT = 8 * 1024
_TOLD = 2 * 1024
_NOTE = 60


class RunOutcome(NamedTuple):
    """A finished command: its exit status, and the checkpoints around it.

    `trouble` is what kept gitcp from saving or going back afterwards.
    """

    status: int
    before: Saved
    failed: Checkpoint | None = None
    back: Restored | None = None
    trouble: GitcpError | None = None


def run(
    workspace: Workspace,
    words: Sequence[str],
    *,
    directory: Path,
    note: str | None = None,
    rollback: bool = False,
    out: int = 1,
) -> RunOutcome:
    """Saves, runs a command in `directory`, and saves again if it fails.

    The second checkpoint has the trigger `test-failure` and a `tried` entry with the
    ends of its output. With `rollback` the files are then as before the command; the
    failure and its entry stay in the log. `out` is the descriptor for the command's
    stdout.

    Raises:
        NotFoundError: the command cannot be started.
        GitcpError: the first checkpoint cannot be made; the command was not run.
    """
    line = shlex.join(words)
    before = save(
        workspace,
        Draft("before-run", note=note or f"before {_short(line)}"),
    )
    done = tee(words, cwd=directory, keep=_KEPT, out=out)
    if not done.status:
        return RunOutcome(done.status, before)
    failed = back = None
    try:
        failed = save(
            workspace,
            Draft(
                "test-failure",
                note=f"{note or _short(line)}: exit status {done.status}",
                decisions=(
                    Decision(
                        f"{_short(line)} (exit status {done.status})",
                        kind="tried",
                        why=_told(workspace, done.out, done.err),
                    ),
                ),
                allow_empty=True,
            ),
        ).checkpoint
        if rollback:
            request = request_restore(
                before.checkpoint,
                conversation=False,
                note=f"went back: exit status {done.status}",
                # What the command sent elsewhere stays sent; only files can go back.
                replay=True,
            )
            back = restore(workspace, request)
    except GitcpError as exc:
        return RunOutcome(done.status, before, failed, back, exc)
    return RunOutcome(done.status, before, failed, back)


def _short(line: str) -> str:
    return brief(line, _NOTE)


def _told(workspace: Workspace, out: bytes, err: bytes) -> str | None:
    """Returns the end of the output, or a text that says that it holds a secret.

    It is scanned before it is cut: the rest of a secret does not look like one.
    """
    known = dotenv.of_project(workspace.top)
    return LEFT_OUT if holds_secret([out, err], known) else _ends(out, err)


def _ends(out: bytes, err: bytes) -> str | None:
    """Returns the ends of both streams as text, stderr last: it says what went wrong.

    Each stream may use half of the room, and what the other does not need.
    """
    half = _TOLD // 2
    of_err = max(half, _TOLD - len(out))
    of_out = max(half, _TOLD - len(err))
    ends = (_end(out, of_out), _end(err, of_err))
    return "\n".join(filter(None, ends)) or None


def _end(output: bytes, room: int) -> str:
    """Returns the end of an output, from the start of a line where it can."""
    tail = output[-room:]
    if len(output) > room:
        # Drop an incomplete character or line at the front.
        tail = tail.split(b"\n", 1)[-1] or tail
    return tail.decode("utf-8", "replace").strip()
