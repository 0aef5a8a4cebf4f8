"""Adds gitcp to a repository's hooks, repairs that, and removes it without a trace."""

import hashlib
import os
import re
import shlex
from base64 import b64decode, b64encode
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.git.repository import Repository
from gitcp.githooks import hook_file, script_text
from gitcp.githooks import hooks_dir as places
from gitcp.githooks.hooks_dir import HooksDir

NAMES = (
    "post-commit",
    "post-checkout",
    "post-merge",
    "post-rewrite",
    "pre-push",
    "prepare-commit-msg",
    "commit-msg",
)
# Runs whenever git writes its index, before git looks for post-commit.
WATCH = "post-index-change"
# Further hooks that users commonly have. gitcp calls other hooks only if they exist: git acts
# on their mere existence, or they run too often.
_LED_ON = (
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "pre-rebase",
    "pre-auto-gc",
)
_FRAMEWORKS = (
    ".husky",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".lefthook.toml",
    ".lefthook.json",
    ".pre-commit-config.yaml",
)
_STATE = "git-hooks.json"
# `.git/gitcp/hooks` has this many parts.
_TAIL = 3
# The setting that keeps the repository's own `core.hooksPath` while another replaces it.
_BEFORE = "gitcp.hooksPathBefore"


class InstallRecord(msgspec.Struct, frozen=True):
    """The record of an installation: `.git/gitcp/git-hooks.json`.

    `original` is the hooks path that the hooks in `directory` call, or None if gitcp added
    itself to the hooks themselves. In the first case `local` is the repository's own setting
    verbatim, `before` its configuration file before the installation (base64), and `after`
    the SHA-256 of the file after it.
    """

    directory: str
    path: str | None = None
    original: str | None = None
    local: str | None = None
    made: bool = False
    before: str | None = None
    after: str | None = None


class HooksReport(NamedTuple):
    """The hooks that gitcp created, added itself to, or chained after its part."""

    directory: Path
    original: str | None
    names: tuple[str, ...]
    changed: tuple[str, ...]


def state(repository: Repository) -> InstallRecord | None:
    """Returns the record of the installation here, or None.

    Its directory is always this repository's: in a copy of a repository the recorded one
    may belong to the original.
    """
    try:
        raw = (repository.store_dir / _STATE).read_bytes()
        noted = msgspec.json.decode(raw, type=InstallRecord)
    except (OSError, msgspec.MsgspecError):
        return None
    if noted.original is not None:
        directory = places.own_directory(repository)
    elif noted.path:
        directory = places.resolved(repository, noted.path)
    else:
        directory = repository.common_dir / "hooks"
    return msgspec.structs.replace(noted, directory=str(directory))


def found(repository: Repository) -> InstallRecord | None:
    """Returns the record of the installation here, rebuilt from the hooks if it is missing.

    The user may have deleted `.git/gitcp`. Hooks with gitcp still have its marker lines, and
    a hook that gitcp moved aside lies beside them.
    """
    noted = state(repository)
    if noted is not None:
        return noted
    configured = places.configured(repository)
    own = places.own_directory(repository)
    if configured.path and Path(configured.path) == own:
        local = repository.setting(_BEFORE.lower())
        return InstallRecord(str(own), local, local or "", local)
    directory = (
        places.resolved(repository, configured.path)
        if configured.path
        else repository.common_dir / "hooks"
    )
    joined = any(hook_file.is_joined(directory / name) for name in (*NAMES, WATCH))
    if joined or (directory / script_text.RUNNER).is_file():
        return InstallRecord(str(directory), configured.path)
    return None


