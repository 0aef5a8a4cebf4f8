"""Searches the contents of files in git's objects, each once."""

import os
import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
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


def lines_with(
    repository: Repository, oids: Sequence[bytes], words: Sequence[str]
) -> Iterator[tuple[bytes, list[Line]]]:
    """Yields the contents that have all of some words, in their order, with the lines.

    A word may be a part of a longer one. Case does not count, in ASCII. Binary contents,
    and those that are missing, are left out.
    """
    patterns = [part for word in words for part in ("--or", "-e", word)][1:]
    for at in range(0, len(oids), _AT_ONCE):
        part = [oid.hex() for oid in oids[at : at + _AT_ONCE]]
        with closing(_matches(repository, patterns, part)) as found:
            yield from found


def _matches(
    repository: Repository, patterns: Sequence[str], oids: Sequence[str]
) -> Generator[tuple[bytes, list[Line]], None, None]:
    running = process.start(
        [
            *("grep", "-I", "-i", "-F", "-n", "-z", "--no-color", "--no-column"),
            *("--all-match", *patterns, *oids, "--"),
        ],
        cwd=repository.common_dir,
        env={"GIT_DIR": os.fspath(repository.common_dir)},
        stdin=process.NOTHING,
    )
    assert running.stdout is not None
    lines: list[Line] = []
    last = ""
    try:
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
    finally:
        # Who has found enough does not wait for the rest.
        running.kill()
        running.communicate()
