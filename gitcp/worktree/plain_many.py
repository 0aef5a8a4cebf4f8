"""Reads thousands of ordinary files, on all cores (0125).

Reading a file takes a few system calls and a hash, each too short for threads, which would
wait for Python's lock. So other processes read as well. The caller reads the files that
they do not: those that are not ordinary, and those of a process that ended.
"""

import os
import select
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import GitFailedError
from gitcp.format.index import Stat
from gitcp.format.oid import ObjectFormat
from gitcp.git import process
from gitcp.git.deflate import cores
from gitcp.git.process import Process
from gitcp.worktree.files import Root
from gitcp.worktree.plain import PlainReader, Proof
from gitcp.worktree.plain_worker import Job, Wire

_MOST_WORKERS = 3
# How many paths are handed over at once, and how many a worker may have waiting: it must
# neither run out of work, nor have much left when the others have none.
_PATHS, _BYTES = 64, 8 * 1024
_WAITING = 3
_BLOCK = 1024 * 1024
_SCRIPT = """
import sys
sys.path.append(sys.argv.pop(1))
from gitcp.worktree.plain_worker import main
main()
"""


class Read(NamedTuple):
    """A path that was read: the id and the stat of its content, and the content.

    The content is plain (`data`) or compressed (`stored`), or missing if it is known
    already.
    """

    path: bytes
    oid: bytes
    stat: Stat
    data: bytes | None
    stored: bytes | None


Known = Callable[[bytes], bytes]


def read_many(
    paths: Sequence[bytes],
    known: Known,
    *,
    root: Root,
    form: ObjectFormat,
    proof: Proof,
    most: int,
) -> Iterator[list[Read]]:
    """Reads sorted paths, and yields those that were read; the rest is left to the caller.

    They come in any order. `known` returns the id of the content that a path is expected to
    have, or any other bytes of that length. Files above `most` bytes are left.
    """
    reader = PlainReader(root, form, proof, most)
    wire = Wire(form)
    job = Job(form.name, root.fd, proof, most, root.closed)
    blocks = deque(_blocks(paths))
    workers = _start(job, wire, min(cores() - 1, _MOST_WORKERS, len(blocks) - 1))
    try:
        while blocks:
            for worker in workers:
                while blocks and worker.has_room:
                    # This process takes from the other end, so that each stays within
                    # its directories.
                    worker.give(blocks.pop(), known)
            if blocks:
                yield _own(blocks.popleft(), reader, known)
            for worker in workers:
                yield worker.taken(wait=False)
        for worker in workers:
            while worker.is_waited_for:
                yield worker.taken(wait=True)
    finally:
        for worker in workers:
            worker.end()


def _own(block: list[bytes], reader: PlainReader, known: Known) -> list[Read]:
    found = []
    for path in block:
        plain = reader.read(path)
        if plain is not None:
            oid, stat, data = plain
            found.append(
                Read(path, oid, stat, None if oid == known(path) else data, None)
            )
    return found


def _blocks(paths: Sequence[bytes]) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    size = 0
    for path in paths:
        if block and (len(block) == _PATHS or size + len(path) > _BYTES):
            yield block
            block, size = [], 0
        block.append(path)
        size += len(path)
    if block:
        yield block


class _Worker:
    """A process that reads; keeps count of the paths that it has not answered yet."""

    def __init__(self, started: Process, wire: Wire) -> None:
        if started.stdin is None or started.stdout is None:
            raise ValueError("a worker needs both pipes")
        self._process = started
        self._wire = wire
        self._stdin = started.stdin.fileno()
        self._stdout = started.stdout.fileno()
        self._given: deque[bytes] = deque()
        self._unsent = b""
        self._rest = b""
        self._ended = False
        # It may be blocked until its answers are read.
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)

    @property
    def has_room(self) -> bool:
        full = self._ended or self._unsent or len(self._given) >= _WAITING * _PATHS
        return not full

    @property
    def is_waited_for(self) -> bool:
        return bool(self._given)

    def give(self, block: list[bytes], known: Known) -> None:
        """Hands paths over."""
        self._given += block
        asked = [self._wire.ask(path, known(path)) for path in block]
        self._unsent = b"".join(asked)
        self._send()

    def _send(self) -> None:
        # If it has ended, that shows when it should answer.
        with suppress(BlockingIOError, BrokenPipeError):
            if self._unsent:
                self._unsent = self._unsent[os.write(self._stdin, self._unsent) :]

    def taken(self, *, wait: bool) -> list[Read]:
        """Returns the answers so far; waits for no more once the process has ended."""
        self._send()
        if wait:
            ready = select.poll()
            ready.register(self._stdout, select.POLLIN)
            if self._unsent:
                ready.register(self._stdin, select.POLLOUT)
            ready.poll()
        try:
            block = b"" if self._ended else os.read(self._stdout, _BLOCK)
        except BlockingIOError:
            return []
        if not block:
            self._ended = True
            self._given.clear()
        answers, self._rest = self._wire.answers(self._rest + block)
        paths = [self._given.popleft() for _ in answers]
        return [
            Read(path, answer.oid, answer.stat, None, answer.stored)
            for path, answer in zip(paths, answers, strict=True)
            if answer is not None
        ]

    def end(self) -> None:
        """Ends the process, whatever it is doing."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


def _start(job: Job, wire: Wire, count: int) -> list[_Worker]:
    """Starts workers; none if this program cannot start a Python like its own."""
    name = os.path.basename(sys.executable or "")
    if not name.startswith("python") or getattr(sys, "frozen", False):
        return []
    place = Path(__file__).parents[2]
    words = [sys.executable, "-I", "-S", "-c", _SCRIPT, str(place), *job.words()]
    found: list[_Worker] = []
    for _ in range(count):
        with suppress(GitFailedError):
            started = process.start_program(
                words, cwd=os.sep, stdin=process.PIPE, inherit=(job.fd,)
            )
            found.append(_Worker(started, wire))
    return found
