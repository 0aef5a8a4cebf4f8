"""From a client's hook to a checkpoint: when there is one, and what is in it."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import subprocess
import threading
import time

import pytest

from gitcp import durable, notices
from gitcp.agents import bindings, branching
from gitcp.agents import hook_events as agent_turns
from gitcp.checkpoints import watch
from gitcp.checkpoints.selectors import select
from gitcp.clients import registry
from gitcp.errors import BusyError, GitcpError
from gitcp.project.workspace import open_workspace
from gitcp.store.checkpoint import Checkpoint
from tests.support import restores
from tests.support.agent import Agent
from tests.support.forms import lock_of
from tests.support.gitrepo import git, git_line, make_repo, run_gitcp
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return tmp_path / "claude"


@pytest.fixture
def agent(repo, config):
    return Agent(repo, config)


def setting(repo, name, *values):
    for value in values:
        git(repo, "config", "--add", f"gitcp.{name}", value)


def triggers(agent):
    return [one.trigger for one in agent.line()]


def stored(agent):
    tip = agent.line()[-1]
    return tip.conversation(f"claude-code-{agent.ident}")


def said(checkpoint):
    found = checkpoint.manifest.conversation
    assert found is not None
    return found


def test_a_turn_is_a_checkpoint_with_its_words(agent):
    agent.turn("do this\nand that", new="1")
    agent.turn("x" * 100, new="2")
    assert triggers(agent) == ["turn-start", "turn-end", "turn-end"]
    assert [one.note for one in agent.line()] == [
        "before: do this",
        "do this",
        "x" * 71 + "…",
    ]
    raw = agent.transcript.read_bytes()
    assert raw.startswith(stored(agent))
    # All but what the client wrote after its hook.
    assert len(raw.splitlines()) - len(stored(agent).splitlines()) == 1


def test_before_a_prompt_only_what_is_new_is_saved(agent, repo):
    agent.turn("one", new="1")
    assert agent.ask("two") is None
    agent.answer("done")
    (repo / "by-hand").write_text("edited")
    made = agent.ask("three")
    assert made is not None
    assert (made.trigger, made.note) == ("turn-start", "before: three")
    # What was said meanwhile, as after a compaction, is a reason, too.
    agent.answer("done")
    agent.spoke("user", "a summary", isCompactSummary=True)
    assert agent.ask("four") is not None


def test_the_end_of_a_session_saves_what_no_turn_has(agent, repo):
    agent.turn("one", new="1")
    assert agent.hook("SessionEnd", reason="other") is None
    agent.ask("two")
    (repo / "new").write_text("2")
    made = agent.hook("SessionEnd", reason="other")
    assert made is not None
    assert made.trigger == "session-end"
    assert made.conversation().splitlines()[-1].endswith(b"}")


def test_a_client_that_is_closed_without_a_prompt_leaves_no_session(
    agent, repo, tmp_path
):
    def unused() -> Agent:
        client = Agent(repo, tmp_path / "claude")
        client.hook("SessionStart", source="startup")
        client.record("file-history-snapshot", messageId="x")
        return client

    # Nothing was ever saved here, and nothing is now.
    assert unused().hook("SessionEnd", reason="other") is None
    assert ok(repo, "sessions")["sessions"] == []
    agent.turn("one", new="1")
    agent.hook("SessionEnd", reason="other")
    before = ok(repo, "log", "--full")
    assert unused().hook("SessionEnd", reason="other") is None
    assert ok(repo, "log", "--full") == before
    # What a person changed meanwhile is saved, in the session that is there.
    client = unused()
    (repo / "new").write_text("by hand")
    made = client.hook("SessionEnd", reason="other")
    assert made is not None
    assert made.session == f"claude-code-{agent.ident[:8]}"
    assert made.note == "changed before Claude Code was closed"
    assert len(ok(repo, "sessions")["sessions"]) == 1


def test_the_end_of_a_turn_waits_for_the_last_words(agent, monkeypatch):
    """The client calls its hook some milliseconds before it writes them."""
    agent.ask("one")
    late = threading.Timer(0.4, agent.spoke, ("assistant", "done at last"))
    late.start()
    made = agent.hook("Stop", last_assistant_message="done at last")
    late.join()
    assert made is not None
    assert made.conversation() == agent.transcript.read_bytes()
    # Not for ever: something else may have been meant.
    agent.ask("two")
    monkeypatch.setattr("gitcp.agents.transcripts._PATIENCE", 0.2)
    made = agent.hook("Stop", last_assistant_message="never written")
    assert made is not None
    assert made.conversation() == agent.transcript.read_bytes()


def test_what_a_turn_wrote_is_saved_before_a_command_that_may_delete_it(agent, repo):
    agent.ask("write it, then clean up")
    (repo / "new").write_text("hours of work")
    assert agent.about_to_run("ls -la && git status") is None
    made = agent.about_to_run("rm -rf *")
    assert (made.trigger, made.note) == (
        "before-command",
        "before `rm -rf *`: write it, then clean up",
    )
    assert b"new" in dict(made.files())
    # Nothing changed since: what the conversation gained is no reason.
    agent.spoke("assistant", "once more")
    assert agent.about_to_run("rm -rf *") is None
    (repo / "new").unlink()
    agent.answer("oh")
    ok(repo, "restore", made.id, "--files", "--yes")
    assert (repo / "new").read_text() == "hours of work"
    turn = ok(repo, "log")["checkpoints"][-1]
    assert turn["trigger"] == "turn-end"
    assert made.id in turn["turn"]["checkpoints"]


def test_a_command_without_text_is_no_event(agent):
    agent.ask("go")
    assert agent.hook("PreToolUse", tool_name="Bash", tool_input={}) is None
    assert agent.hook("PreToolUse", tool_name="Bash", tool_input="rm") is None


def test_a_batch_of_tools_waits_for_its_results(agent, repo):
    setting(repo, "frequency", "tool")
    agent.ask("one")
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
    message = {"role": "user", "content": [result]}
    late = threading.Timer(
        0.4, agent.record, ("user",), {"uuid": "u9", "message": message}
    )
    late.start()
    calls = [{"tool_name": "Bash", "tool_use_id": "t1"}]
    made = agent.hook("PostToolBatch", tool_calls=calls)
    late.join()
    assert made is not None
    assert b'"tool_use_id": "t1"' in made.conversation()


def test_a_save_adds_only_what_is_new(agent):
    for number in range(5):
        agent.turn(f"turn {number}", new=str(number))
    line = agent.line()
    assert line[0].manifest.conversation is None
    assert [said(one).segments for one in line[1:]] == [1, 2, 3, 4, 5]
    for one in line[1:]:
        assert agent.transcript.read_bytes().startswith(one.conversation())


def test_unknown_records_are_kept_as_they_are(agent):
    odd = b'{"type":"hologram","x":1e999}\n\n[1,2]\nnot json at all\n\xff\xfe\n{"a":"\\ud800"}\n'
    agent.write(odd)
    agent.turn("one", new="1")
    assert stored(agent).startswith(odd)
    shown = invoke(agent.top, "messages", "--format", "markdown")
    assert shown.returncode == 0
    assert b"hologram" in shown.stdout
    assert invoke(agent.top, "show").returncode == 0


def test_transcripts_of_older_clients_work_alike(agent):
    agent.record("summary", summary="what was", leafUuid="u0")
    agent.write(b'{"type":"user","message":{"role":"user","content":"hi"}}\n')
    made = agent.hook("Stop")
    assert made is not None
    assert made.conversation() == agent.transcript.read_bytes()
    found = ok(agent.top, "restore", "last", "--yes")
    assert found["resume"].startswith("claude --resume ")


def test_a_line_that_is_being_written_waits_for_the_next_save(agent, repo):
    agent.turn("one", new="1")
    whole = agent.transcript.read_bytes()
    agent.write(b'{"type":"assistant","mess')
    for number, hook in enumerate(("Stop", "SessionEnd")):
        (repo / "new").write_text(f"saved {number}")
        made = agent.hook(hook, last_assistant_message="")
        assert made is not None
        assert made.conversation() == whole
    agent.write(b'age":{}}\n')
    agent.turn("two", new="2")
    assert stored(agent).startswith(whole + b'{"type":"assistant","message":{}}\n')


@pytest.mark.parametrize("how", ["shorter", "other end", "other middle", "new file"])
def test_a_file_that_the_client_rewrote_is_stored_whole(agent, repo, how):
    for number in range(4):
        agent.turn(f"turn {number}", new=str(number))
    before = [one.conversation() for one in agent.line()]
    lines = agent.transcript.read_bytes().splitlines(keepends=True)
    if how == "shorter":
        lines = lines[:4]
    elif how == "other end":
        lines[-2:] = [b'{"type":"user","message":{"role":"user"}}\n']
    elif how == "other middle":
        # As long as it was.
        lines[3] = lines[3].swapcase()
    else:
        agent.transcript.unlink()
    agent.transcript.write_bytes(b"".join(lines))
    agent.spoke("user", "on we go")
    made = agent.hook("Stop", last_assistant_message="")
    assert made is not None
    assert made.conversation() == agent.transcript.read_bytes()
    assert [one.conversation() for one in agent.line()][:-1] == before
    assert ok(repo, "verify")["ok"]


def test_what_changed_in_place_is_stored_though_nothing_was_added(agent, repo):
    for number in range(3):
        agent.turn(f"turn {number}", new=str(number))
    raw = agent.transcript.read_bytes()
    agent.transcript.write_bytes(raw.replace(b"turn 0", b"TURN 0"))
    made = agent.hook("SessionEnd", reason="other")
    assert made is not None
    assert made.conversation() == agent.transcript.read_bytes() != raw
    assert agent.hook("SessionEnd", reason="other") is None


def test_a_file_that_is_gone_takes_nothing_along(agent, repo):
    agent.turn("one", new="1")
    before = stored(agent)
    agent.transcript.unlink()
    (repo / "new").write_text("2")
    made = agent.hook("Stop", last_assistant_message="")
    assert made is not None
    assert stored(agent) == before


def test_subagents_are_kept_beside(agent):
    folder = agent.transcript.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    sub = folder / "agent-a1.jsonl"
    sub.write_bytes(b'{"type":"user","uuid":"s1","message":{"role":"user"}}\n')
    (folder / "agent-a1.meta.json").write_bytes(b'{"agentType":"x"}')
    (folder / "notes.txt").write_bytes(b"not ours")
    agent.ask("one")
    more = {"agent_id": "a1", "agent_type": "x", "agent_transcript_path": str(sub)}
    made = agent.hook("SubagentStop", **more)
    assert made is not None
    assert made.trigger == "subagent-stop"
    assert said(made).source == f"claude-code-{agent.ident}"
    agent.answer("done")
    # A turn in which only the subagent's file grew still has the conversation's own name.
    sub.write_bytes(sub.read_bytes() + b'{"type":"assistant","message":{}}\n')
    made = agent.hook("SubagentStop", **more)
    assert made is not None
    assert said(made).source == f"claude-code-{agent.ident}"
    done = ok(agent.top, "restore", "last", "--yes")
    (new,) = agent.transcript.parent.parent.glob(
        f"*/{done['resume'].split()[-1]}/subagents"
    )
    assert {path.name: path.read_bytes() for path in new.iterdir()} == {
        "agent-a1.jsonl": sub.read_bytes(),
        "agent-a1.meta.json": b'{"agentType":"x"}',
    }


def test_settings_say_when(agent, repo):
    agent.turn("one", new="1")
    calls = [{"tool_name": "Bash"}]
    (repo / "new").write_text("in work")
    assert agent.hook("PostToolBatch", tool_calls=calls) is None
    setting(repo, "frequency", "tool")
    made = agent.hook("PostToolBatch", tool_calls=calls)
    assert made is not None
    assert (made.trigger, made.note) == ("tool", "Bash: one")
    setting(repo, "triggers", "turn-start,turn-end")
    (repo / "new").write_text("in work still")
    assert agent.hook("PostToolBatch", tool_calls=calls) is None
    assert agent.turn("two", new="2") is not None
    setting(repo, "frequency", "manual")
    assert agent.turn("three", new="3") is None
    setting(repo, "frequency", "turn")
    setting(repo, "autoCheckpoint", "false")
    assert agent.turn("four", new="4") is None


def test_a_long_turn_is_saved_at_an_interval(agent, repo):
    agent.turn("one", new="1")
    agent.ask("two")
    (repo / "new").write_text("hours later")
    ref = repo / f".git/refs/gitcp/s/claude-code-{agent.ident[:8]}/main"
    assert agent.hook("PostToolBatch") is None
    setting(repo, "intervalMinutes", "0.00001")
    made = agent.hook("PostToolBatch")
    assert made is not None
    assert made.trigger == "interval"
    # Not when nothing changed, nor when it is not wanted; a packed ref is looked up.
    assert agent.hook("PostToolBatch") is None
    git(repo, "pack-refs", "--all")
    assert not ref.exists()
    (repo / "new").write_text("days later")
    setting(repo, "intervalMinutes", "0")
    assert agent.hook("PostToolBatch") is None
    setting(repo, "intervalMinutes", "30")
    assert agent.hook("PostToolBatch") is None
    setting(repo, "intervalMinutes", "0.00001")
    assert agent.hook("PostToolBatch") is not None


def test_an_agent_in_another_repository_still_works_for_its_project(
    agent, repo, tmp_path, monkeypatch
):
    nested = make_repo(repo / "vendor", {"x": b"1"})
    monkeypatch.setenv("CLAUDE_PROJECT_DIR", str(repo))
    agent.spoke("user", "hello")
    made = agent.hook("Stop", cwd=str(nested))
    assert made is not None
    assert not (nested / ".git" / "gitcp").exists()
    assert agent.line() == [made]
    # In a linked work tree of the project it is that one.
    other = tmp_path / "linked"
    git(repo, "worktree", "add", "--quiet", "--detach", other)
    (other / "new").write_text("there")
    made = agent.hook("Stop", cwd=str(other))
    assert made is not None
    assert made.entry(b"new") is not None
    # And where there is nothing at all, the project.
    assert agent.hook("Stop", cwd=str(tmp_path)) is not None


def test_two_agents_in_one_tree_have_a_session_each(repo, config):
    one, two = Agent(repo, config), Agent(repo, config)
    for number in range(3):
        one.turn(f"one {number}", a=str(number))
        two.turn(f"two {number}", b=str(number))
    for agent in (one, two):
        ends = [found for found in agent.line() if found.trigger == "turn-end"]
        assert len(ends) == 3
        assert {said(found).agent_session for found in ends} == {agent.ident}
        assert agent.transcript.read_bytes().startswith(ends[-1].conversation())
    # No hook moves the person who works beside them.
    assert open_workspace(repo).current().session == "main"


def test_ids_that_begin_alike_are_told_apart(repo, config):
    one = Agent(repo, config, "abcdefab-0000-4000-8000-000000000001")
    two = Agent(repo, config, "abcdefab-0000-4000-8000-000000000002")
    one.turn("one", a="1")
    two.turn("two", a="2")
    names = {found["name"] for found in ok(repo, "sessions")["sessions"]}
    assert names == {"claude-code-abcdefab", f"claude-code-{two.ident}"}


def test_what_a_restore_takes_over_is_not_written_to_by_the_old_session(agent, repo):
    agent.turn("one", new="1")
    first = agent.line()[-1]
    agent.turn("two", new="2")
    done = ok(repo, "restore", first.id, "--yes")
    new = done["resume"].split()[-1]
    tip = agent.line()[-1]
    agent.turn("three", new="3")
    assert agent.line()[-1].id == tip.id
    workspace = open_workspace(repo)
    binding = bindings.find(workspace, "claude-code", agent.ident)
    assert binding is not None
    assert binding.branch == f"after-restore-{first.number}"
    assert workspace.current().session == "main"
    # The restored one, which goes on from the copy, grows the branch.
    copy = Agent(repo, agent.transcript.parents[2], new)
    (copy.transcript,) = agent.transcript.parents[1].glob(f"*/{new}.jsonl")
    made = copy.turn("four", new="4")
    assert made is not None
    assert (made.session, made.branch) == (tip.session, "main")
    assert made.conversation().startswith(first.conversation())
    assert said(made).source == f"claude-code-{agent.ident}"
    # The copy shares what it was copied from.
    assert said(made).segments == 2


def test_where_that_checkpoint_was_pruned_the_old_session_is_a_new_one(agent, repo):
    agent.turn("one", new="1")
    agent.turn("two", new="2")
    ok(repo, "restore", "2", "--yes")
    tip = agent.line()[-1]
    (binding,) = (repo / ".git/gitcp/agents/claude-code").glob(f"{agent.ident}.json")
    known = json.loads(binding.read_bytes())
    binding.write_text(json.dumps({**known, "superseded": "0" * 12}))
    made = agent.turn("three", new="3")
    assert made is not None
    assert made.session == f"claude-code-{agent.ident}"
    assert made.conversation() == agent.transcript.read_bytes().rpartition(b"\n{")[
        0
    ] + (b"\n")
    assert agent.line()[-1].id == tip.id


def test_a_copy_that_the_client_made_is_a_fork(agent, repo, config):
    agent.turn("one", new="1")
    agent.turn("two", new="2")
    others = [Agent(repo, config) for _ in range(3)]
    for other in others:
        other.turn("else", other="1")
    lines = agent.transcript.read_bytes().splitlines(keepends=True)
    # Up to the end of the first turn, under another id.
    copy = Agent(repo, config)
    first = b"".join(lines[:3]).replace(agent.ident.encode(), copy.ident.encode())
    copy.hook("SessionStart", source="fork")
    assert (
        copy.hook("UserPromptSubmit", prompt="apart", prompt_id="the-prompt-apart")
        is None
    )
    copy.write(first)
    said = datetime.datetime.fromtimestamp(time.time(), datetime.UTC).isoformat()
    copy.spoke("user", "apart", promptId="the-prompt-apart", timestamp=said)
    made = copy.answer("done apart")
    assert made is not None
    assert (made.branch, made.note) == (f"fork-{copy.ident[:8]}", "apart")
    assert made.session == f"claude-code-{agent.ident[:8]}"
    forked = open_workspace(repo).store.checkpoint(made.raw.parents[0])
    assert forked is not None
    assert forked.manifest.forked_from == agent.line()[1].id
    # Going back to before its first prompt stays on its branch.
    assert select(open_workspace(repo), "the-prompt-apart").id == forked.id


def test_a_copy_hangs_below_the_branch_it_shares_most_with(agent, repo, config):
    agent.turn("one", new="1")
    agent.turn("two", new="2")
    first = agent.line()[1]
    done = ok(repo, "fork", first.id, "other", "--yes")
    other = Agent(repo, config, done["resume"].split()[-1])
    (other.transcript,) = config.glob(f"projects/*/{other.ident}.jsonl")
    apart = other.turn("apart", new="3")
    assert apart is not None
    assert (apart.session, apart.branch) == (first.session, "other")
    # Both begin alike, and the one that was left last is not the one that is copied.
    agent.turn("three", new="4")
    copy = Agent(repo, config)
    copy.hook("SessionStart", source="fork")
    copy.write(other.transcript.read_bytes())
    made = copy.turn("further", new="5")
    assert made is not None
    assert (made.session, made.branch) == (first.session, f"fork-{copy.ident[:8]}")
    line = [one.id for one in open_workspace(repo).store.line(made)]
    assert apart.id in line


@pytest.mark.parametrize("alike", ["01a1fea1-ca05-74c3-b8e7-5aa8e2{}", "ses_e01e{}"])
def test_sessions_that_begin_in_the_same_minute_have_names_of_their_own(
    repo, config, alike
):
    # Neither sees a checkpoint of the other when it looks for a name.
    idents = (alike.format("304e02aaaa"), alike.format("94c57abbbb"))
    agents = [Agent(repo, config, ident) for ident in idents]
    client = registry.client("claude-code")
    events = []
    for agent in agents:
        event = agent_turns.read_event(client, "Stop", agent.payload("Stop"), {})
        assert event is not None
        events.append(event)
    found = [
        branching.settle(open_workspace(repo), client, one, None) for one in events
    ]
    assert len({one.session for one in found}) == 2


def test_the_hook_itself_is_silent_whatever_comes(repo, agent, tmp_path):
    def call(*args, cwd=repo, sent=b"", **env):
        done = run_gitcp(cwd, "hook", *args, input=sent, env=env)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), args
        log = repo / ".git" / "gitcp" / "hooks.log"
        return log.read_text() if log.exists() else ""

    agent.spoke("user", "hello")
    good = agent.payload("Stop")
    assert call("claude-code", "Stop", sent=good, GITCP_DISABLE="1") == ""
    assert agent.line() == []
    assert call("claude-code", "Notification", sent=good) == ""
    assert call("claude-code", "Stop", cwd=tmp_path, sent=b"{}") == ""
    assert call("claude-code", "Stop", sent=good) == ""
    assert len(agent.line()) == 1
    assert "unknown data" in call("claude-code", "Stop", sent=b"{torn")
    assert "unknown data" in call("claude-code", "Stop", sent=b"[1]")
    assert "unknown data" in call("claude-code", "Stop")
    assert "does not know the agent 'unknown'" in call("unknown", "Stop", sent=good)
    bare = call("claude-code", "Stop", cwd=tmp_path, sent=good, GITCP_FREQUENCY="x")
    assert "gitcp.frequency is 'x'" in bare or bare


def test_two_hooks_for_one_event_make_one_checkpoint(agent, repo):
    agent.turn("one", new="1")
    agent.spoke("user", "two")
    agent.spoke("assistant", "done two")
    payload = agent.payload("Stop", last_assistant_message="done two")
    threads = [
        threading.Thread(
            target=run_gitcp,
            args=(repo, "hook", "claude-code", "Stop"),
            kwargs={"input": payload},
        )
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert triggers(agent) == ["turn-start", "turn-end", "turn-end"]
    assert not (repo / ".git" / "gitcp" / "hooks.log").exists()
    assert stored(agent) == agent.transcript.read_bytes()


def test_nothing_of_the_environment_is_stored(agent, repo):
    secret = "sk-from-the-environment"
    agent.spoke("user", "hello")
    run_gitcp(
        repo,
        "hook",
        "claude-code",
        "Stop",
        input=agent.payload("Stop"),
        env={"CLAUDE_CODE_MESSAGING_TOKEN": secret, "ANTHROPIC_API_KEY": secret},
    )
    assert len(agent.line()) == 1
    dumped = subprocess.run(
        "git cat-file --batch-all-objects --batch; cat .git/gitcp-numbers;"
        " find .git/gitcp -name '*.json' -exec cat {} +",
        shell=True,
        cwd=repo,
        capture_output=True,
        check=True,
    ).stdout
    assert agent.ident.encode() in dumped
    assert secret.encode() not in dumped


def test_a_prompt_that_is_no_unicode_is_still_a_turn(agent, monkeypatch):
    # The transcript never has the text as the hook gets it.
    monkeypatch.setattr("gitcp.agents.transcripts._PATIENCE", 0.2)
    payload = agent.payload("UserPromptSubmit", prompt="lone \ud800 half")
    assert b"\\ud800" in payload
    assert agent.turn("lone \ud800 half", new="1") is not None
    assert "lone" in agent.line()[-1].note


def test_bindings_that_are_damaged_are_made_again(agent, repo):
    agent.turn("one", new="1")
    (binding,) = (repo / ".git/gitcp/agents").glob("*/*.json")
    for content in (b"", b"{}", b"\xff"):
        binding.write_bytes(content)
        assert agent.turn("more", new="2") is not None
    assert triggers(agent).count("turn-end") == 4
    assert {one.branch for one in agent.line()} == {"main"}


# --- restoring ------------------------------------------------------------------------


def test_a_state_is_found_by_the_prompt_that_followed_it(agent, repo):
    agent.turn("one", new="1")
    first = agent.asked
    agent.turn("two", new="2")
    (repo / "new").write_text("by hand")
    agent.turn("three", new="3")
    third = agent.asked
    assert ok(repo, "show", first["uuid"])["checkpoint"]["trigger"] == "turn-start"
    found = ok(repo, "show", third["promptId"])["checkpoint"]
    assert found["note"] == "before: three"
    ok(repo, "restore", third["uuid"], "--yes")
    assert (repo / "new").read_text() == "by hand"


def test_a_prompt_of_what_was_left_behind_is_found_too(agent, repo):
    agent.turn("one", new="1")
    agent.turn("two", new="2")
    asked = agent.asked
    ok(repo, "restore", agent.line()[1].id, "--yes")
    done = ok(repo, "restore", asked["uuid"], "--yes")
    assert (repo / "new").read_text() == "1"
    assert done["checkpoint"]["branch"] == "main"


def test_where_there_is_no_conversation_there_is_nothing_to_resume(agent, repo):
    agent.turn("one", new="1")
    assert ok(repo, "restore", "1", "--yes")["resume"] is None
    assert ok(repo, "restore", "2", "--yes", "--files")["resume"] is None
    assert ok(repo, "restore", "2", "--dry-run")["resume"] is None
    done = ok(repo, "restore", "2", "--yes", "--agent", "claude-code")
    assert done["resume"].startswith("claude --resume ")
    assert "has no conversation" in fails(
        repo, 2, "restore", "1", "--yes", "--agent", "claude-code"
    )
    assert "does not know the agent" in fails(
        repo, 2, "restore", "2", "--yes", "--agent", "unknown"
    )
    assert "only files" in fails(
        repo, 2, "restore", "2", "--yes", "--files", "--agent", "claude-code"
    )


def test_the_command_goes_to_where_the_agent_was(agent, repo, tmp_path):
    (repo / "src").mkdir(exist_ok=True)
    agent.top = repo / "src"
    agent.spoke("user", "hello")
    agent.hook("Stop", cwd=str(repo / "src"))
    done = ok(repo, "restore", "last", "--yes")
    assert done["resume"].startswith(f"cd {repo}/src && claude --resume ")
    shown = invoke(repo, "restore", "last", "--yes")
    assert f"cd {repo}/src && claude --resume " in shown.stdout.decode()


def test_a_conversation_that_cannot_be_written_back_is_told(agent, repo, config):
    agent.turn("one", new="1")
    agent.turn("two", new="2")
    (config / "projects").rename(config / "moved")
    (config / "projects").write_bytes(b"in the way")
    done = invoke(repo, "restore", "2", "--yes", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["resume"] is None
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert "could not be restored for its client" in error["message"]
    assert (repo / "new").read_text() == "1"


def test_undo_hands_the_later_conversation_back(agent, repo):
    agent.turn("one", new="1")
    made = agent.turn("two", new="2")
    assert made is not None
    ok(repo, "restore", "2", "--yes")
    done = ok(repo, "undo", "--yes")
    (copy,) = agent.transcript.parents[1].glob(f"*/{done['resume'].split()[-1]}.jsonl")
    assert copy.read_bytes() == made.conversation()


def test_an_empty_selector_is_not_the_last(agent, repo):
    agent.turn("one", new="1")
    assert "is empty" in fails(repo, 2, "restore", "", "--yes")


def test_status_tells_who_grows_what(agent, repo):
    agent.turn("one", new="1")
    (found,) = ok(repo, "status")["agents"]
    assert found == {
        "agent": "claude-code",
        "agent_session": agent.ident,
        "session": f"claude-code-{agent.ident[:8]}",
        "branch": "main",
    }
    assert agent.ident in invoke(repo, "-v", "status").stdout.decode()


# --- watch ----------------------------------------------------------------------------


def test_watching_saves_when_it_is_due(repo):
    workspace = open_workspace(repo)
    now = [1_000_000_000.0]
    slept = []

    def sleep(seconds):
        slept.append(seconds)
        now[0] += seconds
        if len(slept) == 3:
            (repo / "new").write_text("changed")

    workspace.store._clock = lambda: now[0]
    found = watch.watch(workspace, 60, sleep=sleep, clock=lambda: now[0])
    first = next(found)
    assert isinstance(first, Checkpoint)
    assert first.trigger == "interval"
    assert slept == []
    second = next(found)
    assert isinstance(second, Checkpoint)
    assert second.entry(b"new") is not None
    assert 60 <= sum(slept) <= 130
    assert max(slept) <= 5


def test_watching_outlives_a_clock_that_went_back_and_a_save_that_failed(repo):
    ok(repo, "save")
    workspace = open_workspace(repo)
    (repo / "new").write_text("changed")
    # The checkpoint that is there was made decades later.
    found = watch.watch(workspace, 60, sleep=lambda _: None, clock=lambda: 1e9)
    assert isinstance(next(found), Checkpoint)
    (workspace.directory / "restore.json").write_text("{}")
    later = iter([2e9 + 100 * step for step in range(10)])
    found = watch.watch(workspace, 60, sleep=lambda _: None, clock=lambda: next(later))
    assert isinstance(next(found), GitcpError)
    (workspace.directory / "restore.json").unlink()
    (repo / "new").write_text("changed again")
    assert isinstance(next(found), Checkpoint)


def test_watch_needs_an_interval(repo):
    assert "means never" in fails(repo, 2, "watch", "--minutes", "0")
    assert "not a number of minutes" in fails(repo, 2, "watch", "--minutes", "soon")


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_thousand_turns(agent, repo):
    """Saves cost the same at the end as at the start; both ends come back exactly."""
    sizes = {}
    for number in range(1, 2001):
        made = agent.turn(f"turn {number} " + "words " * 200, new=str(number))
        assert made is not None
        sizes[number] = (made.commit, said(made).bytes)
        if number % 500 == 0:
            git(repo, "gc", "--quiet")
    assert agent.transcript.stat().st_size > 4_000_000
    for number in (3, 1999, 1000):
        commit, size = sizes[number]
        done = ok(repo, "restore", commit, "--yes")
        assert (repo / "new").read_text() == str(number)
        new = done["resume"].split()[-1]
        (copy,) = agent.transcript.parents[1].glob(f"*/{new}.jsonl")
        assert copy.read_bytes() == agent.transcript.read_bytes()[:size]
    # What one save writes: the same few objects, late as early.
    written = {
        number: len(
            git(
                repo,
                *("rev-list", "--objects", sizes[number][0], "--not"),
                sizes[number - 1][0],
            ).splitlines()
        )
        for number in (10, 1990)
    }
    assert written[1990] <= written[10] + 2
    assert ok(repo, "verify")["ok"]


@pytest.mark.parametrize("held", ["work tree", "ref", "both"])
def test_a_hook_waits_for_no_lock_as_long_as_a_person(agent, repo, held, monkeypatch):
    agent.turn("one", new="1")
    monkeypatch.setattr(agent_turns, "_LOCK", 0.2)
    monkeypatch.setattr(agent_turns, "_REF_LOCK", 0.1)
    asked: list[float] = []
    real = durable.until

    def until(take, *, timeout):
        asked.append(timeout)
        return real(take, timeout=timeout)

    monkeypatch.setattr(durable, "until", until)
    (ref,) = git_line(
        repo, "for-each-ref", "--format=%(refname)", "refs/gitcp/s"
    ).split()
    with contextlib.ExitStack() as stack:
        if held != "ref":
            workspace = open_workspace(repo)
            stack.enter_context(workspace.locked())
            asked.clear()
        if held != "work tree":
            lock_of(repo, ref).touch()
        (repo / "new").write_text("2")
        with pytest.raises(BusyError):
            agent.ask("two")
    assert max(asked) <= 0.2
    assert asked[-1] == (0.1 if held == "ref" else 0.2)


@pytest.mark.parametrize("kind", ["device", "pipe", "directory", "huge"])
def test_a_transcript_without_an_end_is_not_read(agent, repo, kind):
    agent.turn("one", new="1")
    held = stored(agent)
    agent.transcript.unlink()
    if kind == "device":
        agent.transcript.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(agent.transcript)
    elif kind == "directory":
        agent.transcript.mkdir()
    else:
        with agent.transcript.open("wb") as file:
            file.truncate(1 << 40)
    (repo / "new").write_text("2")
    with notices.listening(lambda text: None):
        made = agent.hook("SessionEnd")
    # The files are saved, and what was said before stays.
    assert made is not None
    assert stored(agent) == held


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini", "qwen"])
def test_a_pipe_for_a_transcript_costs_no_client_its_checkpoint(repo, tmp_path, client):
    """Codex's beginning of a rollout was read before anything asked what it is."""
    pipe = tmp_path / "2026" / "01" / "01" / "rollout-x.jsonl"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    (repo / "new").write_text("2")
    payload = {"session_id": "s", "cwd": str(repo), "transcript_path": str(pipe)}
    event = "AfterAgent" if client == "gemini" else "Stop"
    raw = json.dumps({**payload, "hook_event_name": event}).encode()
    done = run_gitcp(repo, "hook", client, event, input=raw)
    assert done.returncode == 0
    log = (repo / ".git" / "gitcp" / "hooks.log").read_text()
    assert "OutOfTimeError" not in log
    listed = run_gitcp(repo, "log", "--all", "--json")
    assert json.loads(listed.stdout)["checkpoints"]


