"""The scripts of docs/how-to/claude-agent-sdk.md, run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.anthropic_server import AnthropicServer
from tests.support.gitrepo import (
    git,
    gitcp_environment,
    make_repo,
    run_gitcp,
    tree_bytes,
)
from tests.support.stand_in import say, use

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "claude-agent-sdk.md"
FILES = {"src/a.py": b"print(1)\n", "notes.txt": b"notes\n"}
SCRIPT = {
    "Tidy up this project": [
        [use("Bash", command="rm notes.txt && sed -i s/1/2/ src/a.py && mkdir new")],
        [say("Tidy.")],
    ],
    "Migrate the data": [
        [use("Bash", command="rm -r src && echo done > data.txt")],
        [say("Migrated.")],
    ],
    "Step one": [[use("Bash", command="echo one >> steps.txt")], [say("One.")]],
    "Step two": [[use("Bash", command="echo two >> steps.txt")], [say("Two.")]],
    "Step three": [[use("Bash", command="rm steps.txt")], [say("Three.")]],
    "Another step two": [
        [use("Bash", command="echo other >> steps.txt")],
        [say("Done another way.")],
    ],
    "Start the work": [[use("Bash", command="echo begun > work.txt")], [say("Begun.")]],
    "Go on": [[use("Bash", command="echo more >> work.txt")], [say("Going on.")]],
}


def scripts(heading: str) -> list[str]:
    section = re.search(
        rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    assert section is not None
    return re.findall(r"^```py\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE)


@pytest.fixture
def server() -> Iterator[AnthropicServer]:
    with AnthropicServer(SCRIPT) as started:
        yield started


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "project", FILES)


def run(script: str, project: Path, server: AnthropicServer, *args: str) -> str:
    """Runs a script as a process in the project; what it prints is what it shows."""
    config = project.with_name(f"{project.name}-config")
    config.mkdir(exist_ok=True)
    program = project.with_name("script.py")
    program.write_text(script)
    environment = {
        **server.environment,
        "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_TMPDIR": str(config),
    }
    done = subprocess.run(
        [sys.executable, program, *args],
        cwd=project,
        env=gitcp_environment(environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    shown = "\n".join(re.findall(r"^# > (.*)$", script, re.MULTILINE))
    if shown:
        assert done.stdout.rstrip("\n") == shown
    return done.stdout


def test_undo_everything(project, server):
    before = tree_bytes(project)
    [script] = scripts("Undo everything")
    run(script, project, server)
    assert tree_bytes(project) == before


def test_before_something_risky_and_back(project, server):
    before = tree_bytes(project)
    [script] = scripts("Before something risky, and back")
    run(script, project, server)
    assert tree_bytes(project) == before


def test_several_restore_points(project, server):
    [script] = scripts("Several restore points")
    run(script, project, server)
    sent = server.messages("Another step two")
    assert any("Step one" in str(one) for one in sent)
    assert not any("Step two" in str(one) for one in sent)


def test_on_another_machine(project, server, tmp_path):
    here, there = scripts("On another machine")
    hub = tmp_path / "hub.git"
    git(tmp_path, "init", "--quiet", "--bare", "-b", "main", str(hub))
    git(project, "remote", "add", "origin", str(hub))
    git(project, "push", "--quiet", "origin", "main")
    agent_session = run(here, project, server).strip()
    wanted = server.messages("Start the work")
    for where, verb in ((project, "push"), (tmp_path / "elsewhere", "pull")):
        if not where.exists():
            git(tmp_path, "clone", "--quiet", str(hub), str(where))
        done = run_gitcp(where, verb, "origin")
        assert done.returncode == 0, done.stderr
    other = tmp_path / "elsewhere"
    assert run_gitcp(other, "trust", "origin").returncode == 0
    run(there, other, server, agent_session)
    assert (other / "work.txt").read_text() == "begun\nmore\n"
    sent = server.messages("Go on")
    assert sent[: len(wanted)] == wanted


def test_hooks_of_ones_own(project, server):
    [script] = scripts("The hooks")
    run(script, project, server)
