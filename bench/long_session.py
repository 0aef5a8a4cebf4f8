"""A save with a transcript after 10,000 turns, against one after ten.

    python bench/long_session.py --gitcp VENV/bin/gitcp

Each turn adds some 10 KB to the transcript and a segment to the session. The turns before
those that are measured are saved in one process of the same installation.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from generate import make
from measure import SETTLE, Case, in_turn, run, table

_SESSION = "11111111-2222-4333-8444-555555555555"
_RECORD = (
    b'{"type":"user","sessionId":"%b","uuid":"%032x",'
    b'"message":{"role":"user","content":"%b"}}\n'
)
_WORDS = [
    "".join(random.Random(seed).choices("etaoinshrdlucmfw", k=2 + seed % 8)).encode()
    for seed in range(4_000)
]
# Run by the Python of the installation that is measured.
_TURNS = """
import pathlib, sys
from gitcp.checkpoints.save import save
from gitcp.project.workspace import open_workspace
from gitcp.store.draft import Draft, NewRecords
top, source, session = sys.argv[1:]
for name in sys.stdin:
    path = pathlib.Path(name.rstrip("\\n"))
    data = path.read_bytes()
    records = NewRecords(
        data, whole=False, kind="claude-code", source=source, agent_session=session
    )
    save(open_workspace(top), Draft("turn", records=(records,)), session="main", branch="main")
    path.unlink()
"""


def main() -> None:
    """Makes both sessions and compares them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    gitcp = shutil.which(given.gitcp) or given.gitcp
    chance = random.Random(3)
    with tempfile.TemporaryDirectory() as scratch:
        sessions = []
        for turns in (10, given.turns):
            top = Path(scratch, f"project{turns}")
            make(top, 300)
            transcript = Path(scratch, f"{turns}.jsonl")
            _grow(gitcp, top, transcript, turns, chance)
            sessions.append((f"after {turns:,} turns", top, transcript))
        cases = [_case(gitcp, *session, chance) for session in sessions]
        title = f"save --transcript, {given.turns:,} turns (bar 1.2 x)"
        table(title, in_turn(cases, given.rounds), cases[0].name)


def _grow(
    gitcp: str, top: Path, transcript: Path, turns: int, chance: random.Random
) -> None:
    python = Path(gitcp).with_name("python")
    words = [python, "-c", _TURNS, top, f"claude-code-{_SESSION}", _SESSION]
    saver = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)
    assert saver.stdin is not None
    with transcript.open("wb") as whole, tempfile.TemporaryDirectory() as parts:
        for number in range(turns):
            part = Path(parts, str(number))
            part.write_bytes(_turn(chance))
            whole.write(part.read_bytes())
            saver.stdin.write(f"{part}\n")
        saver.stdin.close()
        if saver.wait():
            sys.exit("the session could not be made")


def _case(
    gitcp: str, name: str, top: Path, transcript: Path, chance: random.Random
) -> Case:
    def prepare() -> None:
        with transcript.open("ab") as file:
            file.write(_turn(chance))

    def save() -> None:
        run([gitcp, "save", "--transcript", transcript], top)

    # The first one has no notes yet, and compares everything.
    for _ in range(2):
        prepare()
        save()
    run(["sleep", str(SETTLE)], top)
    return Case(name, save, prepare)


def _turn(chance: random.Random) -> bytes:
    lines = b""
    while len(lines) < 10_000:
        text = b" ".join(chance.choices(_WORDS, k=150))
        lines += _RECORD % (_SESSION.encode(), chance.getrandbits(128), text)
    return lines


if __name__ == "__main__":
    main()