# --- while a restore is open --------------------------------------------------------------

# client -> its hooks as a session and a turn begin, and after a turn
BEGINNINGS = {
    "claude-code": ("SessionStart", "UserPromptSubmit", "Stop"),
    "codex": ("SessionStart", "UserPromptSubmit", "Stop"),
    "gemini": ("SessionStart", "BeforeAgent", "AfterAgent"),
    "cursor": ("sessionStart", "beforeSubmitPrompt", "stop"),
}


def hook(repo, client, name):
    event = {
        "session_id": "aaaaaaaa-1111-2222-3333-444444444444",
        "conversation_id": "aaaaaaaa-1111-2222-3333-444444444444",
        "generation_id": "g1",
        "turn_id": "t1",
        "transcript_path": str(repo.parent / "transcript.jsonl"),
        "cwd": str(repo),
        "workspace_roots": [str(repo)],
        "hook_event_name": name,
        "prompt": "hi",
        "source": "startup",
        "timestamp": "2026-11-22T10:00:00Z",
    }
    raw = json.dumps(event).encode()
    done = run_gitcp(repo, "hook", client, name, input=raw)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.parametrize("client", BEGINNINGS)
def test_an_open_restore_is_told_as_a_turn_begins_and_only_then(repo, client):
    ok(repo, "save")
    (repo / "new").write_text("1")
    ok(repo, "save")
    (repo / "new").write_text("2")
    restores.interrupt(repo, "1")
    # No setting turns it off.
    setting(repo, "autoCheckpoint", "false")
    session, turn, end = BEGINNINGS[client]
    for name in (session, turn):
        answer = hook(repo, client, name)
        assert b"`gitcp restore --continue`" in answer
        assert b"`gitcp restore --abort`" in answer
        assert isinstance(json.loads(answer), dict)
    assert hook(repo, client, end) == b""
    assert "a restore was interrupted" in (repo / ".git/gitcp/hooks.log").read_text()
    ok(repo, "restore", "--abort")
    assert hook(repo, client, turn) == b""


