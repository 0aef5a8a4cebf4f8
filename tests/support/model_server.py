"""A stand-in for three other APIs on loopback: Responses, Chat Completions, Gemini.

Like `anthropic_server`, whose words (`say`, `use`) it shares, it is stateless: the last
thing the user said is looked up in the script, and the number of answers after it tells
which step is next.

    with ModelServer({"add a file": [[use("exec_command", cmd="touch a")],
                                     [say("Done.")]]}) as server:
        ...  # a client that is configured with server.url
    server.requests  # (path, body), in order
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.stand_in import Block, Handler, Script, StandIn, say

_OUTPUTS = ("function_call_output", "custom_tool_call_output")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or ())


def asked_in_responses(body: dict[str, Any]) -> tuple[str, int]:
    """What the user said last in a request to /responses, and the answers since."""
    items = body.get("input", [])
    for at in range(len(items) - 1, -1, -1):
        item = items[at]
        if item.get("type", "message") != "message" or item.get("role") != "user":
            continue
        text = _text(item["content"])
        if text.lstrip().startswith("<"):
            continue
        answers, after_output = 0, True
        for later in items[at + 1 :]:
            is_output = later.get("type") in _OUTPUTS
            answers += not is_output and after_output
            after_output = is_output
        return text, answers
    return "", 0


def asked_in_chat(body: dict[str, Any]) -> tuple[str, int]:
    """The same for /chat/completions."""
    messages = body.get("messages", [])
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user":
            after = messages[at + 1 :]
            said = _text(messages[at]["content"])
            return said, sum(one["role"] == "assistant" for one in after)
    return "", 0


def asked_in_gemini(body: dict[str, Any]) -> tuple[str, int]:
    """The same for generateContent."""
    contents = body.get("contents", [])
    for at in range(len(contents) - 1, -1, -1):
        parts = contents[at]["parts"]
        if contents[at].get("role", "user") != "user":
            continue
        texts = [part["text"] for part in parts if "text" in part]
        if not texts or any("functionResponse" in part for part in parts):
            continue
        after = contents[at + 1 :]
        return " ".join(texts), sum(one.get("role") == "model" for one in after)
    return "", 0


class ModelServer(StandIn):
    """A running stand-in; `requests` are the paths and bodies of the calls."""

    def __init__(self, script: Script | None = None) -> None:
        super().__init__(_Handler, script, input_tokens=100)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        # Called before the first answer to a prompt: a real model takes longer.
        self.think: Callable[[], None] = lambda: None

    def bodies(self, prompt: str) -> list[dict[str, Any]]:
        """The requests in which a prompt was the last thing said, in order."""
        with self.lock:
            found = list(self.requests)
        looks = (asked_in_responses, asked_in_chat, asked_in_gemini)
        return [
            body
            for _, body in found
            if any(prompt in look(body)[0] for look in looks) and body.get("tools")
        ]

    def answer(self, asked: tuple[str, int], body: dict[str, Any]) -> Sequence[Block]:
        """The blocks of the next message of the model."""
        prompt, step = asked
        if not body.get("tools"):
            return [say("A title")]
        if step == 0:
            self.think()
        for name, steps in self.script.items():
            if name in prompt:
                chosen = steps[min(step, len(steps) - 1)]
                return chosen(body) if callable(chosen) else chosen
        return [say(f"echo: {prompt[-100:]}")]


class _Handler(Handler[ModelServer]):
    def do_GET(self) -> None:  # noqa: N802  http.server calls it so
        if "/models" in self.path:
            self.reply(200, {"object": "list", "data": [], "models": []})
        else:
            self.reply(404, {"error": {"message": f"no {self.path}"}})

    def do_POST(self) -> None:  # noqa: N802  http.server calls it so
        body = self.body()
        path = self.path.partition("?")[0]
        with self.stand_in.lock:
            self.stand_in.requests.append((path, body))
        if path.endswith("/responses"):
            self._responses(body)
        elif path.endswith("/chat/completions"):
            self._chat(body)
        elif path.endswith(":streamGenerateContent"):
            self._gemini(body, stream=True)
        elif path.endswith(":generateContent"):
            self._gemini(body, stream=False)
        elif path.endswith(":countTokens"):
            self.reply(200, {"totalTokens": 10})
        else:
            self.reply(404, {"error": {"message": f"no {path}"}})

    def _responses(self, body: dict[str, Any]) -> None:
        asked = asked_in_responses(body)
        blocks, size = self.stand_in.answer(asked, body), self.stand_in.size(asked[0])
        output = [_item(block) for block in blocks]
        usage = {
            "input_tokens": size,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": size + 10,
        }
        response = {
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "model": body.get("model"),
            "output": output,
            "usage": usage,
        }
        if not body.get("stream"):
            self.reply(200, response)
            return
        self.begin()

        def event(kind: str, **rest: Any) -> None:
            self.send({"type": kind, **rest}, kind)

        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        event("response.created", response=begun)
        for index, item in enumerate(output):
            empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {}
            started = {**item, **empty, "status": "in_progress"}
            event("response.output_item.added", output_index=index, item=started)
            if item["type"] == "message":
                event(
                    "response.output_text.delta",
                    item_id=item["id"],
                    output_index=index,
                    content_index=0,
                    delta=item["content"][0]["text"],
                )
            event("response.output_item.done", output_index=index, item=item)
        event("response.completed", response=response)

    def _chat(self, body: dict[str, Any]) -> None:
        asked = asked_in_chat(body)
        blocks, size = self.stand_in.answer(asked, body), self.stand_in.size(asked[0])
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [
            {
                "index": index,
                "id": f"call_{uuid.uuid4().hex[:20]}",
                "type": "function",
                "function": {
                    "name": block["name"],
                    "arguments": json.dumps(block["input"]),
                },
            }
            for index, block in enumerate(
                block for block in blocks if block["type"] == "tool_use"
            )
        ]
        base = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": body.get("model"),
        }
        usage = {
            "prompt_tokens": size,
            "completion_tokens": 10,
            "total_tokens": size + 10,
        }
        reason = "tool_calls" if calls else "stop"
        if not body.get("stream"):
            message: dict[str, Any] = {"role": "assistant", "content": text or None}
            if calls:
                message["tool_calls"] = calls
            choice = {"index": 0, "message": message, "finish_reason": reason}
            document = {"object": "chat.completion", "choices": [choice]}
            self.reply(200, {**base, **document, "usage": usage})
            return
        self.begin()

        def chunk(delta: dict[str, Any], reason: str | None, **rest: Any) -> None:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            kind = {"object": "chat.completion.chunk", "choices": [choice]}
            self.send({**base, **kind, **rest})

        chunk({"role": "assistant", "content": text}, None)
        if calls:
            chunk({"tool_calls": calls}, None)
        chunk({}, reason, usage=usage)
        self.wfile.write(b"data: [DONE]\n\n")

    def _gemini(self, body: dict[str, Any], *, stream: bool) -> None:
        asked = asked_in_gemini(body)
        blocks, size = self.stand_in.answer(asked, body), self.stand_in.size(asked[0])
        parts = [
            {"text": block["text"]}
            if block["type"] == "text"
            else {"functionCall": {"name": block["name"], "args": block["input"]}}
            for block in blocks
        ]
        if not body.get("tools"):
            # What the client asks beside the conversation it wants as JSON.
            verdict = {
                "reasoning": "x",
                "next_speaker": "user",
                "model_choice": "flash",
            }
            parts = [{"text": json.dumps(verdict)}]
        content = {"role": "model", "parts": parts}
        document = {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {
                "promptTokenCount": size,
                "candidatesTokenCount": 10,
                "totalTokenCount": size + 10,
            },
            "modelVersion": "stand-in",
            "responseId": uuid.uuid4().hex,
        }
        if stream:
            self.begin()
            self.send(document)
        else:
            self.reply(200, document)


def _item(block: Block) -> dict[str, Any]:
    unique = uuid.uuid4().hex[:20]
    if block["type"] == "text":
        return {
            "type": "message",
            "id": f"msg_{unique}",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": block["text"], "annotations": []}
            ],
        }
    return {
        "type": "function_call",
        "id": f"fc_{unique}",
        "call_id": f"call_{unique}",
        **_named(block["name"]),
        "arguments": json.dumps(block["input"]),
        "status": "completed",
    }


def _named(tool: str) -> dict[str, str]:
    """A tool's name, and of which set it is if its name has a dot."""
    group, _, name = tool.rpartition(".")
    return {"name": name, **({"namespace": group} if group else {})}
