"""What looking costs in a repository with many checkpoints: `log`, `status`, `show`, a dry run.

    python bench/timeline.py [--sessions 500] [--turns 10] [--files 1000] [--runs 7]

Each session has turns of two checkpoints. They are appended to the store without a scan of the
files, and without syncs; what is measured are whole processes, one after the other.
"""

import argparse
import json
import os
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
from gitcp.store.append import append_checkpoint
from gitcp.store.draft import Draft, FilesState, NewRecords

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--version",),
    ("log",),
    ("status",),
    ("show",),
    ("show", "#5"),
    ("restore", "#5", "--dry-run"),
    ("log", "--json"),
)


def made(top: Path, sessions: int, turns: int, files: int) -> Workspace:
    for number in range(files):
        path = top / f"d{number % 20}" / f"f{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{number}\n")
    subprocess.run(["git", "init", "-q", top], check=True)
    workspace = open_workspace(top)
    first = save(workspace, Draft(note="start")).checkpoint
    with mock.patch.object(os, "fsync"):
        for session in range(sessions):
            for number in range(2 * turns):
                text = f"ask {session}.{number // 2}"
                message = {"role": "user", "content": text}
                record = {"type": "user", "uuid": f"{session}-{number}"}
                line = json.dumps({**record, "message": message}).encode() + b"\n"
                with transaction(workspace.repository) as opened:
                    blob = opened.add_blob(f"{session}.{number}\n".encode())
                    changes = {b"d1/changed": tree.Entry(tree.FILE, blob)}
                    root = tree.edit(
                        first.files_oid, changes, opened.tree, opened.add_tree
                    )
                    draft = Draft(
                        ("turn-start", "turn-end")[number % 2],
                        files=FilesState(root),
                        note=text,
                        records=(
                            NewRecords(
                                line,
                                whole=False,
                                kind="claude-code",
                                source=f"claude-code-{session}",
                                agent_session=f"id-{session}",
                            ),
                        ),
                        allow_empty=True,
                        bases=(first.raw.tree,),
                    )
                    name = f"claude-code-{session:04d}"
                    append_checkpoint(workspace.store, opened, name, "main", draft)
            consolidate(workspace.repository)
    return workspace


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=7)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        made(Path(directory), given.sessions, given.turns, given.files)
        took: dict[tuple[str, ...], list[float]] = {words: [] for words in COMMANDS}
        for _ in range(given.runs):
            for words in COMMANDS:
                start = time.perf_counter()
                subprocess.run(
                    [sys.executable, "-m", "gitcp", *words],
                    cwd=directory,
                    check=True,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                took[words].append(time.perf_counter() - start)
    for words, times in took.items():
        print(f"{' '.join(words):<28} {statistics.median(times):6.2f} s")


if __name__ == "__main__":
    main()
