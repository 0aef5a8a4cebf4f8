"""Finds where git looks for a repository's hooks, and whether gitcp may write there."""

import os
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import GitFailedError, UnsupportedRepositoryError
from gitcp.git.repository import Repository

_OFF = "/dev/null"


class Scope(StrEnum):
    """The configuration that sets the directory of hooks."""

    NONE = "none"
    LOCAL = "local"
    WORKTREE = "worktree"
    SHARED = "shared"


class ConfiguredHooksPath(NamedTuple):
    """`core.hooksPath` with `~` resolved; None if it is not set.

    `local` is the repository's own setting, verbatim.
    """

    path: str | None
    scope: Scope
    local: str | None = None


class HooksDir(NamedTuple):
    """The directory for gitcp's part of the hooks.

    `original` is None if git uses that directory anyway. If gitcp must not write to git's
    directory (it has tracked files of the project, or several repositories use it),
    `original` is git's directory, and `directory` has hooks that call those in it.
    """

    directory: Path
    original: str | None = None


def configured(repository: Repository) -> ConfiguredHooksPath:
    """Returns the value of `core.hooksPath`, without gitcp's own setting for its git."""
    repository.reread()
    # If nothing else is configured, there is no need to ask git for the scope.
    if repository.config.get("core.hookspath") == [_OFF]:
        return ConfiguredHooksPath(None, Scope.NONE)
    output = repository.git(
        "config", "--show-scope", "-z", "--get-all", "core.hooksPath"
    )
    words = os.fsdecode(output).split("\0")
    result = ConfiguredHooksPath(None, Scope.NONE)
    for scope, path in zip(words[::2], words[1::2], strict=False):
        # gitcp's own git commands run with a path that does not exist.
        if scope == "command":
            continue
        known = scope if scope in {"local", "worktree"} else "shared"
        result = ConfiguredHooksPath(
            os.path.expanduser(path),
            Scope(known),
            path if scope == "local" else result.local,
        )
    return result


def glanced(repository: Repository) -> str | None:
    """Returns the path as `configured` does, from configuration that is already read."""
    values = [one for one in repository.config.get("core.hookspath", []) if one != _OFF]
    return os.path.expanduser(values[-1]) if values else None


def own_directory(repository: Repository) -> Path:
    """Returns the directory of hooks that call those in another directory."""
    return repository.store_dir / "hooks"


def find(repository: Repository, setting: ConfiguredHooksPath) -> HooksDir:
    """Returns the directory for gitcp's part of the hooks.

    Raises:
        UnsupportedRepositoryError: the hooks are switched off, or this worktree has
            another directory of hooks than the other worktrees.
    """
    path = setting.path
    if not path:
        # To git an empty value is the same as no value.
        return HooksDir(repository.common_dir / "hooks")
    if path == _OFF:
        raise UnsupportedRepositoryError(
            "core.hooksPath is /dev/null: hooks are switched off here",
            hint="git config --show-origin core.hooksPath shows where that is set",
        )
    if setting.scope is Scope.WORKTREE:
        raise UnsupportedRepositoryError(
            f"core.hooksPath is set for this worktree alone ({path})",
            hint="set it for the whole repository, or join by hand: call"
            ' `gitcp git-hook NAME "$@"` from its hooks',
        )
    directory = resolved(repository, path)
    if setting.scope is Scope.LOCAL and _private(repository, directory):
        return HooksDir(directory)
    return HooksDir(own_directory(repository), path)


def resolved(repository: Repository, path: str) -> Path:
    """Returns the directory that a hooks path names; it is relative to the top."""
    return Path(os.path.normpath((repository.top or repository.git_dir) / path))


def _private(repository: Repository, directory: Path) -> bool:
    """Whether only this repository uses a directory, and git does not track it."""
    real = Path(os.path.realpath(directory))
    if real.is_relative_to(os.path.realpath(repository.common_dir)):
        return True
    top = repository.top
    if top is None or not real.is_relative_to(os.path.realpath(top)):
        return False
    try:
        # Check a file, because a directory with tracked files is never ignored.
        repository.git("check-ignore", "--quiet", "--", str(real / "post-commit"))
    except GitFailedError:
        return False
    return True
