"""Installs hooks into a client's settings and removes them, byte for byte.

gitcp keeps the earlier content of a file in the user's state directory. If the file has not
changed since, `uninstall` restores exactly that content; otherwise it removes only our
entries.
"""

import base64
import hashlib
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.agents import skill_files
from gitcp.clients import registry
from gitcp.clients.client import SCOPES, Client, ClientPlaces
from gitcp.clients.script_files import HookFile, hook_files, is_executable
from gitcp.errors import UsageError
from gitcp.git.repository import Repository
from gitcp.project.installers import Done
from gitcp.user_state import state_directory

# Clients that read the skill.
_SKILLED = ("claude-code", "codex", "cursor", "gemini", "opencode")


class _InstallRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A settings file before the installation; `after` is the digest of what was written.

    `directories` are those that gitcp made for the settings, `above` those that it made for
    the records, the lowest first. Every record lists them, because the removal of the last
    record removes them.
    """

    path: str
    before: str | None
    after: str
    directories: tuple[str, ...] = ()
    above: tuple[str, ...] = ()


def install(agent: str, places: ClientPlaces, scope: str | None) -> Done:
    """Adds hooks to a client's settings; does nothing if they are there.

    Raises:
        UsageError: the settings cannot be understood; nothing was changed.
        StorageError: the settings cannot be written.
    """
    client = registry.client(agent)
    where = scope or SCOPES[0]
    command = command_of(client, where)
    # Plan all files before writing the first.
    planned = [
        plan
        for plan in (
            _planned(file, _settings(file, places, where), command, places)
            for file in hook_files(client)
        )
        if plan is not None
    ]
    path = _settings(client, places, where)
    notes = (*client.notes(where), *_path_note(scope))
    if not planned:
        return Done(agent, where, str(path), changed=False, notes=notes)
    for plan in planned:
        _write(plan, places)
    notes = (*notes, *_reasons_note(client), *_next_notes(agent, places))
    return Done(agent, where, str(path), changed=True, notes=notes)


class _Plan(NamedTuple):
    """A file to write: its content without us, and its new content."""

    path: Path
    base: bytes | None
    merged: bytes
    directories: tuple[str, ...]
    executable: bool


def _planned(
    file: HookFile,
    path: Path,
    command: Callable[[str], str],
    places: ClientPlaces,
) -> _Plan | None:
    """Returns the file to write; None if our hooks are there."""
    text = settings_text(path)
    executable = is_executable(file)
    merged = _understood(file, path, lambda: file.merge(text, command))
    if merged == text and (not executable or os.access(path, os.X_OK)):
        return None
    record = _record(places, path)
    base: bytes | None = text
    directories: tuple[str, ...] = ()
    if record is not None and text is None:
        # A killed installation left this record: it had made the directories, or was
        # about to.
        directories = record.directories
    elif record is not None and record.after == _digest(text or b""):
        base = _before(record)
        directories = record.directories
    elif text is not None and file.installed(text):
        base = _understood(file, path, lambda: file.unmerge(text))
    merged = _understood(file, path, lambda: file.merge(base, command))
    assert merged is not None
    return _Plan(path, base, merged, directories, executable)


def _write(plan: _Plan, places: ClientPlaces) -> None:
    path, base = plan.path, plan.base
    with durable.storage(f"writing {path}"):
        durable.clear_temporaries(path.parent, path.name)
        made = plan.directories or _missing(path.parent)
        before = None if base is None else base64.b64encode(base).decode()
        _keep(places, _InstallRecord(str(path), before, _digest(plan.merged), made))
        durable.make_directories(path.parent)
        mode = durable.usual_mode(path)
        # Each user who may read a script may also run it.
        runs = (mode & 0o444) >> 2 if plan.executable else 0
        durable.replace(path, plan.merged, mode=mode | runs)


def _reasons_note(client: Client) -> tuple[str, ...]:
    """Notes that gitcp will tell the model something, if the client lets hooks do that."""
    starts = ("SessionStart", "sessionStart", "session_start")
    if all(client.answer(hook, "", quietly=True) is None for hook in starts):
        return ()
    note = (
        "when a conversation begins, gitcp gives the model the project's"
        " decisions and next steps; `gitcp config injectContext off` turns that"
        " off"
    )
    return (note,)


def _next_notes(agent: str, places: ClientPlaces) -> tuple[str, ...]:
    """Tells a user who has installed hooks for the first time what to do next."""
    work = "work as usual now; `gitcp log` shows the turns"
    if agent not in _SKILLED or skill_files.in_scopes(places):
        return (work,)
    skill = "hooks save files and conversation; `gitcp install skill` adds decisions"
    return (skill, work)


def uninstall(agent: str, places: ClientPlaces, scope: str | None) -> list[Done]:
    """Removes hooks from a client's settings: of one scope, or of every scope.

    Raises:
        UsageError: the settings cannot be understood; nothing was changed.
    """
    client = registry.client(agent)
    done = []
    for one in (scope,) if scope else SCOPES:
        if scope is None and one != SCOPES[0] and places.top is None:
            continue
        with suppress(_NoScopeError):
            files = [
                (file, _settings(file, places, one, fixed=scope is not None))
                for file in hook_files(client)
            ]
            # The first is removed last, with the directories that were made for all.
            changed = [_take_out(*each, places) for each in reversed(files)]
            done.append(Done(agent, one, str(files[0][1]), changed=any(changed)))
    return done


def installed(agent: str, places: ClientPlaces, repository: Repository) -> list[Done]:
    """Returns the places where a client's settings have our hooks."""
    del repository
    client = registry.client(agent)
    installations = []
    for scope in SCOPES:
        with suppress(UsageError, OSError):
            path = client.settings(scope, places)
            if any(has_hooks(file, scope, places) for file in hook_files(client)):
                installations.append(Done(agent, scope, str(path), changed=False))
    return installations


