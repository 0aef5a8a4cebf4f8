"""`gitcp gc` while the user's own gc removes what a git of gitcp's is about to read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitcp.errors import GitFailedError
from gitcp.git.repository import Repository
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, invoke, ok

BUSY, FAILED = 11, 20


@pytest.fixture
def project(repo: Path) -> Path:
    for number in range(3):
        (repo / "file").write_text(str(number))
        ok(repo, "save")
    ok(repo, "prune", "--keep-last", "1", "-y")
    return repo


def failing(monkeypatch: pytest.MonkeyPatch, before: Callable[[], object]) -> None:
    """Makes the walk over all that is reached fail, after something has happened."""
    plumbing = Repository.plumbing

    def fail(self: Repository, *args: Any, **given: Any) -> bytes:
        if args[0] != "rev-list":
            return plumbing(self, *args, **given)
        before()
        raise GitFailedError("git rev-list failed: bad object", hint="look")

    monkeypatch.setattr(Repository, "plumbing", fail)


def test_a_loose_object_that_goes_meanwhile_is_no_failure(project, monkeypatch):
    (project / "other").write_text("in no pack")
    loose = git_line(project, "hash-object", "-w", "other")
    # Its directory may hold another one that the project needs.
    there = project / ".git" / "objects" / loose[:2] / loose[2:]
    failing(monkeypatch, lambda: there.unlink(missing_ok=True))
    done = invoke(project, "gc")
    assert (done.returncode, "meanwhile" in done.stderr.decode()) == (BUSY, True)
    monkeypatch.undo()
    ok(project, "gc")


def test_a_pack_of_gits_that_goes_meanwhile_is_no_failure(project, monkeypatch):
    git(project, "repack", "-q", "-d")
    packs = project / ".git" / "objects" / "pack"
    (theirs,) = [one for one in packs.glob("*.pack") if not _is_ours(project, one)]
    moved = theirs.with_suffix(".away")
    failing(monkeypatch, lambda: theirs.exists() and theirs.rename(moved))
    done = invoke(project, "gc")
    assert (done.returncode, "meanwhile" in done.stderr.decode()) == (BUSY, True)
    moved.rename(theirs)
    monkeypatch.undo()
    ok(project, "gc")


def _is_ours(project: Path, pack: Path) -> bool:
    return pack.stem in (project / ".git" / "gitcp" / "packs").read_text()


def test_what_fails_while_nothing_goes_is_a_failure(project, monkeypatch):
    failing(monkeypatch, lambda: None)
    assert "bad object" in fails(project, FAILED, "gc")


def test_a_directory_of_loose_objects_that_has_just_gone_is_passed_over(project):
    taken = {path.name for path in (project / ".git/objects").iterdir()}
    free = next(f"{at:02x}" for at in range(256) if f"{at:02x}" not in taken)
    # It is listed, and cannot be looked into.
    (project / ".git" / "objects" / free).symlink_to("nowhere")
    ok(project, "gc")