def install(repository: Repository, runner: bytes) -> HooksReport:
    """Adds gitcp to the hooks of a repository; skips hooks that already have it.

    Raises:
        UnsupportedRepositoryError: gitcp may not write where git looks for hooks.
        UsageError: something that is not a hook has a hook's path.
        StorageError: the disk refused.
    """
    before = found(repository)
    configured = places.configured(repository)
    if before is not None and not _still(before, configured.path):
        # The path was changed since: undo the installation for the old path.
        uninstall(repository)
        before = None
        configured = places.configured(repository)
    if before is not None:
        hooks_dir = HooksDir(Path(before.directory), before.original)
        created = before.made
    else:
        hooks_dir = places.find(repository, configured)
        created = not hooks_dir.directory.is_dir()
    with durable.storage("joining git's hooks"):
        repository.make_directory(repository.store_dir)
        # Write the record first, so that everything after it can be undone.
        kept = before or InstallRecord(
            str(hooks_dir.directory),
            configured.path,
            hooks_dir.original,
            configured.local,
            created,
        )
        _remember(repository, kept)
        changed = _join_all(repository, hooks_dir, runner)
        if hooks_dir.original is not None and before is None:
            config = repository.common_dir / "config"
            old = config.read_bytes()
            if configured.local is not None:
                repository.git("config", "--local", _BEFORE, configured.local)
            repository.git(
                "config", "--local", "core.hooksPath", str(hooks_dir.directory)
            )
            kept = msgspec.structs.replace(
                kept,
                before=b64encode(old).decode(),
                after=hashlib.sha256(config.read_bytes()).hexdigest(),
            )
            _remember(repository, kept)
            changed = ("core.hooksPath", *changed)
    return HooksReport(hooks_dir.directory, hooks_dir.original, NAMES, changed)


def mend(repository: Repository, runner: bytes) -> tuple[str, ...]:
    """Adds gitcp again to overwritten hooks; returns their names."""
    before = state(repository)
    if before is None or not _still(before, places.glanced(repository)):
        return ()
    with durable.storage("joining git's hooks"):
        hooks_dir = HooksDir(Path(before.directory), before.original)
        return _join_all(repository, hooks_dir, runner)


def uninstall(repository: Repository) -> HooksReport | None:
    """Removes gitcp from the hooks; None if it was not in them.

    Raises:
        StorageError: the disk refused.
    """
    before = found(repository)
    if before is None:
        return None
    directory = Path(before.directory)
    with durable.storage("leaving git's hooks"):
        durable.clear_temporaries(directory)
        if before.original is not None:
            _configure_back(repository, before)
            _stop_leading_on(directory)
            changed: tuple[str, ...] = ("core.hooksPath",)
        else:
            changed = tuple(
                name for name in (*NAMES, WATCH) if hook_file.leave(directory, name)
            )
            with suppress(FileNotFoundError):
                (directory / script_text.RUNNER).unlink()
            with suppress(OSError):
                (directory / script_text.CHAINED).rmdir()
            if before.made:
                with suppress(OSError):
                    directory.rmdir()
        durable.remove(repository.store_dir / _STATE)
    return HooksReport(directory, before.original, NAMES, changed)


def problems(repository: Repository) -> list[str]:
    """Returns the problems that stop installed hooks, as sentences."""
    before = state(repository)
    if before is None:
        return []
    configured = places.configured(repository)
    if not _still(before, configured.path):
        return [
            (
                f"core.hooksPath is now {configured.path or 'not set'}, so git looks"
                " elsewhere"
            )
        ]
    directory = Path(before.directory)
    problems_found = []
    runner = hook_file.read(directory / script_text.RUNNER)
    if runner is None:
        problems_found.append(f"{directory / script_text.RUNNER} is gone")
    elif not (started := _started(runner)) or not os.access(started, os.X_OK):
        problems_found.append(f"gitcp is not at {started} any more")
    for name in NAMES:
        path = directory / name
        content = hook_file.read(path)
        if content is None:
            problems_found.append(f"{name} is gone")
        elif not script_text.is_joined(content):
            problems_found.append(f"{name} was overwritten")
        elif not os.access(path, os.X_OK):
            problems_found.append(f"{name} is not executable")
    return problems_found


