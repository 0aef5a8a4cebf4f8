"""Sessions to be shown, and what a page has in it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import uuid
from pathlib import Path
from typing import Any

from gitcp.format.checkpoint import timestamp
from tests.support.agent import Agent

DATA = re.compile(
    rb'<script type="application/octet-stream" id="data">([A-Za-z0-9+/=]*)</script>'
)


def data_in(page: bytes) -> dict[str, Any]:
    """The document in a page."""
    found = DATA.findall(page)
    assert len(found) == 1
    document: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[0])))
    return document


def texts(value: Any) -> list[str]:
    """Every text in a document."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value
    return (
        [text for one in inner for text in texts(one)]
        if isinstance(inner, list | type({}.values()))
        else []
    )


class Talker(Agent):
    """An agent that calls tools, and whose records have times."""

    clock = 1_780_000_000.0

    def spoke(self, role: str, text: str, **more: Any) -> dict[str, Any]:
        """Adds a message, a minute after the one before."""
        Talker.clock += 60
        return super().spoke(role, text, timestamp=timestamp(Talker.clock), **more)

    def called(
        self, tool: str, output: str, *, failed: bool = False, **given: str
    ) -> None:
        """Adds a call of a tool, and its result."""
        ident = f"toolu_{uuid.uuid4().hex}"
        call = {"type": "tool_use", "id": ident, "name": tool, "input": given}
        result = {"type": "tool_result", "tool_use_id": ident, "content": output}
        if failed:
            result["is_error"] = True  # type: ignore[assignment]
        for role, block in (("assistant", call), ("user", result)):
            self.record(
                role,
                uuid=str(uuid.uuid4()),
                cwd=str(self.top),
                message={"role": role, "content": [block]},
            )

    def took(
        self,
        prompt: str,
        answer: str,
        *calls: tuple[str, str, dict[str, str]],
        files: dict[str, str | None] | None = None,
    ) -> int | None:
        """One whole turn; returns its number."""
        self.hook("UserPromptSubmit", prompt=prompt)
        self.spoke("user", prompt)
        for tool, output, given in calls:
            self.called(tool, output, failed=output.startswith("Error"), **given)
        for name, content in (files or {}).items():
            path = Path(self.top, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_text(content)
        self.spoke("assistant", answer)
        done = self.hook("Stop")
        return done.number if done is not None else None
