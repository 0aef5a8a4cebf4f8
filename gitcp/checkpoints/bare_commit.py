"""Finds a checkpoint by commit id in a damaged repository, from the objects alone.

No ref, no HEAD, no configuration, no lock and none of gitcp's own files is needed, so
any of these may be damaged.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple
from weakref import finalize

from gitcp.errors import CorruptError, GitcpError
from gitcp.format.checkpoint import Manifest
from gitcp.format.commit import trailers_of
from gitcp.format.oid import PATTERN, SHA1, form_of_hex
from gitcp.git.aside import borrow, make_bare
from gitcp.git.objects import Objects
from gitcp.git.own_file import read_regular
from gitcp.git.repository import Repository, open_objects
from gitcp.store.allowance import Allowance
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.contents import Contents
from gitcp.store.origin import ELSEWHERE, Origin, Seals

_COMMIT = re.compile(PATTERN)
_LINK = "gitdir: "


class BareCheckpoint(NamedTuple):
    """A checkpoint, and the top of the work tree that it was requested in."""

    checkpoint: Checkpoint
    top: Path


class _CarefulSeals(Seals):
    """Counts a checkpoint as made elsewhere unless it is known to be made here."""

    def of(self, contents: Contents, manifest: Manifest) -> Origin:
        try:
            return super().of(contents, manifest)
        except (GitcpError, OSError, ValueError):
            return Origin(ELSEWHERE, ELSEWHERE, here=False)


def find(directory: str | os.PathLike[str], commit: str) -> BareCheckpoint | None:
    """Returns the checkpoint in a commit; None if there is none that can be read.

    `commit` has 40 digits, or 64 with SHA-256; any other text is not an id.
    """
    if _COMMIT.fullmatch(commit) is None:
        return None
    project = _place(Path(os.path.realpath(directory)))
    if project is None:
        return None
    top, git_dir = project
    repository = Repository(
        git_dir=git_dir, common_dir=_common(git_dir), form=form_of_hex(commit)
    )
    oid = bytes.fromhex(commit)
    if repository.form is not SHA1:
        vars(repository)["objects"] = _beside(repository)
    try:
        raw = repository.objects.commit(oid)
        trailers = trailers_of(raw)
        if trailers is None:
            return None
        seals = _CarefulSeals(repository)
        checkpoint = Checkpoint(
            repository.objects,
            oid,
            raw,
            trailers,
            seals,
            Allowance(repository, limit=None),
        )
        _ = checkpoint.manifest
    except CorruptError:
        # The regular lookup reports what is wrong.
        return None
    return BareCheckpoint(checkpoint, top)


def _beside(repository: Repository) -> Objects:
    """Returns the objects of a git directory that git itself may not open."""
    scratch = Path(tempfile.mkdtemp(prefix="gitcp-"))
    finalize(repository, shutil.rmtree, scratch, ignore_errors=True)
    make_bare(scratch, repository.form)
    borrow(scratch, repository.common_dir.resolve() / "objects")
    return open_objects(scratch, repository.form)


def _place(directory: Path) -> tuple[Path, Path] | None:
    """Returns the top of a work tree and its git directory, without asking git."""
    for top in (directory, *directory.parents):
        there = top / ".git"
        if (there / "objects").is_dir() or (there / "commondir").is_file():
            return top, there
        try:
            text = os.fsdecode(read_regular(there))
        except OSError:
            continue
        if text.startswith(_LINK):
            return top, top / text.removeprefix(_LINK).rstrip("\n")
    return None


def _common(git_dir: Path) -> Path:
    """Returns the directory with the objects; a linked work tree shares that of another one."""
    try:
        text = os.fsdecode(read_regular(git_dir / "commondir"))
    except OSError:
        return git_dir
    return git_dir / text.rstrip("\n")
