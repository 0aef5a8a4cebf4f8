"""Checks for each client whether its hooks make checkpoints, and says how to repair them."""

import datetime
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.agents import bindings, resume
from gitcp.agents.install import settings_text
from gitcp.clients import registry, script_files
from gitcp.clients.client import SCOPES, Client, ClientPlaces
from gitcp.clients.permission import permission
from gitcp.clients.script_files import HookFile, hook_files, is_executable
from gitcp.errors import UsageError
from gitcp.project import hook_log
from gitcp.project.workspace import Workspace

_SHEBANG = rb"#![ \t]*(/\S+)[ \t]*(\S*)"
_FIRST_LINE = 256


class AgentHealth(NamedTuple):
    """The state of one client's hooks.

    `runs` says that the program of the hooks is there, `trusted` that the client lets them
    run. Both are None if nothing is installed; `trusted` is also None if the client does
    not ask, or gitcp cannot know. `last_event` is when a hook of this client last called
    gitcp here, if that is recorded: RFC 3339, UTC. `problems` are sentences, each with a
    remedy.
    """

    name: str
    installed: tuple[str, ...] = ()
    runs: bool | None = None
    trusted: bool | None = None
    last_event: str | None = None
    problems: tuple[str, ...] = ()

    @property
    def is_unprotected(self) -> bool:
        """Whether hooks are installed, and none of them makes a checkpoint."""
        return bool(self.installed) and not (
            self.runs is True and self.trusted is not False
        )


class _ScopeHealth(NamedTuple):
    scope: str
    missing: str | None
    trusted: bool | None
    reason: str | None

    @property
    def works(self) -> bool:
        return self.missing is None and self.trusted is not False


def agents_health(
    workspace: Workspace | None, places: ClientPlaces
) -> list[AgentHealth]:
    """Returns the state of every client that gitcp knows, with or without hooks."""
    logged = hook_log.last_events(workspace.repository) if workspace else {}
    return [_health(name, workspace, places, logged) for name in registry.NAMES]


def unprotected(workspace: Workspace) -> list[str]:
    """Returns a sentence for each client whose hooks are installed and make no checkpoint."""
    places = resume.place(workspace.top)
    return [
        f"{one.name} makes no checkpoints: {one.problems[0]}"
        for one in (_health(name, None, places, {}) for name in registry.NAMES)
        if one.is_unprotected
    ]


def _health(
    name: str,
    workspace: Workspace | None,
    places: ClientPlaces,
    logged: dict[str, float],
) -> AgentHealth:
    client = registry.client(name)
    scopes = list(_scopes(client, places))
    events = [*_seen(workspace, name), *filter(None, [logged.get(name)])]
    last = _rfc3339(max(events)) if events else None
    if not scopes:
        return AgentHealth(name, last_event=last)
    # One scope with working hooks is enough: clients run the hooks of all scopes.
    best = next((one for one in scopes if one.works), scopes[0])
    return AgentHealth(
        name,
        tuple(one.scope for one in scopes),
        best.missing is None,
        best.trusted,
        last,
        tuple(_problems(client, scopes)),
    )


def _problems(client: Client, scopes: list[_ScopeHealth]) -> Iterator[str]:
    for one in scopes:
        if one.missing is not None:
            install = f"run `gitcp install {client.name} --scope {one.scope}` again"
            by_name = os.sep not in one.missing
            yield (
                f"its hooks ({one.scope}) call {one.missing}, which does not run here:"
                f" {'put it on PATH' if by_name else install}"
            )
        if one.trusted is False:
            yield f"its hooks ({one.scope}) are not allowed to run: {one.reason}"


def _scopes(client: Client, places: ClientPlaces) -> Iterator[_ScopeHealth]:
    for scope in SCOPES:
        with suppress(UsageError):
            path = client.settings(scope, places)
            files = [(one, one.settings(scope, places)) for one in hook_files(client)]
            texts = [(file, own, _read(own)) for file, own in files]
            if any(file.installed(text) for file, _, text in texts):
                allowed = permission(client, path, places, _read)
                called = [
                    command
                    for file, _, text in texts
                    for command in script_files.commands(file, text)
                ]
                yield _ScopeHealth(
                    scope,
                    _idle(texts) or _missing(called, places),
                    allowed.granted,
                    allowed.reason,
                )


def _idle(texts: list[tuple[HookFile, Path, bytes]]) -> str | None:
    """Returns the first script that is missing, or that its client cannot run."""
    for file, path, text in texts:
        if is_executable(file) and not (
            file.installed(text) and os.access(path, os.X_OK)
        ):
            return str(path)
    return None


def _read(path: Path) -> bytes:
    with suppress(UsageError):
        return settings_text(path) or b""
    return b""


# --- the program ----------------------------------------------------------------------


def _missing(commands: list[str], places: ClientPlaces) -> str | None:
    """Returns the first program of these commands that cannot run, or None.

    Does not start the program: settings of a project may name any program.
    """
    import shlex  # noqa: PLC0415  only where there are hooks

    for command in dict.fromkeys(commands):
        try:
            words = shlex.split(command)
        except ValueError:
            return command
        if not words or not _runs(words[0], places):
            return words[0] if words else command
    return None


def _runs(program: str, places: ClientPlaces) -> bool:
    import shutil  # noqa: PLC0415

    found = shutil.which(program, path=places.environment.get("PATH"))
    if found is None:
        return False
    with suppress(OSError), open(found, "rb", opener=_at_once) as file:
        # After an upgrade of Python, a script in a virtual environment may name an
        # interpreter that is gone.
        shebang = re.match(_SHEBANG, file.read(_FIRST_LINE))
        if shebang is not None:
            interpreter = os.fsdecode(shebang[1])
            if os.path.basename(interpreter) == "env" and shebang[2]:
                return shutil.which(os.fsdecode(shebang[2])) is not None
            return os.access(interpreter, os.X_OK)
    return True


def _at_once(path: str, flags: int) -> int:
    # If a pipe is in place of the program, opening it must not wait.
    return os.open(path, flags | os.O_NONBLOCK)


# --- the last event -------------------------------------------------------------------


def _seen(workspace: Workspace | None, name: str) -> Iterator[float]:
    """Yields when the sessions of a client last sent a hook event."""
    for one in bindings.latest_first(workspace, name) if workspace else ():
        if one.asked is None and one.transcript is None:
            # A restore made this binding, and the client has sent no hook event yet.
            continue
        if one.superseded is None:
            yield one.seen
        elif one.transcript is not None:
            # `seen` is from the restore; the client wrote to its own file until it ended.
            with suppress(OSError):
                yield min(one.seen, os.stat(one.transcript).st_mtime)


def _rfc3339(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
