"""Codex itself, hooks and all, against a stand-in model."""

from __future__ import annotations

import json
import shutil
import sys
from typing import Any

import pytest

from tests.support.codex import PROGRAM, Project, resumed
from tests.support.gitrepo import git, run_gitcp, tree_bytes
from tests.support.model_server import ModelServer
from tests.support.stand_in import say, use

pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None, reason="there is no codex (npm i @openai/codex)"
    ),
    pytest.mark.timeout(600),
]

RECORD = f"{sys.executable} -P -m gitcp decide 'in its shell' --json > noted"

SCRIPT = {
    "turn one": [
        [use("exec_command", cmd="sed -i s/alpha/ALPHA/ keep.txt")],
        [say("turn one done")],
    ],
    "turn two": [
        [use("exec_command", cmd="rm keep.txt; mkdir d; echo 2 > d/two")],
        [use("exec_command", cmd="false")],
        [say("turn two done")],
    ],
    "turn three": [[use("exec_command", cmd="echo 3 > three")], [say("three done")]],
    "the other way": [[use("exec_command", cmd="echo o > other")], [say("other done")]],
    "lose it": [
        [use("exec_command", cmd="echo hours > work")],
        [use("exec_command", cmd="ls -la; cat work")],
        [use("exec_command", cmd="rm work")],
        [say("lost it")],
    ],
    "record it": [[use("exec_command", cmd=RECORD)], [say("recorded")]],
    "slow turn": [
        [use("exec_command", cmd="echo s > slow; sleep 600")],
        [say("never said")],
    ],
}


@pytest.fixture
def project(repo, tmp_path):
    (repo / "keep.txt").write_bytes(b"alpha\n")
    with ModelServer(SCRIPT) as server:
        found = Project(repo, tmp_path, server)
        done = found.gitcp("install", "codex")
        assert done["done"][0]["path"] == str(found.home / "hooks.json")
        # How long a hook may take is another test's matter, not one of a busy machine.
        found.gitcp("config", "hookTimeout", "60s")
        yield found


def three_turns(project: Project) -> tuple[str, list[dict[bytes, Any]]]:
    trees = []
    thread = project.codex("turn one")
    trees.append(tree_bytes(project.top))
    for prompt in ("turn two", "turn three"):
        project.codex("resume", thread, prompt)
        trees.append(tree_bytes(project.top))
    return thread, trees


def test_a_restore_resumes_with_the_words_that_were_said(project):
    thread, trees = three_turns(project)
    ends = [one for one in project.checkpoints() if one["trigger"] == "turn-end"]
    assert [one["note"] for one in ends] == ["turn one", "turn two", "turn three"]
    assert ends[0]["conversation"]["agent"] == "codex"
    assert ends[0]["conversation"]["agent_session"] == thread
    user = git(project.top, "status", "--porcelain=v2", "--branch")

    restored = project.gitcp("restore", ends[0]["id"], "-y")
    assert tree_bytes(project.top) == trees[0]
    new = resumed(restored)
    assert new != thread
    before = project.said_before("turn two")
    project.codex("resume", new, "the other way")
    assert project.said_before("the other way") == before

    line = project.checkpoints()
    assert line[-1]["note"] == "the other way"
    assert line[-1]["branch"] == restored["checkpoint"]["branch"] == "main"
    assert [one["seq"] for one in line] == list(range(1, len(line) + 1))
    assert git(project.top, "status", "--porcelain=v2", "--branch") != user

    # The copy is copied again, from the end of its turn.
    end = next(one for one in reversed(line) if one["trigger"] == "turn-end")
    assert end["note"] == "the other way"
    again = resumed(project.gitcp("restore", end["id"], "-y"))
    project.codex("resume", again, "once more")
    assert project.said_before("once more")[: len(before)] == before
    last = project.checkpoints()[-1]
    assert last["note"] == "once more"
    assert last["conversation"]["agent_session"] == again
    assert project.gitcp("verify")["ok"]
    assert project.log() == ""


