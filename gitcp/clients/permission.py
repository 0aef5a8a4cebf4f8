"""Whether a client lets our hooks run: trusted, untrusted, or switched off."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gitcp.clients import codex_trust, hook_settings
from gitcp.clients.client import SCOPES, Client, ClientPlaces, Permission
from gitcp.errors import UsageError

# Returns what a file holds; nothing where it is missing, or is no regular file.
Read = Callable[[Path], bytes]


def permission(
    client: Client, path: Path, places: ClientPlaces, read: Read
) -> Permission:
    """Returns whether a client runs our hooks in the settings at a path."""
    look = _LOOKS.get(client.name)
    return look(client, path, places, read) if look else Permission()


def _claude_code(
    client: Client, path: Path, places: ClientPlaces, read: Read
) -> Permission:
    """Any settings that apply here switch off the hooks of all."""
    del path
    for scope in SCOPES:
        with suppress(UsageError):
            file = client.settings(scope, places)
            if hook_settings.field(read(file), "disableAllHooks") is True:
                return Permission(
                    granted=False, reason=f"remove `disableAllHooks` from {file}"
                )
    return Permission()


def _gemini(client: Client, path: Path, places: ClientPlaces, read: Read) -> Permission:
    del places
    text = read(path)
    if hook_settings.field(text, "hooksConfig", "enabled") is False:
        return Permission(
            granted=False, reason=f"remove `hooksConfig.enabled` from {path}"
        )
    names = hook_settings.field(text, "hooksConfig", "disabled")
    if isinstance(names, list) and any(
        command in names for command in hook_settings.commands(text, client.name)
    ):
        return Permission(
            granted=False, reason="start `gemini`, and enable them with /hooks"
        )
    return Permission()


def _codex(client: Client, path: Path, places: ClientPlaces, read: Read) -> Permission:
    config = client.settings("user", places).with_name("config.toml")
    return codex_trust.permission(path, read(path), read(config), places.top)


_LOOKS = {"claude-code": _claude_code, "codex": _codex, "gemini": _gemini}