def test_a_restore_under_a_client_is_told_to_its_model_once(agent, repo):
    first = agent.turn("one", new="1")
    agent.turn("two", new="2")
    restored = ok(repo, "restore", first.id, "--yes")["checkpoint"]["number"]
    told = agent.told("three")
    assert f"restored to #{first.number}" in told
    assert f"#{restored} is the restore" in told
    assert "saved as a branch of its own" in told
    agent.turn("three", new="3")
    assert agent.told("four") is None


def test_a_restore_of_files_alone_takes_no_branch_of_a_client(agent, repo):
    first = agent.turn("one", new="1")
    agent.turn("two", new="2")
    ok(repo, "restore", first.id, "--yes", "--files")
    told = agent.told("three")
    assert f"restored to #{first.number}" in told
    assert "a branch of its own" not in told


@pytest.mark.parametrize("way", ["undo", "restore"])
def test_a_client_that_is_closed_after_a_restore_is_not_open_any_more(agent, repo, way):
    first = agent.turn("add VAT", vat="1")
    agent.turn("a discount", vat="2")
    assert first is not None
    ok(repo, "restore", "-y", first.id)
    command = ["undo"] if way == "undo" else ["restore", first.id]
    again = [*command, "--dry-run"]
    assert b"is still open here" in invoke(repo, *again).stdout
    agent.hook("SessionEnd", reason="other")
    assert b"still open" not in invoke(repo, *again).stdout
    # A client that continues later has still not been told of the restore.
    assert "were restored" in (agent.told("go on") or "")
    agent.turn("go on", vat="3")
    assert b"is still open here" in invoke(repo, *again).stdout


