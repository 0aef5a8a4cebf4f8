"""`gitcp acp` in this process: a test is the editor, the agent, and the maker of checkpoints.

The proxy runs in threads of its own, between pipes. A test writes and reads both of their
other ends, so it decides what comes first.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gitcp.acp import checkpointer, proxy
from gitcp.clients import acp_folder
from gitcp.clients.acp_folder import SessionFolder
from gitcp.git import duplex

# In seconds: far more than anything takes.
PATIENCE = 60.0
Answer = Callable[[dict[str, Any]], dict[str, Any] | bytes | None]


class End:
    """The other end of two pipes of the proxy's."""

    def __init__(self) -> None:
        self.inner_read, self.write = os.pipe()
        self.read, self.inner_write = os.pipe()
        self._unread = b""
        # Everything that came here.
        self.got = b""

    def send(self, *given: bytes | Mapping[str, Any]) -> None:
        """Sends bytes as they are, and messages as a line each."""
        for one in given:
            raw = one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n"
            view = memoryview(raw)
            while view:
                view = view[os.write(self.write, view) :]

    def take(self) -> bool:
        """Reads what is there; returns whether there can be more."""
        more = os.read(self.read, 1 << 20)
        self._unread += more
        self.got += more
        return bool(more)

    def has_line(self) -> bool:
        """Whether a whole line was read."""
        return b"\n" in self._unread

    def pop(self) -> bytes:
        """Returns the next line that was read, or what is left."""
        line, end, self._unread = self._unread.partition(b"\n")
        return line + end

    def close(self) -> None:
        """Sends no more."""
        if self.write >= 0:
            os.close(self.write)
        self.write = -1

    def deafen(self) -> None:
        """Reads no more: who writes gets an error."""
        if self.read >= 0:
            os.close(self.read)
        self.read = -1


class StandIn:
    """Looks like a process to the proxy, and is one end of a `Wire`."""

    def __init__(self, end: End) -> None:
        self.stdin = os.fdopen(end.inner_write, "wb", buffering=0)
        self.stdout = os.fdopen(end.inner_read, "rb", buffering=0)
        self.signals: list[int] = []
        self.code: int | None = None
        self.ended = threading.Event()

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        del timeout
        assert self.ended.wait(PATIENCE)
        assert self.code is not None
        return self.code

    def kill(self) -> None:
        self.end(-9)

    def send_signal(self, number: int) -> None:
        self.signals.append(number)

    def end(self, code: int) -> None:
        self.code = code
        self.ended.set()


