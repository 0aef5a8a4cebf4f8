"""What Python has of the command line: times, changes, contexts, undo, selectors."""

from __future__ import annotations

import datetime
import json
import traceback
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.format.log import KINDS
from tests.support.gitrepo import write_files
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def store(repo) -> gitcp.Store:
    return gitcp.open(repo)


def two(store: gitcp.Store, repo: Path) -> tuple[gitcp.Checkpoint, gitcp.Checkpoint]:
    session = store.session("s")
    write_files(repo, {"a": b"1", "gone": b"1"})
    first = session.save(note="one")
    write_files(repo, {"a": b"2", "new": b"2"})
    (repo / "gone").unlink()
    return first, session.save(note="two\nlines")


def test_a_checkpoint_says_when_it_was_made(store, repo):
    first, second = two(store, repo)
    shown = ok(repo, "log", "-s", "s")["checkpoints"][0]
    assert second.created == datetime.datetime.fromisoformat(shown["created"])
    assert second.created.tzinfo == datetime.UTC
    assert first.created <= second.created


def test_its_changes_are_those_that_show_lists(store, repo):
    first, second = two(store, repo)
    assert [(one.status, one.path) for one in second.changes] == [
        ("modified", b"a"),
        ("deleted", b"gone"),
        ("added", b"new"),
    ]
    shown = ok(repo, "show", second.id)["changes"]
    assert [(one["status"], one["path"]) for one in shown] == [
        (one.status, one.path.decode()) for one in second.changes
    ]
    # The first on a branch has all its files.
    assert {one.path for one in first.changes} == {path for path, _ in first.files()}
    empty = store.session("s").save(allow_empty=True)
    assert empty.changes == ()


def test_its_context_is_what_the_command_prints(store, repo):
    checkpoint = store.session("s").save(
        decisions=[gitcp.Decision("JWT", why="a race"), gitcp.Decision("x", kind="bug")]
    )
    text = checkpoint.context()
    assert "* JWT (because a race)" in text
    assert ok(repo, "context", checkpoint.id)["context"] == text


def test_undo_goes_back_and_forth(store, repo):
    first, _ = two(store, repo)
    session = store.session("s")
    with pytest.raises(gitcp.NothingToDoError):
        session.undo()
    session.restore(first)
    assert (repo / "a").read_bytes() == b"1"
    done = session.undo()
    assert (repo / "a").read_bytes() == b"2"
    assert not (repo / "gone").exists()
    assert done.checkpoint.trigger == "restore"
    store.undo()
    assert (repo / "a").read_bytes() == b"1"


@pytest.mark.parametrize(
    "how", ["id", "commit", "number", "~1", "last~1", "s:1", "object"]
)
def test_a_checkpoint_may_be_a_selector(store, repo, how):
    first, _ = two(store, repo)
    given: Any = {
        "id": first.id,
        "commit": first.commit,
        "number": f"#{first.number}",
        "object": first,
    }.get(how, how)
    session = store.session("s")
    assert session.plan_restore(given).target == first
    assert session.fork(given, "other").last is not None
    session.restore(given)
    assert (repo / "a").read_bytes() == b"1"


def test_last_is_that_of_the_session_itself(store, repo):
    first, second = two(store, repo)
    store.session("other").save(note="newer", allow_empty=True)
    session = store.session("s")
    assert session.plan_restore("last").target == second
    assert session.plan_restore("~1").target == first
    with pytest.raises(gitcp.NotFoundError, match="~2 in s/main"):
        session.plan_restore("~2")
    with pytest.raises(gitcp.NotFoundError):
        store.session("none").plan_restore("last")
    with pytest.raises(gitcp.UsageError, match="empty"):
        session.plan_restore("")


@pytest.mark.parametrize("given", [3, None, b"last", ["last"]])
def test_what_is_no_checkpoint_is_refused(store, repo, given):
    session = store.session("s")
    for call in (session.plan_restore, session.restore):
        with pytest.raises(gitcp.UsageError, match="neither a checkpoint nor"):
            call(given)
    with pytest.raises(gitcp.UsageError, match="neither a checkpoint nor"):
        session.fork(given, "x")


def test_a_text_is_not_a_list(store, repo):
    session = store.session("s")
    text: Any = "hello"
    for name in ("messages", "append", "decisions"):
        with pytest.raises(gitcp.UsageError, match=f"{name} must be a list, not str"):
            session.save(**{name: text})
    with pytest.raises(gitcp.UsageError, match="not bytes"):
        session.save(messages=b"hello")
    first = session.save()
    with pytest.raises(gitcp.UsageError, match="paths must be a list"):
        session.plan_restore(first, paths="src")
    assert list(session.checkpoints()) == [first]


def test_a_decision_is_one_of_the_kinds(store):
    session = store.session("s")
    for kind in KINDS:
        session.save(decisions=[gitcp.Decision("x", kind=kind)])
    before = session.last
    with pytest.raises(gitcp.UsageError, match="no kind of decision 'idea'") as caught:
        session.save(decisions=[gitcp.Decision("x", kind="idea")])
    assert "tried" in str(caught.value.hint)
    text: Any = ["text"]
    with pytest.raises(gitcp.UsageError, match="'text' is not a Decision"):
        session.save(decisions=text)
    assert session.last == before


def test_a_plan_prints_as_what_it_would_do(store, repo):
    first, _ = two(store, repo)
    plan = store.session("s").plan_restore(first)
    assert [(one.status, one.path) for one in plan.changes] == [
        ("modified", b"a"),
        ("added", b"gone"),
        ("deleted", b"new"),
    ]
    assert str(plan).splitlines() == [
        f"restore #{first.number} {first.id} one",
        "  deleted    new",
        "  replaced   a",
        "  created    gone",
        "  talk       none",
        "  1 deleted, 1 replaced, 1 created",
    ]
    (repo / "a").write_bytes(b"1")
    (repo / "gone").write_bytes(b"1")
    (repo / "new").unlink()
    nothing = store.session("s").plan_restore(first, conversation=False)
    assert str(nothing).splitlines()[1:] == ["  no file changes"]


def test_a_traceback_shows_the_hint_and_the_command_line_shows_it_once(store, repo):
    two(store, repo)
    with pytest.raises(gitcp.NotFoundError) as caught:
        store.checkpoint("nothing-like-that")
    hint = caught.value.hint
    assert hint
    assert "".join(traceback.format_exception(caught.value)).count(hint) == 1
    assert fails(repo, 13, "show", "nothing-like-that").count(hint) == 1
    document = json.loads(invoke(repo, "show", "--json", "nothing-like-that").stderr)
    assert hint not in document["error"]["message"]
