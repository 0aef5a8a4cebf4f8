"""Makes checkpoints in a worker process, one after the other."""

import json
import os
import queue
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from gitcp.errors import GitcpError
from gitcp.git import duplex

# The other process ends in `hookTimeout` by itself; one that does not is stuck.
_PATIENCE = 120.0
_CHUNK = 65536
# Not `-m`: that would look for gitcp in the folder that the editor has opened.
_WORKER = (sys.executable, "-P", "-c", "from gitcp.cli.acp_worker import main; main()")
NO_REPOSITORY = "no-repository"
# The request to remove old conversations that checkpoints hold.
REMOVE_OLD = "remove-old"


class Outcome(NamedTuple):
    """The outcome of a request: an error with its code, and what the agent has to know."""

    code: str | None = None
    error: str | None = None
    tell: str | None = None


class Job(NamedTuple):
    """A request, and what to do once it was answered, in whatever way."""

    request: dict[str, Any] | None
    done: Callable[[Outcome], None]


class Checkpointer:
    """A queue of requests, and the thread that has them answered."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Job | None] = queue.Queue()
        self._process: duplex.Program | None = None
        self._unread = b""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Starts the thread; the other process starts with the first request."""
        self._thread.start()

    def ask(
        self, request: dict[str, Any] | None, done: Callable[[Outcome], None]
    ) -> None:
        """Adds a request; without one only `done` is called, in its turn."""
        self._jobs.put(Job(request, done))

    def finish(self) -> None:
        """Waits until all requests are answered, and ends the other process."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            outcome = Outcome()
            if job.request is not None:
                try:
                    outcome = self._asked(job.request)
                except (OSError, ValueError, GitcpError) as exc:
                    self._end()
                    outcome = Outcome("internal", f"{type(exc).__name__}: {exc}")
            job.done(outcome)
        self._end()

    def _asked(self, request: dict[str, Any]) -> Outcome:
        if self._process is None or self._process.poll() is not None:
            self._end()
            self._process = duplex.start(_WORKER, apart=True)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        answer = self._line(self._process)
        known = {name: answer[name] for name in Outcome._fields if name in answer}
        return Outcome(**known)

    def _line(self, process: duplex.Program) -> dict[str, Any]:
        assert process.stdout is not None
        fd = process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([fd], [], [], _PATIENCE)
            more = os.read(fd, _CHUNK) if ready else b""
            if not more:
                raise ValueError(
                    "the process that makes checkpoints ended"
                    if ready
                    else f"no checkpoint was made within {_PATIENCE:g} s"
                )
            self._unread += more
        line, _, self._unread = self._unread.partition(b"\n")
        found = json.loads(line)
        return found if isinstance(found, dict) else {}

    def _end(self) -> None:
        process, self._process, self._unread = self._process, None, b""
        if process is None:
            return
        with suppress(OSError):
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if process.poll() is None:
            with suppress(Exception):
                process.wait(_GRACE)
        if process.poll() is None:
            process.kill()
            process.wait()


_GRACE = 5.0
