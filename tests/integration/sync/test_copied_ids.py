"""A stranger's checkpoint with the id of one's own: ids are in what was pushed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.checkpoints.selectors import select
from gitcp.project.workspace import Current, open_workspace
from gitcp.steps import observed
from gitcp.store.find_current import find_current
from tests.support.clones import save
from tests.support.forge import Forge, trailers
from tests.support.gitrepo import git, write_files
from tests.support.inprocess import ok


def forged(repo: Path, own: dict[str, Any], seq: int, parent: str) -> bytes:
    """Puts a checkpoint with an id and other files on a branch."""
    forge = Forge()
    message = trailers("s", "main", seq).replace(b"0123456789ab", own["id"].encode())
    made = forge.checkpoint(
        [(b"100644", b"a.py", forge.blob(b"evil\n"))],
        session="s",
        seq=seq,
        parent=bytes.fromhex(parent),
        message=message,
        id=own["id"],
    )
    forge.into(repo, {"refs/gitcp/s/s/main": made})
    return made


@pytest.fixture
def saved(bob: Path) -> list[dict[str, Any]]:
    return [
        save(bob, "-s", "s", "-m", str(number), a_py=b"own %d\n" % number)
        for number in (1, 2)
    ]


@pytest.mark.parametrize("how", ["command", "package", "undo", "fork"])
def test_ones_own_is_restored_and_not_the_one_with_its_id(bob, saved, how):
    if how == "undo":
        ok(bob, "restore", "1", "--yes")
        saved[0] = saved[1]
    tip = git(bob, "rev-parse", "refs/gitcp/s/s/main").decode().strip()
    seq = len(git(bob, "rev-list", tip, "--not", "HEAD").split())
    forged(bob / ".git", saved[0], seq + 1, tip)
    target = select(open_workspace(bob), "1")
    expected = b"own 1\n"
    if how == "command":
        ok(bob, "restore", "1", "--yes")
    elif how == "package":
        gitcp.open(bob).session("s").restore(target)
    elif how == "undo":
        ok(bob, "undo", "--yes")
        expected = b"own 2\n"
    else:
        ok(bob, "fork", "1", "side", "--yes")
    assert (bob / "a.py").read_bytes() == expected
    assert not ok(bob, "show", "last")["checkpoint"]["origin"]["files"]


def test_what_a_purge_made_of_ones_own_is_found_and_not_the_one_with_its_id(bob, saved):
    tip = saved[1]["commit"]
    forged(bob / ".git", saved[0], 3, tip)
    target = select(open_workspace(bob), "1")
    assert target.origin.here
    ok(bob, "purge", "--value-from-stdin", "--yes", input=b"own 1")
    current = find_current(open_workspace(bob).store, target)
    assert (current.seq, current.origin.here) == (1, True)
    assert current != target


@pytest.mark.parametrize("how", ["rollback", "undo"])
def test_the_last_one_made_here_is_not_the_one_with_its_id(bob, saved, how):
    if how == "undo":
        ok(bob, "restore", "1", "--yes")
        saved = [ok(bob, "show", "last")["checkpoint"]]
    tip = git(bob, "rev-parse", "refs/gitcp/s/s/main").decode().strip()
    forged(bob / ".git", saved[-1], saved[-1]["seq"] + 1, tip)
    if how == "rollback":
        write_files(bob, {"a.py": b"changed\n"})
    ok(bob, how, "--yes")
    assert (bob / "a.py").read_bytes() == b"own 2\n"


def test_a_step_goes_back_to_ones_own(bob, saved):
    """An interrupted step may have the files from before it brought back."""
    forged(bob / ".git", saved[0], 3, saved[1]["commit"])
    found = observed.find(open_workspace(bob), Current("s", "main"), saved[0]["id"])
    assert found.commit == saved[0]["commit"]


def test_a_prune_removes_what_it_names_and_not_what_has_its_id(bob, saved):
    """Of the same session, on another branch."""
    forge, tip = Forge(), None
    ids = [saved[0]["id"], saved[1]["id"], "f" * 12]
    for seq, ident in enumerate(ids, 1):
        message = trailers("s", "evil", seq).replace(b"0123456789ab", ident.encode())
        tip = forge.checkpoint(
            [(b"100644", b"a.py", forge.blob(b"evil %d\n" % seq))],
            session="s",
            branch="evil",
            seq=seq,
            parent=tip,
            message=message,
            id=ident,
        )
    assert tip is not None
    forge.into(bob / ".git", {"refs/gitcp/s/s/evil": tip})
    save(bob, "-s", "s", a_py=b"own 3\n")
    done = ok(bob, "prune", "-s", "s/evil", "--keep-last", "1", "--yes")
    assert [one["branch"] for one in done["removed"]] == ["evil", "evil"]
    left = [one["seq"] for one in ok(bob, "log", "-s", "s/main")["checkpoints"]]
    assert left == [3, 2, 1]
