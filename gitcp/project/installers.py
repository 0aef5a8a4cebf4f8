"""The things that `gitcp install` installs, and their modules."""

import importlib
from typing import NamedTuple, Protocol, cast

from gitcp.clients.client import ClientPlaces
from gitcp.errors import UsageError
from gitcp.git.repository import Repository

# thing -> its module (an `Installer`), imported on use
THINGS = {
    "skill": "gitcp.agents.skill_files",
    "git-hooks": "gitcp.githooks.install",
    "claude-code": "gitcp.agents.install",
    "cline": "gitcp.agents.install",
    "codex": "gitcp.agents.install",
    "copilot": "gitcp.agents.install",
    "cursor": "gitcp.agents.install",
    "gemini": "gitcp.agents.install",
    "kilo": "gitcp.agents.install",
    "opencode": "gitcp.agents.install",
    "pi": "gitcp.agents.install",
    "qwen": "gitcp.agents.install",
    "vscode": "gitcp.agents.install",
    "openhands": "gitcp.agents.install",
    "droid": "gitcp.agents.install",
}


class Done(NamedTuple):
    """An installed thing: its name, its scope, its file, and a note about it."""

    what: str
    scope: str | None
    path: str
    changed: bool
    notes: tuple[str, ...] = ()


class Installer(Protocol):
    """The module behind a thing; `what` is its name, because things may share a module."""

    def install(self, what: str, place: ClientPlaces, scope: str | None) -> Done:
        """Installs a thing; a second call changes nothing. No scope: the thing's default."""

    def uninstall(
        self, what: str, place: ClientPlaces, scope: str | None
    ) -> list[Done]:
        """Uninstalls a thing, in one scope or in all of them."""

    def installed(
        self, what: str, place: ClientPlaces, repository: Repository
    ) -> list[Done]:
        """Returns where the thing is installed."""


def installer(what: str) -> Installer:
    """Returns the module for a thing.

    Raises:
        UsageError: there is no such thing.
    """
    module = THINGS.get(what)
    if module is None:
        raise UsageError(
            f"there is no {what!a} to install", hint=f"there are {', '.join(THINGS)}"
        )
    return cast("Installer", importlib.import_module(module))


def all_installed(place: ClientPlaces, repository: Repository) -> list[Done]:
    """Returns everything that a repository's user has installed."""
    return [
        done
        for what in THINGS
        for done in installer(what).installed(what, place, repository)
    ]
