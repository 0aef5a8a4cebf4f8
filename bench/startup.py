"""Start-up, `log` in a long history, a long conversation, and its disk.

python bench/startup.py --gitcp VENV/bin/gitcp
"""

import argparse
import json
import os
import random
import shutil
import statistics
import tempfile
import time
import zlib
from pathlib import Path

from generate import Copy, copies, make
from measure import Case, in_turn, run, table

_SAVES = 1_000
_TOTAL = 10_000_000
_WORDS = [
    "".join(random.Random(seed).choices("etaoinshrdlucmfw", k=2 + seed % 8))
    for seed in range(4_000)
]


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--skip-conversation", action="store_true")
    given = parser.parse_args()
    gitcp = shutil.which(given.gitcp) or given.gitcp
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch, "project")
        make(top, 300)
        start_up(gitcp, top, given.rounds)
        history(gitcp, Path(scratch, "history"), 10_000, given.rounds)
        if not given.skip_conversation:
            conversation(gitcp, top, Path(scratch), given.rounds)


def start_up(gitcp: str, top: Path, rounds: int) -> None:
    """Times what happens before any work."""
    python = str(Path(gitcp).with_name("python"))
    cases = [
        Case("python -c pass", lambda: run([python, "-c", "pass"], top)),
        Case("gitcp --version", lambda: run([gitcp, "--version"], top)),
    ]
    table("--version (bar 0.06 s)", in_turn(cases, rounds), "python -c pass")


def history(gitcp: str, top: Path, count: int, rounds: int) -> None:
    """Times `log` where there are very many checkpoints, all made like the first."""
    make(top, 300)
    run([gitcp, "save", "-m", "the first"], top)
    ref = "refs/gitcp/s/main/main"
    copies(top, "main", (Copy("main", seq) for seq in range(2, count + 1)))
    cases = [
        Case("git log -n 20", lambda: run(["git", "log", "-n", "20", ref], top)),
        Case("gitcp log -n 20", lambda: run([gitcp, "log", "-n", "20"], top)),
    ]
    table(
        f"log -n 20, {count:,} checkpoints (bar 0.15 s)",
        in_turn(cases, rounds),
        "git log -n 20",
    )


def conversation(gitcp: str, top: Path, scratch: Path, rounds: int) -> None:
    """Saves a conversation a thousand times, and compares late saves with early ones."""
    chance = random.Random(2)
    before = _disk(top / ".git")
    young = scratch / "young"
    raw = b""
    spent = []
    for number in range(1, _SAVES):
        more = _messages(chance, _TOTAL // _SAVES)
        raw += more
        (scratch / "more.jsonl").write_bytes(more)
        began = time.perf_counter()
        run([gitcp, "save", "--append", str(scratch / "more.jsonl")], top)
        spent.append(time.perf_counter() - began)
        if number == 9:
            shutil.copytree(top, young, symlinks=True)
            (scratch / "young.jsonl").write_bytes(raw)
            # A copied file is new to a scan: let it have that behind it.
            run([gitcp, "save"], young)
    used = _disk(top / ".git") - before
    (scratch / "old.jsonl").write_bytes(raw)
    packed = len(zlib.compress(raw))
    bar = 1.5 * packed + 3_000 * _SAVES
    print(f"\n### {_SAVES - 1} saves of a conversation of {len(raw) / 1e6:.1f} MB\n")
    print(f"* compressed in one piece: {packed / 1e6:.2f} MB")
    print(f"* disk, before any gc: {used / 1e6:.2f} MB (bar {bar / 1e6:.2f} MB)")
    for first in (0, 100, 450, 899):
        part = spent[first : first + 100]
        print(
            f"* saves {first + 1} to {first + len(part)}: median"
            f" {statistics.median(part):.3f} s, mean {statistics.mean(part):.3f} s,"
            f" longest {max(part):.3f} s"
        )
    compare(gitcp, young, top, scratch, rounds)


def compare(gitcp: str, young: Path, old: Path, scratch: Path, rounds: int) -> None:
    """Times saves into a young and an old session in turn, each 10 KB longer."""
    chance = random.Random(4)
    more = scratch / "more.jsonl"
    for option, title in (
        ("--append", "only what is new"),
        ("--transcript", "an agent's whole file"),
        ("--messages", "the whole conversation"),
    ):

        def case(project: Path, name: str, text: Path, option: str = option) -> Case:
            def prepare() -> None:
                lines = _messages(chance, _TOTAL // _SAVES)
                more.write_bytes(lines)
                with text.open("ab") as file:
                    file.write(lines)

            source = more if option == "--append" else text

            def save() -> None:
                run([gitcp, "save", option, str(source)], project)

            prepare()
            save()
            return Case(name, save, prepare)

        cases = [
            case(young, "save number 10", scratch / "young.jsonl"),
            case(old, f"save number {_SAVES:,}", scratch / "old.jsonl"),
        ]
        table(
            f"late against early, {option}: {title} (bar 1.2 x)",
            in_turn(cases, rounds),
            "save number 10",
        )


def _messages(chance: random.Random, size: int) -> bytes:
    lines = b""
    while len(lines) < size:
        text = " ".join(chance.choices(_WORDS, k=150))
        role = chance.choice(["user", "assistant"])
        lines += json.dumps({"role": role, "content": text}).encode() + b"\n"
    return lines


def _disk(directory: Path) -> int:
    total = 0
    for where, _, names in os.walk(directory):
        for name in names:
            total += os.lstat(Path(where, name)).st_size
    return total


if __name__ == "__main__":
    main()
