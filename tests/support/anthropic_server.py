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
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Block = dict[str, Any]
Step = Sequence[Block] | Callable[[dict[str, Any]], Sequence[Block]]
Script = Mapping[str, Sequence[Step]]

# Texts that the client puts among what the user said.
_NOT_SAID = re.compile(r"\s*<(system-reminder|local-command)")


def say(text: str) -> Block:
    """Text of the model."""
    return {"type": "text", "text": text}


def use(tool: str, **arguments: Any) -> Block:
    """A call of a tool."""
    ident = f"toolu_{uuid.uuid4().hex[:24]}"
    return {"type": "tool_use", "id": ident, "name": tool, "input": arguments}


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


class AnthropicServer:
    """A running stand-in; `requests` are the bodies of the messages calls.

    `input_tokens` is what it reports as the size of a conversation: a large number makes
    a client compact it.
    """

    def __init__(
        self, script: Script | None = None, *, input_tokens: int = 1000
    ) -> None:
        self.script: dict[str, Sequence[Step]] = dict(script or {})
        self.input_tokens = input_tokens
        self.requests: list[dict[str, Any]] = []
        self.other: list[str] = []
        self._lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", 0), _Handler)
        self._server.stand_in = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What makes Claude Code talk to this server, and to nobody else."""
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
        with self._lock:
            bodies = list(self.requests)
        for body in reversed(bodies):
            if asked(body["messages"])[0] == prompt:
                found: list[dict[str, Any]] = plain(body["messages"])
                return found
        raise AssertionError(f"nobody asked {prompt!r}")

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


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    stand_in: AnthropicServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def stand_in(self) -> AnthropicServer:
        assert isinstance(self.server, _Listener)
        return self.server.stand_in

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._reply(200, {})

    def do_GET(self) -> None:
        self.stand_in.other.append(self.path)
        self._reply(404, {"type": "error", "error": {"type": "not_found_error"}})

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._reply(200, {"input_tokens": self.stand_in.input_tokens})
        elif path.endswith("/v1/messages"):
            with self.stand_in._lock:
                self.stand_in.requests.append(body)
            self._stream(body)
        else:
            self.do_GET()

    def _body(self) -> bytes:
        size = self.headers.get("content-length")
        return self.rfile.read(int(size)) if size else b"".join(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()

    def _reply(self, status: int, document: Any) -> None:
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

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
            self._reply(200, message)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
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
        data = json.dumps({"type": name, **fields})
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self.wfile.flush()
