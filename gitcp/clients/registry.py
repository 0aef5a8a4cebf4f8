"""The list of clients; each module is imported on use."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from gitcp.clients.client import Client
from gitcp.errors import UsageError

if TYPE_CHECKING:
    from gitcp.clients.exchange import Message, Spoken

# name -> module; each has a `CLIENT`, or this client in its `TABLE`
_MODULES = {
    "claude-code": "gitcp.clients.claude_code",
    "cline": "gitcp.clients.rows",
    "codex": "gitcp.clients.codex",
    "copilot": "gitcp.clients.rows",
    "cursor": "gitcp.clients.cursor",
    "droid": "gitcp.clients.rows",
    "gemini": "gitcp.clients.gemini",
    "kilo": "gitcp.clients.opencode",
    "opencode": "gitcp.clients.opencode",
    "openhands": "gitcp.clients.rows",
    "pi": "gitcp.clients.rows",
    "qwen": "gitcp.clients.rows",
    "vscode": "gitcp.clients.rows",
}
NAMES = tuple(sorted(_MODULES))
# Clients without hooks to install: a proxy reports their events.
_PROXIED = {"acp": "gitcp.clients.acp"}
# name -> the variable with the conversation's id in the shell of the client's agent. OpenCode
# and Kilo set none themselves, so gitcp's plugin sets it.
SESSION_VARIABLES = {
    "claude-code": "CLAUDE_CODE_SESSION_ID",
    "codex": "CODEX_THREAD_ID",
    "copilot": "COPILOT_AGENT_SESSION_ID",
    "kilo": "GITCP_KILO_SESSION",
    "opencode": "GITCP_OPENCODE_SESSION",
}
# name -> the variable that marks this client's shell, without an id.
CLIENT_VARIABLES = {"gemini": "GEMINI_CLI"}
# name -> module; each has an `active`. Other clients do not record a rewind, or remove the
# rewound turns.
_REWINDS = {
    "claude-code": "gitcp.clients.claude_code_chain",
    "codex": "gitcp.clients.codex_rollbacks",
    "gemini": "gitcp.clients.gemini_rewinds",
}
# name -> module; each converts conversations to the neutral form and back.
_EXCHANGES = {
    "claude-code": "gitcp.clients.claude_code_exchange",
    "codex": "gitcp.clients.codex_exchange",
}
# name -> the command that starts it with a first prompt, which comes last.
_PROMPTED: dict[str, tuple[str, ...]] = {
    "claude-code": ("claude",),
    "codex": ("codex",),
    "copilot": ("copilot", "-i"),
    "cursor": ("cursor-agent",),
    "gemini": ("gemini", "-i"),
    "opencode": ("opencode", "--prompt"),
}


class Exchange(Protocol):
    """Converts one client's conversations to the neutral form and back."""

    def read(self, content: bytes, beside: Mapping[str, bytes]) -> "Spoken":
        """Returns the conversation as the model has it now."""

    def written(
        self, messages: "Sequence[Message]", session: str, directory: Path
    ) -> bytes:
        """Returns a conversation in this client's form, under an id."""


def known(name: str | None) -> bool:
    """Whether there is a client of this name."""
    return name in _MODULES or name in _PROXIED


def client(name: str) -> Client:
    """Returns a client by name.

    Raises:
        UsageError: no client has this name.
    """
    module = _MODULES.get(name) or _PROXIED.get(name)
    if module is None:
        raise UsageError(
            f"gitcp does not know the agent {name!a}",
            hint=f"it knows {', '.join(NAMES)}",
        )
    found = importlib.import_module(module)
    table: dict[str, Client] = getattr(found, "TABLE", {})
    return table.get(name) or cast("Client", found.CLIENT)


def active(name: str, content: bytes) -> bytes:
    """Returns a client's conversation without the turns that the user rewound."""
    module = _REWINDS.get(name)
    if module is None:
        return content
    found: bytes = importlib.import_module(module).active(content)
    return found


def exchange(name: str) -> Exchange | None:
    """Returns the converter of a client's conversations, or None."""
    module = _EXCHANGES.get(name)
    return cast("Exchange", importlib.import_module(module)) if module else None


def prompted(name: str) -> tuple[str, ...] | None:
    """Returns the command that starts a client with a prompt, which comes last, or None."""
    return _PROMPTED.get(name)
