"""A generated project for machines without a large real one."""

import json
import random
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from measure import run

_WORDS = """
    int return static struct void const char if else for while unsigned long size
    buffer device driver kernel module probe remove lock free alloc error index
""".split()  # noqa: SIM905


def make(top: Path, files: int, *, short: bool = False) -> None:
    """Makes a committed git project of so many source files, the same each time.

    `short` ones are a twentieth as long: half a million fit into 3 GB.
    """
    chance = random.Random(1)
    mean = 12 if short else 250
    top.mkdir(parents=True)
    for number in range(files):
        path = top / f"part{number % 40}" / f"unit{number // 640}" / f"f{number}.c"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            " ".join(chance.choices(_WORDS, k=9))
            for _ in range(max(1, int(chance.expovariate(1 / mean))))
        ]
        path.write_text("\n".join(lines) + "\n")
    commit(top)


def commit(top: Path) -> None:
    """Makes a git repository of a directory, with one commit."""
    run(["git", "init", "-q"], top)
    run(["git", "add", "-A"], top)
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    # A gc in the background would be in the way of the one below.
    who += ["-c", "gc.auto=0", "-c", "maintenance.auto=false"]
    run(["git", *who, "commit", "-q", "-m", "the project"], top)
    run(["git", "gc", "-q"], top)


class Copy(NamedTuple):
    """Where a checkpoint is to stand: on `main` of a session, as which one of it."""

    session: str
    seq: int = 1


def copies(top: Path, session: str, wanted: Iterable[Copy]) -> None:
    """Makes checkpoints, thousands in a second, that are like the only one of a session.

    What follows on another one has to come after it.
    """
    like = f"refs/gitcp/s/{session}/main"
    message = run(["git", "log", "-1", "--format=%B", like], top)
    manifest = json.loads(run(["git", "show", f"{like}:.gitcp/checkpoint.json"], top))
    base = run(["git", "log", "-1", "--format=%P", like], top).strip()
    first = manifest["id"]
    feed = subprocess.Popen(
        ["git", "fast-import", "--quiet", "--force"], cwd=top, stdin=subprocess.PIPE
    )
    assert feed.stdin is not None
    begun = set()
    for number, (name, seq) in enumerate(wanted, 1):
        ident = f"{number:012x}"
        manifest.update(id=ident, session=name, seq=seq, note=f"{name} {seq}")
        text = message.replace(first, ident)
        text = text.replace(f"-Session: {session}\n", f"-Session: {name}\n")
        text = text.replace("-Seq: 1\n", f"-Seq: {seq}\n")
        body = json.dumps(manifest, separators=(",", ":"))
        ref = f"refs/gitcp/s/{name}/main"
        # It goes on by itself from what it has written to a ref.
        above = "" if ref in begun else base if seq == 1 else f"{ref}^0"
        parent = f"from {above}\n" if above else ""
        begun.add(ref)
        feed.stdin.write(
            f"commit {ref}\n"
            f"author gitcp <gitcp@localhost> {number} +0000\n"
            f"committer gitcp <gitcp@localhost> {number} +0000\n"
            f"data {len(text.encode())}\n{text}\n{parent}"
            f"M 100644 inline .gitcp/checkpoint.json\ndata {len(body)}\n{body}\n".encode()
        )
    feed.stdin.close()
    if feed.wait():
        sys.exit("git fast-import failed")