def test_doctor_knows_whether_codex_runs_the_hooks(project):
    def health() -> tuple[bool, str | None]:
        done = run_gitcp(project.top, "doctor", "--json", env=project.home_variable)
        (found,) = [
            one for one in json.loads(done.stdout)["agents"] if one["name"] == "codex"
        ]
        assert found["runs"] is True
        return found["trusted"], found["last_event"]

    # Codex runs no hook, says nothing, and ends with 0.
    project.codex("turn one", trust=False)
    assert project.checkpoints() == []
    assert health() == (False, None)
    project.trust()
    project.codex("turn two", trust=False)
    assert [one["trigger"] for one in project.checkpoints()] == [
        "turn-start",
        "turn-end",
    ]
    trusted, last = health()
    assert trusted is True
    assert last is not None


@pytest.mark.slow
def test_what_a_turn_wrote_is_saved_before_a_command_that_deletes_it(project):
    project.codex("lose it")
    before, end = project.checkpoints()[-2:]
    assert (before["trigger"], before["note"]) == (
        "before-command",
        "before `rm work`: lose it",
    )
    assert end["trigger"] == "turn-end"
    assert not (project.top / "work").exists()
    project.gitcp("restore", before["id"], "work", "-y")
    assert (project.top / "work").read_bytes() == b"hours\n"


@pytest.mark.slow
def test_a_prompts_id_selects_the_state_before_it(project):
    _, trees = three_turns(project)
    (rollout,) = project.rollouts().values()
    turns = [
        json.loads(line)["payload"]["turn_id"]
        for line in rollout.read_bytes().splitlines()
        if b'"task_started"' in line
    ]
    restored = project.gitcp("restore", turns[2], "-y")
    assert tree_bytes(project.top) == trees[1]
    before = project.said_before("turn three")
    project.codex("resume", resumed(restored), "the other way")
    assert project.said_before("the other way") == before


@pytest.mark.slow
def test_a_fork_grows_its_own_branch(project):
    thread, trees = three_turns(project)
    ends = [one for one in project.checkpoints() if one["trigger"] == "turn-end"]
    forked = project.gitcp("fork", ends[1]["id"], "second", "-y")
    assert tree_bytes(project.top) == trees[1]
    project.codex("resume", resumed(forked), "the other way")
    assert project.checkpoints()[-1]["branch"] == "second"
    assert project.said_before("the other way") == project.said_before("turn three")
    # The thread that was left behind goes on where it was.
    project.codex("resume", thread, "turn three")
    session = ends[0]["session"]
    assert project.checkpoints("-s", f"{session}/main")[-1]["note"] == "turn three"


@pytest.mark.slow
def test_what_the_client_forks_itself_is_a_branch(project):
    thread = project.codex("turn one")
    assert project.codex("fork", thread, "the other way") != thread
    tips = {one["branch"]: one for one in project.checkpoints("--all")}
    (branch,) = set(tips) - {"main"}
    assert branch.startswith("fork-")
    assert tips[branch]["note"] == "the other way"
    assert tips[branch]["session"] == tips["main"]["session"]
    # What it was forked from is stored beside it: another machine has neither.
    shutil.rmtree(project.home / "sessions")
    restored = project.gitcp("restore", tips[branch]["id"], "-y")
    project.codex("resume", resumed(restored), "turn three")
    sent = json.dumps(project.said_before("turn three"))
    for words in ("turn one", "turn one done", "the other way", "other done"):
        assert f'"{words}"' in sent


def spoken(items: list[Any]) -> list[Any]:
    """What was said and done: not what the client tells the model of itself."""
    return [
        {name: value for name, value in one.items() if name != "id"}
        for one in items
        if one.get("role") != "developer"
        and "<environment_context>" not in json.dumps(one)
    ]


