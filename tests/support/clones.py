"""A bare repository on this machine, clones of it, and sessions in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.gitrepo import Entry, git, make_repo, write_files
from tests.support.inprocess import ok

MESSAGES = b'{"role":"user","content":"Add VAT."}\n'
PROJECT: dict[str, Entry] = {"a.py": b"one\n", "b.bin": b"\x00\r\n"}


def make_hub(base: Path) -> Path:
    """A bare repository with the first commit of a project."""
    seed = make_repo(base / "seed", PROJECT)
    path = base / "hub.git"
    git(base, "clone", "-q", "--bare", seed, path)
    return path


def clone(hub: Path, name: str) -> Path:
    path = hub.parent / name
    # Without --no-local objects would be copied that no ref needs.
    git(hub.parent, "clone", "-q", "--no-local", hub, path)
    return path


def save(repo: Path, *args: str, **files: bytes) -> dict[str, Any]:
    """Saves with a conversation; `a_py=b"…"` writes a.py first."""
    write_files(repo, {name.replace("_", "."): data for name, data in files.items()})
    done: dict[str, Any] = ok(repo, "save", "--messages", "-", *args, input=MESSAGES)
    return done["checkpoint"]


def results(repo: Path, verb: str, *args: str) -> dict[str, tuple[str, str]]:
    """What push or pull made of each branch: the result, and the name it has there."""
    found = ok(repo, verb, *args)["branches"]
    return {
        f"{one['session']}/{one['branch']}": (one["result"], one["as"]) for one in found
    }


def refs(repo: Path) -> bytes:
    return git(repo, "for-each-ref")
