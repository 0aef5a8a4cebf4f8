"""Finds which clients are installed on this machine."""

import shutil
from collections.abc import Mapping

# name -> its program
_PROGRAMS = {
    "claude-code": "claude",
    "cline": "cline",
    "codex": "codex",
    "copilot": "copilot",
    "cursor": "cursor",
    "droid": "droid",
    "gemini": "gemini",
    "kilo": "kilo",
    "opencode": "opencode",
    "openhands": "openhands",
    "pi": "pi",
    "qwen": "qwen",
    "vscode": "code",
}


def present(environment: Mapping[str, str]) -> list[str]:
    """Returns the names of clients whose program is on PATH, sorted."""
    path = environment.get("PATH")
    return [
        name
        for name, program in sorted(_PROGRAMS.items())
        if shutil.which(program, path=path) is not None
    ]