@pytest.mark.slow
def test_a_thread_made_elsewhere_goes_on_when_it_is_trusted(project):
    thread = project.codex("turn one")
    project.codex("resume", thread, "turn two")
    end = project.checkpoints()[-1]
    before = project.rollouts()
    # What was sealed with a key that is gone was made elsewhere.
    (project.top / ".git" / "gitcp" / "key").unlink()
    assert project.gitcp("restore", end["id"], "-y")["resume"] is None
    assert project.rollouts() == before
    new = resumed(project.gitcp("restore", end["id"], "-y", "--trust"))
    written = project.rollouts()[new].read_bytes()
    for word in (b"approval_policy", b"sandbox", b"base_instructions", b'"developer"'):
        assert word not in written
    project.codex("resume", new, "the other way")
    project.codex("resume", thread, "turn three")
    there = spoken(project.said_before("turn three"))
    assert spoken(project.said_before("the other way")) == there
    assert len(there) > 4


def test_a_client_that_is_killed_loses_nothing(project):
    thread = project.codex("turn one")
    tree = tree_bytes(project.top)
    project.kill("resume", thread, "slow turn", once=project.top / "slow")
    # The interrupted turn is undone, and the conversation goes on before it.
    cut = project.rollouts()[thread].read_bytes()
    assert b"slow turn" in cut
    restored = project.gitcp("restore", "last", "-y")
    assert tree_bytes(project.top) == tree
    before = project.said_before("slow turn")
    project.codex("resume", resumed(restored), "the other way")
    assert project.said_before("the other way") == before
    project.gitcp("undo", "-y")
    # And the thread itself goes on, with the messages of the interrupted turn.
    project.codex("resume", thread, "turn three")
    last = project.checkpoints()[-1]
    assert (last["note"], last["trigger"]) == ("turn three", "turn-end")
    assert last["conversation"]["agent_session"] == thread
    kept = project.stored(last["id"])
    assert kept.startswith(cut[: cut.rfind(b"\n") + 1])
    assert b"three done" in kept
    assert project.rollouts()[thread].read_bytes().startswith(kept)
    assert project.gitcp("verify")["ok"]


@pytest.mark.slow
def test_a_linked_work_tree_has_a_line_of_its_own(project):
    project.codex("turn one")
    other = project.top.parent / "other"
    git(project.top, "add", "-A")
    git(project.top, "commit", "-q", "-m", "all")
    git(project.top, "worktree", "add", "-q", other)
    project.codex("the other way", where=other)
    there = project.gitcp("log", "--full", where=other)["checkpoints"]
    assert there[0]["note"] == "the other way"
    assert not (project.top / "other").exists()
    assert "the other way" not in json.dumps(project.checkpoints())


def test_without_trust_or_without_gitcp_the_client_is_the_same(project):
    project.codex("turn one", trust=False)
    assert project.gitcp("log", "--all")["checkpoints"] == []
    hooks = project.home / "hooks.json"
    text = hooks.read_text().replace("gitcp hook", "gone/gitcp hook")
    hooks.write_text(text)
    project.codex("the other way")
    assert (project.top / "other").read_bytes() == b"o\n"


def test_uninstall_leaves_the_file_as_it_was(project):
    hooks = project.home / "hooks.json"
    project.gitcp("uninstall", "codex")
    assert not hooks.exists()
    own = b'{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}\n'
    hooks.write_bytes(own)
    project.gitcp("install", "codex")
    project.gitcp("install", "codex")
    assert hooks.read_bytes().count(b"hook codex Stop") == 1
    project.gitcp("uninstall", "codex")
    assert hooks.read_bytes() == own


@pytest.mark.slow
def test_what_its_agent_records_in_its_shell_is_the_thread_s(project):
    thread = project.codex("record it")
    noted = json.loads((project.top / "noted").read_bytes())
    assert (noted["agent"], noted["agent_session"]) == ("codex", thread)
    tip = project.checkpoints()[-1]
    assert (tip["trigger"], tip["decisions"]) == ("turn-end", 1)
