"""Reads one hunk from a patch, and plans to restore only its lines."""

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from gitcp.errors import BusyError
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import EXECUTABLE, FILE, Entry
from gitcp.git.transaction import Transaction
from gitcp.worktree.files import Root
from gitcp.worktree.plan import WRITE, FilePlan, FileStep

_HEAD = rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@"
_CHUNK = 1 << 20


class Hunk(NamedTuple):
    """Lines of a file, as a checkpoint has them and as the file has them now.

    `start` counts the lines above them in the present file. Lines have their ends.
    """

    path: bytes
    start: int
    then: tuple[bytes, ...]
    now: tuple[bytes, ...]

    def put_back(self, data: bytes) -> bytes:
        """Returns a file with the lines of the checkpoint.

        Raises:
            BusyError: the file now has other lines in that place.
        """
        lines = data.split(b"\n")
        ends = [line + b"\n" for line in lines[:-1]]
        whole = [*ends, *([lines[-1]] if lines[-1] else [])]
        end = self.start + len(self.now)
        if tuple(whole[self.start : end]) != self.now:
            raise BusyError(
                f"{show_path(self.path)} changed after its lines were shown",
                hint="nothing was changed; look at them again",
            )
        return b"".join([*whole[: self.start], *self.then, *whole[end:]])


def hunks_of(path: bytes, patch: bytes) -> Iterator[Hunk]:
    """Yields the hunks of a patch of one file, from a checkpoint to the present state."""
    rows = patch.split(b"\n")
    at = 0
    while at < len(rows):
        head = re.match(_HEAD, rows[at])
        at += 1
        if head is None:
            continue
        count_then, count_now = (int(head[group] or b"1") for group in (2, 4))
        # If a side has no lines, git names the line above.
        start = int(head[3]) - (1 if count_now else 0)
        then: list[bytes] = []
        now: list[bytes] = []
        while at < len(rows):
            sign, text = rows[at][:1], rows[at][1:]
            if sign == b"\\":
                # "No newline at end of file", about the line before it.
                before = rows[at - 1][:1]
                for side, signs in ((then, b" -"), (now, b" +")):
                    if before in {signs[:1], signs[1:]}:
                        side[-1] = side[-1].removesuffix(b"\n")
            elif len(then) == count_then and len(now) == count_now:
                break
            if sign in {b" ", b"-"}:
                then.append(text + b"\n")
            if sign in {b" ", b"+"}:
                now.append(text + b"\n")
            at += 1
        yield Hunk(path, start, tuple(then), tuple(now))


def only_hunk(root: Root, steps: FilePlan, hunk: Hunk, txn: Transaction) -> FilePlan:
    """Returns a plan that changes these lines of its file, and leaves the others.

    If the plan does not write the file, it stays as it is.

    Raises:
        BusyError: the file has changed since its lines were shown.
    """
    kept: list[FileStep] = []
    for step in steps.steps:
        if step.path != hunk.path:
            continue
        plain = {FILE, EXECUTABLE}
        if step.before is None or step.after is None or step.before.mode not in plain:
            raise BusyError(
                f"{show_path(hunk.path)} is no longer a text file",
                hint="nothing was changed; restore the whole file",
            )
        oid = txn.add_blob(hunk.put_back(_content(root, hunk.path)))
        after = Entry(step.before.mode, oid)
        kept.append(FileStep(WRITE, step.path, step.before, after))
    return FilePlan(tuple(kept), steps.left)


def _content(root: Root, path: bytes) -> bytes:
    with os.fdopen(root.open(path), "rb") as file:
        return b"".join(iter(lambda: file.read(_CHUNK), b""))
