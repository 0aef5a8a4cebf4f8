"""OpenCode itself, plugin and all, against a stand-in model."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.anthropic_server import say, use
from tests.support.gitrepo import gitcp_environment, run_gitcp, tree_bytes
from tests.support.model_server import ModelServer

OPENCODE = shutil.which("opencode")

pytestmark = [
    pytest.mark.skipif(
        OPENCODE is None, reason="there is no opencode (npm i opencode-ai)"
    ),
    # Each start of the client takes it ten seconds.
    pytest.mark.timeout(290),
]


def bash(command: str) -> dict[str, Any]:
    return use("bash", command=command, description="a test")


SCRIPT = {
    "turn one": [[bash("sed -i s/alpha/ALPHA/ keep.txt")], [say("turn one done")]],
    "turn two": [
        [bash("rm keep.txt; mkdir d; echo 2 > d/two")],
        [bash("false")],
        [say("turn two done")],
    ],
    "another way": [[bash("echo n > new.txt")], [say("ok")]],
}


class Project:
    """A project with OpenCode in it, in a home of its own."""

    def __init__(self, top: Path, home: Path, server: ModelServer) -> None:
        self.top, self.server, self.home = top, server, home
        config = home / ".config" / "opencode"
        config.mkdir(parents=True)
        model = {"tool_call": True, "limit": {"context": 100_000, "output": 1000}}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{server.url}/v1", "apiKey": "dummy"},
            "models": {"model": model},
        }
        settings = {
            "autoupdate": False,
            "share": "disabled",
            "model": "stand-in/model",
            "small_model": "stand-in/model",
            "provider": {"stand-in": provider},
            "permission": {"edit": "allow", "bash": "allow"},
        }
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

    def gitcp(self, *args: str) -> Any:
        done = run_gitcp(self.top, *args, "--json", env=self.extra)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

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
        yield found


def test_a_restore_resumes_with_the_words_that_were_said(project):
    first = project.turn("turn one")
    tree = tree_bytes(project.top)
    project.turn("turn two", "-s", first)
    line = project.gitcp("log")["checkpoints"][::-1]
    ends = [one for one in line if one["trigger"] == "turn-end"]
    assert ["turn one" in one["note"] for one in ends] == [True, False]
    restored = project.gitcp("restore", ends[0]["id"], "-y")
    assert tree_bytes(project.top) == tree
    new = project.resume(restored["resume"])
    assert new != first
    project.turn("another way", "-s", new)
    assert (project.top / "new.txt").read_bytes() == b"n\n"
    assert project.sent_before("another way") == project.sent_before("turn two")
    last = project.gitcp("log")["checkpoints"][0]
    assert ("another way" in last["note"], last["branch"]) == (True, "main")
    spoken = run_gitcp(project.top, "messages").stdout.decode()
    assert "### assistant\n\nturn one done" in spoken
    assert "unknown record" not in spoken
    log = project.top / ".git" / "gitcp" / "hooks.log"
    assert not log.exists(), log.read_text()
