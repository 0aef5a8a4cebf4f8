"""Searches the contents of files in git's objects, each once."""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gitcp.git import process
from gitcp.git.repository import Repository

_LINE = re.compile(rb"([0-9a-f]{40,64})[\0:](\d+)[\0:](.*)", re.DOTALL)
# Arguments of one command, far below what a system allows.
_AT_ONCE = 5000


class Line(NamedTuple):
    """A line of a content, its number from 1 on."""

    number: int
    text: bytes


class Search:
    """A search for the contents that have all of some words; it begins when it is made.

    A word may be a part of a longer one. Case does not count, in ASCII. Binary contents, and
    those that are missing, are left out.
    """

    def __init__(
        self, repository: Repository, oids: Sequence[bytes], words: Sequence[str]
    ) -> None:
        self._repository = repository
        self._patterns = [part for word in words for part in ("--or", "-e", word)][1:]
        self._parts = [oids[at : at + _AT_ONCE] for at in range(0, len(oids), _AT_ONCE)]
        self._running: subprocess.Popen[bytes] | None = None
        self._start()

    def found(self) -> Iterator[tuple[bytes, list[Line]]]:
        """Yields the contents, in their order, with the lines that have some of the words."""
        while self._running is not None:
            yield from _matches(self._running)
            self.close()
            self._start()

    def close(self) -> None:
        """Ends the search: a caller that has found enough does not wait for the rest."""
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None

    def _start(self) -> None:
        if not self._parts:
            return
        common = self._repository.common_dir
        self._running = process.start(
            [
                *("grep", "-I", "-i", "-F", "-n", "-z", "--no-color", "--no-column"),
                *("--all-match", *self._patterns),
                *(oid.hex() for oid in self._parts.pop(0)),
                "--",
            ],
            cwd=common,
            env={"GIT_DIR": os.fspath(common)},
            stdin=process.NOTHING,
        )


def _matches(
    running: subprocess.Popen[bytes],
) -> Iterator[tuple[bytes, list[Line]]]:
    assert running.stdout is not None
    lines: list[Line] = []
    last = ""
    for raw in running.stdout:
        match = _LINE.match(raw.rstrip(b"\n"))
        if match is None:
            continue
        oid = match[1].decode()
        if oid != last and lines:
            yield bytes.fromhex(last), lines
            lines = []
        last = oid
        lines.append(Line(int(match[2]), match[3]))
    if lines:
        yield bytes.fromhex(last), lines
