"""Real agents behind `gitcp acp`, with a stand-in for the model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import test_gemini, test_opencode
from tests.e2e.test_acp import Editor
from tests.support.gitrepo import gitcp_environment, run_gitcp
from tests.support.model_server import ModelServer
from tests.support.stand_in import say, use

pytestmark = pytest.mark.timeout(300)


def _script(tool: str, **more: str) -> dict[str, Any]:
    def shell(command: str) -> list[Any]:
        return [use(tool, command=command, **more)]

    # What it is asked last comes first: a restored talk has the earlier prompts in it.
    return {
        "another way": [shell("echo n > new.txt"), [say("went another way")]],
        "turn one": [shell("sed -i s/alpha/ALPHA/ keep.txt"), [say("turn one done")]],
        "turn two": [shell("rm keep.txt"), [say("turn two done")]],
    }


class _Agent:
    """How an agent is started, in a home of its own."""

    def __init__(
        self, command: list[str], environment: dict[str, str], server: ModelServer
    ) -> None:
        self.command, self.environment, self.server = command, environment, server


def _gemini(repo: Path, home: Path, server: ModelServer) -> _Agent:
    project = test_gemini.Project(repo, home, server)
    assert test_gemini.GEMINI is not None
    return _Agent([test_gemini.GEMINI, "--acp"], project.environment, server)


def _opencode(repo: Path, home: Path, server: ModelServer) -> _Agent:
    project = test_opencode.Project(repo, home, server)
    assert test_opencode.OPENCODE is not None
    return _Agent([test_opencode.OPENCODE, "acp"], project.environment, server)


def _copilot(repo: Path, home: Path, server: ModelServer) -> _Agent:
    del repo
    home.mkdir()
    environment = {
        **gitcp_environment({"HOME": str(home)}),
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{server.url}/v1",
        "COPILOT_PROVIDER_API_KEY": "dummy",
        "COPILOT_MODEL": "gpt-5.5",
    }
    found = shutil.which("copilot")
    assert found is not None
    return _Agent([found, "--acp"], environment, server)


_MADE = {
    "gemini": (_gemini, _script("run_shell_command"), "@google/gemini-cli"),
    "opencode": (_opencode, _script("bash", description="d"), "opencode-ai"),
    "copilot": (_copilot, _script("bash", description="d"), "@github/copilot"),
}


@pytest.fixture(
    # OpenCode takes ten seconds for each of two starts.
    params=["gemini", "copilot", pytest.param("opencode", marks=pytest.mark.slow)]
)
def agent(request, repo, tmp_path) -> Iterator[_Agent]:
    make, script, package = _MADE[request.param]
    if shutil.which(request.param) is None:
        pytest.skip(f"there is no {request.param} (npm i {package})")
    (repo / "keep.txt").write_text("alpha\n")
    with ModelServer(script) as server:
        yield make(repo, tmp_path / "home", server)


def _ready(repo: Path, tmp_path: Path, agent: _Agent) -> Editor:
    editor = Editor(repo, tmp_path / "heard", agent.environment, agent.command)
    can = {"fs": {"readTextFile": False, "writeTextFile": False}}
    params = {"protocolVersion": 1, "clientCapabilities": can}
    editor.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    editor.until(0)
    return editor


def test_turns_are_saved_and_a_restore_continues_in_a_new_session(
    repo, tmp_path, agent
):
    def gitcp(*args: str) -> Any:
        done = run_gitcp(repo, *args, "--json", env=agent.environment)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    editor = _ready(repo, tmp_path, agent)
    session = editor.open()
    for text in ("turn one", "turn two"):
        assert editor.turn(session, text)["result"]["stopReason"] == "end_turn"
    assert editor.close() == 0
    found = gitcp("log", "--full")["checkpoints"][::-1]
    ends = [one for one in found if one["trigger"] == "turn-end"]
    assert [one["note"] for one in ends] == ["turn one", "turn two"]

    gitcp("restore", ends[0]["id"], "-y")
    assert (repo / "keep.txt").read_text() == "ALPHA\n"
    editor = _ready(repo, tmp_path, agent)
    editor.turn(editor.open(), "another way")
    assert editor.close() == 0
    assert (repo / "new.txt").read_text() == "n\n"
    (first, *_) = agent.server.bodies("another way")
    assert "turn one done" in json.dumps(first)
    assert "turn two done" not in json.dumps(first)
    last = gitcp("log")["checkpoints"][0]
    assert (last["note"], last["branch"]) == ("another way", ends[0]["branch"])
