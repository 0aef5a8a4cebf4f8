"""Damage to a repository's objects, as a power cut or a failing disk leaves it."""

from __future__ import annotations

import zlib
from pathlib import Path

from tests.support.gitrepo import git


def explode(repo: Path) -> None:
    """Makes every object loose."""
    packs = repo / ".git" / "objects" / "pack"
    for pack in list(packs.glob("*.pack")):
        raw = pack.read_bytes()
        for file in packs.glob(f"{pack.stem}.*"):
            file.unlink()
        git(repo, "unpack-objects", "-q", input=raw)


def loose(repo: Path, oid: str) -> Path:
    """Returns where a loose object lies."""
    return repo / ".git/objects" / oid[:2] / oid[2:]


def empty(repo: Path, oid: str) -> None:
    """Leaves an object as a power cut may."""
    loose(repo, oid).chmod(0o644)
    loose(repo, oid).write_bytes(b"")


def replace_blob(repo: Path, oid: str, content: bytes) -> None:
    """Puts other content in place of a blob."""
    loose(repo, oid).chmod(0o644)
    raw = b"blob %d\0" % len(content) + content
    loose(repo, oid).write_bytes(zlib.compress(raw))
