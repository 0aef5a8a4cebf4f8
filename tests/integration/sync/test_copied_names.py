"""A stranger's checkpoint under a name that meant one's own: labels, places, commits, times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.checkpoints.numbered import current
from gitcp.checkpoints.selectors import select
from gitcp.format.checkpoint import timestamp
from gitcp.project.workspace import open_workspace
from gitcp.store.find_current import find_by_id
from tests.support.clones import save
from tests.support.gitrepo import commit_all, git, git_line, write_files
from tests.support.hostile import Mallory
from tests.support.inprocess import ok


def push_as_stranger(
    hub: Path,
    session: str = "s",
    *,
    ident: str = "0123456789ab",
    seq: int = 1,
    trigger: str = "manual",
    label: str | None = None,
    base: str | None = None,
    parent: str | bytes | None = None,
    talk: bytes = b"",
    **fields: Any,
) -> bytes:
    """Puts a checkpoint with other files on top of a branch of the shared repository."""
    ref = f"refs/gitcp/s/{session}/main"
    if parent is None and ref.encode() in git(hub, "for-each-ref"):
        parent = git_line(hub, "rev-parse", ref)
    if isinstance(parent, str):
        parent = bytes.fromhex(parent)
    lines = [
        f"Gitcp-Checkpoint: {ident}",
        f"Gitcp-Session: {session}",
        "Gitcp-Branch: main",
        f"Gitcp-Seq: {seq}",
        f"Gitcp-Trigger: {trigger}",
        *([f"Gitcp-Base: {base}"] if base else []),
        *([f"Gitcp-Label: {label}"] if label else []),
    ]
    mallory = Mallory(hub)
    forge = mallory.forge
    own = []
    if talk:
        logs: dict[str, bytes] = {}
        totals = mallory._log(logs, "conversation", "main", "messages", talk)
        own = [
            (
                b"40000",
                b"log",
                mallory._tree(
                    {path.removeprefix("log/"): data for path, data in logs.items()}
                ),
            )
        ]
        fields["conversation"] = {"source": "main", "kind": "messages", **totals}
    made = forge.checkpoint(
        [(b"100644", b"a.py", forge.blob(b"evil\n"))],
        session=session,
        seq=seq,
        parent=parent,
        message=("evil\n\n" + "\n".join(lines) + "\n").encode(),
        own=own,
        id=ident,
        trigger=trigger,
        label=label,
        base={"commit": base, "branch": "main", "operation": None} if base else None,
        **fields,
    )
    forge.into(hub, {ref: made})
    return made


@pytest.fixture
def saved(bob: Path) -> list[dict[str, Any]]:
    """Two checkpoints of the user's own, pushed; the first has a label."""
    made = [
        save(bob, "-s", "s", "-m", "1", "--label", "good", a_py=b"own 1\n"),
        save(bob, "-s", "s", "-m", "2", a_py=b"own 2\n"),
    ]
    ok(bob, "push")
    return made


def pulled(bob: Path) -> None:
    got = ok(bob, "pull")
    assert {one["result"] for one in got["branches"]} <= {
        "created",
        "fast-forward",
        "up-to-date",
    }, got


@pytest.mark.parametrize("where", ["on top", "session a", "session z"])
@pytest.mark.parametrize("name", ["label", "id", "prefix", "label=", "s:label", "s:id"])
def test_a_label_or_an_id_still_means_ones_own(hub, bob, saved, where, name):
    own = saved[0]
    text = {
        "label": "good",
        "label=": "label=good",
        "id": own["id"],
        "prefix": own["id"][:6],
        "s:label": "s:good",
        "s:id": f"s:{own['id']}",
    }[name]
    session = "s" if where == "on top" else where.removeprefix("session ")
    seq = 3 if where == "on top" else 1
    push_as_stranger(hub, session, ident=own["id"], seq=seq, label="good")
    pulled(bob)
    if session != "s":
        ok(bob, "switch", session)
    assert select(open_workspace(bob), text).commit == own["commit"]


