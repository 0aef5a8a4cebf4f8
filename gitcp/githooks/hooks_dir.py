"""Finds where git looks for a repository's hooks, and whether gitcp may write there."""

import os
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import GitFailedError, UnsupportedRepositoryError
from gitcp.git.repository import Repository

_OFF = "/dev/null"


class Scope(StrEnum):
    """The configuration that says where hooks are."""

    NONE = "none"
    LOCAL = "local"
    WORKTREE = "worktree"
    SHARED = "shared"


class ConfiguredHooksPath(NamedTuple):
    """`core.hooksPath` with `~` resolved; None if it is not set.

    `local` is the repository's own setting, word for word.
    """

    path: str | None
    scope: Scope
    local: str | None = None


class HooksDir(NamedTuple):
    """The directory gitcp's part goes to.

    `original` is None if that is git's own choice. If gitcp must not write there
    (the project's tracked files, a directory that several repositories use), it is the
    directory git looks in without gitcp, and `directory` is one that leads on to it.
    """

    directory: Path
    original: str | None = None


def configured(repository: Repository) -> ConfiguredHooksPath:
    """Returns what `core.hooksPath` is, leaving out what gitcp says to its own git."""
    repository.reread()
    # If nothing else is configured, there is no scope to ask git for.
    if repository.config.get("core.hookspath") == [_OFF]:
        return ConfiguredHooksPath(None, Scope.NONE)
    output = repository.git(
        "config", "--show-scope", "-z", "--get-all", "core.hooksPath"
    )
    words = os.fsdecode(output).split("\0")
    result = ConfiguredHooksPath(None, Scope.NONE)
    for scope, path in zip(words[::2], words[1::2], strict=False):
        # gitcp's own git commands run with a path of nowhere.
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
    """Returns what `configured` does of the path, from what is read already."""
    values = [one for one in repository.config.get("core.hookspath", []) if one != _OFF]
    return os.path.expanduser(values[-1]) if values else None


def own_directory(repository: Repository) -> Path:
    """Returns the directory of hooks that lead on to another one's."""
    return repository.store_dir / "hooks"


def find(repository: Repository, setting: ConfiguredHooksPath) -> HooksDir:
    """Returns where gitcp's part has to go.

    Raises:
        UnsupportedRepositoryError: the hooks are switched off, or those of this
            worktree lie elsewhere than those of the others.
    """
    path = setting.path
    if not path:
        # An empty value is as good as none to git.
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
    """Returns the directory that git takes a hooks path for: it starts at the top."""
    return Path(os.path.normpath((repository.top or repository.git_dir) / path))


def _private(repository: Repository, directory: Path) -> bool:
    """Whether a directory is this repository's alone, and nothing git keeps."""
    real = Path(os.path.realpath(directory))
    if real.is_relative_to(os.path.realpath(repository.common_dir)):
        return True
    top = repository.top
    if top is None or not real.is_relative_to(os.path.realpath(top)):
        return False
    try:
        # A file, since a directory with tracked files in it is never ignored.
        repository.git("check-ignore", "--quiet", "--", str(real / "post-commit"))
    except GitFailedError:
        return False
    return True
