"""A process that reads ordinary files for another one (`plain_many`).

It is told what to read on standard input, and answers on standard output, in the same order.
It ends when its input does. Its own Python has no packages but gitcp.
"""

import os
import struct
import sys
import zlib
from contextlib import suppress
from typing import NamedTuple

from gitcp.format.index import Stat
from gitcp.format.oid import FORMS, ObjectFormat
from gitcp.worktree.files import Root
from gitcp.worktree.plain import PlainReader, Proof

# As git writes loose objects.
LEVEL = 1
_ASKED = "H{}s"
_ANSWER = ">B{}s10II"
_LEFT, _READ = 0, 1
_BLOCK = 64 * 1024


class Job(NamedTuple):
    """The settings of a worker, given before any path; `closed` has the form of `Root`'s."""

    form: str
    fd: int
    proof: Proof
    most: int
    closed: frozenset[tuple[int, int]]

    def words(self) -> list[str]:
        """Returns the command-line arguments for a job."""
        shut = ",".join(f"{device}:{inode}" for device, inode in sorted(self.closed))
        given = (self.fd, self.most, *map(int, self.proof))
        return [self.form, *map(str, given), shut]

    @classmethod
    def parse(cls, words: list[str]) -> "Job":
        """Parses the arguments that `words` returned."""
        form, *numbers, shut = words
        fd, most, device, moment, by_change = map(int, numbers)
        pairs = [one.partition(":") for one in shut.split(",") if one]
        closed = frozenset((int(device), int(inode)) for device, _, inode in pairs)
        return cls(form, fd, Proof(device, moment, bool(by_change)), most, closed)


class Answer(NamedTuple):
    """The answer for a path: `stored` is its compressed content, if it is not the known one."""

    oid: bytes
    stat: Stat
    stored: bytes | None


class Wire:
    """The two directions of the pipe between both processes."""

    def __init__(self, form: ObjectFormat) -> None:
        self._asked = struct.Struct(">" + _ASKED.format(form.size))
        self._answer = struct.Struct(_ANSWER.format(form.size))
        self._nothing = self._answer.pack(_LEFT, b"", *(0,) * len(Stat._fields), 0)

    def ask(self, path: bytes, known: bytes) -> bytes:
        """Returns a request for a path, with the known id of its content, if any."""
        return self._asked.pack(len(path), known) + path

    def asked(self, data: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Parses requests: returns paths and ids, and the rest of the bytes."""
        found: list[tuple[bytes, bytes]] = []
        at, head = 0, self._asked.size
        while at + head <= len(data):
            size, known = self._asked.unpack_from(data, at)
            if at + head + size > len(data):
                break
            at += head + size
            found.append((data[at - size : at], known))
        return found, data[at:]

    def answer(self, found: Answer | None) -> bytes:
        """Returns the answer for one path; None if it is left to `read`."""
        if found is None:
            return self._nothing
        stored = found.stored
        size = 0 if stored is None else len(stored)
        return self._answer.pack(_READ, found.oid, *found.stat, size) + (stored or b"")

    def answers(self, data: bytes) -> tuple[list[Answer | None], bytes]:
        """Returns the answers that some bytes begin with, and the bytes that are left."""
        found: list[Answer | None] = []
        at, head = 0, self._answer.size
        while at + head <= len(data):
            kind, oid, *fields, size = self._answer.unpack_from(data, at)
            if at + head + size > len(data):
                break
            at += head
            stored = data[at : at + size] if size else None
            at += size
            found.append(Answer(oid, Stat(*fields), stored) if kind == _READ else None)
        return found, data[at:]


def main() -> None:
    """Reads until its input ends, or the process that it answers has ended."""
    job = Job.parse(sys.argv[1:])
    form = FORMS[job.form]
    wire = Wire(form)
    with Root(job.fd, job.closed) as root, suppress(BrokenPipeError):
        reader = PlainReader(root, form, job.proof, job.most)
        rest = b""
        while block := os.read(sys.stdin.fileno(), _BLOCK):
            asked, rest = wire.asked(rest + block)
            for path, known in asked:
                sys.stdout.buffer.write(wire.answer(_read(reader, path, known)))
            sys.stdout.buffer.flush()


def _read(reader: PlainReader, path: bytes, known: bytes) -> Answer | None:
    found = reader.read(path)
    if found is None:
        return None
    same = found.oid == known
    stored = None if same else zlib.compress(found.data, LEVEL)
    return Answer(found.oid, found.stat, stored)
