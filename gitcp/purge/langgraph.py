"""Purges a value from threads of LangGraph (docs/format.md, 15).

A graph's serialized data contains lengths, so a purged value in it is overwritten by as many
other bytes. Only the JSON of the event itself may get shorter.
"""

import base64
import json
from typing import Any

from gitcp.purge.redact import Eraser


def cover_event(eraser: Eraser, raw: bytes) -> bytes:
    """Returns graph.json without the purged values, readable as before."""
    event: dict[str, Any] = json.loads(raw)
    before = json.dumps(event)
    for packed in event.get("channels", {}).values():
        packed |= {how: _typed(eraser, value) for how, value in packed.items()}
    for part in ("checkpoint", "metadata"):
        packed = event.get(part)
        if packed and "typed" in packed:
            packed["typed"] = _typed(eraser, packed["typed"])
        elif packed:
            text = eraser.records(_dump(packed["json"]))
            packed["json"] = json.loads(text)
    return raw if json.dumps(event) == before else _dump(event) + b"\n"


def _typed(eraser: Eraser, value: list[str]) -> list[str]:
    kind, text = value
    return [kind, base64.b64encode(eraser.covered(base64.b64decode(text))).decode()]


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
