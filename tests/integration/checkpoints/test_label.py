"""`gitcp label`: names a checkpoint after it was made, and rewrites nothing."""

from __future__ import annotations

import pytest

from gitcp.project.workspace import open_workspace
from tests.support.clones import clone, make_hub, save
from tests.support.gitrepo import git
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def saved(repo):
    """A repository with four checkpoints."""
    return [save(repo, a_py=b"%d" % number) for number in range(4)]


def file(repo):
    return repo / ".git" / "gitcp" / "labels.jsonl"


def test_an_old_checkpoint_gets_a_label_and_no_ref_moves(repo, saved):
    before = git(repo, "for-each-ref")
    done = ok(repo, "label", "2", "green")
    assert done["label"] == done["checkpoint"]["label"] == "green"
    assert git(repo, "for-each-ref") == before
    for selector in ("green", "label=green", "main:green"):
        assert ok(repo, "show", selector)["checkpoint"]["id"] == saved[1]["id"]
    listed = ok(repo, "log")["checkpoints"]
    assert [one["label"] for one in listed] == [None, None, "green", None]
    assert b"(green)" in invoke(repo, "log").stdout
    assert b"label    green" in invoke(repo, "show", "2").stdout
    assert len(ok(repo, "log", "--grep", "green")["checkpoints"]) == 1


def test_a_label_given_again_moves_and_can_be_removed(repo, saved):
    ok(repo, "label", "2", "green")
    moved = ok(repo, "label", "3", "green")["moved_from"]
    assert [one["id"] for one in moved] == [saved[1]["id"]]
    assert ok(repo, "show", "green")["checkpoint"]["id"] == saved[2]["id"]
    # Of a save, too; and the newest has it again after another one.
    newest = save(repo, "--label", "green", a_py=b"5")
    assert ok(repo, "show", "green")["checkpoint"]["id"] == newest["id"]
    ok(repo, "label", "1", "green")
    assert ok(repo, "show", "green")["checkpoint"]["id"] == saved[0]["id"]
    assert ok(repo, "show", "5")["checkpoint"]["label"] is None
    assert ok(repo, "label", "green", "--remove")["removed"] == "green"
    assert "there is no checkpoint" in fails(repo, 13, "show", "green")
    assert "has no label" in fails(repo, 1, "label", "1", "--remove")


def test_prune_keeps_what_was_labelled_later(repo, saved):
    ok(repo, "label", "1", "first")
    ok(repo, "prune", "--keep-last", "1", "--yes")
    left = ok(repo, "log")["checkpoints"]
    assert [(one["number"], one["label"]) for one in left] == [(4, None), (1, "first")]
    assert ok(repo, "show", "first")["checkpoint"]["id"] == saved[0]["id"]
    ok(repo, "label", "first", "--remove")
    ok(repo, "prune", "--keep-last", "1", "--yes")
    assert [one["number"] for one in ok(repo, "log")["checkpoints"]] == [4]


def test_a_purge_takes_a_value_out_of_labels(repo, saved):
    ok(repo, "label", "2", "wombat-7351")
    ok(repo, "save", "--allow-empty", "--decision", "wombat-7351")
    ok(repo, "purge", "--value-from-stdin", "-y", input=b"wombat-7351")
    assert b"wombat" not in file(repo).read_bytes()
    assert ok(repo, "verify")["ok"]


def test_a_torn_line_says_nothing_and_the_next_one_counts(repo, saved):
    ok(repo, "label", "2", "green")
    whole = file(repo).read_bytes()
    file(repo).write_bytes(whole + whole[:-9])
    ok(repo, "label", "3", "blue")
    assert ok(repo, "show", "green")["checkpoint"]["id"] == saved[1]["id"]
    assert ok(repo, "show", "blue")["checkpoint"]["id"] == saved[2]["id"]


def test_an_open_store_sees_a_label_that_another_process_gave(repo, saved):
    store = open_workspace(repo).store
    tip = store.tip("main", "main")
    assert tip is not None
    labels = [tip.label]
    ok(repo, "label", "last", "green")
    assert [*labels, tip.label] == [None, "green"]
    assert tip.label_component == "green"


def test_a_label_that_reads_as_something_else_is_refused(repo, saved):
    for name in ("12", "last", "2 hours ago", "abcd"):
        assert "could not be selected" in fails(repo, 2, "label", "2", name)
    assert "requires a checkpoint and a NAME" in fails(repo, 2, "label", "2")
    assert not file(repo).exists()


def test_a_label_given_later_is_not_pushed_and_nothing_diverges(tmp_path):
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    save(ann, "--label", "own", a_py=b"two")
    ok(ann, "push")
    ok(ann, "label", "1", "mine")
    assert ok(ann, "push")["branches"][0]["result"] == "up-to-date"
    ok(bob, "pull")
    assert ok(bob, "show", "main:1")["checkpoint"]["label"] == "own"
    assert ok(ann, "show", "1")["checkpoint"]["label"] == "mine"
