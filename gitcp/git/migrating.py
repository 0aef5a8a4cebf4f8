"""Tells where `git refs migrate` is at work, and waits where git sees no repository for it.

For some milliseconds of a migration there is no HEAD, or the configuration contradicts
itself. Any git command then stops before it has done anything.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.git.gitfile import git_dir_of

# Where git builds the new storage; it is there from before the first ref is read until
# after the last file has been moved.
PREFIX = "ref_migration."
# A dry run leaves it, and so does a git that was killed. One that works writes into it.
_QUIET = 5.0
# git's messages about a `.git` that leads to no repository, for example for want of a HEAD.
# The second is about a file `.git`, since 2.56.
LEADS_NOWHERE = ("not a git repository", "does not point to a valid repository")
# The last one comes while git writes the configuration after a migration.
_UNSEEN = (*LEADS_NOWHERE, "v1-only extension")
# Seconds to wait for a migration, and to ask again after it.
_PATIENCE, _AFTERWARDS = 10.0, 2.0
_PAUSE = 0.01


def is_unseen(said: str) -> bool:
    """Whether git says that it sees no repository, or not one that it can read."""
    return any(words in said for words in _UNSEEN)


def migration(common_dir: Path) -> Path | None:
    """Returns the directory of a `git refs migrate` that seems to be at work."""
    try:
        names = os.listdir(common_dir)
    except OSError:
        return None
    for name in names:
        if name.startswith(PREFIX) and _is_busy(common_dir / name):
            return common_dir / name
    return None


def has_ended(common_dir: Path, timeout: float) -> bool:
    """Waits for a migration for so many seconds; returns whether none is at work."""
    return (
        durable.until(lambda: migration(common_dir) is None or None, timeout=timeout)
        is not None
    )


def _is_busy(directory: Path) -> bool:
    newest = 0.0
    with suppress(OSError):
        newest = directory.stat().st_mtime
        for path, _, _ in os.walk(directory):
            newest = max(newest, os.stat(path).st_mtime)
    return _is_recent(newest)


def _is_recent(when: float) -> bool:
    return abs(time.time() - when) < _QUIET


def broken_off(where: Path) -> Path | None:
    """Returns what a migration has left in the git directory above, if it is no repository."""
    for directory in (where, *where.absolute().parents):
        if (left := _left_in(directory / ".git")) is not None:
            return left
    return None


def _left_in(git_dir: Path) -> Path | None:
    for left in git_dir.glob(f"{PREFIX}*"):
        if not (git_dir / "HEAD").exists():
            return left
    return None


class Patience:
    """How long to repeat a git command that has seen no repository.

    Only where a git directory was changed a moment ago: elsewhere git is right.
    """

    def __init__(
        self, where: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """Takes where git was started, and the environment that may name a git directory."""
        self._where = where
        self._named = (environment or {}).get("GIT_DIR")
        self._ends = 0.0

    def lasts(self) -> bool:
        """Waits for a migration, or for a moment; returns whether to ask git again."""
        git_dir = Path(self._named) if self._named else _around(self._where)
        if git_dir is None:
            return False
        if migration(git_dir) is not None:
            over = has_ended(git_dir, _PATIENCE)
            self._ends = time.monotonic() + _AFTERWARDS
            return over
        if _left_in(git_dir) is not None or not _is_changing(git_dir):
            return False
        now = time.monotonic()
        self._ends = self._ends or now + _AFTERWARDS
        time.sleep(_PAUSE)
        return now < self._ends


def _is_changing(git_dir: Path) -> bool:
    """Whether names in a git directory have just changed: of a migration, or of its lock."""
    with suppress(OSError):
        return _is_git_dir(git_dir) and _is_recent(git_dir.stat().st_mtime)
    return False


def _is_git_dir(directory: Path) -> bool:
    """Whether a directory has what a migration leaves alone."""
    return (directory / "objects").is_dir() and (directory / "config").is_file()


def _around(where: Path) -> Path | None:
    """Returns the git directory where git would look for it, even if it is incomplete."""
    with suppress(OSError):
        for directory in (where, *where.absolute().parents):
            for found in (git_dir_of(directory), directory):
                if _is_git_dir(found):
                    return found
    return None
