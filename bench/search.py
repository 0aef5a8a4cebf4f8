"""How long `gitcp search` takes, and how large its index is: talk of known size.

    python bench/search.py [--megabytes 1000] [--seed N] [--runs 7] [--in DIR]

Turns as Claude Code writes them, in sessions of 250: prompts and answers are sentences, tools
read and print lines of real text and code, taken from the Python that runs this and from the
packages installed in it; ids, times and tool results that stand twice are as in real records.
DIR needs three times the room; what is made there is removed.
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

from gitcp.checkpoints.save import save
from gitcp.git.consolidate import consolidate
from gitcp.git.transaction import transaction
from gitcp.project import search_files
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.search.find import search
from gitcp.search.hits import Filters
from gitcp.search.passages import PLACES
from gitcp.search.words import Query
from gitcp.store.append import append_checkpoint
from gitcp.store.draft import Draft, FilesState, NewRecords

TURNS = 250
SOURCES = 60_000_000
QUERIES = (
    ("one word, rare", "cormorant"),
    ("one word", "deprecated"),
    ("one word, common", "return"),
    ("the commonest word", "the"),
    ("two words", "connection timeout"),
    ("three words", "import error module"),
    ("a phrase, rare", '"deep copy of the"'),
    ("a phrase, common", '"return none"'),
    ("a phrase of common words", '"if the"'),
    ("no hit", "xylophonist"),
)


def texts() -> list[list[str]]:
    """Returns the lines of files of text and code."""
    found, size = [], 0
    paths = sysconfig.get_paths()
    for root in (paths["stdlib"], paths["purelib"]):
        for path in sorted(Path(root).rglob("*")):
            if path.suffix in {".py", ".md", ".rst", ".txt", ".pyi"} and size < SOURCES:
                lines = path.read_text("utf-8", "ignore").split("\n")
                size += sum(map(len, lines))
                if len(lines) > 20:
                    found.append(lines)
    return found


class Talk:
    """Conversations of one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._texts = texts()
        self._words = [
            word
            for lines in self.random.sample(self._texts, 300)
            for line in lines
            for word in line.split()
            if word.isalpha() and len(word) > 1
        ]
        self._parent: str | None = None
        self._time = 0

    def _lines(self, least: int, most: int) -> str:
        lines = self.random.choice(self._texts)
        count = self.random.randrange(least, most)
        at = self.random.randrange(max(1, len(lines) - count))
        return "\n".join(lines[at : at + count])

    def _sentence(self, least: int, most: int) -> str:
        return " ".join(
            self.random.choices(self._words, k=self.random.randrange(least, most))
        )

    def _ident(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128)))

    def _record(self, kind: str, content: object, **more: object) -> bytes:
        self._time += self.random.randrange(1, 60)
        at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(1.7e9 + self._time))
        ident = self._ident()
        record = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "cwd": "/home/ann/project",
            "sessionId": "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
            "version": "2.1.0",
            "gitBranch": "main",
            "type": kind,
            "message": {"role": kind, "content": content},
            "uuid": ident,
            "timestamp": at,
            **more,
        }
        self._parent = ident
        return json.dumps(record).encode() + b"\n"

    def turn(self) -> Iterator[bytes]:
        """Yields the records of a turn."""
        yield self._record("user", self._sentence(6, 60))
        for _ in range(self.random.randrange(4, 40)):
            ident = f"toolu_{self.random.getrandbits(96):024x}"
            call = {
                "file_path": f"/home/ann/project/src/m{self.random.randrange(400)}.py",
                "old_string": self._lines(1, 8),
                "new_string": self._lines(1, 12),
            }
            text = {"type": "text", "text": self._sentence(10, 80)}
            use = {"type": "tool_use", "id": ident, "name": "Edit", "input": call}
            yield self._record("assistant", [text, use])
            output = f"{self._lines(5, 120)}\n{self.random.getrandbits(64):x}"
            result = {"tool_use_id": ident, "type": "tool_result", "content": output}
            twice = (
                {"stdout": output} if self.random.random() < 0.5 else {"type": "text"}
            )
            yield self._record("user", [result], toolUseResult=twice)
        yield self._record("assistant", [{"type": "text", "text": self._lines(5, 30)}])


