"""The real Claude Code, as the wheel of its SDK brings it, against a stand-in model."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.support.anthropic_server import AnthropicServer
from tests.support.gitrepo import git_directory
from tests.support.offline import Gate

_TOOLS = "Bash,Write,Edit,Read,Agent"
_TIMEOUT = 120


def program() -> Path | None:
    """The client that is installed for this Python, or None."""
    spec = find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    found = Path(spec.origin).parent / "_bundled" / "claude"
    return found if os.access(found, os.X_OK) else None


class Answer(NamedTuple):
    """How a run of the client ended; `text` is what the model said last."""

    status: int
    session: str
    text: str
    shown: str


class ClaudeCode:
    """The client with a home of its own, and no server to talk to but the stand-in."""

    def __init__(self, home: Path, server: AnthropicServer, gate: Gate) -> None:
        self.home = home
        self.config = home / "claude"
        self.server = server
        self._gate = gate
        self.config.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """What the client, its hooks and gitcp see."""
        bin_dir = Path(sys.executable).parent
        return {
            "PATH": f"{bin_dir}:{git_directory()}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "CLAUDE_CONFIG_DIR": str(self.config),
            "CLAUDE_CODE_TMPDIR": str(self.home / "tmp"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            **self.server.environment,
        }

    @property
    def prefix(self) -> list[str]:
        """What a program is started with to have no network."""
        return self._gate.prefix

    def run(
        self, prompt: str, *options: str, cwd: Path, resume: str | None = None
    ) -> Answer:
        """Lets it do one turn."""
        client = program()
        assert client is not None
        more = ("--resume", resume) if resume else ()
        done = subprocess.run(
            [
                *self.prefix,
                str(client),
                *("-p", prompt, *more, *options),
                *("--permission-mode", "acceptEdits", "--allowedTools", _TOOLS),
                *("--output-format", "json"),
            ],
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT,
        )
        shown = (done.stdout + done.stderr).decode("utf-8", "replace")
        found: dict[str, Any] = {}
        with contextlib.suppress(ValueError):
            found = json.loads(done.stdout)
        return Answer(
            done.returncode, found.get("session_id", ""), found.get("result", ""), shown
        )

    def ask(
        self, prompt: str, *options: str, cwd: Path, resume: str | None = None
    ) -> str:
        """Lets it do one turn that has to go well; returns the id of the session."""
        answer = self.run(prompt, *options, cwd=cwd, resume=resume)
        assert answer.status == 0, answer
        assert answer.session
        return answer.session

    def gitcp(self, cwd: Path, *args: str) -> Any:
        """The JSON document of a command of gitcp's that has to go well."""
        done = subprocess.run(
            [Path(sys.executable).parent / "gitcp", args[0], "--json", *args[1:]],
            cwd=cwd,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT,
        )
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def transcript(self, session: str) -> Path:
        """Where it keeps a conversation."""
        (found,) = self.config.glob(f"projects/*/{session}.jsonl")
        return found

    def records(self, session: str) -> list[dict[str, Any]]:
        """The records of a conversation."""
        lines = self.transcript(session).read_bytes().splitlines()
        return [json.loads(line) for line in lines]

    def prompt_of(self, session: str, text: str) -> dict[str, Any]:
        """The record in which something was asked."""
        found = [
            record
            for record in self.records(session)
            if record["type"] == "user" and record["message"]["content"] == text
        ]
        return found[-1]


@contextlib.contextmanager
def running(home: Path, script: Any) -> Iterator[ClaudeCode]:
    """A client whose model answers from a script."""
    home.mkdir(parents=True, exist_ok=True)
    with AnthropicServer(script) as server:
        port = urlsplit(server.url).port
        assert port is not None
        with Gate(port, home) as gate:
            yield ClaudeCode(home, server, gate)


def conversation(messages: Sequence[dict[str, Any]]) -> list[tuple[str, Any]]:
    """What was said, message by message, with each text as its blocks."""
    return [
        (
            message["role"],
            [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"],
        )
        for message in messages
    ]
