"""Hooks as files: one executable script for each event, or one file for all events.

Most clients have one file for all hooks, which the client's class itself handles. A client
with a script for each event is a `ScriptFiles`. The rest of gitcp calls `hook_files`, which
returns a list in both cases.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from gitcp.clients.client import Client, ClientPlaces

_HEAD = "#!/bin/sh\n# Made by `gitcp install {}`; `gitcp uninstall {}` removes it.\n"


class HookFile(Protocol):
    """A file that holds hooks; `Client` describes the methods."""

    name: str
    title: str

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the file."""

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Returns the file with our hooks."""

    def unmerge(self, text: bytes) -> bytes | None:
        """Returns the file without our hooks; None if nothing is left."""

    def installed(self, text: bytes) -> bool:
        """Whether our hooks are in the file."""


class HookScript:
    """The script that a client calls for one event; `suffix` ends its name.

    A client runs every script that is named after an event. So the user's script under
    another suffix runs beside ours, and gitcp never changes one under the same name.
    """

    def __init__(self, client: Client, hook: str, suffix: str) -> None:
        self.name = client.name
        self.title = client.title
        self._client = client
        self._hook = hook
        self._file = f"{hook}{suffix}"
        self._head = _HEAD.format(client.name, client.name).encode()

    def settings(self, scope: str, places: ClientPlaces) -> Path:
        """Returns the script's path, beside the client's first one."""
        return self._client.settings(scope, places).with_name(self._file)

    def merge(self, text: bytes | None, command: Callable[[str], str]) -> bytes:
        """Returns the script.

        Raises:
            ValueError: another script has this name, or the user has changed ours.
        """
        if text is not None:
            self._check_ours(text)
        return self._head + os.fsencode(command(self._hook)) + b"\n"

    def unmerge(self, text: bytes) -> bytes | None:
        """Returns None: the whole script is removed.

        Raises:
            ValueError: the user has changed the script.
        """
        if not self.installed(text):
            return text
        self._check_ours(text)
        return None

    def installed(self, text: bytes) -> bool:
        """Whether the script is ours."""
        return f"# Made by `gitcp install {self.name}`".encode() in text

    def _check_ours(self, text: bytes) -> None:
        if not self.installed(text):
            raise ValueError("it is not a script of gitcp's; rename it")
        from gitcp.clients import hook_settings  # noqa: PLC0415  to install, not to call

        line = text.removeprefix(self._head).removesuffix(b"\n")
        if (
            b"\n" in line
            or not text.startswith(self._head)
            or not hook_settings.is_ours(os.fsdecode(line), self.name)
        ):
            raise ValueError(
                "it was changed by hand; remove it yourself if you do not need it"
            )


class ScriptFiles:
    """The part of a client that calls a script for each event.

    Its `settings` is the first of the scripts.
    """

    meanings: Mapping[str, str]
    suffix: str

    def scripts(self, client: Client) -> tuple[HookScript, ...]:
        """Returns the scripts, in the order of the client's hooks."""
        return tuple(HookScript(client, hook, self.suffix) for hook in self.meanings)


def hook_files(client: Client) -> tuple[HookFile, ...]:
    """Returns the files of a client's hooks, in order."""
    return client.scripts(client) if isinstance(client, ScriptFiles) else (client,)


def is_executable(file: HookFile) -> bool:
    """Whether a client runs the file itself."""
    return isinstance(file, HookScript)


def commands(file: HookFile, text: bytes) -> list[str]:
    """Returns the commands in a file that call gitcp."""
    from gitcp.clients import hook_settings  # noqa: PLC0415  as above

    if not isinstance(file, HookScript):
        return hook_settings.commands(text, file.name)
    lines = (os.fsdecode(line) for line in text.splitlines())
    return [
        line
        for line in lines
        if not line.startswith("#") and hook_settings.is_ours(line, file.name)
    ]
