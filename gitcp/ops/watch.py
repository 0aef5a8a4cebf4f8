"""Checkpoints at an interval, in the foreground."""

import time
from collections.abc import Callable, Iterator

from gitcp.errors import GitcpError
from gitcp.ops.save import Request, save
from gitcp.ops.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

_PAUSE = 5.0


def watch(
    workspace: Workspace,
    seconds: float,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> Iterator[Checkpoint | GitcpError]:
    """Yields each checkpoint made, and each reason why one could not be; never ends.

    One is due when the newest of the current branch is `seconds` old, whoever made it.
    """
    looked = 0.0
    while True:
        current = workspace.current()
        tip = workspace.store.tip(current.session, current.branch)
        now = clock()
        # A checkpoint of the future was made before the clock was set right.
        made = tip.raw.epoch if tip is not None and tip.raw.epoch <= now else 0
        left = max(made, looked) + seconds - now
        if 0 < left <= seconds:
            # Sleeping on: a machine that was suspended, another process that saved.
            sleep(min(left, _PAUSE))
            continue
        looked = clock()
        try:
            saved = save(workspace, Request(trigger="interval"))
        except GitcpError as exc:
            yield exc
            continue
        if saved.created:
            yield saved.checkpoint
