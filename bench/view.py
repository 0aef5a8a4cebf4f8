"""How long `gitcp view` takes on a long session, how large its page is, and how soon it opens.

    python bench/view.py [--turns 1000] [--megabytes 10] [--runs 5] [--chromium /usr/bin/chromium]

A session of Claude Code is made: each turn has a prompt, calls of tools with their results, an
answer, and changes a few files. The words come from the package's own text, so that they
compress as text does. Each page is written by a process of its own; `cold` is the first one,
that looks for secrets in all of it, `warm` the next ones. Before them the scanner library of
the extra `secrets` is loaded once: on a machine where it never was, it compiles its rules. A
browser opens the page with an empty cache, if there is one: until the last of its turns can be
used.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import gitcp
from gitcp.checkpoints.save import save
from gitcp.format import tree
from gitcp.git.consolidate import consolidate
from gitcp.git.transaction import transaction
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.secrets.library import library
from gitcp.store.append import append_checkpoint
from gitcp.store.draft import Draft, FilesState, NewRecords

SESSION = "claude-code-bench"
_FILES = 40


class Words:
    """Text for prompts, answers, files: lines of the package's own source."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        top = Path(gitcp.__file__).parent
        text = "\n".join(path.read_text() for path in sorted(top.rglob("*.py")))
        self.lines = [line for line in text.split("\n") if line.strip()]

    def some(self, size: int) -> str:
        """Lines of about so many characters in all, from places of their own."""
        found: list[str] = []
        while size > 0:
            at = self.random.randrange(len(self.lines) - 12)
            part = self.lines[at : at + self.random.randrange(2, 12)]
            found += part
            size -= sum(map(len, part)) + len(part)
        return "\n".join(found)


def records(words: Words, turn: int, size: int) -> Iterator[dict[str, object]]:
    """The records of a turn, of about `size` bytes."""

    def record(kind: str, content: object) -> dict[str, object]:
        at = f"2026-11-01T{turn // 60 % 24:02}:{turn % 60:02}:00.000Z"
        ident = f"{turn:08x}-{words.random.randrange(1 << 48):012x}"
        message = {"role": kind, "content": content}
        return {"type": kind, "uuid": ident, "timestamp": at, "message": message}

    yield record("user", f"Turn {turn}: {words.some(120)}")
    left = size
    while left > 0:
        ident = f"toolu_{words.random.randrange(1 << 62):016x}"
        path = f"src/module{words.random.randrange(_FILES)}.py"
        call = {"type": "tool_use", "id": ident, "name": "Read"}
        yield record("assistant", [{**call, "input": {"file_path": path}}])
        output = words.some(min(left, 3000))
        answer = {"type": "tool_result", "tool_use_id": ident, "content": output}
        yield record("user", [answer])
        left -= len(output) + 600
    yield record("assistant", [{"type": "text", "text": words.some(400)}])


def made(top: Path, turns: int, size: int, seed: int) -> tuple[Workspace, bytes]:
    """Makes the repository; returns it and the whole transcript."""
    words = Words(seed)
    files = {f"src/module{n}.py": words.some(6000).split("\n") for n in range(_FILES)}
    (top / "src").mkdir()
    for name, lines in files.items():
        (top / name).write_text("\n".join(lines))
    subprocess.run(["git", "init", "-q", top], check=True)
    workspace = open_workspace(top)
    first = save(workspace, Draft(note="start")).checkpoint
    root, transcript = first.files_oid, b""
    with mock.patch.object(os, "fsync"):
        for turn in range(turns):
            told = b"".join(
                json.dumps(one).encode() + b"\n"
                for one in records(words, turn, size // turns)
            )
            transcript += told
            for trigger in ("turn-start", "turn-end"):
                with transaction(workspace.repository) as opened:
                    new: list[NewRecords] = []
                    if trigger == "turn-end":
                        changes = {}
                        for name in words.random.sample(sorted(files), 2):
                            lines = files[name]
                            at = words.random.randrange(len(lines))
                            lines[at : at + 3] = words.some(150).split("\n")
                            blob = opened.add_blob("\n".join(lines).encode())
                            changes[name.encode()] = tree.Entry(tree.FILE, blob)
                        root = tree.edit(root, changes, opened.tree, opened.add_tree)
                        new = [
                            NewRecords(
                                told,
                                whole=False,
                                kind="claude-code",
                                source=SESSION,
                                agent_session="bench",
                            )
                        ]
                    draft = Draft(
                        trigger,
                        files=FilesState(root),
                        note=f"Turn {turn}",
                        records=tuple(new),
                        allow_empty=True,
                        bases=(first.raw.tree,),
                    )
                    saved = append_checkpoint(
                        workspace.store, opened, SESSION, "main", draft
                    )
                root = saved.checkpoint.files_oid
            if turn % 100 == 99:
                consolidate(workspace.repository)
    return workspace, transcript


def library_loads() -> float | None:
    """Seconds until the scanner library has its rules; None without it."""
    found = library()
    if found is None:
        return None
    start = time.perf_counter()
    list(found(b"a text"))
    return time.perf_counter() - start


def browser_opens(program: str, page: Path) -> float:
    """Seconds until all of a page can be used, in a browser with nothing cached."""
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=options)
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.goto("about:blank")
        opened.goto(page.as_uri())
        opened.wait_for_selector("body[data-ready]")
        ready: float = opened.evaluate(
            "performance.getEntriesByName('ready')[0].startTime"
        )
        browser.close()
    return ready / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--megabytes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        top, page = Path(directory, "project"), Path(directory, "page.html")
        top.mkdir()
        size = int(given.megabytes * 1_000_000)
        _, transcript = made(top, given.turns, size, given.seed)
        loads = library_loads()
        if loads is not None:
            print(f"library loads       {loads:6.2f} s")
        took: list[float] = []
        spent: list[float] = []
        for _ in range(given.runs + 1):
            before, start = os.times(), time.perf_counter()
            words = [sys.executable, "-m", "gitcp", "view", "-o", str(page)]
            subprocess.run(words, cwd=top, check=True, capture_output=True)
            took.append(time.perf_counter() - start)
            after = os.times()
            spent.append(sum(after[2:4]) - sum(before[2:4]))
        zipped = len(gzip.compress(transcript, 6))
        limit = 1.5 * zipped + 100_000
        print(f"transcript          {len(transcript):12,} bytes, {zipped:,} in gzip")
        print(
            f"page                {page.stat().st_size:12,} bytes, limit {limit:,.0f}"
        )
        print(
            f"written, cold       {took[0]:6.2f} s ({spent[0]:.2f} s of processor time)"
        )
        print(
            f"written, warm       {statistics.median(took[1:]):6.2f} s"
            f" ({statistics.median(spent[1:]):.2f}), fastest {min(took[1:]):.2f}"
        )
        if Path(given.chromium).exists():
            opened = [browser_opens(given.chromium, page) for _ in range(given.runs)]
            print(
                f"opened              {statistics.median(opened):6.2f} s, fastest {min(opened):.2f}"
            )


if __name__ == "__main__":
    main()
