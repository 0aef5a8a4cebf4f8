"""Checkpoints whose branch has lost its ref are found, kept and put back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitcp.store.append import append_checkpoint
from tests.support.forge import Forge, trailers
from tests.support.gitrepo import git, git_line, write_files
from tests.support.inprocess import fails, invoke, ok

CORRUPT = 15
REF = "refs/gitcp/s/main/main"


def save(repo: Path, content: str, *args: str) -> dict:
    write_files(repo, {"a": content.encode()})
    return ok(repo, "save", *args)["checkpoint"]


def lost(repo: Path) -> list[tuple[str, str, int]]:
    done = invoke(repo, "verify", "--lost", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == (0 if found["ok"] else CORRUPT)
    return [(one["session"], one["branch"], one["seq"]) for one in found["lost"]]


@pytest.fixture
def taken(repo: Path) -> dict:
    """The third checkpoint of a branch that lost its ref and began again."""
    made = [save(repo, text) for text in "123"]
    git(repo, "update-ref", "-d", REF)
    save(repo, "4")
    return made[2]


def test_a_line_is_found_and_put_back_whose_name_is_taken(repo, taken):
    assert lost(repo) == [("main", "main", 3)]
    said = invoke(repo, "verify", "--lost").stdout
    assert b"has other checkpoints" in said
    found = ok(repo, "verify", "--lost", "--repair")["lost"]
    assert [(one["taken"], one["as"]) for one in found] == [(True, "main~lost")]
    assert ok(repo, "show", taken["id"])["checkpoint"]["seq"] == 3
    assert ok(repo, "show", "main/main~lost:last")["checkpoint"]["forked_from"]
    assert ok(repo, "log", "-s", "main/main")["checkpoints"][0]["seq"] == 1
    assert lost(repo) == []
    assert ok(repo, "verify")["ok"]
    ok(repo, "restore", "-y", taken["id"])
    assert (repo / "a").read_bytes() == b"3"


def test_gc_keeps_a_lost_line_unless_told(repo, taken):
    done = invoke(repo, "gc")
    assert done.returncode == 0
    assert taken["id"].encode() in done.stderr
    assert b"--drop-lost" in done.stderr
    assert lost(repo) == [("main", "main", 3)]
    (one,) = ok(repo, "gc")["lost"]
    assert (one["checkpoint"], one["kept"]) == (taken["id"], True)
    fails(repo, 23, "gc", "--drop-lost")
    assert lost(repo) == [("main", "main", 3)]
    (one,) = ok(repo, "gc", "--drop-lost", "--yes")["lost"]
    assert not one["kept"]
    assert lost(repo) == []
    assert git(
        repo, "cat-file", "--batch-check", input=taken["commit"].encode()
    ).endswith(b"missing\n")


def test_housekeeping_by_itself_keeps_a_lost_line(repo):
    git(repo, "config", "gitcp.maxCheckpoints", "10")
    save(repo, "kept", "-s", "job")
    git(repo, "update-ref", "-d", "refs/gitcp/s/job/main")
    for number in range(45):
        save(repo, f"n{number}")
    assert ok(repo, "log", "-n", "100")["checkpoints"][-1]["seq"] > 20
    assert lost(repo) == [("job", "main", 1)]


def test_a_save_that_begins_where_a_line_is_lost_says_so(repo):
    for text in "12":
        save(repo, text)
    git(repo, "update-ref", "-d", REF)
    write_files(repo, {"a": b"3"})
    done = invoke(repo, "save")
    assert done.returncode == 0
    assert b"main/main has lost its ref" in done.stderr
    assert b"up to" in done.stderr
    write_files(repo, {"a": b"4"})
    assert b"lost" not in invoke(repo, "save").stderr


def test_a_save_into_another_branch_says_so_if_all_are_gone(repo):
    save(repo, "1")
    git(repo, "update-ref", "-d", REF)
    write_files(repo, {"a": b"3"})
    assert b"main/main has lost its ref" in invoke(repo, "save", "-s", "new").stderr
    write_files(repo, {"a": b"4"})
    assert b"lost" not in invoke(repo, "save", "-s", "newer").stderr


def test_a_branch_that_was_set_back_has_lost_what_came_after(repo):
    made = [save(repo, text) for text in "1234"]
    git(repo, "update-ref", REF, made[1]["commit"])
    assert lost(repo) == [("main", "main", 4)]
    save(repo, "other")
    assert lost(repo) == [("main", "main", 4)]
    ok(repo, "verify", "--lost", "--repair")
    assert ok(repo, "show", made[3]["id"])["checkpoint"]["seq"] == 4
    assert lost(repo) == []


def test_what_was_pruned_on_purpose_is_not_lost(repo):
    for text in "123456":
        save(repo, text)
    ok(repo, "prune", "--yes", "--keep-last", "3")
    assert lost(repo) == []
    for text in "789":
        save(repo, text)
    ok(repo, "prune", "--yes", "--keep-last", "1")
    assert lost(repo) == []
    save(repo, "10")
    assert lost(repo) == []
    # Of the forms of the line that lie about, the last one is put back.
    git(repo, "update-ref", "-d", REF)
    assert lost(repo) == [("main", "main", 10)]
    ok(repo, "verify", "--lost", "--repair")
    seqs = [one["seq"] for one in ok(repo, "log")["checkpoints"]]
    assert seqs == [10, 9]


def test_what_a_purge_replaced_is_not_lost(repo):
    save(repo, "1")
    write_files(repo, {"bad": b"x"})
    save(repo, "2")
    (repo / "bad").unlink()
    save(repo, "3")
    ok(repo, "purge", "--yes", "bad")
    assert lost(repo) == []


def test_the_newest_whole_checkpoint_of_a_lost_line_is_put_back(repo):
    made = [save(repo, text) for text in "123"]
    tree = git_line(repo, "rev-parse", f"{made[2]['commit']}^{{tree}}")
    for pack in list((repo / ".git/objects/pack").glob("*.pack")):
        raw = pack.read_bytes()
        for file in pack.parent.glob(f"{pack.stem}.*"):
            file.unlink()
        git(repo, "unpack-objects", "-q", input=raw)
    (repo / ".git/objects" / tree[:2] / tree[2:]).unlink()
    git(repo, "update-ref", "-d", REF)
    assert lost(repo) == [("main", "main", 2)]


def test_a_save_that_found_its_branch_moved_leaves_nothing_that_looks_lost(repo):
    # Another process is faster each time between the building and the ref.
    from gitcp.git.transaction import Transaction
    from gitcp.project.workspace import open_workspace
    from gitcp.store.draft import Draft

    save(repo, "1")
    workspace = open_workspace(repo)
    real = Transaction.publish
    raced: list[bytes] = []

    def publish(self, ref, *, expect, new):
        if not raced:
            raced.append(new)
            ok(repo, "save", "--allow-empty", "-m", "faster")
        real(self, ref, expect=expect, new=new)

    from unittest import mock

    from gitcp.git.transaction import transaction

    with (
        mock.patch.object(Transaction, "publish", publish),
        transaction(workspace.repository) as opened,
    ):
        made = append_checkpoint(
            workspace.store,
            opened,
            "main",
            "main",
            Draft(note="slower", allow_empty=True),
        )
    assert made.checkpoint.seq == 3
    assert raced
    assert git_line(repo, "cat-file", "-t", raced[0].hex()) == "commit"
    assert lost(repo) == []


def test_doctor_names_a_line_whose_name_is_taken(repo, taken):
    def said() -> str:
        checks = ok(repo, "doctor")["checks"]
        return next(one["detail"] for one in checks if one["name"] == "lost")

    assert "main/main, with 3 checkpoints" in said()
    ok(repo, "verify", "--lost", "--repair")
    assert said() == "no branch has lost checkpoints"


CLAIMS = {
    "id": b"",
    "child": b"",
    "purged": b"Gitcp-Purged: %b\n",
    "pruned": b"Gitcp-Pruned: %b\n",
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_a_stranger_claims_to_replace_is_lost_all_the_same(repo, claim):
    """Ids and commits are in what was pushed."""
    made = [save(repo, text) for text in "123"][-1]
    git(repo, "update-ref", "-d", REF)
    forge, tip = Forge(), None
    for seq, ident in ((1, made["id"]), (2, "f" * 12)):
        if (claim, seq) == ("id", 2) or (claim not in {"id", "child"} and seq == 1):
            continue
        commit = made["commit" if claim == "purged" else "id"].encode()
        message = trailers("main", "evil", seq).replace(b"0123456789ab", ident.encode())
        message += CLAIMS[claim].replace(b"%b", commit)
        tip = forge.checkpoint(
            session="main",
            branch="evil",
            seq=seq,
            parent=tip,
            message=message,
            id=ident,
        )
    assert tip is not None
    forge.into(repo / ".git", {"refs/gitcp/s/main/evil": tip})
    ok(repo, "gc")
    assert lost(repo) == [("main", "main", 3)]
    ok(repo, "verify", "--lost", "--repair")
    assert [
        one["seq"] for one in ok(repo, "log", "-s", "main/main")["checkpoints"]
    ] == [
        3,
        2,
        1,
    ]