def made(top: Path, talk: Talk, size: int) -> tuple[Workspace, int, int]:
    """Makes the repository; returns it with the bytes of talk, and the checkpoints."""
    subprocess.run(["git", "init", "-q", top], check=True)
    (top / "a.py").write_text("x = 1\n")
    workspace = open_workspace(top)
    first = save(workspace, Draft(note="start")).checkpoint
    files = FilesState(first.files_oid)
    total = count = 0
    with mock.patch.object(os, "fsync"):
        while total < size:
            data = b"".join(talk.turn())
            total += len(data)
            with transaction(workspace.repository) as opened:
                records = NewRecords(
                    data, whole=False, kind="claude-code", source="main"
                )
                note = f"turn {count}"
                draft = Draft("turn-end", files, note, records=(records,))
                session = f"claude-code-{count // TURNS}"
                append_checkpoint(workspace.store, opened, session, "main", draft)
            count += 1
            if count % 100 == 0:
                consolidate(workspace.repository)
    return workspace, total, count


def compressed(workspace: Workspace) -> int:
    """Returns what the segments of the conversations take in git's packs."""
    git = workspace.repository.git
    listed = git("rev-list", "--objects", "--glob=refs/gitcp/s/*").splitlines()
    segments = {
        line.split(b" ", 1)[0]
        for line in listed
        if b".gitcp/log/conversation/" in line and line.endswith(b".jsonl")
    }
    data = b"\n".join([*sorted(segments), b""])
    sizes = git("cat-file", "--batch-check=%(objectsize:disk)", data=data)
    return sum(map(int, sizes.split()))


def timed(runs: int, call: Callable[[], object]) -> tuple[float, float]:
    """Returns the median and the longest time in milliseconds; one run before warms it."""
    call()
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        call()
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took), max(took)


def command(top: Path, *words: str) -> Callable[[], object]:
    """Returns what runs gitcp in a process of its own."""
    line = [sys.executable, "-m", "gitcp", *words]
    return lambda: subprocess.run(line, cwd=top, check=True, capture_output=True)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--in", dest="place", default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.place) as place:
        top = Path(place, "project")
        began = time.perf_counter()
        workspace, total, count = made(
            top, Talk(given.seed), given.megabytes * 1_000_000
        )
        print(
            f"{total:,} bytes of talk in {count:,} checkpoints,"
            f" made in {time.perf_counter() - began:.0f} s",
            flush=True,
        )
        filters = Filters(frozenset(PLACES), everything=False)
        saves = timed(given.runs * 3, command(top, "save", "--allow-empty"))
        began = time.perf_counter()
        search(workspace, Query.parse(("first",)), filters)
        took = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        index = search_files.index_of(workspace.repository).stat().st_size
        talk = compressed(workspace)
        print(f"index built in {took:.1f} s, with at most {peak:.0f} MiB")
        print(
            f"index {index:,}; compressed talk {talk:,}; ratio {index / talk:.2f}",
            flush=True,
        )
        for name, words in QUERIES:
            query = Query.parse((words,))
            median, longest = timed(
                given.runs, lambda query=query: search(workspace, query, filters)
            )
            found = len(search(workspace, query, filters).hits)
            whole, most = timed(
                given.runs, command(top, "search", "--json", "--", words)
            )
            print(
                f"{name:26} {words!r:24} {found:3} hits  in the process {median:6.1f}"
                f" (max {longest:.1f}) ms  whole command {whole:6.1f} (max {most:.1f}) ms",
                flush=True,
            )
        for words in (("--version",), ("log", "-n", "1")):
            median, longest = timed(given.runs, command(top, *words))
            print(f"gitcp {' '.join(words)}: {median:.1f} (max {longest:.1f}) ms")
        after = timed(given.runs * 3, command(top, "save", "--allow-empty"))
        print(
            f"save before there was an index {saves[0]:.1f} ms, with one {after[0]:.1f} ms"
        )


if __name__ == "__main__":
    main()
