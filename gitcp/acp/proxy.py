"""Passes messages between an editor and an agent, and records turns on the way.

Each direction has a thread. A line is written down before it is handed on, a prompt waits
for its checkpoint, and all else passes as it came.
"""

import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from gitcp.acp import observed
from gitcp.acp.checkpointer import REMOVE_OLD, Checkpointer
from gitcp.acp.framing import Framing
from gitcp.acp.held import Held
from gitcp.acp.turns import Turns
from gitcp.git import duplex

_CHUNK = 1 << 18
# A prompt is held back whole, whatever it carries; of what an agent says the end of a line is
# waited for only where it is near.
_CLIENT_LINE = 512 * 1024 * 1024
_AGENT_HOLD = 1024 * 1024
_AGENT_LINE = 64 * 1024 * 1024
# The hooks that the agent itself may have stay away: one turn, one checkpoint.
BEHIND = "GITCP_BEHIND_ACP"
_HANDED_ON = (signal.SIGTERM, signal.SIGHUP)


class Proxy:
    """One agent, and the editor at the other end of our input and output."""

    def __init__(
        self,
        words: Sequence[str],
        sessions: Path,
        environment: Mapping[str, str],
        *,
        source: int = 0,
        target: int = 1,
    ) -> None:
        self._words = words
        self._environment = environment
        self._source = source
        self._target = target
        # Who writes to the agent: the pump, and what was held back.
        self._writing = threading.RLock()
        self._checkpointer = Checkpointer()
        self._turns = Turns(
            sessions, os.path.basename(words[0]), self._checkpointer, self._hand_over
        )
        self._program: duplex.Program | None = None
        self._target_gone = False

    def run(self) -> int:
        """Runs the agent, and returns its exit status.

        Raises:
            NotFoundError: the agent cannot be started.
        """
        program = duplex.start(self._words, env={**self._environment, BEHIND: "1"})
        self._program = program
        for number in _HANDED_ON:
            signal.signal(number, lambda got, _: program.send_signal(got))
        signal.signal(signal.SIGINT, lambda *_: None)
        self._checkpointer.start()
        self._turns.take_up()
        threading.Thread(target=self._from_client, daemon=True).start()
        with _woken() as signals:
            self._from_agent(program, signals)
        # The editor knows at once that the agent is gone; what it said is saved now.
        self._drop_target()
        self._turns.finish()
        self._checkpointer.ask({"event": REMOVE_OLD}, lambda _: None)
        self._checkpointer.finish()
        return duplex.status(program)

    # --- from the editor to the agent -----------------------------------------------

    def _from_client(self) -> None:
        framing = Framing(hold=_CLIENT_LINE, keep=_CLIENT_LINE)
        with suppress(OSError):
            while chunk := os.read(self._source, _CHUNK):
                for piece in framing.feed(chunk):
                    self._client_line(piece.data, piece.line)
        self._client_line(framing.rest(), None)
        # What is held back goes first.
        self._checkpointer.ask(None, lambda _: self._close_agent())

    def _client_line(self, data: bytes, line: bytes | None) -> None:
        with self._writing:
            found = observed.message(line) if line is not None else None
            if found is None or line is None:
                self._write_agent(data)
                return
            handed = self._turns.from_client(found, line)
            if handed is not None:
                self._write_agent(handed)

    def _hand_over(self, take: Callable[[], Held]) -> None:
        """Writes what was held back; what comes meanwhile waits, so it comes after that."""
        with self._writing:
            held = take()
            self._write_agent(held.first)
            for line in held.lines:
                self._client_line(line, line)

    def _write_agent(self, data: bytes) -> None:
        program = self._program
        if data and program is not None and program.stdin is not None:
            # Of an agent that is gone its end is noticed elsewhere.
            with suppress(OSError, ValueError):
                write_all(program.stdin.fileno(), data)

    def _close_agent(self) -> None:
        with self._writing, suppress(OSError):
            if self._program is not None and self._program.stdin is not None:
                self._program.stdin.close()

    # --- from the agent to the editor -----------------------------------------------

    def _from_agent(self, program: duplex.Program, signals: int) -> None:
        assert program.stdout is not None
        framing = Framing(hold=_AGENT_HOLD, keep=_AGENT_LINE)
        while chunk := _read(program.stdout.fileno(), signals):
            handed: list[bytes] = []
            for piece in framing.feed(chunk):
                found = observed.message(piece.line) if piece.line is not None else None
                passes = True
                if found is not None and piece.line is not None:
                    passes = self._turns.from_agent(found, piece.line)
                if passes:
                    handed.append(piece.data)
            self._write_client(handed)
        self._write_client([framing.rest()])

    def _write_client(self, handed: Sequence[bytes]) -> None:
        data = b"".join(handed) if len(handed) != 1 else handed[0]
        if not data or self._target_gone:
            return
        try:
            write_all(self._target, data)
        except OSError:
            # The editor is gone; what the agent still says is written down all the same.
            # Its input is closed in another thread: a write to an agent that does not read
            # may last until we have read what the agent writes.
            self._drop_target()
            self._checkpointer.ask(None, lambda _: self._close_agent())

    def _drop_target(self) -> None:
        if not self._target_gone:
            self._target_gone = True
            with suppress(OSError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._target)
                os.close(nowhere)


@contextmanager
def _woken() -> Iterator[int]:
    """Gives a descriptor that can be read after each signal.

    A handler runs in the main thread, which is not woken from a read by a signal that comes
    just before it, or that another thread receives.
    """
    ours, pythons = os.pipe()
    os.set_blocking(pythons, False)
    before = signal.set_wakeup_fd(pythons, warn_on_full_buffer=False)
    try:
        yield ours
    finally:
        signal.set_wakeup_fd(before)
        os.close(ours)
        os.close(pythons)


def _read(fd: int, signals: int) -> bytes:
    """Reads the next bytes, and lets handlers run until they come; none are the end."""
    while True:
        ready, _, _ = select.select([fd, signals], [], [])
        if signals in ready:
            os.read(signals, _CHUNK)
        if fd in ready:
            return os.read(fd, _CHUNK)


def write_all(fd: int, data: bytes) -> None:
    """Writes all of some bytes.

    Raises:
        OSError: no one reads them, or the disk is full.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