class Wire:
    """A proxy that runs, and what is at its ends.

    While a test waits for a line, `answer` answers requests for checkpoints, one at a time and
    in the thread of the test; with `saves` False they wait.
    """

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        root: Path,
        answer: Answer,
        words: Sequence[str] = ("/bin/agent",),
    ) -> None:
        self.editor, self.agent = End(), End()
        self.worker: End | None = None
        self.answer = answer
        self.saves = True
        # The requests for checkpoints that were answered.
        self.asked: list[dict[str, Any]] = []
        # What the agent was started with.
        self.environment: dict[str, str] = {}
        self.handlers: dict[int, Any] = {}
        self.root = root
        self.status: int | None = None
        self.program = StandIn(self.agent)
        self.worker_program: StandIn | None = None
        # Read by a test that waits: there is a new worker, or the proxy has ended.
        self._news, self._tell = os.pipe()
        self._ended = self._finished = False
        self._before = set(threading.enumerate())
        patch.setattr(duplex, "start", self._start)
        # Only the main thread may set handlers, and what wakes it for them.
        signals = SimpleNamespace(**vars(signal))
        signals.signal = self.handlers.__setitem__
        signals.set_wakeup_fd = lambda fd, **_: -1
        patch.setattr(proxy, "signal", signals)
        self._proxy = proxy.Proxy(
            words,
            root,
            {"A": "b"},
            source=self.editor.inner_read,
            target=self.editor.inner_write,
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    # --- what a test waits for --------------------------------------------------------

    def heard(self) -> bytes:
        """Returns the next line that the agent gets."""
        return self._line(self.agent)

    def seen(self) -> bytes:
        """Returns the next line that the editor gets."""
        return self._line(self.editor)

    def heard_until(self, marker: bytes) -> bytes:
        """Returns what the agent gets, up to and with a line that the editor sends now."""
        self.editor.send(marker)
        lines = [self.heard()]
        while lines[-1] != marker:
            lines.append(self.heard())
        return b"".join(lines)

    def wait_for_end(self) -> None:
        """Reads what comes next from the proxy, while its checkpoints are made."""
        if not self._serve():
            assert self._wait([self.agent, *self._worker_ends()])

    def request(self) -> dict[str, Any]:
        """Returns the next request for a checkpoint, which the caller answers."""
        while self.worker is None or not self.worker.has_line():
            assert self._wait(self._worker_ends()), "no checkpoint is asked for"
        return cast("dict[str, Any]", json.loads(self.worker.pop()))

    def reply(self, request: dict[str, Any]) -> None:
        """Answers a request for a checkpoint; None is the end of the worker."""
        self.asked.append(request)
        answer = self.answer(request)
        assert self.worker is not None
        if answer is None:
            assert self.worker_program is not None
            self.worker.close()
            self.worker.deafen()
            self.worker_program.end(1)
            self.worker = None
        else:
            self.worker.send(answer)

    def save(self) -> dict[str, Any]:
        """Answers the next request for a checkpoint, and returns the request."""
        request = self.request()
        self.reply(request)
        return request

    def end(self, code: int = 0) -> int | None:
        """Ends the agent; returns the status of the proxy once all is saved and has ended."""
        if self._ended:
            return self.status
        self._ended = self.saves = True
        self.agent.close()
        self.agent.deafen()
        self.program.end(code)
        while not self._finished:
            if not self._serve():
                assert self._wait([*self._worker_ends(), self.editor])
        while self.editor.read >= 0:
            assert self._wait([self.editor])
        self.editor.close()
        self.editor.deafen()
        for thread in set(threading.enumerate()) - self._before:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        for fd in (self._news, self._tell, self.editor.inner_read):
            os.close(fd)
        # The end of the process would give up its locks.
        sessions = self._proxy._turns._sessions
        for session in sessions.all():
            sessions.forget(session)
        self.program.stdin.close()
        self.program.stdout.close()
        return self.status

    def folder(self, name: str) -> SessionFolder:
        return SessionFolder(self.root / name)

    def talk(self, name: str) -> list[dict[str, Any]]:
        """The messages that are recorded of a session."""
        folder = self.folder(name)
        folder.fold(1 << 62)
        return [json.loads(line) for line in folder.talk.read_bytes().splitlines()]

    def texts(self, name: str) -> list[str]:
        """The texts that are recorded of a session."""
        return [block["text"] for one in self.talk(name) for block in one["content"]]

    # --- usual steps ------------------------------------------------------------------

    def open(self, ident: str = "s1", **params: Any) -> None:
        """Makes a session, whose first checkpoint is asked for."""
        before = len(self.asked)
        asked = {"id": f"new {ident}", "method": "session/new", "params": params}
        self.editor.send(asked)
        assert json.loads(self.heard()) == asked
        self.reply_with(asked["id"], {"sessionId": ident})
        while all(one["event"] != "session-start" for one in self.asked[before:]):
            self.save()

    def reply_with(self, ident: Any, result: Any) -> None:
        """Has the agent answer a request."""
        said = {"jsonrpc": "2.0", "id": ident, "result": result}
        self.agent.send(said)
        assert json.loads(self.seen()) == said

    def say(self, text: str, session: str = "s1") -> None:
        """Has the agent say something."""
        content = {"type": "text", "text": text}
        told = update(session, "agent_message_chunk", content=content)
        self.agent.send(told)
        assert json.loads(self.seen()) == told

    def turn(self, text: str, answer: str, session: str = "s1", ident: Any = 7) -> None:
        """Has a whole turn, of which every byte must pass."""
        asked = line(prompt(session, text, ident))
        self.editor.send(asked)
        assert self.heard() == asked
        self.say(answer, session)
        self.reply_with(ident, {"stopReason": "end_turn"})

    # --- inside -----------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self.status = self._proxy.run()
        finally:
            # As the end of the process would.
            os.close(self.editor.inner_write)
            self._finished = True
            os.write(self._tell, b"ended")

    def _start(self, words: Sequence[str], **given: Any) -> duplex.Program:
        if words == checkpointer._WORKER:
            end = End()
            self.worker_program = StandIn(end)
            self.worker = end
            os.write(self._tell, b"worker")
            return cast("duplex.Program", self.worker_program)
        self.environment = given["env"]
        return cast("duplex.Program", self.program)

    def _worker_ends(self) -> list[End]:
        return [self.worker] if self.worker is not None else []

    def _line(self, end: End) -> bytes:
        while not end.has_line():
            assert end.read >= 0, f"the end came after {end.got[-500:]!r}"
            if not self.saves or not self._serve():
                ends = [end, *(self._worker_ends() if self.saves else [])]
                assert self._wait(ends), f"nothing came after {end.got[-500:]!r}"
        return end.pop()

    def _serve(self) -> bool:
        if self.worker is None or not self.worker.has_line():
            return False
        self.save()
        return True

    def _wait(self, ends: Sequence[End]) -> bool:
        """Reads what comes first, at some ends or of the proxy; returns whether anything did."""
        fds = {end.read: end for end in ends if end.read >= 0}
        ready, _, _ = select.select([self._news, *fds], [], [], PATIENCE)
        for fd in ready:
            if fd == self._news:
                os.read(fd, 100)
            elif not fds[fd].take():
                self._closed(fds[fd])
        return bool(ready)

    def _closed(self, end: End) -> None:
        end.deafen()
        if end is self.worker:
            assert self.worker_program is not None
            end.close()
            self.worker_program.end(0)
            self.worker = None


def folding(root: Path) -> Answer:
    """Returns an answer that records as a checkpoint does, and makes none."""

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        if "upto" in request:
            SessionFolder(root / request["session"]).fold(request["upto"])
        return {}

    return answer


def state() -> Path:
    """The folder of all sessions."""
    return acp_folder.root(os.environ)


def line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def prompt(session: str, text: str, ident: Any = 7) -> dict[str, Any]:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
    return {"jsonrpc": "2.0", "id": ident, "method": "session/prompt", "params": params}


def update(session: str, kind: str, /, **fields: Any) -> dict[str, Any]:
    params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}
