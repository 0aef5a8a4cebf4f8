"""Programs that never stop writing, beside restores: no edit is lost without a word.

An edit counts that was complete while its file had its name. It is on disk, in a
checkpoint, or its path was reported as left. A hundred thousand of them:

    EDITS=100000 SEED=1 pytest -m slow tests/fault/test_writers.py
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fault import writer
from tests.fault.harness import fsck
from tests.support.gitrepo import git, git_line, make_repo
from tests.support.inprocess import invoke, ok

EDITS = int(os.environ.get("EDITS", "20000"))
# CI takes the same sample each time; other seeds are for the slow runs.
SEED = int(os.environ.get("SEED") or 1)
WAYS = ("append", "slots", "whole", "saved", "table")
PARTLY = 3
# What no checkpoint holds is in the way: nothing was changed.
REFUSED = 18


class Load(NamedTuple):
    """How many edits, of how many files of which size, and of them during a restore.

    Where each restore meets many edits of a file, it leaves that file alone; where it
    meets few, they may fall between its last look at a file and what it does with it.
    """

    edits: int
    files: int
    size: int
    each: int
    ways: tuple[str, ...] = WAYS


class Restore(NamedTuple):
    """When a restore ran, in nanoseconds, and the paths that it reported as left."""

    begun: int
    ended: int
    left: frozenset[str]


class Edits:
    """Reads what the writers noted, and strikes out what is found."""

    def __init__(self, logs: list[Path]) -> None:
        self._logs = dict.fromkeys(logs, 0)
        self.pending: dict[bytes, tuple[int, str]] = {}
        self._gone: set[bytes] = set()
        self.done = 0

    def read(self) -> None:
        for log, at in self._logs.items():
            data = log.read_bytes()[at:] if log.exists() else b""
            data = data[: data.rfind(b"\n") + 1]
            self._logs[log] = at + len(data)
            for line in data.splitlines():
                kind, token, *rest = line.split(b" ", 3)
                if kind == b"done":
                    self.done += 1
                    self.pending[token] = int(rest[0]), rest[1].decode()
                else:
                    self._gone.add(token)

    def strike(self, content: bytes) -> None:
        for token in writer.TOKEN.findall(content):
            self.pending.pop(token, None)

    def unheld(self) -> dict[bytes, tuple[int, str]]:
        """What is nowhere, and was not taken out by its own writer."""
        return {
            token: found
            for token, found in self.pending.items()
            if token not in self._gone
        }


def _reported(at: int, path: str, restores: list[Restore]) -> bool:
    """Whether the restore under way at an edit, or the next, reported its path."""
    after = [one for one in restores if one.ended >= at][:2]
    return any(path in one.left for one in after)


def names(load: Load) -> list[str]:
    return [f"d{n % 3}/{load.ways[n % len(load.ways)]}-{n}" for n in range(load.files)]


def states(repo: Path, load: Load) -> None:
    """Three checkpoints: content, other content, and half of the files gone."""
    git(repo, "config", "gitcp.maxFileSize", "1g")
    for turn, letter in enumerate((b"a", b"b", b"c")):
        for number, name in enumerate(names(load)):
            path = repo / name
            path.parent.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            # A database is made by its writer.
            if not path.name.startswith("table") and (turn < 2 or number % 2):
                path.write_bytes((letter * 13 + b"\n") * (load.size // 14 + 1))
        ok(repo, "save", "-m", f"state {turn + 1}")


def pace(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.rename(path)


class Writers:
    """Writers at work, each with files of its own."""

    def __init__(self, repo: Path, load: Load, count: int = 2) -> None:
        self.logs = [repo.with_name(f"writer{number}.log") for number in range(count)]
        self._each = load.each / count
        self.pace(0.5)
        self._running = []
        for number, log in enumerate(self.logs):
            mine = names(load)[number::count]
            words = (repo, log, SEED + number, load.size, *mine)
            command = [sys.executable, writer.__file__, *map(str, words)]
            self._running.append(subprocess.Popen(command, stderr=subprocess.PIPE))

    def pace(self, seconds: float) -> None:
        """Has them make as many edits as are wanted in so many seconds."""
        for log in self.logs:
            pace(Path(f"{log}.pace"), str(seconds / self._each))

    def end(self) -> None:
        for log in self.logs:
            pace(Path(f"{log}.pace"), "")
        for process in self._running:
            _, err = process.communicate(timeout=200)
            assert process.returncode == 0, err


def restore(repo: Path, number: int) -> tuple[int, Restore]:
    begun = time.monotonic_ns()
    done = invoke(repo, "restore", "--json", str(number), "--yes")
    ended = time.monotonic_ns()
    assert done.returncode in {0, PARTLY, REFUSED}, (done.returncode, done.stderr)
    left: list[str] = []
    if done.returncode == PARTLY:
        left = json.loads(done.stderr.splitlines()[-1])["error"]["left"]
    paths = frozenset(line.partition(": ")[0] for line in left)
    return done.returncode, Restore(begun, ended, paths)


def strike_new(repo: Path, edits: Edits, known: str, few: int) -> str:
    """Strikes out what checkpoints hold that were made since `known`.

    Reads a `few` blobs at a time, as they are large.
    """
    tip = git_line(repo, "rev-parse", "refs/gitcp/s/main/main")
    listed = git(repo, "rev-list", "--objects", "--no-object-names", tip, f"^{known}")
    kinds = git(repo, "cat-file", "--batch-check", input=listed)
    blobs = [row.split()[0] for row in kinds.splitlines() if b" blob " in row]
    for start in range(0, len(blobs), few):
        wanted = b"\n".join(blobs[start : start + few]) + b"\n"
        edits.strike(git(repo, "cat-file", "--batch", input=wanted))
    return tip


def nothing_is_lost(base: Path, load: Load) -> None:
    repo = make_repo(base / "repo", {".gitignore": b"*.swp\n*-journal\n", "a": b"a\n"})
    states(repo, load)
    known = git_line(repo, "rev-parse", "refs/gitcp/s/main/main")
    few = min(1 + 50_000_000 // load.size, 500)
    chance = random.Random(SEED)
    restores: list[Restore] = []
    codes: Counter[int] = Counter()
    running = Writers(repo, load)
    edits = Edits(running.logs)
    try:
        while edits.done < load.edits:
            code, done = restore(repo, chance.randint(1, 3))
            codes[code] += 1
            restores.append(done)
            running.pace((done.ended - done.begun) / 1e9)
            edits.read()
            if len(restores) % 20 == 0:
                known = strike_new(repo, edits, known, few)
    finally:
        running.end()
    edits.read()
    strike_new(repo, edits, known, few)
    for path in repo.rglob("*"):
        if ".git" not in path.parts and path.is_file():
            edits.strike(path.read_bytes())
    fsck(repo)
    unheld = edits.unheld()
    lost = {
        token: (at, path)
        for token, (at, path) in unheld.items()
        if not _reported(at, path, restores)
    }
    print(f"SEED={SEED}: {edits.done} edits, {len(restores)} restores {dict(codes)}")
    print(f"{len(unheld)} edits are held nowhere, {len(lost)} of them unreported")
    assert not lost
    # The restores did meet writers, and were not merely refused.
    assert codes[REFUSED] < len(restores) / 2


def test_no_edit_of_a_busy_writer_is_lost(tmp_path):
    nothing_is_lost(tmp_path, Load(edits=400, files=20, size=300, each=50))


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "load",
    [
        Load(EDITS * 980 // 1000, 40, 2_000, 200),
        Load(EDITS * 19 // 1000, 8, 2_000_000, 10, ("append", "slots", "slots")),
        Load(EDITS // 1000, 2, 101_000_000, 2, ("slots",)),
    ],
    ids=["small", "medium", "large"],
)
def test_no_edit_of_many_is_lost(tmp_path, load):
    nothing_is_lost(tmp_path, load)
