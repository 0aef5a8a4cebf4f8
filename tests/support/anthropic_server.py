"""A stand-in for Anthropic's Messages API on loopback, for the real clients.

It is stateless: an answer depends on the request alone. The last thing the user said is
looked up in the script; the number of assistant messages after it tells which step is
next. So resumed, forked and parallel conversations need no bookkeeping.

    with AnthropicServer({"add a file": [
        [use("Write", file_path="/p/a.txt", content="a")],
        [say("Done.")],
    ]}) as server:
        ...  # a client with ANTHROPIC_BASE_URL=server.url
    server.requests  # the bodies, in order

A prompt that is not in the script is answered by `echo: <prompt>`. The script may name a
prompt by `re:<pattern>`, and a step may be a function of the request's body.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.stand_in import Block, Handler, Script, StandIn, say, use

# Texts that the client puts among what the user said.
_NOT_SAID = re.compile(r"\s*<(system-reminder|local-command)")


def texts(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message, without the blocks of other types."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if block.get("type") == "text"]


def asked(messages: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """What the user said last, and how many answers there are to it already."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] != "user":
            continue
        said = [
            text
            for text in texts(messages[at])
            if text.strip() and not _NOT_SAID.match(text)
        ]
        if said:
            after = messages[at + 1 :]
            return said[-1].strip(), sum(one["role"] == "assistant" for one in after)
    return "", 0


def plain(message: Any) -> Any:
    """A message as a client sent it, without what says only where a cache ends."""
    if isinstance(message, dict):
        return {
            name: plain(value)
            for name, value in message.items()
            if name != "cache_control"
        }
    if isinstance(message, list):
        return [plain(one) for one in message]
    return message


class AnthropicServer(StandIn):
    """A running stand-in; `requests` are the bodies of the messages calls."""

    def __init__(
        self, script: Script | None = None, *, input_tokens: int = 1000
    ) -> None:
        super().__init__(_Handler, script, input_tokens=input_tokens)
        self.requests: list[dict[str, Any]] = []
        self.other: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        """What makes Claude Code talk to this server, and to no other."""
        return {
            "ANTHROPIC_BASE_URL": self.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_TELEMETRY": "1",
            # Whatever goes elsewhere all the same goes nowhere.
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "HTTP_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def messages(self, prompt: str) -> list[dict[str, Any]]:
        """The messages of the last request that was about a prompt, without caching."""
        with self.lock:
            bodies = list(self.requests)
        for body in reversed(bodies):
            if asked(body["messages"])[0] == prompt:
                found: list[dict[str, Any]] = plain(body["messages"])
                return found
        raise AssertionError(f"no request has {prompt!r}")

    def answer(self, body: dict[str, Any]) -> list[Block]:
        """The blocks of the next message of the model."""
        prompt, step = asked(body.get("messages", []))
        steps = self.script.get(prompt)
        for name, found in self.script.items():
            if steps is None and name.startswith("re:"):
                steps = found if re.search(name[3:], prompt, re.DOTALL) else None
        if not steps or not body.get("tools"):
            return [say(f"echo: {prompt[:200]}")]
        chosen = steps[min(step, len(steps) - 1)]
        blocks = chosen(body) if callable(chosen) else chosen
        # Each call has an id of its own, however often a step is taken.
        return [
            use(block["name"], **block["input"]) if "input" in block else block
            for block in blocks
        ]


class _Handler(Handler[AnthropicServer]):
    def do_HEAD(self) -> None:  # noqa: N802  http.server calls it so
        self.reply(200, {})

    def do_GET(self) -> None:  # noqa: N802  http.server calls it so
        self.stand_in.other.append(self.path)
        self.reply(404, {"type": "error", "error": {"type": "not_found_error"}})

    def do_POST(self) -> None:  # noqa: N802  http.server calls it so
        body = self.body()
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self.reply(200, {"input_tokens": self.stand_in.input_tokens})
        elif path.endswith("/v1/messages"):
            with self.stand_in.lock:
                self.stand_in.requests.append(body)
            self._stream(body)
        else:
            self.do_GET()

    def _stream(self, body: dict[str, Any]) -> None:
        blocks = self.stand_in.answer(body)
        calls = any(block["type"] == "tool_use" for block in blocks)
        stop = "tool_use" if calls else "end_turn"
        usage = {"input_tokens": self.stand_in.input_tokens, "output_tokens": 10}
        message = {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "stand-in"),
            "content": blocks,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            self.reply(200, message)
            return
        self.begin()
        begun = {**message, "content": [], "stop_reason": None}
        self._event("message_start", message=begun)
        for index, block in enumerate(blocks):
            self._block(index, block)
        delta = {"stop_reason": stop, "stop_sequence": None}
        self._event("message_delta", delta=delta, usage=usage)
        self._event("message_stop")

    def _block(self, index: int, block: Block) -> None:
        if block["type"] == "text":
            begun = {**block, "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            begun = {**block, "input": {}}
            delta = {
                "type": "input_json_delta",
                "partial_json": json.dumps(block["input"]),
            }
        self._event("content_block_start", index=index, content_block=begun)
        self._event("content_block_delta", index=index, delta=delta)
        self._event("content_block_stop", index=index)

    def _event(self, name: str, **fields: Any) -> None:
        self.send({"type": name, **fields}, name)
