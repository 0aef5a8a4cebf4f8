"""Real clients that use `gitcp mcp`: each saves, plans a restore and carries it out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.e2e import test_gemini, test_opencode
from tests.support import codex
from tests.support.claude_code import program, running
from tests.support.gitrepo import gitcp_environment, run_gitcp
from tests.support.model_server import ModelServer
from tests.support.stand_in import say, use

pytestmark = pytest.mark.timeout(300)
SERVER = [sys.executable, "-P", "-m", "gitcp", "mcp"]


def script(prefix: str, top: Path) -> dict[str, Any]:
    """What the model does: the handle is the one that it was given."""

    def restores(body: dict[str, Any]) -> list[dict[str, Any]]:
        handle = re.findall(r"plan: ([\w-]{12})", json.dumps(body))[-1]
        return [use(f"{prefix}restore", plan=handle)]

    def breaks(body: dict[str, Any]) -> list[dict[str, Any]]:
        (top / "keep.txt").write_text("broken\n")
        return [use(f"{prefix}plan_restore", id="green")]

    return {
        "go": [
            [use(f"{prefix}checkpoint", note="it works", label="green")],
            breaks,
            restores,
            [say("restored")],
        ]
    }


def _check(repo: Path, env: dict[str, str] | None = None) -> None:
    assert (repo / "keep.txt").read_text() == "alpha\n"
    log = json.loads(run_gitcp(repo, "log", "--json", "--full", env=env).stdout)
    assert [one["trigger"] for one in log["checkpoints"]] == [
        "restore",
        "before-restore",
        "manual",
    ]


@pytest.fixture
def top(repo):
    (repo / "keep.txt").write_text("alpha\n")
    return repo


def test_the_list_of_tools_costs_at_most_1500_tokens(top):
    async def listed() -> tuple[str, Any]:
        where = StdioServerParameters(
            command=SERVER[0], args=SERVER[1:], cwd=top, env=gitcp_environment()
        )
        async with stdio_client(where) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = await session.list_tools()
            failed = await session.call_tool("restore", {"plan": "1"})
            return tools.model_dump_json(by_alias=True, exclude_none=True), failed

    text, failed = anyio.run(listed)
    assert len(json.loads(text)["tools"]) == 7
    # A token of JSON has more than three characters on average.
    assert len(text) / 3 <= 1500
    assert failed.is_error
    assert "no such plan" in failed.content[0].text


@pytest.mark.skipif(
    program() is None, reason="needs Claude Code: `pip install claude-agent-sdk`"
)
def test_claude_code_restores_by_a_plan(top, tmp_path):
    with running(tmp_path / "home", script("mcp__gitcp__", top)) as client:
        settings = {"gitcp": {"command": SERVER[0], "args": SERVER[1:]}}
        config = json.dumps({"mcpServers": settings})
        allowed = "mcp__gitcp__checkpoint,mcp__gitcp__plan_restore,mcp__gitcp__restore"
        client.ask("go", "--mcp-config", config, "--allowedTools", allowed, cwd=top)
    _check(top)


@pytest.mark.skipif(
    codex.PROGRAM is None, reason="there is no codex (npm i @openai/codex)"
)
def test_codex_restores_by_a_plan(top, tmp_path):
    with ModelServer(script("mcp__gitcp.", top)) as server:
        project = codex.Project(top, tmp_path, server)
        with (project.home / "config.toml").open("a") as file:
            file.write(f"[mcp_servers.gitcp]\ncommand = {json.dumps(SERVER[0])}\n")
            # It does not wait for a server that is not required.
            file.write(f"args = {json.dumps(SERVER[1:])}\nrequired = true\n")
            file.write(f"env = {_toml(gitcp_environment())}\n")
        project.codex("go")
    _check(top)


@pytest.mark.skipif(
    test_gemini.GEMINI is None, reason="there is no gemini (npm i @google/gemini-cli)"
)
def test_gemini_restores_by_a_plan(top, tmp_path):
    with ModelServer(script("mcp_gitcp_", top)) as server:
        project = test_gemini.Project(top, tmp_path / "home", server)
        entry = {"command": SERVER[0], "args": SERVER[1:], "trust": True}
        settings = {
            **test_gemini.SETTINGS,
            "mcpServers": {"gitcp": {**entry, "env": gitcp_environment()}},
        }
        project.settings.write_text(json.dumps(settings))
        project.gemini("go")
    _check(top)


# It takes ten seconds to start, and as long to look for what it may not load.
@pytest.mark.slow
@pytest.mark.skipif(
    test_opencode.OPENCODE is None, reason="there is no opencode (npm i opencode-ai)"
)
def test_opencode_restores_by_a_plan(top, tmp_path):
    with ModelServer(script("gitcp_", top)) as server:
        project = test_opencode.Project(top, tmp_path / "home", server)
        path = project.home / ".config" / "opencode" / "opencode.json"
        settings = json.loads(path.read_text())
        settings["mcp"] = {"gitcp": {"type": "local", "command": SERVER}}
        path.write_text(json.dumps(settings))
        assert test_opencode.OPENCODE is not None
        done = subprocess.run(
            [test_opencode.OPENCODE, "run", "go"],
            cwd=top,
            env=project.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout, done.stderr)
    _check(top)


def _toml(table: dict[str, str]) -> str:
    pairs = (
        f"{json.dumps(name)} = {json.dumps(value)}" for name, value in table.items()
    )
    return f"{{ {', '.join(pairs)} }}"
