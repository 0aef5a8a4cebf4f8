"""Codex itself in a project of its own, with a stand-in for the model."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from gitcp.clients import codex_trust, hook_settings
from tests.support.gitrepo import gitcp_environment, run_gitcp
from tests.support.model_server import ModelServer

PROGRAM = shutil.which("codex")


def write_settings(folder: Path, url: str, *, compact_at: int) -> None:
    """Has Codex ask a stand-in model; a conversation of so many tokens is compacted."""
    (folder / "config.toml").write_text(
        f"""model = "stand-in"
model_auto_compact_token_limit = {compact_at}
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
        self.home_variable = {"CODEX_HOME": str(self.home)}
        self.write_config(server.url)

    def write_config(self, url: str, *, compact_at: int = 10**9) -> None:
        """Writes the settings; a conversation of so many tokens is compacted."""
        write_settings(self.home, url, compact_at=compact_at)

    def trust(self) -> None:
        """Approves the hooks as they are now, as a user does with /hooks."""
        path = self.home / "hooks.json"
        lines = []
        for hook in hook_settings.ours(path.read_bytes(), "codex"):
            event = re.sub(r"(?<!^)(?=[A-Z])", "_", hook.event).lower()
            key = f"{path}:{event}:{hook.group}:{hook.number}"
            lines.append(f'[hooks.state."{key}"]')
            lines.append(f'trusted_hash = "{codex_trust.digest(event, hook)}"')
        with (self.home / "config.toml").open("a") as file:
            file.write("\n".join([*lines, ""]))

    def command(self, *args: str, trust: bool = True) -> list[str]:
        assert PROGRAM is not None
        head = [PROGRAM, "exec", *args[:-1], "--json"]
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

    def kill(self, *args: str, once: Path) -> None:
        """Begins a turn, and kills the client once there is a file."""
        client = subprocess.Popen(
            self.command(*args),
            cwd=self.top,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + 90
        while not once.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(client.pid, signal.SIGKILL)
        client.wait()

    def gitcp(self, *args: str | Path, where: Path | None = None) -> Any:
        done = run_gitcp(where or self.top, *args, "--json", env=self.home_variable)
        assert done.returncode == 0, (done.stdout, done.stderr, self.log())
        return json.loads(done.stdout)

    def checkpoints(self, *args: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.gitcp("log", "--full", *args)["checkpoints"]
        return found[::-1]

    def log(self) -> str:
        path = self.top / ".git" / "gitcp" / "hooks.log"
        return path.read_text() if path.exists() else ""

    def said_before(self, prompt: str, *, last: bool = False) -> list[Any]:
        """What the model was sent with the first request about a prompt, but for it.

        With `last`, when the prompt was given for the last time. The instructions at the
        front get a fresh id each time.
        """
        bodies = [body["input"] for body in self.server.bodies(prompt)]
        for items in bodies:
            # What a hook says of the prompt comes after it.
            while items[-1].get("role") == "developer":
                items.pop()
        given = [items for items in bodies if prompt in json.dumps(items[-1])]
        items = given[-1 if last else 0]
        return [
            {name: value for name, value in one.items() if number or name != "id"}
            for number, one in enumerate(items[:-1])
        ]

    def rollouts(self) -> dict[str, Path]:
        """What the client writes the threads to, by their ids."""
        found = (self.home / "sessions").rglob("rollout-*.jsonl")
        return {path.stem[-36:]: path for path in found}

    def stored(self, where: str) -> bytes:
        """The conversation that a checkpoint holds, as it is."""
        done = run_gitcp(self.top, "messages", where, "--format", "jsonl")
        assert done.returncode == 0, done.stderr
        return done.stdout


def resumed(document: dict[str, Any]) -> str:
    """The thread that a restore says to go on with."""
    words = document["resume"].split()
    assert words[:2] == ["codex", "resume"]
    found: str = words[2]
    return found
