"""What is read out of Claude Code's transcripts and hooks, and what is left alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gitcp.clients.claude_code import CLIENT, slug
from gitcp.clients.client import ClientPlaces, Event, StoredConversation

BASE = {"session_id": "s1", "transcript_path": "/t/s1.jsonl", "cwd": "/p"}


def line(kind: str, **more) -> bytes:
    return json.dumps({"type": kind, **more}).encode() + b"\n"


def spoke(role: str, uuid: str, *blocks, ident="m1", **more) -> bytes:
    content = [
        {"type": "text", "text": block} if isinstance(block, str) else block
        for block in blocks
    ]
    message = {"role": role, "id": ident, "content": content}
    return line(role, uuid=uuid, message=message, **more)


def event(hook: str, **more) -> Event | None:
    return CLIENT.event(hook, {**BASE, "hook_event_name": hook, **more}, {})


def test_each_hook_means_something():
    begun = event("SessionStart", source="resume")
    assert begun is not None
    assert (begun.what, begun.start_reason) == ("session-start", "resume")
    asked = event("UserPromptSubmit", prompt_id="p1", prompt="do it")
    assert asked is not None
    assert (asked.what, asked.prompt, asked.prompt_text) == (
        "turn-start",
        "p1",
        "do it",
    )
    ended = event("Stop", last_assistant_message="done")
    assert ended is not None
    assert (ended.what, ended.final_text) == ("turn-end", "done")
    assert ended.transcript == Path("/t/s1.jsonl")
    batch = event(
        "PostToolBatch",
        tool_calls=[
            {"tool_name": "Bash", "tool_use_id": "t1", "tool_response": [1]},
            {"tool_name": "Edit", "tool_use_id": "t2"},
            "odd",
        ],
    )
    assert batch is not None
    assert (batch.what, batch.results, batch.tools) == (
        "tool",
        ("t1", "t2"),
        ("Bash", "Edit"),
    )
    for hook, what in (
        ("SessionEnd", "session-end"),
        ("PreCompact", "compact"),
        ("StopFailure", "turn-end"),
    ):
        found = event(hook)
        assert found is not None
        assert found.what == what


def test_what_means_nothing_is_no_event():
    assert event("Notification", message="hi") is None
    assert CLIENT.event("Stop", {"cwd": "/p"}, {}) is None
    assert CLIENT.event("Stop", {**BASE, "session_id": 7}, {}) is None
    # Compaction is done by helpers that leave no transcript.
    gone = "/nowhere/agent-x.jsonl"
    assert event("SubagentStop", agent_type="", agent_transcript_path=gone) is None


def test_the_environment_is_not_kept():
    secret = {"CLAUDE_CODE_MESSAGING_TOKEN": "t0ken", "CLAUDE_PROJECT_DIR": "/p"}
    found = CLIENT.event("Stop", BASE, secret)
    assert found is not None
    assert found.project == "/p"
    assert "t0ken" not in repr(found)


def test_a_turn_has_ended_when_its_last_words_are_there():
    ended = event("Stop", last_assistant_message="All done.\n")
    assert ended is not None
    asks = spoke("user", "u1", "please")
    says = spoke("assistant", "a1", "All done.")
    assert not CLIENT.is_flushed(ended, b"")
    assert not CLIENT.is_flushed(ended, asks)
    assert CLIENT.is_flushed(ended, asks + says)
    # A line that is still being written does not count, what follows does not matter.
    assert not CLIENT.is_flushed(ended, asks + says.rstrip(b"\n"))
    assert CLIENT.is_flushed(ended, asks + says + line("system", subtype="x"))
    # Not an earlier message of the turn with the same words.
    other = spoke("assistant", "a2", "Still at it.", ident="m2")
    assert not CLIENT.is_flushed(ended, asks + says + other)
    # A message of several blocks is several records.
    parts = spoke("assistant", "a3", "All ", ident="m3")
    parts += spoke("assistant", "a4", "done.", ident="m3")
    assert CLIENT.is_flushed(ended, asks + parts)
    silent = event("Stop")
    assert silent is not None
    assert CLIENT.is_flushed(silent, b"")


def test_a_batch_is_over_when_all_results_are_there():
    batch = event(
        "PostToolBatch",
        tool_calls=[{"tool_use_id": "t1"}, {"tool_use_id": "t2"}],
    )
    assert batch is not None
    calls = spoke(
        "assistant",
        "a1",
        {"type": "tool_use", "id": "t1"},
        {"type": "tool_use", "id": "t2"},
    )
    result = {"type": "tool_result", "tool_use_id": "t1"}
    first = spoke("user", "u1", result)
    second = spoke("user", "u2", {**result, "tool_use_id": "t2"})
    assert not CLIENT.is_flushed(batch, calls)
    assert not CLIENT.is_flushed(batch, calls + first)
    assert CLIENT.is_flushed(batch, calls + first + second)


def test_bookkeeping_is_not_speech():
    quiet = line("last-prompt", lastPrompt='say "user"') + line("cost-state")
    quiet += line("system", subtype="stop_hook_summary") + b"{torn\n\xff\n"
    quiet += line("attachment", note={"type": "user"}) + b"[1]\n" + b"\n"
    assert not CLIENT.has_messages(quiet)
    assert CLIENT.has_messages(quiet + spoke("user", "u1", "hello"))


def test_a_prompt_is_found_by_its_id_where_it_was_asked():
    one = spoke("user", "u1", "one", promptId="p1")
    answer = spoke("assistant", "a1", "p1 is just a word", parentUuid="u1")
    result = {"type": "tool_result", "tool_use_id": "t1", "content": []}
    used = spoke("user", "u2", result, promptId="p1")
    two = spoke("user", "u3", "two", promptId="p2")
    whole = one + answer + used + two
    assert CLIENT.position(whole, "p1") == 0
    assert CLIENT.position(whole, "u1") == 0
    assert CLIENT.position(whole, "a1") == len(one)
    assert CLIENT.position(whole, "p2") == len(one + answer + used)
    assert CLIENT.position(whole, "p3") is None


def test_in_a_fork_of_the_client_the_last_prompt_has_the_id():
    old = spoke("user", "u1", "one", promptId="p9")
    old += spoke("assistant", "a1", "done")
    new = spoke("user", "u2", "two", promptId="p9")
    result = {"type": "tool_result", "tool_use_id": "t1"}
    used = spoke("user", "u3", result, promptId="p9")
    assert CLIENT.position(old + new + used, "p9") == len(old)


def test_a_copy_is_told_from_what_it_was_copied_from():
    parent = spoke("user", "u1", "one") + spoke("assistant", "a1", "x")
    more = parent + spoke("user", "u2", "two") + spoke("assistant", "a2", "y")
    # The client keeps the ids; the SDK makes new ones and says what they were.
    kept = CLIENT.copied(parent + spoke("user", "u9", "else"))
    renamed = CLIENT.copied(
        spoke("user", "n1", "one", forkedFrom={"sessionId": "s", "messageUuid": "u1"})
        + spoke("assistant", "n2", "x", forkedFrom={"messageUuid": "a1"})
    )
    for copied in (kept, renamed):
        assert CLIENT.first_new_message(parent, copied) is None
        assert CLIENT.first_new_message(more, copied) == "u2"
    assert CLIENT.first_new_message(parent, frozenset({"u7"})) == ""


def kept(content: bytes, **beside: bytes) -> StoredConversation:
    return StoredConversation("old-id", content, beside, Path("/p q/é"))


PLACE = ClientPlaces(Path("/p q"), Path("/home/me"), {})


def test_a_conversation_goes_back_whole_lines_under_a_new_id():
    whole = spoke("user", "u1", "one") + b'{"type":"assistant","mess'
    made = CLIENT.resume_files(
        kept(whole, **{"agent-a1.jsonl": b"{}\n", "agent-a1.meta.json": b"{}"}), PLACE
    )
    assert made is not None
    (path, content), *beside = made.files
    assert content == spoke("user", "u1", "one")
    assert path == Path(f"/home/me/.claude/projects/-p-q--/{made.session}.jsonl")
    assert made.command == ("claude", "--resume", made.session)
    folder = path.with_suffix("") / "subagents"
    assert [one for one, _ in beside] == [
        folder / "agent-a1.jsonl",
        folder / "agent-a1.meta.json",
    ]
    again = CLIENT.resume_files(kept(whole), PLACE)
    assert again is not None
    assert again.session != made.session


def test_what_is_pulled_from_others_writes_nowhere_else():
    whole = spoke("user", "u1", "one")
    names = {"../../settings.json": b"x", "agent-../x.jsonl": b"x", "run.sh": b"x"}
    made = CLIENT.resume_files(kept(whole, **names), PLACE)
    assert made is not None
    assert len(made.files) == 1
    evil = CLIENT.resume_files(kept(whole)._replace(session="../.."), PLACE)
    assert evil is not None
    assert evil.copies == ()


def test_a_transcript_without_messages_cannot_be_resumed():
    assert CLIENT.resume_files(kept(b""), PLACE) is None
    assert CLIENT.resume_files(kept(line("mode", mode="normal")), PLACE) is None


@pytest.mark.parametrize(
    "path",
    [
        "/home/dev/my project/a_b.c",
        "/tmp/ä🙂/x",
        "/tmp/" + "long directory/" * 20,
        "/tmp/" + "é🙂" * 150,
    ],
)
def test_a_project_has_the_directory_that_the_client_gives_it(path):
    sdk = pytest.importorskip("claude_agent_sdk")
    if "🙂" in path and len(path) > 200:
        # The SDK counts characters there, the client units of UTF-16, as JavaScript.
        assert slug(path)[:200] == "-tmp-" + "-" * 195
        return
    expected = sdk.project_key_for_directory(path)
    if "🙂" in path:
        expected = expected.replace("-tmp---", "-tmp----")
    assert slug(path) == expected