@pytest.mark.parametrize("where", ["on top", "session a", "session z"])
def test_a_strangers_label_does_not_move_ones_own(hub, bob, saved, where):
    session = "s" if where == "on top" else where.removeprefix("session ")
    push_as_stranger(hub, session, seq=3 if session == "s" else 1, label="good")
    pulled(bob)
    if session != "s":
        ok(bob, "switch", session)
    gitcp.open(bob).session(session).restore("good")
    assert (bob / "a.py").read_bytes() == b"own 1\n"


def test_a_place_on_a_branch_still_means_ones_own(hub, bob, saved):
    """The numbers begin again after a checkpoint of another session."""
    between = push_as_stranger(hub, "x", ident="1" * 12, parent=saved[1]["commit"])
    push_as_stranger(hub, "s", parent=between)
    pulled(bob)
    assert select(open_workspace(bob), "s:1").commit == saved[0]["commit"]
    assert select(open_workspace(bob), "1").commit == saved[0]["commit"]


@pytest.mark.parametrize("session", ["s", "a", "z"])
@pytest.mark.parametrize("form", ["HEAD", "oid", "prefix"])
@pytest.mark.parametrize("made", ["at", "after", "before"])
def test_a_commit_still_means_the_checkpoint_made_at_it_here(
    hub, bob, saved, session, form, made
):
    own, seq = saved[1], 3
    if made != "before":
        write_files(bob, {"a.py": b"own 3\n"})
    commit_all(bob, "work")
    head = git_line(bob, "rev-parse", "HEAD")
    if made != "before":
        trigger = "commit" if made == "at" else "manual"
        own, seq = save(bob, "-s", "s", "--trigger", trigger, "-m", "3"), 4
    ok(bob, "push")
    push_as_stranger(
        hub,
        session,
        seq=seq if session == "s" else 1,
        base=head,
        trigger="commit",
        created="2999-01-01T00:00:00.000Z",
    )
    pulled(bob)
    if session != "s":
        ok(bob, "switch", session)
    text = {"HEAD": "HEAD", "oid": head, "prefix": head[:10]}[form]
    if made == "at":
        assert select(open_workspace(bob), text).commit == own["commit"]
    else:
        # A stranger who made the commit may well have the checkpoint that led to it.
        with pytest.raises(gitcp.AmbiguousError, match=own["id"]):
            select(open_workspace(bob), text)
        assert ok(bob, "show", text)["checkpoint"]["origin"]["files"] == "origin"


@pytest.mark.parametrize("form", ["now", "@{now}", "s:now", "s@{now}"])
@pytest.mark.parametrize("said", ["1971", "now"])
def test_a_time_still_means_ones_own(hub, bob, saved, form, said):
    created = "1971-01-01T00:00:00.000Z"
    if said == "now":
        created = timestamp(time.time())
    push_as_stranger(hub, seq=3, created=created)
    pulled(bob)
    ok(bob, "switch", "s")
    if said == "1971":
        assert select(open_workspace(bob), form).commit == saved[1]["commit"]
    else:
        with pytest.raises(gitcp.AmbiguousError, match=saved[1]["id"]):
            select(open_workspace(bob), form)


def test_a_number_still_means_ones_own_once_its_commit_is_gone(hub, bob, saved):
    """The id is what is left of it then."""
    push_as_stranger(hub, "s", ident=saved[0]["id"], seq=3)
    pulled(bob)
    workspace = open_workspace(bob)
    numbers = workspace.store.numbers
    entry = numbers.find(1)
    assert entry is not None
    lost = "0" * len(entry.commit)
    numbers.note_moved([(entry.id, entry.key, entry.commit, lost)])
    entry = entry._replace(commit=lost)
    for found in (current(workspace, entry), find_by_id(workspace.store, entry.id)):
        assert found is not None
        assert found.commit == saved[0]["commit"]


def test_a_number_that_was_pruned_does_not_mean_a_strangers(hub, bob, saved):
    ok(bob, "label", "1", "--remove")
    ok(bob, "prune", "--keep-last", "1", "--yes")
    ok(bob, "push", "--pruned")
    push_as_stranger(hub, "s", ident=saved[0]["id"], seq=3)
    pulled(bob)
    with pytest.raises(gitcp.NotFoundError, match="was pruned"):
        select(open_workspace(bob), "1")