@pytest.mark.parametrize("way", [["restore", "-y", "1"], ["undo", "-y"]])
def test_a_turn_during_a_restore_is_saved_as_the_client_is_closed(agent, repo, way):
    first = agent.turn("add VAT", vat="1")
    agent.turn("a discount", vat="2")
    assert first is not None
    if way[0] == "undo":
        ok(repo, "restore", "-y", "--files", first.id)
    agent.ask("and then?")
    ok(repo, *way)
    assert agent.answer("the long answer") is None
    current = open_workspace(repo).current()
    made = agent.hook("SessionEnd", reason="other")
    assert made is not None
    assert made.conversation() == agent.transcript.read_bytes()
    assert "and then?" in made.conversation().decode()
    assert open_workspace(repo).current() == current
    # All is saved now; and if the client continues, it is still told of the restore.
    assert agent.hook("SessionEnd", reason="other") is None
    assert "were restored" in (agent.told("go on") or "")


def test_a_client_is_closed_whatever_its_end_saves(agent, repo, monkeypatch):
    setting(repo, "triggers", "turn-end")
    first = agent.turn("add VAT", vat="1")
    agent.ask("and then?")
    plan = ("restore", first.id, "--dry-run")
    assert b"is still open here" in invoke(repo, *plan).stdout
    agent.hook("SessionEnd", reason="other")
    assert b"still open" not in invoke(repo, *plan).stdout
    agent.ask("go on")
    assert b"is still open here" in invoke(repo, *plan).stdout
    git(repo, "config", "--unset", "gitcp.triggers")

    def fail(*args, **options):
        raise BusyError("at work")

    monkeypatch.setattr(agent_turns, "_save", fail)
    with pytest.raises(BusyError):
        agent.hook("SessionEnd", reason="other")
    assert b"still open" not in invoke(repo, *plan).stdout


