"""How often `gitcp why` is right, and how long it takes: a history whose writers are known.

    python bench/why.py [--turns 1000] [--lines 2000] [--seed N] [--runs 5]

Turns of an agent and edits by hand change a file of so many lines in blocks; one line in ten
is one that occurs many times. What each change added is noted, and then asked for.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from gitcp.checkpoints.save import save
from gitcp.format import tree
from gitcp.git.consolidate import consolidate
from gitcp.git.transaction import transaction
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.store.draft import Draft, FilesState, NewRecords

NAME = "story.py"
SESSION = "claude-code-bench"

# A line, and the number of the checkpoint that it first appeared in.
Known = list[tuple[str, int]]


class Story:
    """A file as it changes; each line knows when it came."""

    def __init__(self, seed: int, lines: int) -> None:
        self.random = random.Random(seed)
        self.made = 0
        self.known: Known = [(self._text(), 1) for _ in range(lines)]
        self.size = lines

    def _text(self) -> str:
        self.made += 1
        if self.random.random() < 0.1:
            return self.random.choice(("", "    }", "    return None"))
        return f"    value_{self.made} = compute({self.random.randrange(1_000_000)})"

    def change(self, number: int) -> None:
        """Replaces, adds or deletes a few blocks of lines."""
        for _ in range(self.random.randrange(1, 4)):
            at = self.random.randrange(len(self.known))
            gone = self.random.randrange(0, 6)
            if len(self.known) > self.size:
                gone += 3
            new = [(self._text(), number) for _ in range(self.random.randrange(0, 7))]
            self.known[at : at + gone] = new

    @property
    def content(self) -> bytes:
        return "".join(f"{text}\n" for text, _ in self.known).encode()


def made(top: Path, story: Story, turns: int) -> Workspace:
    """Makes the repository: before each turn perhaps an edit by hand, and then its own."""
    subprocess.run(["git", "init", "-q", top], check=True)
    (top / NAME).write_bytes(story.content)
    workspace = open_workspace(top)
    first = save(workspace, Draft(note="start")).checkpoint
    with mock.patch.object(os, "fsync"):
        for turn in range(turns):
            for number, trigger in enumerate(("turn-start", "turn-end")):
                if trigger == "turn-end" or story.random.random() < 0.5:
                    story.change(2 * turn + number + 2)
                record = {"type": "user", "uuid": f"{turn}-{number}"}
                message = {"role": "user", "content": f"ask {turn}"}
                line = json.dumps({**record, "message": message}).encode() + b"\n"
                with transaction(workspace.repository) as opened:
                    blob = opened.add_blob(story.content)
                    changes = {NAME.encode(): tree.Entry(tree.FILE, blob)}
                    root = tree.edit(
                        first.files_oid, changes, opened.tree, opened.add_tree
                    )
                    records = NewRecords(
                        line,
                        whole=False,
                        kind="claude-code",
                        source=SESSION,
                        agent_session="bench",
                    )
                    draft = Draft(
                        trigger,
                        files=FilesState(root),
                        note=f"ask {turn}",
                        records=(records,),
                        allow_empty=True,
                        bases=(first.raw.tree,),
                    )
                    workspace.store.append(opened, SESSION, "main", draft)
        consolidate(workspace.repository)
    (top / NAME).write_bytes(story.content)
    return workspace


def asked(top: Path) -> tuple[float, list[dict[str, object]]]:
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "gitcp", "why", NAME, "--json"],
        cwd=top,
        check=True,
        stdout=subprocess.PIPE,
    )
    return time.perf_counter() - start, json.loads(done.stdout)["lines"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    print(f"seed {given.seed}")
    with tempfile.TemporaryDirectory() as directory:
        story = Story(given.seed, given.lines)
        made(Path(directory), story, given.turns)
        took = []
        for _ in range(given.runs):
            seconds, lines = asked(Path(directory))
            took.append(seconds)
        assert [line["text"] for line in lines] == [text for text, _ in story.known]
        right = sum(
            line["number"] == number
            for line, (_, number) in zip(lines, story.known, strict=True)
        )
        writers = sum(
            line["by"] == ("unknown" if number == 1 else ("hand", "agent")[number % 2])
            for line, (_, number) in zip(lines, story.known, strict=True)
        )
    total = len(story.known)
    print(f"{total} lines: {right} with the right number ({right / total:.2%})")
    print(f"{writers} with the right writer ({writers / total:.2%})")
    print(f"median {statistics.median(took):.2f} s")


if __name__ == "__main__":
    main()
