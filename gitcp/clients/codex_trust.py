"""Codex's trust in hooks: Codex runs only hooks whose digest the user has approved.

`config.toml` has `[hooks.state."<file>:<event>:<group>:<number>"]` with `trusted_hash`, and
`enabled` if the user has switched a hook off. A project's own hooks count only if the
project is trusted as well.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gitcp.clients import hook_settings
from gitcp.clients.client import Permission
from gitcp.clients.hook_settings import OurHook

_AGENT = "codex"
_INNER_CAPITAL = r"(?<!^)(?=[A-Z])"


def permission(
    path: Path, settings: bytes, config: bytes, top: Path | None
) -> Permission:
    """Returns whether Codex runs every hook of ours in a hooks file."""
    import tomllib  # noqa: PLC0415  only where Codex is set up

    try:
        known = tomllib.loads(config.decode())
    except ValueError:
        # Codex does not start with such a file.
        return Permission()
    if top is not None and path.is_relative_to(top) and not _trusts(known, top):
        return Permission(
            granted=False, reason=f"start `codex` in {top}, and trust the project"
        )
    state = _table(_table(known, "hooks"), "state")
    for hook in hook_settings.ours(settings, _AGENT):
        event = re.sub(_INNER_CAPITAL, "_", hook.event).lower()
        entry = _table(state, f"{path}:{event}:{hook.group}:{hook.number}")
        if entry.get("trusted_hash") != digest(event, hook):
            return Permission(
                granted=False,
                reason="start `codex`, and trust the hooks of gitcp when it asks, or"
                " enter /hooks",
            )
        if entry.get("enabled") is False:
            return Permission(
                granted=False, reason="start `codex`, and enable them with /hooks"
            )
    return Permission(granted=True)


def digest(event: str, hook: OurHook) -> str:
    """Returns the digest that Codex compares: that of a hook as the file has it."""
    definition: dict[str, Any] = {
        "event_name": event,
        "hooks": [
            {
                "type": "command",
                "command": hook.command,
                "timeout": hook.timeout,
                "async": False,
            }
        ],
    }
    if hook.matcher is not None:
        definition["matcher"] = hook.matcher
    text = json.dumps(
        definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _trusts(known: Mapping[str, Any], top: Path) -> bool:
    """Whether a project is trusted; assumed for a linked work tree, listed by another path."""
    projects = _table(known, "projects")
    names = {str(top), os.path.realpath(top)}
    trusted = any(
        _table(projects, name).get("trust_level") == "trusted" for name in names
    )
    return trusted or (top / ".git").is_file()


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = table.get(name)
    return inner if isinstance(inner, dict) else {}
