"""OpenCode itself, plugin and all, against a stand-in model."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.gitrepo import gitcp_environment, run_gitcp, tree_bytes
from tests.support.model_server import ModelServer
from tests.support.real_clients import open_client_settings
from tests.support.stand_in import say, use

OPENCODE = shutil.which("opencode")

pytestmark = [
    pytest.mark.skipif(
        OPENCODE is None, reason="there is no opencode (npm i opencode-ai)"
    ),
    # Each start of the client takes it ten seconds.
    pytest.mark.timeout(600),
]


RECORD = f"{sys.executable} -P -m gitcp decide 'in its shell' --json > noted"


def bash(command: str) -> dict[str, Any]:
    return use("bash", command=command, description="a test")


SCRIPT = {
    "turn one": [[bash("sed -i s/alpha/ALPHA/ keep.txt")], [say("turn one done")]],
    "turn two": [
        [bash("rm keep.txt; mkdir d; echo 2 > d/two")],
        [bash("false")],
        [say("turn two done")],
    ],
    "lose it": [
        [bash("echo hours > work")],
        [bash("ls -la; cat work")],
        [bash("rm work")],
        [say("lost it")],
    ],
    "another way": [[bash("echo n > new.txt")], [say("ok")]],
    "record it": [[bash(RECORD)], [say("recorded")]],
    "delegate": [
        [use("task", description="a", prompt="the part", subagent_type="general")],
        [say("delegated")],
    ],
    "the part": [[bash("echo p > part")], [say("the part is done")]],
}


class Project:
    """A project with OpenCode in it, in a home of its own."""

    def __init__(self, top: Path, home: Path, server: ModelServer) -> None:
        self.top, self.server, self.home = top, server, home
        config = home / ".config" / "opencode"
        config.mkdir(parents=True)
        settings = open_client_settings(server.url)
        (config / "opencode.json").write_text(json.dumps(settings))
        self.extra = {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
        }
        self.environment = {
            **gitcp_environment(self.extra),
            "CI": "1",
            # The client believes this one rather than the system.
            "PWD": str(top),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            # A registry that says at once that it has nothing.
            "npm_config_registry": f"{server.url}/npm/",
            "npm_config_fetch_retries": "0",
        }

    def run(self, *args: str) -> bytes:
        assert OPENCODE is not None
        done = subprocess.run(
            [OPENCODE, *args],
            cwd=self.top,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout

    def turn(self, prompt: str, *args: str) -> str:
        """Runs a turn; returns the id of the session."""
        out = self.run("run", "--format", "json", "--auto", *args, prompt)
        found: str = json.loads(out.splitlines()[0])["sessionID"]
        return found

    def resume(self, shown: str) -> str:
        """Does what the printed command says, short of starting the client."""
        first, _, second = shown.partition(" && ")
        words = shlex.split(first)
        assert words[:2] == ["opencode", "import"]
        self.run(*words[1:])
        assert second.startswith("opencode --session ses_")
        return second.split()[-1]

    @property
    def plugin(self) -> Path:
        return self.home / ".config" / "opencode" / "plugin" / "gitcp.js"

    def log(self) -> str:
        path = self.top / ".git" / "gitcp" / "hooks.log"
        return path.read_text() if path.exists() else ""

    def gitcp(self, *args: str) -> Any:
        done = run_gitcp(self.top, *args, "--json", env=self.extra)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def ends(self, number: int) -> list[dict[str, Any]]:
        """The checkpoints at the ends of turns, once there are so many.

        OpenCode ends without waiting for what it has told its plugins last.
        """
        deadline = time.monotonic() + 120
        while True:
            found = self.gitcp("log", "--all", "--full")["checkpoints"][::-1]
            ended = [one for one in found if one["trigger"] == "turn-end"]
            if len(ended) >= number or time.monotonic() > deadline:
                assert len(ended) == number, found
                return ended
            time.sleep(0.2)

    def sent_before(self, prompt: str) -> list[Any]:
        messages: list[Any] = self.server.bodies(prompt)[0]["messages"]
        assert prompt in json.dumps(messages[-1])
        return messages[:-1]


@pytest.fixture
def project(repo, tmp_path):
    (repo / "keep.txt").write_bytes(b"alpha\n")
    with ModelServer(SCRIPT) as server:
        found = Project(repo, tmp_path / "home", server)
        found.gitcp("install", "opencode")
        # How long a hook may take is another test's matter, not one of a busy machine.
        found.gitcp("config", "hookTimeout", "60s")
        yield found


def test_restore_and_fork_resume_with_the_words_that_were_said(project):
    first = project.turn("turn one")
    project.ends(1)
    tree = tree_bytes(project.top)
    project.turn("turn two", "-s", first)
    ends = project.ends(2)
    assert ["turn one" in one["note"] for one in ends] == [True, False]
    restored = project.gitcp("restore", ends[0]["id"], "-y")
    assert tree_bytes(project.top) == tree
    new = project.resume(restored["resume"])
    assert new != first
    project.turn("another way", "-s", new)
    assert (project.top / "new.txt").read_bytes() == b"n\n"
    assert project.sent_before("another way") == project.sent_before("turn two")
    last = project.ends(3)[-1]
    assert ("another way" in last["note"], last["branch"]) == (True, "main")
    spoken = run_gitcp(project.top, "messages", "--all").stdout.decode()
    assert "### assistant\n\nturn one done" in spoken
    assert "unknown record" not in spoken

    forked = project.gitcp("fork", ends[0]["id"], "second", "-y")
    assert tree_bytes(project.top) == tree
    project.turn("turn three", "-s", project.resume(forked["resume"]))
    assert project.sent_before("turn three") == project.sent_before("turn two")
    last = project.ends(4)[-1]
    assert ("turn three" in last["note"], last["branch"]) == (True, "second")
    assert project.gitcp("verify")["ok"]
    assert project.log() == ""


@pytest.mark.slow
def test_what_a_turn_wrote_is_saved_before_a_command_that_deletes_it(project):
    project.turn("lose it")
    project.ends(1)
    end, before = project.gitcp("log", "--full")["checkpoints"][:2]
    assert before["trigger"] == "before-command"
    assert before["note"].startswith("before `rm work`: ")
    assert end["trigger"] == "turn-end"
    assert not (project.top / "work").exists()
    project.gitcp("restore", before["id"], "work", "-y")
    assert (project.top / "work").read_bytes() == b"hours\n"


@pytest.mark.slow
def test_a_session_made_elsewhere_goes_on_when_it_is_trusted(project):
    first = project.turn("turn one")
    (end,) = project.ends(1)
    project.turn("turn two", "-s", first)
    project.ends(2)
    # What was sealed with a key that is gone was made elsewhere.
    (project.top / ".git" / "gitcp" / "key").unlink()
    assert project.gitcp("restore", end["id"], "-y", "--conversation")["resume"] is None
    back = project.gitcp("restore", end["id"], "-y", "--conversation", "--trust")
    new = project.resume(back["resume"])
    project.turn("another way", "-s", new)
    assert project.sent_before("another way") == project.sent_before("turn two")
    assert json.loads(project.run("export", new))["info"]["directory"] == str(
        project.top
    )


@pytest.mark.slow
def test_two_clients_in_one_work_tree_do_not_mix(project):
    # One alone first: two that make the client's database at once find it locked.
    project.turn("turn one")
    project.ends(1)
    said = {"a": "another way", "b": "turn two"}
    with ThreadPoolExecutor() as pool:
        begun = {name: pool.submit(project.turn, said[name]) for name in said}
    sessions = {name: one.result() for name, one in begun.items()}
    ends = {one["conversation"]["agent_session"]: one for one in project.ends(3)[1:]}
    assert set(ends) == set(sessions.values())
    assert len({one["session"] for one in ends.values()}) == 2
    for name, session in sessions.items():
        one = ends[session]
        assert said[name] in one["note"]
        done = run_gitcp(project.top, "messages", one["id"], "--format", "json")
        kept = json.loads(done.stdout)
        exported = json.loads(project.run("export", session))
        assert kept == exported["messages"]
    assert project.gitcp("verify")["ok"]
    assert project.log() == ""


@pytest.mark.slow
def test_a_subagent_is_kept_beside_the_session_that_made_it(project):
    project.gitcp("config", "frequency", "tool")
    session = project.turn("delegate")
    project.ends(1)
    line = project.gitcp("log", "--all", "--full")["checkpoints"]
    assert (project.top / "part").read_bytes() == b"p\n"
    assert {"tool", "subagent-stop"} <= {one["trigger"] for one in line}
    assert len({(one["session"], one["branch"]) for one in line}) == 1
    for one in line:
        assert "the part" not in one["note"]
        if one["conversation"] is not None:
            assert one["conversation"]["agent_session"] == session
    assert project.log() == ""


@pytest.mark.slow
def test_without_gitcp_the_client_is_the_same(project):
    text = project.plugin.read_text()
    assert "gitcp hook" in text
    project.plugin.write_text(text.replace("gitcp hook", "gone/gitcp hook"))
    project.turn("another way")
    assert (project.top / "new.txt").read_bytes() == b"n\n"
    assert project.gitcp("log", "--all")["checkpoints"] == []


@pytest.mark.slow
def test_what_its_agent_records_in_its_shell_is_the_session_s(project):
    session = project.turn("record it")
    noted = json.loads((project.top / "noted").read_bytes())
    assert (noted["agent"], noted["agent_session"]) == ("opencode", session)
    (end,) = project.ends(1)
    assert end["decisions"] == 1