def _started(runner: bytes) -> str:
    """Returns the program that the script beside the hooks starts."""
    match = re.search(rb"^program\(\) \{ exec (.*) \"\$@\"; \}$", runner, re.MULTILINE)
    words = shlex.split(os.fsdecode(match[1])) if match else []
    return words[0] if words else ""


def _still(before: InstallRecord, path: str | None) -> bool:
    """Whether git still looks for hooks where it did when gitcp was installed."""
    expected = before.path if before.original is None else before.directory
    return (path or None) == (expected or None)


def _remember(repository: Repository, kept: InstallRecord) -> None:
    durable.replace(repository.store_dir / _STATE, msgspec.json.encode(kept))


def _join_all(
    repository: Repository, hooks_dir: HooksDir, runner: bytes
) -> tuple[str, ...]:
    directory = hooks_dir.directory
    directory.mkdir(parents=True, exist_ok=True)
    durable.clear_temporaries(directory)
    changed = []
    if hook_file.write(directory / script_text.RUNNER, runner):
        changed.append(script_text.RUNNER)
    if hooks_dir.original is not None:
        changed += _lead_on(repository, directory, hooks_dir.original)
        return tuple(changed)
    names: tuple[str, ...] = NAMES
    if _has_framework(repository) or hook_file.is_joined(directory / WATCH):
        names = (*NAMES, WATCH)
    changed += [name for name in names if hook_file.join(directory, name)]
    return tuple(changed)


def _lead_on(repository: Repository, directory: Path, original: str) -> list[str]:
    there = places.resolved(repository, original)
    extra = (
        {
            found.name
            for found in there.iterdir()
            if found.is_file() and os.access(found, os.X_OK)
        }
        if there.is_dir()
        else set()
    )
    changed = []
    for name in sorted({*NAMES, *_LED_ON, *extra} - {script_text.RUNNER}):
        path = directory / name
        then = script_text.elsewhere(original, name)
        content = (
            script_text.made(name, then=then)
            if name in NAMES
            else script_text.forward(then)
        )
        old = hook_file.read(path)
        if old is not None and not script_text.is_made(old):
            # The user or a tool added hooks to this directory.
            if name in NAMES and hook_file.join(directory, name):
                changed.append(name)
        elif hook_file.write(path, content):
            changed.append(name)
    return changed


def _stop_leading_on(directory: Path) -> None:
    for path in list(directory.iterdir()) if directory.is_dir() else []:
        content = hook_file.read(path)
        if path.name == script_text.RUNNER or (
            content and script_text.is_made(content)
        ):
            path.unlink()
    # It is not empty if it has other files, which gitcp must not remove.
    with suppress(OSError):
        directory.rmdir()


def _has_framework(repository: Repository) -> bool:
    """Whether a hook framework is in use here, which rewrites its hooks now and then."""
    top = repository.top
    return top is not None and any(os.path.lexists(top / name) for name in _FRAMEWORKS)


def _leads_here(repository: Repository, before: InstallRecord) -> bool:
    """Whether git uses a directory of gitcp's for hooks, at this path or a former one."""
    path = places.configured(repository).path
    if path == before.directory:
        return True
    own = Path(before.directory).parts[-_TAIL:]
    return path is not None and Path(path).parts[-_TAIL:] == own


def _configure_back(repository: Repository, before: InstallRecord) -> None:
    """Makes git look for hooks where it did before, if it still uses our directory."""
    if not _leads_here(repository, before):
        return
    config = repository.common_dir / "config"
    raw = config.read_bytes()
    if before.before and hashlib.sha256(raw).hexdigest() == before.after:
        mode = durable.usual_mode(config)
        durable.replace(config, b64decode(before.before), mode=mode)
        return
    # The configuration was edited since: only restore this setting.
    if before.local is None:
        repository.git("config", "--local", "--unset", "core.hooksPath")
    else:
        repository.git("config", "--local", "core.hooksPath", before.local)
    if repository.setting(_BEFORE.lower()) is not None:
        repository.git("config", "--local", "--unset", _BEFORE)
