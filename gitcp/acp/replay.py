"""Writes an earlier conversation as a prompt, for an agent that does not have it."""

import json
from typing import Any

from gitcp.acp.observed import FORK, PROMPT

# In characters: what is longer loses its beginning.
_MOST = 200_000
_HEAD = (
    "The following is the conversation so far, which gitcp restored from a"
    " checkpoint. The project's files are as they were at its end. Continue from"
    " here."
)


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


def with_text(line: bytes, text: str) -> bytes:
    """Returns a prompt with a text before what the user wrote."""
    value: dict[str, Any] = json.loads(line)
    assert value["method"] == PROMPT
    params = value["params"]
    params["prompt"] = [{"type": "text", "text": text}, *params["prompt"]]
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def as_fork(line: bytes, session: str) -> bytes:
    """Returns a request for a new session as one for a fork of a session."""
    value: dict[str, Any] = json.loads(line)
    value["method"] = FORK
    value["params"] = {**value["params"], "sessionId": session}
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
