"""Makes a bare repository of the kind that the user's own `git init` makes, durably."""

import os
from pathlib import Path

from gitcp import durable
from gitcp.errors import GitFailedError
from gitcp.git import process

# What decides about a new repository beside the user's configuration and git itself.
_DEFAULTS = ("GIT_DEFAULT_HASH", "GIT_DEFAULT_REF_FORMAT")
_TRIAL = Path("testing")
# What git makes of an empty directory, as far as it came before it was killed.
_PARTS = frozenset(
    {
        "HEAD",
        "branches",
        "config",
        "description",
        "hooks",
        "info",
        "objects",
        "refs",
        "reftable",
    }
)


def make_bare_store(where: Path) -> None:
    """Makes a bare repository in a directory that is empty, or in which this was killed.

    Raises:
        GitFailedError: git would not.
        OSError: the disk refused.
    """
    for left in (*where.rglob("*.lock"), *filter(_is_trial, where.iterdir())):
        left.unlink()
    env = {name: os.environ[name] for name in _DEFAULTS if name in os.environ}
    try:
        process.run(
            ["init", "--quiet", "--bare", "--template=", "."], cwd=where, env=env
        )
    except GitFailedError as exc:
        raise GitFailedError(
            f"no repository could be made in {where}: {exc.message}", hint=exc.hint
        ) from exc
    for place, _, files in os.walk(where, topdown=False):
        for name in files:
            durable.sync_file(Path(place, name))
        durable.sync_directory(Path(place))
    durable.sync_directory(where.parent)


def is_unfinished(where: Path) -> bool:
    """Whether a directory is empty, or has only what a killed `make_bare_store` left."""
    names = {
        path.name.removesuffix(".lock")
        for path in where.iterdir()
        if not _is_trial(path)
    }
    return not names or (names <= _PARTS and not _complete(where))


def _is_trial(path: Path) -> bool:
    """Whether this is the link by which git finds out whether there can be one."""
    return path.is_symlink() and path.readlink() == _TRIAL


def _complete(where: Path) -> bool:
    return all((where / name).exists() for name in ("HEAD", "config", "objects"))
