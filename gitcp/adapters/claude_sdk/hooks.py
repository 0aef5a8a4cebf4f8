"""Hook callbacks for the SDK: a checkpoint at each turn, as the command hooks make them."""

import math
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread
from claude_agent_sdk import HookMatcher
from claude_agent_sdk.types import HookEvent

from gitcp.agents import bindings, hook_events
from gitcp.agents.bindings import Binding
from gitcp.checkpoints.session import BaseSession
from gitcp.clients import registry
from gitcp.clients.client import Event
from gitcp.errors import GitcpError
from gitcp.project import hook_log
from gitcp.project.workspace import Workspace, open_workspace

AGENT = "claude-code"
# What the SDK calls back for; it does not for the start and the end of a session.
_EVENTS = (
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "PreCompact",
)
# The client must never be the one that gives up first: it would say so.
_GRACE = 5.0

_Callback = Callable[[Any, str | None, Any], Awaitable[dict[str, Any]]]


def checkpoint_hooks(session: BaseSession) -> dict[HookEvent, list[HookMatcher]]:
    """Returns hooks that make a checkpoint before each prompt and at each turn's end.

    They make one before a shell command, too, if that may change something and files
    changed since the last.

        session = gitcp.open(".").session("my-work")
        options = ClaudeAgentOptions(hooks=checkpoint_hooks(session))

    Each checkpoint holds the files, whatever changed them, and the conversation up to
    there with the transcripts of its subagents. They grow the branch of `session`; all
    conversations that get these hooks do. The settings of the project hold, as for the
    command hooks: `autoCheckpoint`, `frequency` (`tool` adds one after each batch of
    tools), `triggers`, `hookTimeout`; `GITCP_DISABLE=1` turns them off. They take effect
    when they change, but a `hookTimeout` that grows does so in the next options: the SDK
    is told when these are made.

    A hook never fails, and never decides anything: what goes wrong is a line in
    `.git/gitcp/hooks.log`. With other hooks of your own, put the lists together.
    """
    longest = session.workspace.settings.hook_timeout
    return {
        cast("HookEvent", event): [
            HookMatcher(
                matcher="Bash" if event == "PreToolUse" else None,
                hooks=[cast("Any", _callback(session, longest))],
                timeout=math.ceil(longest + _GRACE),
            )
        ]
        for event in _EVENTS
    }


def _callback(session: BaseSession, longest: float) -> _Callback:
    top = session.workspace.top

    async def callback(payload: Any, tool_use_id: str | None, context: Any) -> Any:
        del tool_use_id, context
        if os.environ.get("GITCP_DISABLE", "0") in {"", "0"}:
            started = time.monotonic()
            limit = min(_limit(session, started), longest)
            work = partial(_handle, session, payload, started)
            with anyio.move_on_after(limit) as scope:
                # A thread cannot be stopped: it continues, and a save is whole or not there.
                await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
            if scope.cancelled_caught:
                told = f"took more than {limit:g} s (hookTimeout); the client continues"
                hook_log.write(top, _name(payload), started, told)
        # Nothing to say to the client: no opinion.
        return {}

    return cast("_Callback", callback)


def _limit(session: BaseSession, started: float) -> float:
    """Returns how long a hook may take by the settings as they are now."""
    workspace = session.workspace
    try:
        workspace.refresh()
    except GitcpError as exc:
        hook_log.write(
            workspace.top, "claude-sdk", started, f"{exc.code}: {exc.message}"
        )
    return workspace.settings.hook_timeout


def _handle(session: BaseSession, payload: Any, started: float) -> None:
    top = session.workspace.top
    try:
        client = registry.client(AGENT)
        event = client.event(payload["hook_event_name"], payload, {})
        if event is not None:
            # Its own, with the settings as they are now: another thread may be saving.
            workspace = open_workspace(top)
            _bind(workspace, session, event)
            hook_events.handle(workspace, client, event)
    except GitcpError as exc:
        hook_log.write(top, _name(payload), started, f"{exc.code}: {exc.message}")
    except Exception as exc:  # noqa: BLE001  nothing may reach the client
        told = f"gave up: {type(exc).__name__}: {exc}"
        hook_log.write(top, _name(payload), started, told)


def _name(payload: Any) -> str:
    event = payload.get("hook_event_name") if isinstance(payload, dict) else None
    return f"claude-sdk {event}"


def _bind(workspace: Workspace, session: BaseSession, event: Event) -> None:
    """Binds a conversation to the session that it was given.

    On a branch of its own where another has taken the branch over by a restore.
    """
    known = bindings.find(workspace, AGENT, event.session)
    if known is None or known.session != session.name:
        source = f"{AGENT}-{event.session}"
        bindings.keep(
            workspace,
            Binding(AGENT, event.session, session.name, session.branch, source=source),
        )
