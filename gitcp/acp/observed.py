"""Reads the fields of a message that the proxy needs; the message itself passes unchanged."""

from typing import Any

import msgspec

from gitcp.clients import records

PROMPT = "session/prompt"
NEW = "session/new"
UPDATE = "session/update"
PERMISSION = "session/request_permission"
INITIALIZE = "initialize"
# Requests that name a session which is there already.
CONTINUING = frozenset({"session/load", "session/resume"})
FORK = "session/fork"
CLOSE = "session/close"
# The protocol of this version answers a prompt once it is accepted, not once it is done.
_ACCEPTS = 2


class Message(msgspec.Struct):
    """A request, a notification or a response of JSON-RPC."""

    id: Any = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"")
    result: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def failed(self) -> bool:
        """Whether it is a response that says that a request failed."""
        return bool(bytes(self.error)) and bytes(self.error) != b"null"


class _Call(msgspec.Struct):
    title: str | None = None
    kind: str | None = None
    rawInput: Any = None  # noqa: N815  the protocol's spelling


class _Update(msgspec.Struct):
    sessionUpdate: str | None = None  # noqa: N815  the protocol's spelling
    status: str | None = None
    state: str | None = None
    title: str | None = None


class Params(msgspec.Struct):
    """The parameters of any message, as far as they are of interest."""

    sessionId: str | None = None  # noqa: N815  the protocol's spelling
    cwd: str | None = None
    requestId: Any = None  # noqa: N815
    update: _Update | None = None
    toolCall: _Call | None = None  # noqa: N815


class _Text(msgspec.Struct):
    type: str | None = None
    text: str | None = None


class _Prompt(msgspec.Struct):
    prompt: list[_Text] = []


class _Session(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815


class _Initialized(msgspec.Struct):
    protocolVersion: Any = 1  # noqa: N815
    agentCapabilities: Any = None  # noqa: N815
    capabilities: Any = None


_MESSAGE = msgspec.json.Decoder(Message)
_PARAMS = msgspec.json.Decoder(Params)
_PROMPT = msgspec.json.Decoder(_Prompt)
_SESSION = msgspec.json.Decoder(_Session)
_INITIALIZED = msgspec.json.Decoder(_Initialized)


def message(line: bytes) -> Message | None:
    """Returns a line as a message; None if it is something else."""
    try:
        found = records.decode(_MESSAGE, line)
    except records.UNREADABLE:
        return None
    # True and 1 are one key of a dictionary, but not one id.
    is_id = isinstance(found.id, str | int | None) and not isinstance(found.id, bool)
    return found if is_id else None


def params(found: Message) -> Params:
    """Returns the parameters of a message; empty ones where they are of another shape."""
    return records.decode_or(_PARAMS, found.params, Params())


def prompt_text(found: Message, most: int = 4096) -> str:
    """Returns the beginning of what a prompt says."""
    said = records.decode_or(_PROMPT, found.params, _Prompt())
    return "\n\n".join(one.text for one in said.prompt if one.text)[:most]


def new_session(found: Message) -> str | None:
    """Returns the id of the session that a response says was made."""
    return records.decode_or(_SESSION, found.result, _Session()).sessionId


class Agent(msgspec.Struct):
    """What an agent said of itself: how a turn ends, and whether it forks sessions."""

    accepts: bool = False
    forks: bool = False


def initialized(found: Message) -> Agent:
    """Returns what the response to `initialize` says of an agent."""
    said = records.decode_or(_INITIALIZED, found.result, _Initialized())
    version = said.protocolVersion
    accepts = isinstance(version, int) and version >= _ACCEPTS
    for given in (said.agentCapabilities, said.capabilities):
        held = given if isinstance(given, dict) else {}
        for name in ("sessionCapabilities", "session"):
            sessions = held.get(name)
            if isinstance(sessions, dict) and isinstance(sessions.get("fork"), dict):
                return Agent(accepts, forks=True)
    return Agent(accepts)
