"""The things that `gitcp install` knows: modules with `install`, `uninstall`, `installed`."""

import importlib
from typing import NamedTuple, Protocol, cast

from gitcp.clients.client import ClientPlaces
from gitcp.errors import UsageError
from gitcp.git.repository import Repository

# thing -> module; imported on use
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
    """An installed thing: what it is, its scope, its file, and a note about it."""

    what: str
    scope: str | None
    path: str
    changed: bool
    notes: tuple[str, ...] = ()


class Installer(Protocol):
    """The module behind a thing; `what` is its name, as several may share a module."""

    def install(self, what: str, place: ClientPlaces, scope: str | None) -> Done:
        """Installs; again, and nothing changes. No scope: the thing's own default."""

    def uninstall(
        self, what: str, place: ClientPlaces, scope: str | None
    ) -> list[Done]:
        """Takes out what was installed, in one scope or in all of them."""

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
    """Returns everything that is installed, of a repository's user."""
    return [
        done
        for what in THINGS
        for done in installer(what).installed(what, place, repository)
    ]
