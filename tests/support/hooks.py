"""git with gitcp in its hooks, and what has become of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gitcp.git.discover import discover
from gitcp.githooks import events
from tests.support.gitrepo import gitcp_environment, write_files

NAMES = (
    "post-commit",
    "post-checkout",
    "post-merge",
    "post-rewrite",
    "pre-push",
    "prepare-commit-msg",
    "commit-msg",
)


def install(repo: Path, program: Path | None = None) -> Path:
    """Joins the hooks of a repository; they start `program`, or else this gitcp."""
    report = events.install(discover(repo))
    runner = report.directory / "gitcp-hook"
    start(runner, program or gitcp_program(repo.parent))
    return report.directory


def start(runner: Path, program: Path) -> None:
    """Makes the script beside the hooks start another program."""
    raw = events.runner().decode()
    for word in events.program()[:1]:
        raw = raw.replace(f"[ ! -x {word} ]", f"[ ! -x {program} ]")
    words = " ".join(events.program())
    raw = raw.replace(f"exec {words} ", f"exec {program} ")
    assert str(program) in raw
    runner.write_text(raw)


def gitcp_program(directory: Path) -> Path:
    """A program that starts the gitcp that is tested, whatever is installed."""
    path = directory / "gitcp-under-test"
    if not path.exists():
        home = gitcp_environment()["PYTHONPATH"]
        program(
            path,
            f'PYTHONPATH={home} exec {sys.executable} -P -m gitcp "$@"',
        )
    return path


def program(path: Path, body: str) -> Path:
    """Writes an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def log(repo: Path) -> str:
    """What the hooks wrote down."""
    path = repo / ".git" / "gitcp" / "hooks.log"
    return path.read_text("utf-8") if path.exists() else ""


def change(repo: Path, text: bytes, name: str = "README.md") -> None:
    """Changes a file."""
    write_files(repo, {name: text})


def contents(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and bytes of all there is below a directory."""
    found = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            data = os.fsencode(path.readlink())
        else:
            data = path.read_bytes() if path.is_file() else b""
        found[path.relative_to(directory).as_posix()] = (status.st_mode, data)
    return found
