"""A stranger's copy of a checkpoint of one's own whose trailers say something else.

A seal covers the record and not the commit's message, and what follows is read from there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.checkpoints.selectors import select
from gitcp.format.commit import relink, with_pruned
from gitcp.project.workspace import open_workspace
from tests.integration.sync.test_copied_names import pulled, push_as_stranger
from tests.support.clones import results, save
from tests.support.gitrepo import commit_all, git, git_line, write_files
from tests.support.inprocess import ok


def push_copy(hub: Path, own: dict[str, Any], **said: str | None) -> str:
    """Puts a copy of a checkpoint on its branch, with other trailers; None takes one away.

    Places begin again after a checkpoint of another session, and after a prune.
    """
    tip = git_line(hub, "rev-parse", "refs/gitcp/s/s/main")
    between = push_as_stranger(hub, "x", ident="1" * 12, parent=tip)
    raw = git(hub, "cat-file", "commit", own["commit"])
    head, gap, last = raw.partition(b"\n\n")[2].rstrip(b"\n").rpartition(b"\n\n")
    names = {f"Gitcp-{name}: ".encode(): value for name, value in said.items()}
    lines = [one for one in last.split(b"\n") if not one.startswith(tuple(names))]
    lines += [name + text.encode() for name, text in names.items() if text is not None]
    made = relink(
        raw,
        tree=bytes.fromhex(git_line(hub, "rev-parse", f"{own['commit']}^{{tree}}")),
        parent=between,
        message=with_pruned(head + gap + b"\n".join(lines) + b"\n", own["id"]),
    )
    args = ("hash-object", "-t", "commit", "-w", "--stdin")
    copy = git(hub, *args, input=made).decode().strip()
    git(hub, "update-ref", "refs/gitcp/s/s/main", copy)
    return copy


@pytest.fixture
def saved(bob: Path) -> list[dict[str, Any]]:
    """Two checkpoints of the user's own, pushed; the first has a label."""
    made = [
        save(bob, "-s", "s", "-m", "1", "--label", "good", a_py=b"own 1\n"),
        save(bob, "-s", "s", "-m", "2", a_py=b"own 2\n"),
    ]
    ok(bob, "push")
    return made


@pytest.mark.parametrize("name", ["Label", "Base", "Trigger"])
@pytest.mark.parametrize("value", [None, "0" * 40])
def test_a_copy_with_another_trailer_was_made_elsewhere(hub, bob, saved, name, value):
    copy = push_copy(hub, saved[0], **{name: value})
    pulled(bob)
    found = open_workspace(bob).store.checkpoint(copy)
    assert found is not None
    assert (found.origin.here, found.origin.files) == (False, "origin")


@pytest.mark.parametrize("said", [{"Session": "z"}, {"Branch": "side"}, {"Seq": "7"}])
def test_a_copy_in_another_place_was_made_elsewhere(hub, bob, saved, said):
    """A pull refuses it; git's own fetch does not."""
    copy = push_copy(hub, saved[0], **said)
    git(bob, "fetch", "-q", "origin", "refs/gitcp/s/s/main:refs/gitcp/s/s/main")
    found = open_workspace(bob).store.checkpoint(copy)
    assert found is not None
    assert not found.origin.here


def test_a_copy_with_the_same_trailers_is_still_ones_own(hub, bob, saved):
    copy = push_copy(hub, saved[0])
    pulled(bob)
    found = open_workspace(bob).store.checkpoint(copy)
    assert found is not None
    assert found.origin.here


def test_a_label_in_a_trailer_does_not_move_ones_own(hub, bob, saved):
    push_copy(hub, saved[1], Label="good")
    pulled(bob)
    assert select(open_workspace(bob), "good").commit == saved[0]["commit"]


def test_a_base_in_a_trailer_does_not_say_what_was_made_at_a_commit(hub, bob, saved):
    """A stranger may have made the commit, and may well have the checkpoint at it."""
    write_files(bob, {"a.py": b"own 3\n"})
    commit_all(bob, "work")
    own = save(bob, "-s", "s", "-m", "3")
    head = git_line(bob, "rev-parse", "HEAD")
    ok(bob, "push")
    assert select(open_workspace(bob), head).commit == own["commit"]
    push_copy(hub, saved[1], Base=head, Trigger="commit")
    pulled(bob)
    with pytest.raises(gitcp.AmbiguousError, match=own["id"]):
        select(open_workspace(bob), head)


def test_a_trigger_in_a_trailer_does_not_keep_a_branch_from_a_push(
    hub, bob, saved, tmp_path
):
    push_copy(hub, saved[1], Trigger="import")
    pulled(bob)
    backup = tmp_path / "backup.git"
    git(tmp_path, "init", "-q", "--bare", backup)
    git(bob, "remote", "add", "backup", str(backup))
    assert "s/main" in results(bob, "push", "backup")