@pytest.mark.parametrize("session", ["a", "z"])
def test_an_undo_in_another_session_brings_back_ones_own(hub, bob, saved, session):
    """The id of what was replaced is in what was pushed."""
    save(bob, "-s", "other", a_py=b"own 3\n")
    write_files(bob, {"a.py": b"own 4\n"})
    replaced = ok(bob, "switch", "s", "--restore", "--yes")["saved"]
    ok(bob, "push")
    push_as_stranger(hub, session, ident=replaced["id"])
    pulled(bob)
    ok(bob, "undo", "--yes")
    assert (bob / "a.py").read_bytes() == b"own 4\n"


PROMPT = "prompt-0123456789abcdef"


@pytest.mark.parametrize("session", ["s", "a", "z"])
def test_the_id_of_a_prompt_still_means_the_state_before_it(hub, bob, session):
    def talk(*ids: str) -> bytes:
        return b"".join(
            b'{"id":"%b","role":"user","content":"x"}\n' % one.encode() for one in ids
        )

    own = [
        ok(bob, "save", "-s", "s", "--messages", "-", input=talk(*ids))["checkpoint"]
        for ids in (("first",), ("first", PROMPT))
    ]
    assert select(open_workspace(bob), PROMPT).commit == own[0]["commit"]
    ok(bob, "push")
    seq = 3 if session == "s" else 1
    push_as_stranger(hub, session, seq=seq, talk=talk("other"))
    push_as_stranger(
        hub, session, ident="1" * 12, seq=seq + 1, talk=talk("other", PROMPT)
    )
    pulled(bob)
    ok(bob, "switch", session)
    assert select(open_workspace(bob), PROMPT).commit == own[0]["commit"]


def test_numbers_outlast_a_prune_without_the_key(bob):
    """Then nothing tells one's own by its seal, as for the other users of a repository."""
    for number in range(4):
        save(bob, a_py=b"%d" % number)
    (bob / ".git/gitcp/key").unlink()
    ok(bob, "prune", "--keep-last", "2", "--yes")
    assert [one["number"] for one in ok(bob, "log", "--full")["checkpoints"]] == [4, 3]
    assert ok(bob, "show", "3")["checkpoint"]["seq"] == 3


@pytest.mark.parametrize("key", ["with", "without"])
def test_a_prune_that_rewrites_ones_own_and_a_copy_keeps_the_number(hub, bob, key):
    """The list of numbers knows both by the same id and branch."""
    own = [save(bob, "-s", "s", "-m", str(n), a_py=b"own %d\n" % n) for n in range(3)]
    ok(bob, "label", "2", "keep")
    ok(bob, "push")
    push_as_stranger(hub, "s", ident=own[1]["id"], seq=4, note="evil")
    pulled(bob)
    if key == "without":
        (bob / ".git/gitcp/key").unlink()
    ok(bob, "prune", "--keep-last", "1", "--yes")
    assert git_line(bob, "rev-parse", "refs/gitcp/s/s/main~1") != own[1]["commit"]
    assert ok(bob, "show", "2")["checkpoint"]["note"] == "1"
    ok(bob, "restore", "2", "--yes")
    assert (bob / "a.py").read_bytes() == b"own 1\n"


@pytest.mark.parametrize("key", ["with", "without"])
def test_a_prune_that_rewrites_a_copy_gives_it_no_number_of_ones_own(
    hub, bob, saved, key
):
    """No note of a pull names the new commit."""
    save(bob, "-s", "s", "-m", "3", a_py=b"own 3\n")
    ok(bob, "label", "1", "--remove")
    ok(bob, "prune", "--keep-last", "2", "--yes")
    ok(bob, "push", "--pruned")
    push_as_stranger(hub, "s", ident=saved[0]["id"], seq=4, note="evil")
    pulled(bob)
    if key == "without":
        (bob / ".git/gitcp/key").unlink()
    ok(bob, "prune", "--keep-last", "2", "--yes")
    with pytest.raises(gitcp.NotFoundError, match="was pruned"):
        select(open_workspace(bob), "1")
