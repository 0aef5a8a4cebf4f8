"""Fires an installed hook of a client, in a temporary project."""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.agents import install
from gitcp.clients import registry, script_files, triggers
from gitcp.clients.client import SCOPES, Client, ClientPlaces
from gitcp.errors import UsageError
from gitcp.git.process import finish, start, start_program
from gitcp.project.workspace import open_workspace

_SESSION = "gitcp-doctor-test"
# With these variables a hook would run for another project.
_ELSEWHERE = tuple(
    f"{client}_PROJECT_DIR"
    for client in ("CLAUDE", "COPILOT", "FACTORY", "GEMINI", "OPENHANDS", "QWEN")
)
_FIRST_LINE = 300


class HookTrial(NamedTuple):
    """The result of firing a hook: the hook, and its settings.

    `problem` says why there is no checkpoint, with a remedy; None if there is one.
    """

    agent: str
    scope: str | None
    hook: str | None
    seconds: float
    problem: str | None = None


def try_hook(agent: str, places: ClientPlaces) -> HookTrial:
    """Runs the command that a client's settings name for its hook before a prompt.

    Only runs a command that `install` would write: settings of a project may name any
    program.
    """
    client = registry.client(agent)
    problem = f"it has no hooks here: run `gitcp install {agent}`"
    for scope in SCOPES:
        with suppress(UsageError):
            for command in _commands(client, scope, places):
                hook = _hook_in(client, command)
                if hook is None:
                    continue
                if command != install.command_of(client, scope)(hook):
                    problem = (
                        f"its hooks ({scope}) call a gitcp other than this one: run"
                        f" `gitcp install {agent} --scope {scope}` again"
                    )
                    continue
                return _fired(agent, scope, hook, command)
    return HookTrial(agent, None, None, 0.0, problem)


def _commands(client: Client, scope: str, places: ClientPlaces) -> Iterator[str]:
    for file in script_files.hook_files(client):
        text = install.settings_text(file.settings(scope, places)) or b""
        yield from script_files.commands(file, text)


def _hook_in(client: Client, command: str) -> str | None:
    """Returns the hook that a command is for, if the client calls it before a prompt."""
    found = re.search(rf" hook {re.escape(client.name)} ([\w.]+)", command)
    if found is None:
        return None
    event = client.event(found[1], _payload(found[1], Path("/")), {})
    before = event is not None and event.what == triggers.TURN_START
    return found[1] if before else None


def _payload(hook: str, directory: Path) -> dict[str, object]:
    """Returns the fields that clients send before a prompt, under the names of all clients."""
    ids = ("session_id", "sessionId", "conversation_id")
    hooks = ("hook_event_name", "hookEventName", "event_type")
    places = ("cwd", "working_dir")
    return {
        **dict.fromkeys(ids, _SESSION),
        **dict.fromkeys(hooks, hook),
        **dict.fromkeys(places, str(directory)),
        "workspace_roots": [str(directory)],
        "workspaceRoots": [str(directory)],
        "sessionContext": {"rootSessionId": _SESSION},
        "prompt": "gitcp doctor --test",
        "message": "gitcp doctor --test",
    }


def _fired(agent: str, scope: str, hook: str, command: str) -> HookTrial:
    scratch = Path(tempfile.mkdtemp(prefix="gitcp-doctor-"))
    try:
        top = scratch / "project"
        top.mkdir()
        (top / "file").write_text("saved\n")
        finish(start(["init", "--quiet"], cwd=top))
        (scratch / "event").write_text(json.dumps(_payload(hook, top)))
        script = (
            f"unset {' '.join(_ELSEWHERE)}; XDG_STATE_HOME={scratch}/state"
            f" && export XDG_STATE_HOME && {{ {command}\n}} <{scratch}/event"
        )
        began = time.monotonic()
        start_program(["/bin/sh", "-c", script], cwd=top).communicate()
        seconds = time.monotonic() - began
        return HookTrial(agent, scope, hook, seconds, _missing(top))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _missing(top: Path) -> str | None:
    """Returns why a hook has made no checkpoint; None if it has made one."""
    workspace = open_workspace(str(top))
    if next(workspace.store.numbers.newest_first(), None) is not None:
        return None
    log = workspace.repository.common_dir / "gitcp" / "hooks.log"
    with suppress(OSError):
        said = log.read_text("utf-8", "replace").strip().splitlines()
        if said:
            return f"it made no checkpoint: {said[-1][:_FIRST_LINE]}"
    off = workspace.settings.hooks_off
    if os.environ.get("GITCP_DISABLE", "0") not in {"", "0"}:
        off = "GITCP_DISABLE is set in this shell"
    return f"it made no checkpoint{f': {off}' if off else ''}"
