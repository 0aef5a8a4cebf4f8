"""Detects which agent wrote a transcript, by the shape of its first records."""

import msgspec

from gitcp.clients import records

# So many records at the beginning of a transcript are examined.
LOOK_AT = 20
KINDS = ("claude-code", "codex", "copilot", "gemini", "messages", "unknown")


class _FirstRecord(msgspec.Struct):
    type: str | None = None
    sessionId: str | None = None  # noqa: N815  the client's spelling
    payload: msgspec.Raw = msgspec.Raw(b"")
    projectHash: str | None = None  # noqa: N815
    role: str | None = None
    data: msgspec.Raw = msgspec.Raw(b"")


class _ThreadId(msgspec.Struct):
    id: str | None = None


class _Started(msgspec.Struct):
    sessionId: str | None = None  # noqa: N815


def detect(raw: bytes) -> tuple[str, str | None]:
    """Returns the kind of a transcript and the agent's own session id, if it names one.

    Skips records of unknown form. A file without any known record has the kind `unknown`,
    and is stored all the same.
    """
    # The file may be large, so only read its first records, each of any length.
    end = 0
    for _ in range(LOOK_AT):
        end = raw.find(b"\n", end) + 1
        if not end:
            break
    for line in raw[: end or len(raw)].split(b"\n"):
        try:
            shape = msgspec.json.decode(line, type=_FirstRecord)
        except records.UNREADABLE:
            continue
        if shape.sessionId and shape.projectHash:
            return "gemini", shape.sessionId
        if shape.type == "session_meta":
            return "codex", _payload_id(shape.payload)
        if shape.type == "session.start":
            return "copilot", _session_id(shape.data)
        if shape.sessionId and shape.type:
            return "claude-code", shape.sessionId
        if shape.role:
            return "messages", None
    return "unknown", None


def _payload_id(payload: msgspec.Raw) -> str | None:
    try:
        return msgspec.json.decode(payload, type=_ThreadId).id
    except records.UNREADABLE:
        return None


def _session_id(data: msgspec.Raw) -> str | None:
    try:
        return msgspec.json.decode(data, type=_Started).sessionId
    except records.UNREADABLE:
        return None
