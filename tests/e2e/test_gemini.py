"""Gemini CLI itself, hooks and all, against a stand-in model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.gitrepo import gitcp_environment, run_gitcp, tree_bytes
from tests.support.model_server import ModelServer
from tests.support.stand_in import say, use

GEMINI = shutil.which("gemini")

pytestmark = [
    pytest.mark.skipif(
        GEMINI is None, reason="there is no gemini (npm i @google/gemini-cli)"
    ),
    pytest.mark.timeout(600),
]

RECORD = f"{sys.executable} -P -m gitcp decide 'in its shell' --json > noted"

SCRIPT = {
    "turn one": [
        [use("run_shell_command", command="sed -i s/alpha/ALPHA/ keep.txt")],
        [say("turn one done")],
    ],
    "turn two": [
        [use("run_shell_command", command="rm keep.txt; mkdir d; echo 2 > d/two")],
        [use("run_shell_command", command="false")],
        [say("turn two done")],
    ],
    "lose it": [
        [use("run_shell_command", command="echo hours > work")],
        [use("run_shell_command", command="ls -la; cat work")],
        [use("run_shell_command", command="rm work")],
        [say("lost it")],
    ],
    "record it": [[use("run_shell_command", command=RECORD)], [say("recorded")]],
    "another way": [[use("write_file", file_path="new.txt", content="n")], [say("ok")]],
}
SETTINGS = {
    "security": {
        "auth": {"selectedType": "gemini-api-key"},
        "folderTrust": {"enabled": False},
    },
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "disableUpdateNag": True},
    "model": {"name": "gemini-2.5-flash"},
}


class Project:
    """A project with Gemini CLI in it, in a home of its own."""

    def __init__(self, top: Path, home: Path, server: ModelServer) -> None:
        self.top, self.server = top, server
        self.settings = home / ".gemini" / "settings.json"
        self.settings.parent.mkdir(parents=True)
        self.settings.write_text(json.dumps(SETTINGS))
        self.extra = {"HOME": str(home)}
        self.environment = {
            **gitcp_environment(self.extra),
            "GEMINI_API_KEY": "dummy",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GOOGLE_GEMINI_BASE_URL": server.url,
            "CI": "1",
        }

    def gemini(self, prompt: str, resume: str | None = None) -> str:
        """Runs a turn; returns the id of the session."""
        assert GEMINI is not None
        how = ["--approval-mode", "yolo", "--output-format", "json"]
        done = subprocess.run(
            [GEMINI, *(["-r", resume] if resume else []), "-p", prompt, *how],
            cwd=self.top,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        found: str = json.loads(done.stdout)["session_id"]
        return found

    def gitcp(self, *args: str) -> Any:
        done = run_gitcp(self.top, *args, "--json", env=self.extra)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def checkpoints(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.gitcp("log", "--full")["checkpoints"]
        return found[::-1]

    def sent_before(self, prompt: str) -> list[Any]:
        contents: list[Any] = self.server.bodies(prompt)[0]["contents"]
        assert prompt in json.dumps(contents[-1])
        return contents[:-1]


@pytest.fixture
def project(repo, tmp_path):
    (repo / "keep.txt").write_bytes(b"alpha\n")
    with ModelServer(SCRIPT) as server:
        found = Project(repo, tmp_path / "home", server)
        found.gitcp("install", "gemini")
        # How long a hook may take is another test's matter, not one of a busy machine.
        found.gitcp("config", "hookTimeout", "60s")
        yield found


def test_restore_and_fork_resume_with_the_words_that_were_said(project):
    first = project.gemini("turn one")
    tree = tree_bytes(project.top)
    project.gemini("turn two", first)
    ends = [one for one in project.checkpoints() if one["trigger"] == "turn-end"]
    assert [one["note"] for one in ends] == ["turn one", "turn two"]
    assert ends[0]["conversation"]["agent_session"] == first

    restored = project.gitcp("restore", ends[0]["id"], "-y")
    assert tree_bytes(project.top) == tree
    words = restored["resume"].split()
    assert words[:2] == ["gemini", "--resume"]
    assert words[2] != first
    project.gemini("another way", words[2])
    assert (project.top / "new.txt").read_bytes() == b"n"
    assert project.sent_before("another way") == project.sent_before("turn two")
    last = project.checkpoints()[-1]
    assert (last["note"], last["branch"]) == ("another way", "main")

    # As on another machine: the client knows neither the project nor the chat.
    shutil.rmtree(project.settings.parent / "tmp")
    os.unlink(project.settings.parent / "projects.json")
    forked = project.gitcp("fork", ends[0]["id"], "second", "-y")
    project.gemini("another way", forked["resume"].split()[2])
    assert project.sent_before("another way") == project.sent_before("turn two")
    assert project.checkpoints()[-1]["branch"] == "second"
    assert project.gitcp("verify")["ok"]
    log = project.top / ".git" / "gitcp" / "hooks.log"
    assert not log.exists(), log.read_text()


@pytest.mark.slow
def test_what_a_turn_wrote_is_saved_before_a_command_that_deletes_it(project):
    project.gemini("lose it")
    before, end = project.checkpoints()[-2:]
    assert before["trigger"] == "before-command"
    assert before["note"].startswith("before `rm work`: ")
    assert end["trigger"] == "turn-end"
    assert not (project.top / "work").exists()
    project.gitcp("restore", before["id"], "work", "-y")
    assert (project.top / "work").read_bytes() == b"hours\n"


@pytest.mark.slow
def test_a_chat_made_elsewhere_goes_on_when_it_is_trusted(project):
    first = project.gemini("turn one")
    project.gemini("turn two", first)
    ends = [one for one in project.checkpoints() if one["trigger"] == "turn-end"]
    # What was sealed with a key that is gone was made elsewhere.
    (project.top / ".git" / "gitcp" / "key").unlink()
    assert project.gitcp("restore", ends[0]["id"], "-y")["resume"] is None
    back = project.gitcp("restore", ends[0]["id"], "-y", "--trust")
    project.gemini("another way", back["resume"].split()[2])
    assert (project.top / "new.txt").read_bytes() == b"n"
    assert project.sent_before("another way") == project.sent_before("turn two")


@pytest.mark.slow
def test_two_clients_in_one_work_tree_do_not_mix(project):
    # One alone first: clients that begin at once in a project that is new to them lose
    # each other's chats, as they do where one resumes while another begins.
    project.gemini("turn one")
    said = {"a": "another way", "b": "turn two"}
    with ThreadPoolExecutor() as pool:
        begun = {name: pool.submit(project.gemini, said[name]) for name in said}
    sessions = {name: one.result() for name, one in begun.items()}
    assert len(set(sessions.values())) == 2
    tips = project.gitcp("log", "--all", "--full")["checkpoints"]
    for name, prompt in said.items():
        line = [
            one
            for one in tips[::-1]
            if one["session"] == f"gemini-{sessions[name][:8]}"
            and one["trigger"] == "turn-end"
        ]
        assert [one["note"] for one in line] == [prompt]
        assert {one["conversation"]["agent_session"] for one in line} == {
            sessions[name]
        }
        done = run_gitcp(project.top, "messages", line[-1]["id"], "--format", "jsonl")
        chats = [
            path.read_bytes()
            for path in project.settings.parent.rglob("chats/*.jsonl")
            if path.name.endswith(f"-{sessions[name][:8]}.jsonl")
        ]
        assert any(chat.startswith(done.stdout) for chat in chats)
        assert prompt.encode() in done.stdout
    assert project.gitcp("verify")["ok"]


@pytest.mark.slow
def test_without_gitcp_the_client_is_the_same(project):
    text = project.settings.read_text()
    project.settings.write_text(text.replace("gitcp hook", "gone/gitcp hook"))
    session = project.gemini("another way")
    assert session
    assert (project.top / "new.txt").read_bytes() == b"n"
    assert project.gitcp("log", "--all")["checkpoints"] == []


def test_uninstall_leaves_the_settings_as_they_were(project):
    project.gitcp("uninstall", "gemini")
    assert json.loads(project.settings.read_text()) == SETTINGS
    assert project.settings.read_text() == json.dumps(SETTINGS)


@pytest.mark.slow
def test_what_its_agent_records_in_its_shell_is_the_session_s(project):
    session = project.gemini("record it")
    noted = json.loads((project.top / "noted").read_bytes())
    assert (noted["agent"], noted["agent_session"]) == ("gemini", session)
    ends = [one for one in project.checkpoints() if one["trigger"] == "turn-end"]
    assert ends[-1]["decisions"] == 1
