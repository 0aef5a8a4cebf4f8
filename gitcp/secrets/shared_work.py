"""Scans many texts in several processes at once, if the machine has enough cores."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import IO, NamedTuple

import msgspec

from gitcp.secrets.scanner import Hit, Scanner

# So many bytes are worth a process of their own, which takes some ten milliseconds to start.
_SHARE = 500_000
_MOST = 8
# Short texts are scanned together, up to so many bytes.
_TOGETHER = 16_384
# No rule matches across it: the blank lines end a line that continues, the signs end the text
# between a name and a value, and the backslash keeps it where escapes are undone.
_BETWEEN = b"\n\n------\\------\n\n"

_Found = list[tuple[int, list[Hit]]]
_FOUND = msgspec.msgpack.Decoder(_Found)


class Work(NamedTuple):
    """A text to scan, and the path that it has in the project."""

    text: bytes
    path: bytes = b""


def scan_all(
    scanner: Scanner,
    works: Sequence[Work],
    begun: Callable[[int], None] = lambda _: None,
) -> list[list[Hit]]:
    """Returns the findings in each text; calls `begun` with the indexes of some texts."""
    groups = list(_groups(works))
    shares = _shares(groups, works, _processes(scanner, works))
    found: list[list[Hit]] = [[] for _ in works]
    children = [_Child(scanner, works, share) for share in shares[1:]]
    try:
        results = [_scan(scanner, works, shares[0], begun)]
        for child, share in zip(children, shares[1:], strict=True):
            # If the child process failed, this process scans the share.
            told = child.result()
            results.append(_scan(scanner, works, share) if told is None else told)
    finally:
        for child in children:
            child.end()
    for at, hits in (one for result in results for one in result):
        found[at] = hits
    return found


def _processes(scanner: Scanner, works: Sequence[Work]) -> int:
    """Returns the number of processes that pays off."""
    if not hasattr(os, "fork"):
        return 1
    size = sum(len(work.text) for work in works)
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    count = max(1, min(_MOST, cores, size // _SHARE))
    if count == 1:
        return 1
    scanner.prepare()
    return count if scanner.can_fork and threading.active_count() == 1 else 1


def _groups(works: Sequence[Work]) -> Iterator[list[int]]:
    """Yields the indexes of texts to scan together."""
    group: list[int] = []
    size = 0
    for at, work in enumerate(works):
        if not Scanner.stands_alone(work.text, work.path):
            if size + len(work.text) > _TOGETHER and group:
                yield group
                group, size = [], 0
            group.append(at)
            size += len(work.text)
        else:
            yield [at]
    if group:
        yield group


def _shares(
    groups: Sequence[list[int]], works: Sequence[Work], count: int
) -> list[list[list[int]]]:
    """Returns the groups in `count` parts of nearly the same size."""
    shares: list[list[list[int]]] = [[] for _ in range(count)]
    sizes = [0] * count
    for group in groups:
        least = sizes.index(min(sizes))
        shares[least].append(group)
        sizes[least] += sum(len(works[at].text) for at in group)
    return shares


def _scan(
    scanner: Scanner,
    works: Sequence[Work],
    groups: Sequence[list[int]],
    begun: Callable[[int], None] = lambda _: None,
) -> _Found:
    """Returns the findings in the texts of some groups, without texts that have none."""
    found: _Found = []
    for group in groups:
        begun(group[0])
        if len(group) > 1 and not scanner.scan(
            [_BETWEEN.join(works[at].text for at in group)]
        ):
            continue
        for at in group:
            hits = scanner.scan([works[at].text], works[at].path)
            if hits:
                found.append((at, hits))
    return found


class _Child:
    """A process that scans a share, and returns its findings."""

    def __init__(
        self, scanner: Scanner, works: Sequence[Work], share: Sequence[list[int]]
    ) -> None:
        reading, writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _work(writing, scanner, works, share)
        os.close(writing)
        self._told: IO[bytes] | None = os.fdopen(reading, "rb")

    def result(self) -> _Found | None:
        """Waits for the process; returns None if it did not complete."""
        assert self._told is not None
        raw = self._told.read()
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        try:
            return _FOUND.decode(raw) if status == 0 else None
        except msgspec.MsgspecError:
            return None

    def end(self) -> None:
        """Ends the process if it is still running."""
        if self._told is not None:
            self._told.close()
            self._told = None
        if self._pid:
            with suppress(ProcessLookupError):
                os.kill(self._pid, 9)
            with suppress(ChildProcessError):
                os.waitpid(self._pid, 0)
            self._pid = 0


def _work(
    writing: int, scanner: Scanner, works: Sequence[Work], share: Sequence[list[int]]
) -> None:
    """Scans a share and then ends this process, which has no other work or open files."""
    status = 1
    try:
        found = _scan(scanner, works, share)
        with os.fdopen(writing, "wb") as told:
            told.write(msgspec.msgpack.encode(found))
        status = 0
    finally:
        os._exit(status)
