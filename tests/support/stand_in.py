"""What stand-ins for model services have in common: a script, and HTTP on loopback.

They are stateless: an answer depends on the request alone. The last thing the user said
is looked up in the script, and the number of answers after it tells which step is next.
So resumed, forked and parallel conversations need no bookkeeping.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, Self, TypeVar

Block = dict[str, Any]
Step = Sequence[Block] | Callable[[dict[str, Any]], Sequence[Block]]
Script = Mapping[str, Sequence[Step]]


def say(text: str) -> Block:
    """Text of the model."""
    return {"type": "text", "text": text}


def use(tool: str, **arguments: Any) -> Block:
    """A call of a tool."""
    ident = f"toolu_{uuid.uuid4().hex[:24]}"
    return {"type": "tool_use", "id": ident, "name": tool, "input": arguments}


class StandIn:
    """A running stand-in.

    `input_tokens` is what it reports as the size of a conversation: a large number makes
    a client compact it. `sizes` has those of some prompts.
    """

    def __init__(
        self, handler: type[Handler[Any]], script: Script | None, *, input_tokens: int
    ) -> None:
        self.script: dict[str, Sequence[Step]] = dict(script or {})
        self.input_tokens = input_tokens
        self.sizes: dict[str, int] = {}
        self.lock = threading.Lock()
        self._server = _Listener(("127.0.0.1", 0), handler)
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

    def size(self, prompt: str) -> int:
        """What it reports as the size of a conversation in which this was said last."""
        named = (size for name, size in self.sizes.items() if name in prompt)
        return next(named, self.input_tokens)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    stand_in: StandIn


S = TypeVar("S", bound=StandIn)


class Handler(BaseHTTPRequestHandler, Generic[S]):
    """One request to a stand-in."""

    protocol_version = "HTTP/1.1"

    @property
    def stand_in(self) -> S:
        assert isinstance(self.server, _Listener)
        found: Any = self.server.stand_in
        return found

    def log_message(self, *_: object) -> None:
        pass

    def body(self) -> dict[str, Any]:
        """The document that was sent."""
        size = self.headers.get("content-length")
        raw = self.rfile.read(int(size)) if size else b"".join(self._chunks())
        found: dict[str, Any] = json.loads(raw or b"{}")
        return found

    def _chunks(self) -> Iterator[bytes]:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()

    def reply(self, status: int, document: Any) -> None:
        """Answers with one document."""
        raw = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def begin(self) -> None:
        """Begins an answer of several events."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def send(self, document: Any, event: str | None = None) -> None:
        """Sends one of them."""
        head = f"event: {event}\n" if event else ""
        self.wfile.write(f"{head}data: {json.dumps(document)}\n\n".encode())
        self.wfile.flush()