@pytest.mark.parametrize(
    ("name", "value"), [("autoCheckpoint", "false"), ("frequency", "manual")]
)
def test_who_switched_hooks_off_is_told_nothing_by_them(agent, repo, name, value):
    first = agent.turn("one", new="1")
    agent.turn("two", new="2")
    ok(repo, "decide", "use tabs")
    ok(repo, "save")
    ok(repo, "restore", first.id, "--yes")
    setting(repo, name, value)
    assert agent.told("three") is None
    assert agent.told("", "SessionStart", source="startup") is None


def test_a_restore_that_is_under_way_is_no_news(repo):
    ok(repo, "save")
    restores.interrupt(repo, "1")
    workspace = open_workspace(repo)
    assert workspace.is_interrupted()
    with workspace.locked():
        assert not open_workspace(repo).is_interrupted()
    ok(repo, "restore", "--continue")
    assert not workspace.is_interrupted()


def test_commands_leave_open_what_beginnings_say(repo, config):
    ok(repo, "install", "claude-code")
    hooks_of = json.loads((config / "settings.json").read_text())["hooks"]
    for name, groups in hooks_of.items():
        command = groups[0]["hooks"][0]["command"]
        silent = name not in {"SessionStart", "UserPromptSubmit"}
        assert (">/dev/null 2>&1" in command) == silent
        assert command.endswith("2>&1 || :" if silent else " 2>/dev/null || :")
