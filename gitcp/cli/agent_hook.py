"""Handles one hook event of an agent. Never raises, never prints; kept small to start fast."""

import os
import select
import sys
import time
from collections.abc import Callable

from gitcp import notices
from gitcp.cli.guard import guarded, here, limited

# In bytes. Only a tool's output can make a payload larger.
_LIMIT = 256 * 1024 * 1024
# Set by `gitcp acp` for the agent that it starts.
_BEHIND = "GITCP_BEHIND_ACP"


def run(agent: str, event: str, directory: str = ".") -> None:
    """Handles one event of one client; prints a message to its agent, if there is one."""
    if os.environ.get(_BEHIND):
        # The agent's proxy makes the checkpoint of the same turn.
        return
    where = here() if directory == "." else directory

    def work(started: float) -> bytes | None:
        # git works while the other modules load, which takes longer than git's answers.
        from gitcp.git import questions

        questions.start_early()
        try:
            return answer(agent, event, _stdin, started)
        finally:
            questions.drop()

    guarded(f"{agent} {event}", work, directory=where)


def answer(
    agent: str, event: str, sent: Callable[[], bytes], started: float
) -> bytes | None:
    """Handles one event of one client, and returns a message to its agent, or None.

    Raises:
        GitcpError: nothing was saved.
        OutOfTimeError: the event took longer than `hookTimeout`.
    """
    from gitcp.agents import hook_events as turns
    from gitcp.clients import registry

    what = f"{agent} {event}"
    client = registry.client(agent)
    # The limit is a setting of the project that the event names: until it is known, the
    # default applies.
    with limited(_DEFAULT, what):
        received = turns.read_event(client, event, sent(), os.environ)
        if received is None:
            return None
        workspace = turns.workspace_of(received)
    warning = turns.warning(workspace, received)
    if warning is not None:
        notices.tell(warning)
        return client.answer(event, warning)
    timeout = workspace.settings.hook_timeout
    workspace.deadline = started + timeout * _FOR_FILES
    left = timeout - (time.monotonic() - started)
    with limited(left, what), workspace.repository.objects.few_reads():
        told = turns.overtaken(workspace, client, received)
        told = told or turns.left_behind(workspace, received)
        turns.handle(workspace, client, received)
        reminder = turns.reminded(workspace, client, received)
    if told is None:
        return client.answer(event, reminder, quietly=True) if reminder else None
    notices.tell(told)
    return client.answer(event, told)


_DEFAULT = 10.0
# The part of the time limit in which large new files may be read.
_FOR_FILES = 0.6


def _stdin() -> bytes:
    """Returns the client's payload; empty if the client sends none."""
    if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty():
        return b""
    ready, _, _ = select.select([sys.stdin.buffer], [], [], _DEFAULT)
    return sys.stdin.buffer.read(_LIMIT) if ready else b""