def has_hooks(file: HookFile, scope: str, places: ClientPlaces) -> bool:
    """Whether a client's file has our hooks.

    Raises:
        UsageError: there is no such scope, or the file cannot be read.
    """
    text = settings_text(file.settings(scope, places))
    return text is not None and file.installed(text)


class _NoScopeError(Exception):
    """A client has no settings of this scope."""


def _settings(
    file: HookFile, places: ClientPlaces, scope: str, *, fixed: bool = True
) -> Path:
    try:
        path = file.settings(scope, places)
    except UsageError:
        if fixed:
            raise
        raise _NoScopeError from None
    # Write to the target of a link, for instance into a dotfiles repository: the link stays.
    target = Path(os.path.realpath(path))
    top = None if scope == SCOPES[0] else places.top
    # A link within a project may have come with the project, and may point anywhere.
    if top is not None and not target.is_relative_to(os.path.realpath(top)):
        raise UsageError(
            f"{path} leads out of the project, to {target}",
            hint="nothing was changed; replace the link, or use `--scope user`",
        )
    return target if path.is_symlink() else path


def _take_out(file: HookFile, path: Path, places: ClientPlaces) -> bool:
    text = settings_text(path)
    record = _record(places, path)
    if text is None or not file.installed(text):
        if record is not None:
            _forget(places, path, record, absent=text is None)
        return False
    ours = record is not None and record.after == _digest(text)
    after = (
        _before(record)
        if record is not None and ours
        else _understood(file, path, lambda: file.unmerge(text))
    )
    if after is None and record is not None and record.before is not None:
        after = b"{}\n"
    with durable.storage(f"writing {path}"):
        durable.clear_temporaries(path.parent, path.name)
        if after is None:
            durable.remove(path)
        else:
            durable.replace(path, after, mode=durable.usual_mode(path))
    if record is not None:
        _forget(places, path, record, absent=after is None)
    return True


