"""A bare repository on this machine, clones of it, and sessions in them."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.gitrepo import Entry, git, make_repo, write_files
from tests.support.inprocess import ok
from tests.support.templates import copied

MESSAGES = b'{"role":"user","content":"Add VAT."}\n'
PROJECT: dict[str, Entry] = {"a.py": b"one\n", "b.bin": b"\x00\r\n"}


def make_hub(base: Path) -> Path:
    """A bare repository with the first commit of a project."""
    seed = make_repo(base / "seed", PROJECT)
    path = base / "hub.git"
    path.mkdir()
    source = copied(path, "hub", partial(_clone, seed, "--bare"))
    if source is not None:
        _hubs.add(source)
        _comes_from(seed, path / "config")
    return path


def clone(hub: Path, name: str) -> Path:
    """A clone beside the hub; while the hub is as `make_hub` left it, a copy of one."""
    path = hub.parent / name
    path.mkdir()
    if not any(_same(hub, source) for source in _hubs):
        _clone(hub, "--no-local", path)
        return path
    copied(path, "clone", partial(_clone, hub, "--no-local"))
    _comes_from(hub, path / ".git" / "config", *(path / ".git" / "logs").rglob("*"))
    return path


# The templates of `make_hub`.
_hubs: set[Path] = set()
_COMES_FROM = re.compile(rb"((?:\turl = |\tclone: from ))/[^\n]*")


def _clone(source: Path, how: str, path: Path) -> None:
    # Without --no-local objects would be copied that no ref needs.
    git(path, "clone", "-q", how, source, path)
    for hooks in (path / "hooks", path / ".git" / "hooks"):
        for sample in hooks.glob("*.sample"):
            sample.unlink()


def _comes_from(source: Path, *files: Path) -> None:
    """Puts the path of the real source into files that name the template's."""
    there = os.fsencode(source)
    for file in files:
        if file.is_file():
            raw = file.read_bytes()
            file.write_bytes(_COMES_FROM.sub(lambda found: found[1] + there, raw))


def _same(hub: Path, source: Path) -> bool:
    """Whether a hub is still what was copied from a template."""
    if _names(hub) != _names(source):
        return False
    # With reftable the names of tables, which are random, say it.
    for name in ("HEAD", "packed-refs", "config"):
        if not (source / name).exists():
            continue
        raw = [_COMES_FROM.sub(b"", (top / name).read_bytes()) for top in (hub, source)]
        if raw[0] != raw[1]:
            return False
    return True


def _names(top: Path) -> list[str]:
    return sorted(path.relative_to(top).as_posix() for path in top.rglob("*"))


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
