"""How often `gitcp why` is right, and how long it takes: a history whose writers are known.

    python bench/why.py [--turns 1000] [--lines 2000] [--seed N] [--runs 5]

Turns of an agent and edits by hand change a file of so many lines in blocks; one line in ten
is one that occurs many times. The file is renamed after a third of the turns. There is a commit
after every tenth; after half of the turns all commits so far are rebased: onto another one,
every third amended, every other two squashed. What each change added is noted, and then
asked for.

The oracle counts a line as new where its text is: a block that is written again may have an
equal line where it had one before, mostly `}`, and that is the line that was there. Contents
are all that is stored, and tell no other story. The last row counts such lines as new ones.
"""

import argparse
import difflib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from gitcp.checkpoints.save import save
from gitcp.format import tree
from gitcp.git.consolidate import consolidate
from gitcp.git.transaction import transaction
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.store.append import append_checkpoint
from gitcp.store.draft import Draft, FilesState, NewRecords

NAME = "story.py"
WAS = "tale.py"
SESSION = "claude-code-bench"
COMMITTED = 10


class Known(NamedTuple):
    """A line, and the number of the checkpoint that it first appeared in.

    `kept` is that of the line in whose place an equal one was written.
    """

    text: str
    number: int
    kept: int


class Story:
    """A file as it changes; each line knows when it came."""

    def __init__(self, seed: int, lines: int) -> None:
        self.random = random.Random(seed)
        self.made = 0
        self.known = [Known(self._text(), 1, 1) for _ in range(lines)]
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
            new = [self._text() for _ in range(self.random.randrange(0, 7))]
            old = self.known[at : at + gone]
            self.known[at : at + gone] = written(old, new, number)

    @property
    def content(self) -> bytes:
        return "".join(f"{known.text}\n" for known in self.known).encode()


def written(old: list[Known], new: list[str], number: int) -> list[Known]:
    """Returns the lines of a block that was written in place of another."""
    kept = {}
    texts = [known.text for known in old]
    matcher = difflib.SequenceMatcher(None, texts, new, autojunk=False)
    for start, at, length in matcher.get_matching_blocks():
        for step in range(length):
            kept[at + step] = old[start + step].kept
    return [Known(text, number, kept.get(at, number)) for at, text in enumerate(new)]


class Commits:
    """The project's own commits: of each, the number of the checkpoint it was made at."""

    def __init__(self, top: Path) -> None:
        self._top = top
        self.made: list[tuple[str, int]] = []

    def _git(self, *args: str, given: str = "") -> str:
        who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.invalid")
        done = subprocess.run(
            ["git", *who, *args],
            cwd=self._top,
            check=True,
            capture_output=True,
            input=given.encode(),
        )
        return done.stdout.decode().strip()

    def tree_of(self, blob: bytes, name: str) -> str:
        """Makes a tree with one file."""
        return self._git("mktree", given=f"100644 blob {blob.hex()}\t{name}\n")

    def add(self, tree_oid: str, number: int, message: str = "work") -> None:
        """Makes a commit on top of the others."""
        parents = ("-p", self.made[-1][0]) if self.made else ()
        made = self._git("commit-tree", tree_oid, *parents, "-m", message)
        self._git("update-ref", "HEAD", made)
        self.made.append((made, number))

    def rebase(self) -> None:
        """Makes all again on top of another one; some are amended, some squashed."""
        before, self.made = self.made, []
        empty = self._git("mktree")
        self.add(empty, 0, "upstream")
        for at, (commit, number) in enumerate(before):
            if at % 4 == 1:
                # Squashed into the next one.
                continue
            message = "amended" if at % 3 == 0 else "work"
            self.add(self._git("rev-parse", f"{commit}^{{tree}}"), number, message)

    def first_with(self, number: int) -> str | None:
        """Returns the commit in which a line came that a checkpoint has first."""
        return next((commit for commit, upto in self.made if upto >= number), None)


def made(top: Path, story: Story, turns: int) -> tuple[Workspace, Commits]:
    """Makes the repository: before each turn perhaps an edit by hand, and then its own."""
    subprocess.run(["git", "init", "-q", top], check=True)
    (top / WAS).write_bytes(story.content)
    workspace = open_workspace(top)
    first = save(workspace, Draft(note="start")).checkpoint
    commits = Commits(top)
    with mock.patch.object(os, "fsync"):
        for turn in range(turns):
            name = WAS if turn < turns // 3 else NAME
            for number, trigger in enumerate(("turn-start", "turn-end")):
                if trigger == "turn-end" or story.random.random() < 0.5:
                    story.change(2 * turn + number + 2)
                record = {"type": "user", "uuid": f"{turn}-{number}"}
                message = {"role": "user", "content": f"ask {turn}"}
                line = json.dumps({**record, "message": message}).encode() + b"\n"
                with transaction(workspace.repository) as opened:
                    blob = opened.add_blob(story.content)
                    entries = {name.encode(): tree.Entry(tree.FILE, blob)}
                    root = opened.add_tree(entries)
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
                    append_checkpoint(workspace.store, opened, SESSION, "main", draft)
            if turn % COMMITTED == 0:
                commits.add(commits.tree_of(blob, name), 2 * turn + 3)
            if turn == turns // 2:
                commits.rebase()
        consolidate(workspace.repository)
    (top / WAS).unlink()
    (top / NAME).write_bytes(story.content)
    return workspace, commits


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
        _, commits = made(Path(directory), story, given.turns)
        took = []
        for _ in range(given.runs):
            seconds, lines = asked(Path(directory))
            took.append(seconds)
    known = story.known
    assert [line["text"] for line in lines] == [each.text for each in known]
    pairs = list(zip(lines, known, strict=True))
    counts = {
        "number": sum(line["number"] == each.kept for line, each in pairs),
        "writer": sum(
            line["by"]
            == ("unknown" if each.kept == 1 else ("hand", "agent")[each.kept % 2])
            for line, each in pairs
        ),
        "commit": sum(
            line["commit"] == commits.first_with(each.kept) for line, each in pairs
        ),
        "number, equal lines of a block as new": sum(
            line["number"] == each.number for line, each in pairs
        ),
    }
    for what, right in counts.items():
        print(f"{what}: {right} of {len(known)} lines right ({right / len(known):.2%})")
    print(f"median {statistics.median(took):.2f} s, fastest {min(took):.2f}")


if __name__ == "__main__":
    main()
