"""Lets Cline CLI take a turn in a session that goes on: it does that only at a terminal.

`python cline_terminal.py PROMPT DOCUMENT COMMAND…` types the prompt, waits until the session's
document has the answer to it and the hooks at the end of the turn have run, or for `/compact`
until there is the document beside it, and leaves.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

_PATIENCE = 110.0
# What stands below the line that one types in.
_READY = b"Auto-approve"
# Seconds before a line is sent again: a busy client takes two keys for two turns.
_AGAIN = 10.0


def _spoken(document: Path) -> list[dict]:
    try:
        return json.loads(document.read_text("utf-8"))["messages"]
    except (OSError, ValueError):
        return []


def _is_answered(messages: list[dict], prompt: str) -> bool:
    """Whether the model has said something after a prompt, and is to call nothing more."""
    if not messages or messages[-1]["role"] != "assistant":
        return False
    # The answer may repeat the prompt.
    asked = any(one["role"] == "user" and prompt in json.dumps(one) for one in messages)
    calls = any(block["type"] == "tool_use" for block in messages[-1]["content"])
    return asked and not calls


class _Hooks:
    """The hooks at the end of a turn.

    The client starts them after it has written the answer. If it is told to leave before that,
    it never does.
    """

    def __init__(self, home: Path) -> None:
        self._log = home / "data" / "logs" / "cline.log"
        self._scripts = len(list((home / "hooks").glob("TaskComplete*")))
        self._before = self._ended()

    def _ended(self) -> int:
        if not self._log.exists():
            return 0
        return sum(
            b"hooks.detached_runtime" in line and b'"hookName":"agent_end"' in line
            for line in self._log.read_bytes().splitlines()
        )

    def have_run(self) -> bool:
        """Whether the client has told of the end of each of them."""
        return self._ended() >= self._before + self._scripts


class _Typist:
    """What has been typed so far, and what to type next."""

    def __init__(self, prompt: str, document: Path) -> None:
        self._prompt, self._document = prompt, document
        self._typed = False
        self._sent = -_AGAIN
        self._before = _spoken(document)
        self._hooks = _Hooks(document.parents[3])
        self.done = False

    def keys(self, shown: bytes) -> bytes:
        """Returns what to type now that this is on the screen."""
        if not self._typed:
            if _READY not in shown:
                return b""
            self._typed = True
            return self._prompt.encode()
        messages = _spoken(self._document)
        summed_up = self._document.name.replace(".messages.", ".compaction.")
        if self._prompt == "/compact":
            self.done = self._document.with_name(summed_up).exists()
            return b"\x03" if self.done else b"\r"
        if messages == self._before:
            # The first one may have come before the line was there to be sent.
            now = time.monotonic()
            if now - self._sent < _AGAIN:
                return b""
            self._sent = now
            return b"\r"
        if _is_answered(messages, self._prompt) and self._hooks.have_run():
            self.done = True
            return b"\x03"
        return b""


def _adopt() -> None:
    """Makes what the client leaves behind a child of this process."""
    set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)


def _end_service() -> None:
    """Ends the service that the client leaves behind, and not the hooks that still run."""
    own = os.getpid()
    for child in Path(f"/proc/{own}/task/{own}/children").read_text().split():
        with contextlib.suppress(OSError):
            if b"--cline-hub-daemon" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)


def main() -> int:
    """Returns the status of the client."""
    _adopt()
    try:
        return _run()
    finally:
        _end_service()


def _run() -> int:
    prompt, document, *command = sys.argv[1:]
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=far,
        stdout=far,
        stderr=far,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(far)
    typist = _Typist(prompt, Path(document))
    shown = b""
    deadline = time.monotonic() + _PATIENCE
    while process.poll() is None:
        if time.monotonic() > deadline:
            process.kill()
            process.wait()
            print(shown[-3000:])
            return 1
        readable, _, _ = select.select([near], [], [], 0.5)
        try:
            if readable:
                shown += os.read(near, 1 << 16)
            else:
                os.write(near, typist.keys(shown))
        except OSError:
            break
    status = process.wait()
    if not typist.done:
        print(shown[-3000:])
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