def _forget(
    places: ClientPlaces, path: Path, record: _InstallRecord, *, absent: bool
) -> None:
    """Removes the record of settings without our hooks, and directories made for them.

    A killed installation or removal may leave such a record.
    """
    with durable.storage(f"removing what was noted of {path}"):
        durable.clear_temporaries(path.parent, path.name)
        for directory in record.directories if absent else ():
            # The user may have added files to it.
            with suppress(OSError):
                Path(directory).rmdir()
        noted = _record_path(places, path)
        durable.remove(noted)
        for directory in (str(noted.parent), str(noted.parent.parent), *record.above):
            # Other records or files may be there.
            with suppress(OSError):
                Path(directory).rmdir()


def _understood(
    client: HookFile, path: Path, work: Callable[[], bytes | None]
) -> bytes | None:
    try:
        return work()
    except (ValueError, RecursionError) as exc:
        raise UsageError(
            f"the settings of {client.title} in {path} cannot be understood: {exc}",
            hint="nothing was changed; correct the file, then run the command again",
        ) from exc


def command_of(client: Client, scope: str) -> Callable[[str], str]:
    """Returns a function that makes commands of hooks, which do nothing if gitcp is gone.

    If the client shows the output of a hook, the command passes gitcp's output on; else it
    prints nothing.
    """
    program = ("gitcp",) if scope == "project" else this_program()

    def command(hook: str) -> str:
        words = shlex.join((*program, "hook", client.name, hook))
        silent = client.answer(hook, "") is None
        return f"{words} {'>/dev/null 2>&1' if silent else '2>/dev/null'} || :"

    return command


def this_program() -> tuple[str, ...]:
    """Returns the command that starts this gitcp from any directory."""
    script = Path(sys.executable).with_name("gitcp")
    if os.access(script, os.X_OK):
        return (str(script),)
    return (sys.executable, "-P", "-m", "gitcp")


def _path_note(scope: str | None) -> tuple[str, ...]:
    if scope != "project" or shutil.which("gitcp"):
        return ()
    note = (
        "settings of the project are shared, so they call `gitcp` by name: it has to be"
        " on PATH, and here it is not"
    )
    return (note,)


# --- files ----------------------------------------------------------------------------


def settings_text(path: Path) -> bytes | None:
    """Returns the content of a settings file; never reads a pipe or a device in its place.

    Raises:
        UsageError: the file cannot be read, or is not a regular file.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            mode = os.fstat(fd).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UsageError(
                    f"{path} is not a regular file",
                    hint="nothing was changed; put a file there, or remove it",
                )
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise UsageError(
            f"{path} cannot be read: {exc.strerror}", hint="check who owns it"
        ) from exc


def _missing(directory: Path) -> tuple[str, ...]:
    """Returns the missing ones of a directory and its parents, the lowest first."""
    missing = []
    current = directory
    while not current.exists():
        missing.append(str(current))
        current = current.parent
    return tuple(missing)


# --- the state before -----------------------------------------------------------------


def _record_path(places: ClientPlaces, path: Path) -> Path:
    name = f"{_digest(os.fsencode(path))}.json"
    state = state_directory(places.environment, places.home)
    return state / "installed" / name


def _record(places: ClientPlaces, path: Path) -> _InstallRecord | None:
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(
            _record_path(places, path).read_bytes(), type=_InstallRecord
        )
    return None


def _made_above(records: Path) -> tuple[str, ...]:
    """Returns the directories that gitcp made when it wrote the first record."""
    for path in records.glob("*.json"):
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(path.read_bytes(), type=_InstallRecord).above
    return ()


def _before(record: _InstallRecord) -> bytes | None:
    return None if record.before is None else base64.b64decode(record.before)


def _keep(places: ClientPlaces, record: _InstallRecord) -> None:
    path = _record_path(places, Path(record.path))
    above = _missing(path.parent) or _made_above(path.parent)
    record = msgspec.structs.replace(record, above=above)
    durable.make_directories(path.parent, private=True)
    durable.replace(path, msgspec.json.encode(record), mode=0o600)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
