"""Writes an earlier conversation as a prompt, for an agent that does not have it."""

from collections.abc import Sequence
from typing import Any

import msgspec

from gitcp.acp.observed import FORK
from gitcp.clients import records

# In characters: what is longer loses its beginning.
_MOST = 200_000
_HEAD = (
    "The following is the conversation so far, which gitcp restored from a"
    " checkpoint. The project's files are as they were at its end. Continue from"
    " here."
)
# Fields that are not changed stay byte for byte.
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_NOTHING = msgspec.Raw(b"")


def text_of(talk: bytes) -> str:
    """Returns a talk as one text for an agent; of a long one the end."""
    # It takes a while to load, and only a restored session needs it.
    from gitcp.checkpoints.conversation import as_markdown  # noqa: PLC0415

    said = as_markdown(talk)
    if len(said) > _MOST:
        said = (
            f"[{len(said) - _MOST:,} earlier characters are left out]\n{said[-_MOST:]}"
        )
    return f"{_HEAD}\n\n<conversation>\n{said}\n</conversation>"


def with_texts(line: bytes, texts: Sequence[str]) -> bytes | None:
    """Returns a prompt with texts before what the user wrote; None if it is malformed."""
    message = records.decode_or(_OBJECT, line, {})
    params = records.decode_or(_OBJECT, message.get("params", _NOTHING), {})
    try:
        blocks = records.decode(_LIST, params.get("prompt", _NOTHING))
    except records.UNREADABLE:
        return None
    before = [_raw({"type": "text", "text": text}) for text in texts]
    params["prompt"] = _raw([*before, *blocks])
    return _line({**message, "params": _raw(params)})


def as_fork(line: bytes, session: str) -> bytes | None:
    """Returns a request for a new session as one for a fork; None if it is malformed."""
    message = records.decode_or(_OBJECT, line, {})
    try:
        params = records.decode(_OBJECT, message.get("params", _NOTHING))
    except records.UNREADABLE:
        return None
    params["sessionId"] = _raw(session)
    return _line({**message, "method": _raw(FORK), "params": _raw(params)})


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _line(message: dict[str, msgspec.Raw]) -> bytes:
    return msgspec.json.encode(message) + b"\n"
