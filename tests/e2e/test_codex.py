"""Codex itself, hooks and all, against a stand-in model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.anthropic_server import say, use
from tests.support.gitrepo import (
    git,
    gitcp_environment,
    run_gitcp,
    tree_bytes,
)
from tests.support.model_server import ModelServer

CODEX = shutil.which("codex")

pytestmark = [
    pytest.mark.skipif(CODEX is None, reason="there is no codex (npm i @openai/codex)"),
    pytest.mark.timeout(240),
]

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
    "slow turn": [
        [use("exec_command", cmd="echo s > slow; sleep 600")],
        [say("never said")],
    ],
}


class Project:
    """A project with Codex in it, in a home of its own."""

    def __init__(self, top: Path, home: Path, server: ModelServer) -> None:
        self.top = top
        self.server = server
        self.home = home / "codex"
        self.home.mkdir()
        self.environment = {
            **gitcp_environment(),
            "CODEX_HOME": str(self.home),
            "STAND_IN_KEY": "dummy",
        }
        self.write_config(server.url)

    def write_config(self, url: str) -> None:
        (self.home / "config.toml").write_text(
            f"""model = "stand-in"
model_provider = "stand-in"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.stand-in]
name = "stand-in"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
"""
        )

    def command(self, *args: str, trust: bool = True) -> list[str]:
        assert CODEX is not None
        head = [CODEX, "exec", *args[:-1], "--json"]
        return [
            *head,
            *(["--dangerously-bypass-hook-trust"] if trust else []),
            args[-1],
        ]

    def codex(self, *args: str, trust: bool = True, where: Path | None = None) -> str:
        """Runs a turn; returns the id of the thread."""
        done = subprocess.run(
            self.command(*args, trust=trust),
            cwd=where or self.top,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert events[-1]["type"] == "turn.completed", events
        thread: str = events[0]["thread_id"]
        return thread

    def gitcp(self, *args: str | Path, where: Path | None = None) -> Any:
        env = {"CODEX_HOME": str(self.home)}
        done = run_gitcp(where or self.top, *args, "--json", env=env)
        assert done.returncode == 0, (done.stdout, done.stderr, self.log())
        return json.loads(done.stdout)

    def checkpoints(self, *args: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.gitcp("log", *args)["checkpoints"]
        return found[::-1]

    def log(self) -> str:
        path = self.top / ".git" / "gitcp" / "hooks.log"
        return path.read_text() if path.exists() else ""

    def said_before(self, prompt: str) -> list[Any]:
        """What the model was sent with the first request about a prompt, but for it.

        The instructions at the front get a fresh id each time.
        """
        items = self.server.bodies(prompt)[0]["input"]
        assert prompt in json.dumps(items[-1])
        return [
            {name: value for name, value in one.items() if number or name != "id"}
            for number, one in enumerate(items[:-1])
        ]


@pytest.fixture
def project(repo, tmp_path):
    (repo / "keep.txt").write_bytes(b"alpha\n")
    with ModelServer(SCRIPT) as server:
        found = Project(repo, tmp_path, server)
        done = found.gitcp("install", "codex")
        assert done["done"][0]["path"] == str(found.home / "hooks.json")
        yield found


def three_turns(project: Project) -> tuple[str, list[dict[bytes, Any]]]:
    trees = []
    thread = project.codex("turn one")
    trees.append(tree_bytes(project.top))
    for prompt in ("turn two", "turn three"):
        project.codex("resume", thread, prompt)
        trees.append(tree_bytes(project.top))
    return thread, trees


def resumed(document: dict[str, Any]) -> str:
    words = document["resume"].split()
    assert words[:2] == ["codex", "resume"]
    found: str = words[2]
    return found


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
    assert project.gitcp("verify")["ok"]
    assert project.log() == ""


def test_a_prompts_id_selects_the_state_before_it(project):
    _, trees = three_turns(project)
    (rollout,) = (project.home / "sessions").rglob("*.jsonl")
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


def test_a_client_that_is_killed_loses_nothing(project):
    thread = project.codex("turn one")
    client = subprocess.Popen(
        project.command("resume", thread, "slow turn"),
        cwd=project.top,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not (project.top / "slow").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(client.pid, signal.SIGKILL)
    client.wait()
    project.codex("resume", thread, "the other way")
    last = project.checkpoints()[-1]
    assert (last["note"], last["trigger"]) == ("the other way", "turn-end")
    assert project.gitcp("verify")["ok"]
    (rollout,) = (project.home / "sessions").rglob("*.jsonl")
    done = run_gitcp(project.top, "messages", "--format", "jsonl")
    assert rollout.read_bytes().startswith(done.stdout)
    assert b"the other way" in done.stdout


def test_a_linked_work_tree_has_a_line_of_its_own(project):
    project.codex("turn one")
    other = project.top.parent / "other"
    git(project.top, "add", "-A")
    git(project.top, "commit", "-q", "-m", "all")
    git(project.top, "worktree", "add", "-q", other)
    project.codex("the other way", where=other)
    there = project.gitcp("log", where=other)["checkpoints"]
    assert there[0]["note"] == "the other way"
    assert not (project.top / "other").exists()
    assert "the other way" not in json.dumps(project.checkpoints())


def test_without_trust_or_without_gitcp_the_client_is_the_same(project):
    project.codex("turn one", trust=False)
    assert not (project.top / ".git" / "gitcp").exists()
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
