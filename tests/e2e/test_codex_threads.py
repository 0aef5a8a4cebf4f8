"""Codex itself where there is more than a thread: compaction, subagents, two at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.codex import PROGRAM, Project, resumed
from tests.support.gitrepo import tree_bytes
from tests.support.model_server import ModelServer
from tests.support.stand_in import Script, say, use

pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None, reason="there is no codex (npm i @openai/codex)"
    ),
    pytest.mark.timeout(600),
]


def wait_for_it(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Waits for the subagent that the last call has made."""
    made = [one for one in body["input"] if one["type"] == "function_call_output"][-1]
    agent = json.loads(made["output"])["agent_id"]
    return [use("multi_agent_v1.wait_agent", targets=[agent], timeout_ms=60_000)]


def shell(command: str) -> dict[str, Any]:
    return use("exec_command", cmd=command)


SCRIPT: Script = {
    "turn one": [[shell("sed -i s/alpha/ALPHA/ keep.txt")], [say("one done")]],
    "turn two": [[shell("rm keep.txt; mkdir d; echo 2 > d/two")], [say("two done")]],
    "a question": [[say("forty-two it is")]],
    "turn three": [[shell("echo 3 > three")], [say("three done")]],
    "the other way": [[shell("echo o > other")], [say("other done")]],
    "delegate": [
        [shell("echo by the parent > before")],
        [use("multi_agent_v1.spawn_agent", message="the part")],
        wait_for_it,
        [say("delegated")],
    ],
    "the part": [[shell("echo p > part")], [say("the part is done")]],
}


@pytest.fixture
def project(repo, tmp_path):
    (repo / "keep.txt").write_bytes(b"alpha\n")
    with ModelServer(SCRIPT) as server:
        found = Project(repo, tmp_path, server)
        found.gitcp("install", "codex")
        # How long a hook may take is another test's matter, not one of a busy machine.
        found.gitcp("config", "hookTimeout", "60s")
        yield found
        assert found.log() == ""


def ends(project: Project, *where: str) -> list[dict[str, Any]]:
    found = project.checkpoints(*where)
    return [one for one in found if one["trigger"] == "turn-end"]


def test_a_compacted_thread_comes_back_as_it_was_before_and_after(project):
    project.write_config(project.server.url, compact_at=50_000)
    thread = project.codex("turn one")
    project.server.input_tokens = 60_000
    project.codex("resume", thread, "a question")
    tree = tree_bytes(project.top)
    before = project.rollouts()[thread].read_bytes()
    assert b'"type":"compacted"' not in before
    project.server.input_tokens = 100
    asked = len(project.server.requests)
    project.codex("resume", thread, "turn three")
    # First the client has the model sum up what was said: all of it, then the order to.
    _, compaction = project.server.requests[asked]
    assert not compaction.get("tools")
    whole = [{**one, "id": None} for one in compaction["input"][:-1]]
    assert "forty-two it is" in json.dumps(whole[-1])
    summed_up = project.said_before("turn three")
    assert "forty-two it is" not in json.dumps(summed_up)

    # The rollout goes on below what it was, and so does what is stored.
    rollout = project.rollouts()[thread].read_bytes()
    assert rollout.startswith(before)
    assert b'"type":"compacted"' in rollout
    _, second, third = ends(project)
    triggers = [one["trigger"] for one in project.checkpoints()]
    assert triggers[-1] == "turn-end"
    assert triggers.count("turn-end") == 3
    for one, said in ((second, b"forty-two it is"), (third, b"three done")):
        kept = project.stored(one["id"])
        assert rollout.startswith(kept)
        assert said in kept
    assert b'"type":"compacted"' not in project.stored(second["id"])
    assert b'"type":"compacted"' in project.stored(third["id"])

    project.codex("resume", thread, "the other way")
    later = project.said_before("the other way")
    # Back behind the compaction everything is said again.
    project.write_config(project.server.url)
    restored = project.gitcp("restore", second["id"], "-y")
    assert tree_bytes(project.top) == tree
    project.codex("resume", resumed(restored), "turn three")
    sent = project.said_before("turn three", last=True)
    assert [{**one, "id": None} for one in sent] == whole
    # And after it, what it was summed up to.
    restored = project.gitcp("restore", third["id"], "-y")
    project.codex("resume", resumed(restored), "the other way")
    assert project.said_before("the other way", last=True) == later
    assert project.gitcp("verify")["ok"]


@pytest.mark.slow
@pytest.mark.parametrize("frequency", ["turn", "tool"])
def test_a_subagent_is_kept_beside_the_thread_that_made_it(project, frequency):
    project.gitcp("config", "frequency", frequency)
    thread = project.codex("delegate")
    rollouts = {name: path.read_bytes() for name, path in project.rollouts().items()}
    (agent,) = set(rollouts) - {thread}
    line = project.checkpoints()
    triggers = [one["trigger"] for one in line]
    assert "subagent-stop" in triggers
    assert ("tool" in triggers) == (frequency == "tool")
    # What the subagent was asked is not what the turn was about, and its rollout is not
    # the conversation: in no checkpoint of the thread.
    assert {one["session"] for one in project.checkpoints("--all")} == {
        line[0]["session"]
    }
    for one in line:
        assert "the part" not in one["note"]
        if one["conversation"] is not None:
            assert one["conversation"]["agent_session"] == thread
            assert rollouts[thread].startswith(project.stored(one["id"]))
    assert line[-1]["note"] == "delegate"

    # As on another machine: the client has neither of the threads.
    for path in project.rollouts().values():
        path.unlink()
    restored = project.gitcp("restore", line[-1]["id"], "-y")
    again = project.rollouts()
    assert set(again) == {agent, resumed(restored)}
    back = again[agent].read_bytes()
    assert rollouts[agent].startswith(back)
    assert b"the part is done" in back
    project.codex("resume", resumed(restored), "the other way")
    sent = json.dumps(project.said_before("the other way"))
    assert '"delegated"' in sent
    assert project.gitcp("verify")["ok"]


@pytest.mark.slow
def test_two_clients_in_one_work_tree_do_not_mix(project):
    threads: dict[str, str] = {}

    def work(name: str, *prompts: str) -> None:
        threads[name] = project.codex(prompts[0])
        for prompt in prompts[1:]:
            project.codex("resume", threads[name], prompt)

    said = {"a": ["turn one", "turn three"], "b": ["the other way", "turn two"]}
    with ThreadPoolExecutor() as pool:
        begun = [pool.submit(work, name, *prompts) for name, prompts in said.items()]
    for work_done in begun:
        work_done.result()
    assert len(set(threads.values())) == 2
    line = {
        one["conversation"]["agent_session"]: one["session"]
        for one in project.checkpoints("--all")
    }
    assert len(set(line.values())) == 2
    for name, prompts in said.items():
        thread = threads[name]
        found = ends(project, "-s", line[thread])
        assert [one["note"] for one in found] == prompts
        rollout = project.rollouts()[thread].read_bytes()
        for one in found:
            assert one["conversation"]["agent_session"] == thread
            assert rollout.startswith(project.stored(one["id"]))
        kept = project.stored(found[-1]["id"])
        assert all(prompt.encode() in kept for prompt in prompts)
    assert project.gitcp("verify")["ok"]
