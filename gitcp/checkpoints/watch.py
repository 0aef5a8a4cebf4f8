"""Saves checkpoints at an interval, in the foreground."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from gitcp.checkpoints.save import save
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft

_PAUSE = 5.0


def watch(
    workspace: Workspace,
    seconds: float | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> Iterator[Checkpoint | GitcpError]:
    """Yields each checkpoint made, and each reason why one could not be; never ends.

    One is due when the newest of the current branch is `seconds` old, whatever made it.
    Without `seconds`, the present value of `intervalMinutes` counts; 0 means never.
    """
    looked = 0.0
    while True:
        with suppress(GitcpError):
            # If it cannot be read now, the error is reported when the next checkpoint
            # is due.
            workspace.refresh()
        interval = workspace.settings.interval if seconds is None else seconds
        if not interval:
            sleep(_PAUSE)
            continue
        current = workspace.current()
        tip = workspace.store.tip(current.session, current.branch)
        now = clock()
        # A checkpoint from the future was made before the clock was corrected.
        newest = tip.raw.epoch if tip is not None and tip.raw.epoch <= now else 0
        left = max(newest, looked) + interval - now
        if 0 < left <= interval:
            # Sleep longer: the machine may have been suspended, or another process may
            # have saved.
            sleep(min(left, _PAUSE))
            continue
        looked = clock()
        try:
            saved = save(workspace, Draft("interval"))
        except GitcpError as exc:
            yield exc
            continue
        if saved.created:
            yield saved.checkpoint
