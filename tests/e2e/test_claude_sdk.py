"""The real Claude Code, driven by its own SDK: checkpoints per turn, store, rewind."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    UserMessage,
    project_key_for_directory,
    query,
)

import gitcp
from gitcp.adapters.claude_sdk import (
    GitcpSessionStore,
    checkpoint_hooks,
    rewind_files,
)
from gitcp.errors import NotFoundError, WouldOverwriteError
from tests.support.anthropic_server import AnthropicServer
from tests.support.gitrepo import git, make_repo, tree_bytes
from tests.support.inprocess import ok
from tests.support.stand_in import say, use

FILES = {
    "keep.txt": b"orig\n",
    "gone.txt": b"going\n",
    "moved.txt": b"moving\n",
    "src/a.py": b"print(1)\n",
    ".gitignore": b"*.log\n",
}
PROMPTS = ["make things", "break things", "look at it"]


class Run(NamedTuple):
    """A project, the model that it is worked on with, and how the client is started."""

    project: Path
    server: AnthropicServer
    environment: dict[str, str]
    session: gitcp.Session

    def options(self, **more: Any) -> ClaudeAgentOptions:
        return ClaudeAgentOptions(
            **{
                "cwd": self.project,
                "permission_mode": "acceptEdits",
                "allowed_tools": ["Bash", "Write", "Edit", "Read", "Agent"],
                "env": self.environment,
                "setting_sources": [],
                "hooks": checkpoint_hooks(self.session),
                "extra_args": {"replay-user-messages": None},
                **more,
            }
        )


@pytest.fixture
def run(tmp_path: Path, sealed: Path) -> Iterator[Run]:
    project = make_repo(tmp_path / "project", FILES)
    config = tmp_path / "config"
    config.mkdir()
    new = str(project / "new.txt")
    script = {
        "make things": [
            [use("Write", file_path=new, content="one\n")],
            [
                use(
                    "Bash",
                    command="mkdir -p made/deep && echo b > made/deep/b.txt"
                    " && sed -i s/orig/bash/ keep.txt && rm gone.txt"
                    " && mv moved.txt moved2.txt && chmod +x src/a.py",
                )
            ],
            [use("Bash", command="echo failing >&2; exit 3")],
            [say("Made.")],
        ],
        "break things": [
            [use("Edit", file_path=new, old_string="one", new_string="two")],
            [use("Bash", command="rm -rf src made keep.txt; mkdir empty")],
            [say("Broken.")],
        ],
    }
    with AnthropicServer(script) as server:
        environment = {
            **server.environment,
            "HOME": str(sealed),
            "CLAUDE_CONFIG_DIR": str(config),
            "CLAUDE_CODE_TMPDIR": str(config),
        }
        yield Run(project, server, environment, gitcp.open(project).session("work"))


class Turns(NamedTuple):
    """What was seen while a client worked through some prompts."""

    agent_session: str
    uuids: list[str]
    before: list[Any]
    after: Any


async def work(
    run: Run,
    prompts: list[str],
    options: ClaudeAgentOptions,
    between: Callable[[], Any] = lambda: None,
) -> Turns:
    uuids: list[str] = []
    before = []
    session = ""
    async with ClaudeSDKClient(options) as client:
        for prompt in prompts:
            between()
            before.append(tree_bytes(run.project))
            seen: list[str] = []
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, UserMessage) and message.uuid:
                    seen.append(message.uuid)
                if isinstance(message, ResultMessage):
                    assert not message.is_error, message
                    session = message.session_id
            uuids.append(seen[0])
    return Turns(session, uuids, before, tree_bytes(run.project))


def key_of(run: Run, agent_session: str) -> Any:
    project = project_key_for_directory(run.project)
    return {"project_key": project, "session_id": agent_session}


def triggers(run: Run) -> list[str]:
    log = ok(run.project, "log", "-s", "work", "--all", "--full")["checkpoints"]
    return [one["trigger"] for one in reversed(log)]


def hooks_log(run: Run) -> str:
    path = run.project / ".git" / "gitcp" / "hooks.log"
    return path.read_text() if path.exists() else ""


def test_files_and_conversation_of_each_turn_beside_a_session_store(run, tmp_path):
    """Both at once, which the SDK refuses for its own file checkpointing."""
    store = GitcpSessionStore(tmp_path / "transcripts")
    with pytest.raises(ValueError, match="session_store cannot be combined"):
        asyncio.run(
            work(
                run,
                [],
                run.options(session_store=store, enable_file_checkpointing=True),
            )
        )
    turns = asyncio.run(work(run, PROMPTS, run.options(session_store=store)))
    assert hooks_log(run) == ""
    # The third prompt changed nothing: its turn-start is the second's end.
    made = triggers(run)
    assert [one for one in made if one != "before-command"] == [
        "turn-start",
        "turn-end",
        "turn-end",
        "turn-end",
    ]
    assert "before-command" in made
    tip = run.session.last
    assert tip is not None
    said = tip.conversation()
    assert b"echo: look at it" in said
    kept = asyncio.run(store.load(key_of(run, turns.agent_session)))
    assert kept is not None
    stored = {one["uuid"]: one["type"] for one in kept if "uuid" in one}
    here = {one["uuid"] for one in tip.messages() if "uuid" in one}
    assert here <= set(stored)
    # What the client notes after the last hook is not a message.
    assert {stored[one] for one in set(stored) - here} <= {"system"}
    assert set(turns.uuids) <= here
    # Files at each prompt, whatever tool or command changed them.
    for number in (1, 0, 2, 1, 0):
        done = rewind_files(turns.uuids[number], run.session)
        assert tree_bytes(run.project) == turns.before[number], number
        assert done.target.session == "work"
        assert b"echo: look at it" in run.session.last.conversation()
    assert ok(run.project, "verify")["ok"]
    ok(run.project, "undo", "--yes")
    assert tree_bytes(run.project) == turns.before[1]


def test_a_rewind_saves_first_and_leaves_what_no_checkpoint_holds(run):
    turns = asyncio.run(work(run, PROMPTS[:2], run.options()))
    (run.project / "note.txt").write_text("mine, of now\n")
    now = tree_bytes(run.project)
    plan = rewind_files(turns.uuids[0], run.session, dry_run=True)
    assert tree_bytes(run.project) == now
    done = rewind_files(turns.uuids[0], run.session)
    assert set(plan.files_changed) == set(done.files_changed)
    assert tree_bytes(run.project) == turns.before[0]
    assert done.saved is not None
    run.session.restore(run.session.plan_restore(done.saved))
    assert tree_bytes(run.project) == now
    # In the way, and not captured: an ignored file where a directory has to be.
    shutil.rmtree(run.project / "src", ignore_errors=True)
    (run.project / ".git" / "info" / "exclude").write_text("/src\n")
    (run.project / "src").write_text("mine")
    now = tree_bytes(run.project)
    with pytest.raises(WouldOverwriteError):
        rewind_files(turns.uuids[0], run.session)
    assert tree_bytes(run.project) == now


@pytest.mark.slow
def test_a_rewind_can_be_awaited_and_finds_the_session_by_itself(run, monkeypatch):
    turns = asyncio.run(work(run, PROMPTS[:2], run.options()))
    ok(run.project, "save", "-s", "another", "--allow-empty")
    monkeypatch.chdir(run.project)

    async def rewind() -> Any:
        return await rewind_files(turns.uuids[1])

    done = asyncio.run(rewind())
    assert tree_bytes(run.project) == turns.before[1]
    assert "new.txt" in done.files_changed
    with pytest.raises(NotFoundError, match="before a message"):
        rewind_files("00000000-0000-4000-8000-00000000dead")


@pytest.mark.slow
def test_what_is_saved_in_the_middle_of_a_turn_is_not_the_state_before_it(run):
    """The agent commits and saves: files of then, with the conversation of before."""
    save = f"gitcp save -s work -m midway; git -C {run.project} status"
    run.server.script["midway"] = [
        [use("Bash", command="echo midway > midway.txt")],
        [lambda_step(run, save)],
        [use("Bash", command="echo later > later.txt")],
        [say("Later.")],
    ]
    turns = asyncio.run(work(run, ["make things", "midway"], run.options()))
    notes = [one.note for one in run.session.checkpoints()]
    assert "midway" in notes
    rewind_files(turns.uuids[1], run.session)
    assert tree_bytes(run.project) == turns.before[1]
    # And likewise where the user had changed files between the turns.
    rewind_files(turns.uuids[0], run.session)
    assert tree_bytes(run.project) == turns.before[0]


def lambda_step(run: Run, command: str) -> Any:
    """A call of gitcp as the agent would make it, whatever is on PATH."""
    from tests.support.gitrepo import gitcp_argv

    program = " ".join(str(word) for word in gitcp_argv())
    return use("Bash", command=command.replace("gitcp", program, 1))


@pytest.mark.slow
def test_files_that_a_person_changes_between_turns_are_those_of_the_prompt(run):
    number = iter(range(10))

    def person() -> None:
        (run.project / "person.txt").write_text(f"{next(number)}\n")

    turns = asyncio.run(work(run, PROMPTS, run.options(), between=person))
    of_turns = [one for one in triggers(run) if one != "before-command"]
    assert of_turns == ["turn-start", "turn-end"] * 3
    for at in (2, 1, 0):
        rewind_files(turns.uuids[at], run.session)
        assert tree_bytes(run.project) == turns.before[at]


def test_a_turn_that_was_interrupted_can_be_rewound(run):
    run.server.script["slow"] = [
        [
            use(
                "Bash",
                command="echo partly > partly.txt; rm keep.txt; touch $PWD.started",
            )
        ],
        [use("Bash", command="sleep 60")],
        [say("Done.")],
    ]
    started = run.project.with_name("project.started")

    async def scenario() -> tuple[Any, str]:
        before, uuid = None, ""
        async with ClaudeSDKClient(run.options()) as client:
            await client.query("make things")
            async for _ in client.receive_response():
                pass
            before = tree_bytes(run.project)
            await client.query("slow")
            async for message in client.receive_messages():
                if isinstance(message, UserMessage) and message.uuid and not uuid:
                    uuid = message.uuid
                if started.exists():
                    await client.interrupt()
                    started.unlink()
                if isinstance(message, ResultMessage):
                    break
        return before, uuid

    before, uuid = asyncio.run(scenario())
    assert tree_bytes(run.project) != before
    rewind_files(uuid, run.session)
    assert tree_bytes(run.project) == before


def test_a_conversation_resumes_from_the_store_alone_at_a_rewound_prompt(run, tmp_path):
    """Files by gitcp, conversation by the store: nothing on the local disk is needed."""
    store = GitcpSessionStore(tmp_path / "transcripts")
    turns = asyncio.run(work(run, PROMPTS[:2], run.options(session_store=store)))
    wanted = run.server.messages("make things")
    shutil.rmtree(tmp_path / "config")
    (tmp_path / "config").mkdir()
    rewind_files(turns.uuids[1], run.session)
    records = run.session.last.messages()
    prompt = next(one for one in records if one.get("uuid") == turns.uuids[1])

    async def go_on() -> str:
        options = run.options(
            session_store=GitcpSessionStore(tmp_path / "transcripts"),
            resume=turns.agent_session,
            resume_session_at=prompt["parentUuid"],
            fork_session=True,
        )
        session = ""
        async for message in query(prompt="another way", options=options):
            if isinstance(message, ResultMessage):
                session = message.session_id
        return session

    forked = asyncio.run(go_on())
    assert forked != turns.agent_session
    sent = run.server.messages("another way")
    assert sent[: len(wanted)] == wanted
    assert not any("break things" in str(one) for one in sent)
    assert asyncio.run(store.load(key_of(run, forked)))
    # Its turns grow the same branch, under the conversation's own name.
    assert triggers(run)[-1] == "turn-end"
    assert b"another way" in run.session.last.conversation()


@pytest.mark.slow
def test_prompts_are_found_in_a_transcript_that_the_client_rewrote(run, tmp_path):
    """Resumed from the store, the conversation is the same and its bytes are not."""
    store = GitcpSessionStore(tmp_path / "transcripts")
    first = asyncio.run(work(run, PROMPTS[:2], run.options(session_store=store)))
    shutil.rmtree(tmp_path / "config")
    (tmp_path / "config").mkdir()
    (run.project / "person.txt").write_text("between\n")
    resumed = run.options(session_store=store, resume=first.agent_session)
    then = asyncio.run(work(run, PROMPTS[2:], resumed))
    assert then.agent_session == first.agent_session
    uuids = [*first.uuids, *then.uuids]
    before = [*first.before, *then.before]
    for at in (2, 0, 1):
        rewind_files(uuids[at], run.session)
        assert tree_bytes(run.project) == before[at], at


@pytest.mark.ref_files
def test_hooks_that_cannot_save_leave_the_client_alone(run, monkeypatch):
    refs = run.project / ".git" / "refs" / "gitcp"
    refs.write_text("in the way")
    turns = asyncio.run(work(run, PROMPTS[:1], run.options()))
    assert turns.after != turns.before[0]
    assert "claude-sdk UserPromptSubmit" in hooks_log(run)
    refs.unlink()
    monkeypatch.setenv("GITCP_DISABLE", "1")
    asyncio.run(work(run, PROMPTS[1:2], run.options()))
    monkeypatch.delenv("GITCP_DISABLE")
    assert run.session.last is None
    asyncio.run(work(run, PROMPTS[2:], run.options()))
    assert run.session.last is not None


def test_a_hook_that_takes_too_long_does_not_hold_the_client(run, monkeypatch):
    from gitcp.agents import hook_events as turns

    def stuck(*_: Any) -> None:
        import time

        time.sleep(3)

    monkeypatch.setattr(turns, "handle", stuck)
    git(run.project, "config", "gitcp.hookTimeout", "200ms")
    session = gitcp.open(run.project).session("work")
    asyncio.run(work(run, PROMPTS[2:], run.options(hooks=checkpoint_hooks(session))))
    assert "took more than 0.2 s" in hooks_log(run)


@pytest.mark.slow
def test_each_batch_of_tools_where_the_project_wants_it(run):
    git(run.project, "config", "gitcp.frequency", "tool")
    turns = asyncio.run(work(run, PROMPTS[:1], run.options()))
    assert triggers(run) == ["turn-start", "tool", "tool", "tool", "turn-end"]
    calls = [
        one["uuid"]
        for one in run.session.last.messages()
        if one["type"] == "assistant"
        and one["message"]["content"][0]["type"] == "tool_use"
    ]
    # Before the second call: what the first one wrote is there, and no more.
    rewind_files(calls[1], run.session)
    assert (run.project / "new.txt").read_text() == "one\n"
    assert (run.project / "gone.txt").exists()
    rewind_files(turns.uuids[0], run.session)
    assert tree_bytes(run.project) == turns.before[0]


@pytest.mark.slow
def test_a_subagents_transcript_is_stored_with_its_parents(run, tmp_path):
    run.server.script["delegate"] = [
        [
            use(
                "Agent",
                description="helper",
                prompt="help out",
                subagent_type="general-purpose",
                run_in_background=False,
            )
        ],
        [say("Delegated.")],
    ]
    run.server.script["help out"] = [
        [use("Bash", command="echo helped > helped.txt")],
        [say("Helped.")],
    ]
    store = GitcpSessionStore(tmp_path / "transcripts")
    turns = asyncio.run(work(run, ["delegate"], run.options(session_store=store)))
    assert (run.project / "helped.txt").exists()
    subkeys = asyncio.run(store.list_subkeys(key_of(run, turns.agent_session)))
    assert [one.partition("/")[0] for one in subkeys] == ["subagents"]
    tip = run.session.last
    assert b"Delegated." in tip.conversation()
    name = f"claude-code-{turns.agent_session}/{subkeys[0].partition('/')[2]}.jsonl"
    assert b"Helped." in tip.conversation(name)
