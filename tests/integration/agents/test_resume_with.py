"""`gitcp resume`: who continues a conversation, on which branch, and who is refused."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from gitcp.agents import resume
from gitcp.cli import main
from gitcp.clients import codex_exchange
from gitcp.clients.exchange import Text
from gitcp.project.workspace import open_workspace
from tests.support.agent import Agent
from tests.support.gitrepo import git, run_gitcp, tree_bytes
from tests.support.inprocess import fails, invoke, ok
from tests.support.terminal import Terminal


@pytest.fixture
def agent(repo: Path, sealed: Path) -> Agent:
    found = Agent(repo, sealed / ".claude")
    found.turn("first", a="1")
    found.turn("second", a="2")
    return found


def rollout(sealed: Path) -> bytes:
    (path,) = (sealed / ".codex" / "sessions").rglob("rollout-*.jsonl")
    return path.read_bytes()


def texts(raw: bytes) -> list[str]:
    found = codex_exchange.read(raw, {}).messages
    parts = [part for one in found for part in one.parts]
    return [one.text for one in parts if isinstance(one, Text)]


def test_the_newest_conversation_goes_on_where_its_client_has_it(repo, agent):
    done = ok(repo, "resume")
    assert done["how"] == "in-place"
    assert done["resume"] == f"claude --resume {agent.ident}"
    line = invoke(repo, "resume").stdout.decode()
    assert line == f"{done['resume']}\n"


def test_another_client_grows_the_branch_that_the_first_one_grew(repo, agent, sealed):
    before, refs = tree_bytes(repo), git(repo, "for-each-ref", "refs/gitcp")
    done = ok(repo, "resume", "--with", "codex")
    assert done["how"] == "converted"
    assert tree_bytes(repo) == before
    assert git(repo, "for-each-ref", "refs/gitcp") == refs
    assert texts(rollout(sealed)) == ["first", "done: first", "second", "done: second"]
    # Its hook, as the client calls it after a turn.
    (path,) = (sealed / ".codex" / "sessions").rglob("rollout-*.jsonl")
    thread = done["resume"].split()[-1]
    payload = {
        "session_id": thread,
        "transcript_path": str(path),
        "cwd": str(repo),
        "hook_event_name": "Stop",
        "last_assistant_message": "done: second",
    }
    (repo / "b").write_text("b")
    run_gitcp(repo, "hook", "codex", "Stop", input=json.dumps(payload).encode())
    last = ok(repo, "show", "last")["checkpoint"]
    assert (last["session"], last["branch"]) == (agent.line()[0].session, "main")
    assert last["conversation"]["agent"] == "codex"
    assert last["conversation"]["agent_session"] == thread
    # Both are kept, each as its client has it.
    tip = open_workspace(repo).store.tip(last["session"], "main")
    assert tip is not None
    assert tip.conversation(f"codex-{thread}") == path.read_bytes()
    assert b"done: first" in tip.conversation(f"claude-code-{agent.ident}")
    # The first client is still open: it goes on beside it.
    made = agent.turn("third", c="3")
    assert made is not None
    assert made.session == last["session"]
    assert made.branch != "main"


def test_an_older_one_is_made_the_newest_first_and_no_file_changes(repo, agent, sealed):
    first = agent.line()[1]
    before = tree_bytes(repo)
    done = ok(repo, "resume", str(first.number), "--with", "codex")
    assert tree_bytes(repo) == before
    assert texts(rollout(sealed)) == ["first", "done: first"]
    assert done["checkpoint"]["number"] == first.number
    newest = ok(repo, "show", "last")["checkpoint"]
    assert newest["trigger"] == "restore"
    assert newest["restored_from"] == first.id


def test_a_client_that_cannot_take_it_over_is_given_it_to_read(repo, agent):
    ok(repo, "decide", "JWT, not sessions")
    ok(repo, "save")
    before = tree_bytes(repo)
    done = ok(repo, "resume", "--with", "gemini")
    assert done["how"] == "told"
    assert tree_bytes(repo) == before
    assert done["resume"].startswith("gemini -i 'Read ")
    path = Path(done["resume"].removeprefix("gemini -i 'Read ").split(" first. ")[0])
    page = path.read_text()
    assert "done: second" in page
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_no_client_s_needs_one_to_be_named(repo, sealed):
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
    ]
    assert "has a conversation" in fails(repo, 1, "resume")
    ok(repo, "save", "--messages", "-", input=json.dumps(said).encode())
    assert "--with" in fails(repo, 2, "resume")
    assert "does not know the agent" in fails(repo, 2, "resume", "--with", "unheard-of")
    ok(repo, "resume", "--with", "codex")
    assert texts(rollout(sealed)) == ["hello", "hi"]


def test_what_was_made_elsewhere_goes_to_no_client_without_asking(ann, bob, sealed):
    path = ann.parent / "theirs.jsonl"
    record = {
        "type": "user",
        "uuid": "u1",
        "parentUuid": None,
        "sessionId": "11111111-2222-4333-8444-555555555555",
        "cwd": "/",
        "permissionMode": "bypassPermissions",
        "message": {"role": "user", "content": "hello there"},
    }
    path.write_text(f"{json.dumps(record)}\n")
    ok(ann, "save", "-s", "work", "--transcript", str(path))
    ok(ann, "push")
    ok(bob, "pull")
    for options in ([], ["--with", "codex"], ["--with", "gemini"]):
        assert "--trust" in fails(bob, 2, "resume", "work:1", *options)
    assert not (sealed / ".codex").exists()
    assert not (sealed / ".claude").exists()
    ok(bob, "resume", "work:1", "--with", "codex", "--trust")
    written = rollout(sealed)
    assert texts(written) == ["hello there"]
    assert b"bypassPermissions" not in written
    assert ok(bob, "resume", "work:1", "--trust")["how"] == "rebuilt"
    for options in ([], ["--with", "codex"]):
        said = invoke(bob, "resume", "work:1", "--trust", *options).stderr.decode()
        assert re.search(r"the conversation is (by .*, )?from origin; records", said)
        assert "word for word" not in said


@pytest.mark.parametrize(("answer", "starts"), [("y", True), ("n", False), ("", False)])
def test_at_a_terminal_it_asks_before_it_starts_the_client(
    repo, agent, monkeypatch, answer, starts
):
    monkeypatch.chdir(repo)
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(resume, "become", lambda one: started.append(one.command))
    monkeypatch.setattr("sys.stdin", Terminal(io.BytesIO(f"{answer}\n".encode())))
    for name in ("stdout", "stderr"):
        stream = Terminal(io.BytesIO(), write_through=True)
        monkeypatch.setattr(sys, name, stream)
    with mock.patch.dict("os.environ", {"TERM": "dumb"}):
        assert main(["resume"]) == 0
    assert started == ([("claude", "--resume", agent.ident)] if starts else [])


def test_a_result_without_its_call_is_listed_as_left_out(repo, sealed):
    said: list[dict[str, Any]] = [
        {"role": "user", "content": "hello"},
        {"role": "tool", "tool_call_id": "gone", "content": "42 files"},
        {"role": "assistant", "content": "hi"},
    ]
    ok(repo, "save", "--messages", "-", input=json.dumps(said).encode())
    done = ok(repo, "resume", "--with", "codex")
    assert done["left"] == {"results without a call": 1}
    assert texts(rollout(sealed)) == ["hello", "hi"]
    shown = invoke(repo, "resume", "--with", "codex")
    assert b"  left out: 1 results without a call\n" in shown.stderr
