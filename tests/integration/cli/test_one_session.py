"""`-s` narrows `context`, `decisions` and `status` to one session; times within one."""

from __future__ import annotations

import json

import pytest

from gitcp.checkpoints import branch_index
from gitcp.cli.layout import terminal_of
from tests.support.agent import Agent
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
        assert "there is no session 'nope'" in fails(repo, 13, command, "-s", "nope")
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


@pytest.fixture
def asked(repo, tmp_path, monkeypatch):
    """Two conversations, and a session of a person's own."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    first = Agent(repo, tmp_path / "claude")
    first.turn("add VAT to the invoice", vat="1")
    second = Agent(repo, tmp_path / "claude")
    second.turn("write a test/spec", test="1")
    save(repo, "-m", "by hand", a_py=b"1")
    ok(repo, "restore", "-y", "2")
    return first, second


def test_sessions_are_told_by_what_they_began_with(repo, asked):
    first, second = asked
    lines = invoke(repo, "sessions").stdout.decode().splitlines()
    assert [line[2:].split(maxsplit=1)[0] for line in lines] == [
        f"claude-code-{first.ident[:8]}",
        "main",
        f"claude-code-{second.ident[:8]}",
    ]
    assert lines[0].endswith('just now  Claude Code · "add VAT to the invoice"')
    assert lines[1].startswith("* main ")
    assert lines[1].endswith("just now  by hand")
    with terminal_of(60):
        narrow = invoke(repo, "sessions").stdout.decode().splitlines()
    assert [len(line) for line in narrow] == [60, len(lines[1]), 60]
    # What gitcp noted itself names checkpoints by number.
    ok(repo, "restore", "-y", "main:1", "--files")
    ok(repo, "switch", "main", "--restore", "-y")
    ok(repo, "restore", "-y", "main:1")
    assert b"restored #5\n" in invoke(repo, "branches").stdout


def test_a_session_may_be_named_as_the_lists_show_it(repo, asked):
    first, second = asked
    name = f"claude-code-{second.ident[:8]}"
    wanted = {"write a test/spec"}
    for spec in (
        name,
        name[:-2],
        second.ident[:8],
        "#4",
        "4",
        "write a test/spec",
        "A TEST",
    ):
        listed = ok(repo, "log", "-s", spec)["checkpoints"]
        assert {one["session"] for one in listed} == {name}, spec
        assert {one["note"] for one in listed} == wanted
    assert ok(repo, "status", "-s", "add vat")["session"].endswith(first.ident[:8])
    assert ok(repo, "context", "-s", f"{second.ident[:8]}/main")["checkpoint"]
    assert "may be several sessions: claude-code-" in fails(
        repo, 14, "log", "-s", "claude-code"
    )
    assert "there is no session 'nothing like it'" in fails(
        repo, 13, "decisions", "-s", "nothing like it"
    )
    # A name counts before everything else.
    ok(repo, "save", "-s", "4", "--allow-empty")
    assert {one["session"] for one in ok(repo, "log", "-s", "4")["checkpoints"]} == {
        "4"
    }


def test_branches_before_the_first_save_of_one_s_own(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    agent = Agent(repo, tmp_path / "claude")
    agent.turn("add VAT", vat="1")
    done = invoke(repo, "branches")
    assert done.returncode == 0
    assert b"your own saves go to main, where nothing was saved" in done.stderr
    assert ok(repo, "branches")["branches"] == []
    ok(repo, "fork", "1", "try", "--no-switch")
    name = f"claude-code-{agent.ident[:8]}"
    for given in ([name], ["-s", name], ["add VAT"]):
        told = invoke(repo, "branches", *given).stdout.decode()
        assert [line.split()[0] for line in told.splitlines()] == [
            f"{name}/main",
            f"{name}/try",
        ]
    assert "there is no session 'nope'" in fails(repo, 13, "branches", "nope")
    assert "mean the same" in fails(repo, 2, "branches", name, "-s", name)


def test_a_list_of_an_older_gitcp_is_read_again(repo, asked, monkeypatch):
    monkeypatch.setattr(branch_index, "MANY", 1)
    ok(repo, "sessions")
    kept = repo / ".git/gitcp/sessions.json"
    old = {name: entry[:7] for name, entry in json.loads(kept.read_bytes()).items()}
    kept.write_text(json.dumps(old))
    assert b'"add VAT to the invoice"' in invoke(repo, "sessions").stdout
    assert b'"add VAT to the invoice"' in kept.read_bytes()
