"""Every form of a selector in the interface, and what is not a selector."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import gitcp
from gitcp.errors import AmbiguousError, UsageError
from tests.support.gitrepo import commit_all, git_line, write_files
from tests.support.inprocess import fails, invoke, ok
from tests.support.templates import once


def save(repo: Path, *args: str, **given) -> dict:
    return ok(repo, "save", "--allow-empty", *args, **given)["checkpoint"]


def chosen(repo: Path, selector: str) -> tuple[str, str, int]:
    found = ok(repo, "show", selector)["checkpoint"]
    return found["session"], found["branch"], found["seq"]


@pytest.fixture
def history(repo) -> dict[str, dict]:
    """main/main 1 to 3, main/side from 2, job/main 1 and 2; current is main/main."""
    return once(repo, _history)


def _history(repo: Path) -> dict[str, dict]:
    found = {"1": save(repo, "-m", "one")}
    found["2"] = save(repo, "--label", "good", "-m", "two")
    write_files(repo, {"README.md": b"second\n"})
    commit_all(repo)
    found["3"] = save(repo)
    found["job"] = save(repo, "-s", "job")
    found["job2"] = save(repo, "-s", "job", "--label", "v1.0: final/x")
    found["side"] = ok(repo, "fork", "--no-switch", "main/main:2", "side")["checkpoint"]
    ok(repo, "switch", "main")
    return found


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("last", ("job", "main", 2)),
        ("1", ("main", "main", 1)),
        ("3", ("main", "main", 3)),
        ("~0", ("job", "main", 2)),
        ("~2", ("main", "main", 3)),
        ("last~4", ("main", "main", 1)),
        ("good", ("main", "main", 2)),
        ("main:1", ("main", "main", 1)),
        ("main/main:last", ("main", "main", 3)),
        ("main/main:", ("main", "main", 3)),
        ("main/side:1", ("main", "side", 1)),
        ("main/side:~1", ("main", "main", 2)),
        ("job:1", ("job", "main", 1)),
        ("job/main:~0", ("job", "main", 2)),
        # In another session, where the current one has none of it.
        ("v1.0: final/x", ("job", "main", 2)),
        ("job:v1.0: final/x", ("job", "main", 2)),
    ],
)
def test_each_form(repo, history, selector, expected):
    assert chosen(repo, selector) == expected


def test_ids_and_commits(repo, history):
    for found in history.values():
        expected = found["session"], found["branch"], found["seq"]
        for key in (found["id"], found["id"][:8], found["commit"], found["commit"][:9]):
            assert chosen(repo, key) == expected
    head = git_line(repo, "rev-parse", "HEAD")
    old = git_line(repo, "rev-parse", "HEAD~1")
    # The one made at the commit is the first on it.
    assert chosen(repo, head) == ("main", "main", 3)
    assert chosen(repo, old[:7]) == ("main", "main", 1)
    assert chosen(repo, "HEAD") == ("main", "main", 3)
    assert chosen(repo, "HEAD~1") == ("main", "main", 1)


def test_a_commit_without_a_checkpoint_is_the_last_made_before_it(repo):
    save(repo, "-m", "one")
    write_files(repo, {"README.md": b"second\n"})
    save(repo, "-m", "two")
    commit_all(repo)
    head = git_line(repo, "rev-parse", "HEAD")
    write_files(repo, {"README.md": b"third\n"})
    save(repo, "-m", "long after it")
    assert chosen(repo, "HEAD") == ("main", "main", 2)
    said = invoke(repo, "show", "HEAD").stdout.decode()
    assert (
        f"No checkpoint was made at the commit {head[:12]}; the last one before it: 2"
        in said
    )
    # Nor is there one before the first commit: the first on it has to do.
    assert chosen(repo, "HEAD~1") == ("main", "main", 1)


def test_without_a_selector_it_is_the_newest_that_was_made_here(repo, history):
    for session in ("main", "job"):
        ok(repo, "switch", session)
        assert ok(repo, "show")["checkpoint"]["id"] == history["job2"]["id"]
    save(repo, "-s", "main")
    assert ok(repo, "show")["checkpoint"]["number"] == 7


def test_a_time_is_the_state_then(repo, history):
    assert chosen(repo, "now") == ("job", "main", 2)
    assert chosen(repo, "@{now}") == ("job", "main", 2)
    assert chosen(repo, history["2"]["created"]) == ("main", "main", 2)
    assert "no checkpoint" in fails(repo, 13, "show", "yesterday 12:00")
    assert "is not a time" in fails(repo, 2, "show", "@{foo}")


def test_a_number_means_the_same_whatever_branch_is_current(repo, history):
    for branch in ("main", "job", "main/side"):
        ok(repo, "switch", branch)
        for found in history.values():
            expected = found["session"], found["branch"], found["seq"]
            assert chosen(repo, str(found["number"])) == expected
            assert chosen(repo, f"#{found['number']}") == expected


def test_a_label_given_again_moves(repo, history):
    save(repo, "--label", "good")
    assert chosen(repo, "good") == ("main", "main", 4)


def test_a_label_in_two_sessions_is_ambiguous_from_a_third(repo, history):
    third = save(repo, "-s", "job", "--label", "good")
    assert chosen(repo, "good") == ("job", "main", 3)
    save(repo, "-s", "third")
    said = fails(repo, 14, "show", "good")
    assert history["2"]["id"] in said
    assert f"{third['id']} (#{third['number']})" in said
    assert chosen(repo, "main/main:good") == ("main", "main", 2)


def test_an_ambiguous_prefix_lists_the_candidates(repo):
    # Ids are random: enough of them share their first four digits with a commit made on.
    head = git_line(repo, "rev-parse", "HEAD")
    saved = save(repo)
    assert chosen(repo, head[:5]) == ("main", "main", 1)
    from gitcp.checkpoints import matches
    from gitcp.project.workspace import open_workspace

    workspace = open_workspace(repo)
    save(repo)
    two = [workspace.store.require_tip("main", "main")]
    two += [found for found in workspace.store.line(two[0]) if found.seq == 1]
    with pytest.raises(AmbiguousError, match=saved["id"]):
        matches._only(workspace.store, two, "abcd")


def test_a_number_wins_over_an_id(repo, monkeypatch):
    monkeypatch.setattr(os, "urandom", lambda size: b"\x10" + b"\0" * (size - 1))
    save(repo)
    assert chosen(repo, "1000") == ("main", "main", 1)
    monkeypatch.undo()
    assert chosen(repo, "1") == ("main", "main", 1)


def test_an_id_shared_by_two_is_ambiguous(repo, monkeypatch):
    ids = iter([b"\xab\xcd\0\0\0\x01", b"\xab\xcd\0\0\0\x02"])
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: next(ids) if n == 6 else real(n))
    save(repo)
    save(repo)
    said = fails(repo, 14, "show", "abcd")
    assert "abcd00000001" in said
    assert "abcd00000002" in said
    assert chosen(repo, "abcd00000002") == ("main", "main", 2)


def test_a_message_stands_for_the_state_before_it(repo):
    def message(uuid: str) -> bytes:
        return json.dumps({"uuid": uuid}, separators=(",", ":")).encode() + b"\n"

    save(repo)
    save(repo, "--append", "-", input=message("u-0001"))
    save(repo, "--append", "-", input=message("u-0002") + message("u-0003"))
    assert chosen(repo, "u-0001") == ("main", "main", 1)
    assert chosen(repo, "u-0003") == ("main", "main", 2)
    fails(repo, 13, "show", "u-0004")


@pytest.mark.parametrize(
    "selector",
    ["99", "~99", "nope", "dead", "nowhere:1", "main/nowhere:last", "0", "good:1", "abc",
     "HEAD~1^", "~x", "-1x", "deadbeefdeadbeef"],
)  # fmt: skip
def test_what_is_not_there(repo, history, selector):
    fails(repo, 13, "show", "--", selector)


HOSTILE = ["../x", "..", ".", "a\nb", "a\x1b[31mb", "a\tb", "\x7f", "-rf", "a/../b",
           "./a", "a//b", "\u202eb", ""]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_can_only_be_typing_errors_are_refused(repo, name):
    save(repo)
    before = {path.name for path in (repo / ".git/refs/gitcp/s").rglob("*")}
    fails(repo, 2, "save", "-s", name)
    fails(repo, 2, "fork", "1", "--", name)
    if "/" not in name:
        fails(repo, 2, "save", "-s", f"main/{name}")
        fails(repo, 2, "switch", "--", f"main/{name}")
    fails(repo, 2, "save", f"--label={name}")
    said = invoke(repo, "show", "--", f"{name}:1")
    assert said.returncode in {2, 13}
    assert b"\x1b" not in said.stderr
    assert {path.name for path in (repo / ".git/refs/gitcp/s").rglob("*")} == before


NO_LABELS = ["last", "last~2", "~1", "1", "47", "#3", "0123456789", "dead", "CAFE42",
             "0" * 40, "HEAD", "HEAD~2", "@", "@{yesterday}", "now", "Yesterday 12:00",
             "2 hours ago", "last week", "a.month.ago", "friday", "2026-11-22", "12:30",
             "label=x"]  # fmt: skip


def test_a_label_that_reads_as_something_else_is_refused(repo):
    save(repo)
    session = gitcp.open(repo).session("main")
    for label in NO_LABELS:
        fails(repo, 2, "save", "--allow-empty", "--label", label)
        with pytest.raises(UsageError):
            session.save(label=label, allow_empty=True)
    assert chosen(repo, "last") == ("main", "main", 1)


LABELS = ["v1", "v1.0: final/x", "1st", "second attempt", "bad", "3 days left", "x#1"]


def test_a_label_that_was_taken_selects_its_checkpoint(repo):
    for number, label in enumerate(LABELS, 1):
        save(repo, "--label", label, "--allow-empty")
        assert chosen(repo, label) == ("main", "main", number)
    for number, label in enumerate(LABELS, 1):
        assert chosen(repo, f"label={label}") == ("main", "main", number)


def test_an_older_label_that_reads_as_something_else_is_selected_as_one(
    repo, monkeypatch
):
    save(repo)
    monkeypatch.setattr(
        "gitcp.checkpoints.labels.check_typed_label", lambda label: label
    )
    labels = ["1", "last", "~1", "dead"]
    for label in labels:
        save(repo, "--label", label, "--allow-empty")
    save(repo, "-s", "other")
    for number, label in enumerate(labels, 2):
        assert chosen(repo, f"label={label}") == ("main", "main", number)
        assert chosen(repo, f"main/main:label={label}") == ("main", "main", number)
    fails(repo, 13, "show", "label=2")


def test_a_number_may_have_a_hash_sign(repo):
    save(repo)
    save(repo, "--allow-empty")
    assert chosen(repo, "#1") == ("main", "main", 1)
    assert chosen(repo, "main/main:#2") == ("main", "main", 2)
    fails(repo, 13, "show", "#12345")


@pytest.mark.parametrize(
    "name", ["a.lock", "HEAD", "é ☃", "A", "%41", "x" * 300, "a b"]
)
def test_odd_names_are_fine(repo, name):
    saved = save(repo, "-s", f"{name}/{name}")
    assert (saved["session"], saved["branch"]) == (name, name)
    assert chosen(repo, f"{name}/{name}:1") == (name, name, 1)
    assert ok(repo, "sessions")["sessions"][0]["name"] == name
    assert git_line(repo, "for-each-ref", "--count=1", "refs/gitcp/s")
