"""Whether a client lets our hooks run: trusted, untrusted, or switched off."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from gitcp.clients import codex_trust, hook_settings
from gitcp.clients.client import SCOPES, Client, ClientPlaces, Permission
from gitcp.errors import UsageError

# Returns the content of a file; empty if the file is missing or not a regular file.
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
    """Checks all settings that apply here: any of them can switch off the hooks of all."""
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
    if places.top is not None and path.is_relative_to(places.top):
        return _gemini_folder(client, places.top, places, read)
    return Permission()


def _gemini_folder(
    client: Client, top: Path, places: ClientPlaces, read: Read
) -> Permission:
    """Checks trust in the folder: Gemini CLI silently blocks hooks in an untrusted one."""
    settings = client.settings("user", places)
    if (
        hook_settings.field(read(settings), "security", "folderTrust", "enabled")
        is False
    ):
        return Permission()
    own = places.environment.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
    folders = Path(own) if own else settings.with_name("trustedFolders.json")
    known = hook_settings.field(read(folders))
    real = Path(os.path.realpath(top))
    # The nearest folder decides; for an unlisted folder the client asks when it starts.
    for folder in (real, *real.parents):
        level = known.get(str(folder)) if isinstance(known, dict) else None
        if level == "DO_NOT_TRUST" and folder == real:
            return Permission(
                granted=False, reason=f"start `gemini` in {top}, and enter /permissions"
            )
        if level == "TRUST_FOLDER":
            return Permission(granted=True)
    return Permission()


def _codex(client: Client, path: Path, places: ClientPlaces, read: Read) -> Permission:
    config = client.settings("user", places).with_name("config.toml")
    return codex_trust.permission(path, read(path), read(config), places.top)


def _droid(client: Client, path: Path, places: ClientPlaces, read: Read) -> Permission:
    """Checks the hooks file: if it exists, Droid ignores the hooks in its settings."""
    del client, places
    hooks = path.with_name("hooks.json")
    if read(hooks):
        reason = f"{hooks} replaces the hooks in {path.name}: move them there"
        return Permission(granted=False, reason=reason)
    return Permission()


def _copilot(
    client: Client, path: Path, places: ClientPlaces, read: Read
) -> Permission:
    del path
    settings = client.settings("user", places).parents[1] / "settings.json"
    if hook_settings.field(read(settings), "disableAllHooks") is True:
        return Permission(
            granted=False, reason=f"remove `disableAllHooks` from {settings}"
        )
    return Permission()


_LOOKS = {
    "claude-code": _claude_code,
    "codex": _codex,
    "copilot": _copilot,
    "droid": _droid,
    "gemini": _gemini,
    # Qwen Code has the same setting in the same places.
    "qwen": _claude_code,
}
