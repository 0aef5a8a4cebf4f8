"""`-s` narrows `context`, `decisions` and `status` to one session; times within one."""

from __future__ import annotations

import pytest

from tests.support.clones import save
from tests.support.gitrepo import write_files
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def two(repo):
    """Two sessions with a decision each; the second is where the work tree stands."""
    first = save(repo, "-s", "auth", "--decision", "use JWT", a_py=b"1")
    second = save(repo, "-s", "mail", "--decision", "use SMTP", a_py=b"2")
    return first, second


def texts(document):
    return [entry["text"] for entry in document["decisions"]]


def test_decisions_of_one_session(repo, two):
    ok(repo, "decide", "later")
    assert texts(ok(repo, "decisions")) == ["use SMTP", "use JWT"]
    narrowed = ok(repo, "decisions", "-s", "auth")
    assert texts(narrowed) == ["use JWT"]
    assert narrowed["checkpoint"] == two[0]["id"]
    assert narrowed["pending"] == []
    shown = invoke(repo, "decisions", "--session", "mail/main")
    assert b"use SMTP" in shown.stdout
    assert b"JWT" not in shown.stdout
    assert shown.stderr == b""


def test_context_of_one_session(repo, two):
    whole = ok(repo, "context")["context"]
    assert "use JWT" in whole
    assert "use SMTP" in whole
    narrowed = ok(repo, "context", "-s", "auth")
    assert narrowed["checkpoint"] == two[0]["id"]
    assert "use JWT" in narrowed["context"]
    assert "use SMTP" not in narrowed["context"]


def test_status_of_one_session(repo, two):
    assert ok(repo, "status")["changed"] == 0
    narrowed = ok(repo, "status", "-s", "auth")
    assert (narrowed["session"], narrowed["branch"]) == ("auth", "main")
    assert narrowed["checkpoint"]["id"] == two[0]["id"]
    assert [one["path"] for one in narrowed["changes"]] == ["a.py"]
    shown = invoke(repo, "status", "-s", "auth").stdout.decode().splitlines()
    assert shown[0].startswith("At #1")
    assert shown[1] == "1 file changed: M a.py"
    assert len(shown) == 3


def test_the_newest_branch_of_a_session_is_meant_unless_one_is_named(repo, two):
    ok(repo, "fork", "-y", "1", "try")
    newest = save(repo, a_py=b"3")
    assert (newest["session"], newest["branch"]) == ("auth", "try")
    assert ok(repo, "context", "-s", "auth")["checkpoint"] == newest["id"]
    assert ok(repo, "context", "-s", "auth/main")["checkpoint"] == two[0]["id"]


def test_what_is_not_there_or_given_twice_is_refused(repo, two):
    for command in ("context", "decisions", "status"):
        assert "there is no checkpoint in nope" in fails(
            repo, 13, command, "-s", "nope"
        )
    for command in ("context", "decisions"):
        said = fails(repo, 2, command, "1", "-s", "auth")
        assert "mutually exclusive" in said
        assert "`auth:WHAT`" in said


def test_times_within_one_session(repo, two):
    write_files(repo, {"a.py": b"3"})
    for selector in ("auth:now", "auth@{now}", "auth/main:today 23:59:59"):
        chosen = ok(repo, "show", selector)
        assert chosen["checkpoint"]["session"] == "auth"
    assert ok(repo, "show", "now")["checkpoint"]["session"] == "mail"
    said = fails(repo, 13, "show", "auth:2 years ago")
    assert "auth/main has no checkpoint from 2 years ago or before" in said
    said = fails(repo, 13, "show", "auth@{yesterday 12:00}")
    assert "auth/main has no checkpoint from @{yesterday 12:00}" in said
    assert "there is no checkpoint" in fails(repo, 13, "show", "nope@{now}")
