"""SHA-1 and SHA-256, refs in files and in tables: the same work, in turns.

    python bench/kinds.py --gitcp /tmp/installed/bin/gitcp

Kinds that the git on PATH cannot make are left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

KINDS = (
    ("sha1", "files"),
    ("sha256", "files"),
    ("sha1", "reftable"),
    ("sha256", "reftable"),
)
IDENT = "11111111-1111-1111-1111-111111111111"
CHANGED = 3


class Project:
    """A project of one kind, with a client's transcript beside it."""

    def __init__(self, gitcp: str, top: Path, form: str, storage: str) -> None:
        self._gitcp = gitcp
        self.top = top
        self.name = f"{form}, {storage}"
        how = [f"--object-format={form}"]
        how += [f"--ref-format={storage}"] if storage != "files" else []
        self._run("git", "init", "-q", *how, str(top), cwd=top.parent)

    def fill(self, files: int) -> None:
        """Makes and commits the files, and installs the hook."""
        for number in range(files):
            path = self.path(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{number}\n" * 60)
        self._run("git", "add", ".")
        who = ("-c", "user.name=a", "-c", "user.email=a@example.invalid")
        self._run("git", *who, "commit", "-q", "-m", "first")
        self._run(self._gitcp, "save", "-s", "w")
        self._run(self._gitcp, "install", "claude-code", "--scope", "project")
        settings = json.loads((self.top / ".claude" / "settings.json").read_text())
        self._hook = settings["hooks"]["Stop"][0]["hooks"][0]["command"]
        self._transcript = self.top.with_suffix(".jsonl")
        self._say("user", "begin")

    def path(self, number: int) -> Path:
        """Returns the path of a file."""
        return self.top / f"d{number % 40}" / f"e{number % 7}" / f"f{number}"

    def change(self, round_: str) -> None:
        """Gives a few files new content."""
        for number in range(CHANGED):
            self.path(number).write_text(f"{round_} {number}\n")
        self._say("assistant", "done " * 60)

    def save(self) -> None:
        """Saves by hand."""
        self._run(self._gitcp, "save", "-s", "w")

    def hook(self) -> None:
        """Ends a turn as the client does."""
        event = {
            "hook_event_name": "Stop",
            "session_id": IDENT,
            "transcript_path": str(self._transcript),
            "cwd": str(self.top),
        }
        self._run("/bin/sh", "-c", self._hook, data=json.dumps(event).encode())

    def restore(self) -> None:
        """Brings the first state back."""
        self._run(self._gitcp, "restore", "-y", "w/main:1")

    def _say(self, who: str, text: str) -> None:
        record = {
            "type": who,
            "sessionId": IDENT,
            "uuid": os.urandom(8).hex(),
            "message": {"role": who, "content": text},
        }
        with self._transcript.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def _run(self, *args: str, cwd: Path | None = None, data: bytes = b"") -> None:
        subprocess.run(
            args, cwd=cwd or self.top, input=data, check=True, capture_output=True
        )


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=12)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        projects = []
        for form, storage in KINDS:
            top = Path(scratch, f"{form}-{storage}")
            try:
                projects.append(Project(given.gitcp, top, form, storage))
            except subprocess.CalledProcessError:
                print(f"git cannot make {form} with {storage}")
        for project in projects:
            project.fill(given.files)
        _compare(projects, given.rounds)


def _compare(projects: list[Project], rounds: int) -> None:
    times: dict[str, dict[str, list[float]]] = {}
    for number in range(rounds):
        for project in projects:
            for case in ("save", "hook", "restore"):
                project.change(f"{number} {case}")
                before = time.perf_counter()
                getattr(project, case)()
                taken = (time.perf_counter() - before) * 1000
                times.setdefault(case, {}).setdefault(project.name, []).append(taken)
    print("| case |" + "".join(f" {project.name} |" for project in projects))
    print("|---|" + "---|" * len(projects))
    for case, found in times.items():
        first = statistics.median(found[projects[0].name])
        cells = []
        for project in projects:
            median = statistics.median(found[project.name])
            cells.append(f"{median:.0f} ms ({median / first:.2f})")
        print(f"| {case} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
