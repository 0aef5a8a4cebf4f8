"""Reads and writes gitcp's settings in git's configuration."""

import os
from typing import NamedTuple

from gitcp.errors import GitFailedError, UsageError
from gitcp.git.discover import discover
from gitcp.git.repository import Repository
from gitcp.project.settings import KNOWN, VARIABLES, Settings


class Setting(NamedTuple):
    """A setting in force; `origin` is `environment`, `config` or `default`."""

    name: str
    values: tuple[str, ...]
    default: str
    meaning: str
    origin: str


def repository_around(directory: str | os.PathLike[str]) -> Repository:
    """Returns the repository around a directory, without reading gitcp's settings.

    Raises:
        NotARepositoryError: there is no repository.
        UnsupportedRepositoryError: gitcp cannot serve it.
    """
    return discover(directory)


def known(key: str) -> str:
    """Returns the canonical name of a setting; `key` may have any case.

    Raises:
        UsageError: there is no such setting.
    """
    bare = key.lower().removeprefix("gitcp.")
    for name in KNOWN:
        if name.lower() == bare:
            return name
    by_lower = {name.lower(): name for name in KNOWN}
    import difflib  # noqa: PLC0415  for a wrong name only

    near = difflib.get_close_matches(bare, by_lower, n=1)
    hint = (
        f"did you mean `{by_lower[near[0]]}`?" if near else "`gitcp config` lists them"
    )
    raise UsageError(f"there is no setting {key!a}", hint=hint)


def get(repository: Repository, name: str) -> Setting:
    """Returns a setting by its canonical name; see `known`."""
    default, _, meaning, many, _ = KNOWN[name]
    variable = VARIABLES[name]
    if variable in os.environ:
        text = os.environ[variable]
        values = text.split(os.pathsep) if many else [text]
        return Setting(name, tuple(values), default, meaning, "environment")
    configured = repository.config.get(f"gitcp.{name.lower()}")
    if configured:
        values = configured if many else configured[-1:]
        return Setting(name, tuple(values), default, meaning, "config")
    return Setting(name, (default,) if default else (), default, meaning, "default")


def put(repository: Repository, name: str, value: str, *, add: bool = False) -> None:
    """Writes a setting to the repository's configuration.

    Raises:
        UsageError: the value is not valid, or the setting takes only one and has one.
        GitFailedError: git refused.
    """
    Settings.of(repository, {VARIABLES[name]: value})
    if add and not KNOWN[name].many:
        raise UsageError(f"{name} takes a single value", hint="drop --add")
    how = ("--add",) if add else ("--replace-all",)
    repository.git("config", "--local", *how, f"gitcp.{name}", value)


def unset(repository: Repository, name: str) -> None:
    """Removes a setting from the repository's configuration.

    Raises:
        UsageError: the setting is not in the repository's configuration.
    """
    try:
        repository.git("config", "--local", "--unset-all", f"gitcp.{name}")
    except GitFailedError as exc:
        raise UsageError(
            f"{name} is not set in this repository",
            hint="`gitcp config` lists the settings",
        ) from exc
