"""Clients of the table themselves, hooks and all, against a stand-in model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.gitrepo import gitcp_environment, run_gitcp, tree_bytes
from tests.support.model_server import ModelServer
from tests.support.stand_in import Block, say, use

pytestmark = pytest.mark.timeout(600)


_PATIENCE = 60.0


class RealClient(NamedTuple):
    """How to run a client without a person or a network.

    `words` are the arguments of a turn, `resumed` those that continue a session; `shell`
    is a call of its shell. `prepare` writes its settings.
    """

    name: str
    program: str
    package: str
    words: Callable[[str], list[str]]
    shell: Callable[[str], Block]
    environment: Callable[[str, Path], dict[str, str]]
    prepare: Callable[[Path, str], None]
    resumed: Callable[[str], list[str]]
    settings: str
    after: Callable[[str], list[str]] | None = None


def _no_settings(home: Path, url: str) -> None:
    del home, url


COPILOT = RealClient(
    "copilot",
    "copilot",
    "@github/copilot",
    words=lambda prompt: ["-p", prompt, "--allow-all"],
    shell=lambda command: use("bash", command=command, description="x"),
    environment=lambda url, home: {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_MODEL": "gpt-5.5",
    },
    prepare=_no_settings,
    resumed=lambda session: ["--resume", session],
    settings=".copilot/hooks/gitcp.json",
)


def _qwen_settings(home: Path, url: str) -> None:
    del url
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "telemetry": {"enabled": False},
        # Qwen Code adds it, and rewrites the file.
        "$version": 4,
    }
    (home / ".qwen").mkdir()
    (home / ".qwen" / "settings.json").write_text(json.dumps(settings, indent=2))


QWEN = RealClient(
    "qwen",
    "qwen",
    "@qwen-code/qwen-code",
    words=lambda prompt: ["-p", prompt, "--approval-mode", "yolo"],
    shell=lambda command: use(
        "run_shell_command", command=command, is_background=False
    ),
    environment=lambda url, home: {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "qwen3-coder-plus",
    },
    prepare=_qwen_settings,
    resumed=lambda session: ["--resume", session],
    settings=".qwen/settings.json",
)


def _pi_settings(home: Path, url: str) -> None:
    provider = {
        "baseUrl": f"{url}/v1",
        "api": "openai-completions",
        "apiKey": "x",
        "models": [{"id": "model"}],
    }
    (home / ".pi" / "agent").mkdir(parents=True)
    models = home / ".pi" / "agent" / "models.json"
    models.write_text(json.dumps({"providers": {"stand-in": provider}}))


PI = RealClient(
    "pi",
    "pi",
    "@earendil-works/pi-coding-agent",
    words=lambda prompt: ["--provider", "stand-in", "--model", "model", "-p", prompt],
    shell=lambda command: use("bash", command=command),
    environment=lambda url, home: {"PI_OFFLINE": "1"},
    prepare=_pi_settings,
    resumed=lambda session: ["--session", session],
    settings=".pi/agent/extensions/gitcp.ts",
)


def _kilo_settings(home: Path, url: str) -> None:
    model = {"tool_call": True, "limit": {"context": 100_000, "output": 1000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
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
    config = home / ".config" / "kilo"
    config.mkdir(parents=True)
    (config / "kilo.json").write_text(json.dumps(settings))


KILO = RealClient(
    "kilo",
    "kilo",
    "@kilocode/cli-linux-x64",
    words=lambda prompt: ["run", "--format", "json", "--auto", prompt],
    shell=lambda command: use("bash", command=command, description="x"),
    environment=lambda url, home: {
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "KILO_DISABLE_AUTOUPDATE": "1",
        "KILO_DISABLE_MODELS_FETCH": "1",
        "KILO_DISABLE_LSP_DOWNLOAD": "1",
        "KILO_DISABLE_DEFAULT_PLUGINS": "1",
        # A registry that says at once that it has nothing.
        "npm_config_registry": f"{url}/npm/",
        "npm_config_fetch_retries": "0",
    },
    prepare=_kilo_settings,
    resumed=lambda session: [],
    settings=".config/kilo/plugin/gitcp.js",
    after=lambda session: ["--session", session],
)
# A turn of Kilo's takes more than ten seconds.
CLIENTS = (COPILOT, QWEN, PI, pytest.param(KILO, marks=pytest.mark.slow))


class Project:
    """A project with a client in it, in a home of its own."""

    def __init__(
        self, client: RealClient, top: Path, home: Path, server: ModelServer
    ) -> None:
        self.client, self.top, self.home, self.server = client, top, home, server
        home.mkdir()
        client.prepare(home, server.url)
        self.extra = {"HOME": str(home), "CI": "1"}
        self.extra |= client.environment(server.url, home)
        self.settings = home / client.settings
        self.environment = gitcp_environment(self.extra)

    def start(self, prompt: str, session: str | None = None) -> subprocess.Popen[str]:
        found = shutil.which(self.client.program)
        assert found is not None
        more = self.client.resumed(session) if session else []
        words = self.client.words(prompt)
        if self.client.after is not None and session:
            words = [words[0], *self.client.after(session), *words[1:]]
        return subprocess.Popen(
            [found, *more, *words],
            cwd=self.top,
            # Kilo believes this one rather than the system.
            env={**self.environment, "PWD": str(self.top)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def turn(self, prompt: str, session: str | None = None) -> None:
        before = self.checkpoints("turn-end")[-1:]
        self.turn_without_hooks(prompt, session)
        # Some clients end before their last hook does.
        deadline = time.monotonic() + _PATIENCE
        while self.checkpoints("turn-end")[-1:] == before:
            assert time.monotonic() < deadline, "there is no checkpoint of the turn"
            time.sleep(0.05)

    def turn_without_hooks(self, prompt: str, session: str | None = None) -> None:
        process = self.start(prompt, session)
        told = process.communicate()
        assert process.returncode == 0, told

    def ready(self, shown: str) -> str:
        """Runs what has to be run before a session is resumed; returns its id."""
        first, _, then = shown.rpartition(" && ")
        if first:
            path = {"PWD": str(self.top), "PATH": os.environ["PATH"]}
            done = subprocess.run(
                ["sh", "-c", first],
                cwd=self.top,
                env={**self.environment, **path},
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done
        return then.split()[-1]

    def gitcp(self, *args: str) -> Any:
        done = run_gitcp(self.top, *args, "--json", env=self.extra)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def checkpoints(self, trigger: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.gitcp("log", "--full")["checkpoints"]
        for one in found:
            # Kilo puts quotes around what stands in its command line.
            one["note"] = (one["note"] or "").replace('"', "")
        return [one for one in found[::-1] if trigger in {None, one["trigger"]}]

    def sent_before(self, prompt: str) -> list[Any]:
        """What the model was sent before a prompt, without the client's own words."""
        sent: list[Any] = self.server.bodies(prompt)[0]["messages"]
        assert prompt in json.dumps(sent[-1])
        return [one for one in sent[:-1] if one["role"] != "system"]


@pytest.fixture(params=CLIENTS, ids=["copilot", "qwen", "pi", "kilo"])
def project(request, repo, tmp_path):
    client = request.param
    if shutil.which(client.program) is None:
        pytest.skip(f"there is no {client.program} (npm i {client.package})")
    (repo / "keep.txt").write_bytes(b"alpha\n")
    shell = client.shell
    script = {
        "turn one": [[shell("sed -i s/alpha/ALPHA/ keep.txt")], [say("turn one done")]],
        "turn two": [
            [shell("rm keep.txt; mkdir d; echo 2 > d/two")],
            [say("two done")],
        ],
        "lose it": [
            [shell("echo hours > work")],
            [shell("rm work")],
            [say("lost it")],
        ],
        "die in it": [[shell("echo more > work")], [shell("touch reached; sleep 60")]],
        "another way": [[shell("echo n > new.txt")], [say("ok")]],
    }
    with ModelServer(script) as server:
        found = Project(client, repo, tmp_path / "home", server)
        found.gitcp("install", client.name)
        # How long a hook may take is another test's matter, not one of a busy machine.
        found.gitcp("config", "hookTimeout", "60s")
        yield found
        log = repo / ".git" / "gitcp" / "hooks.log"
        assert not log.exists(), log.read_text()


def test_restore_and_fork_resume_with_the_words_that_were_said(project):
    project.turn("turn one")
    tree = tree_bytes(project.top)
    first = project.checkpoints("turn-end")[0]["conversation"]["agent_session"]
    project.turn("turn two", first)
    ends = project.checkpoints("turn-end")
    assert [one["note"] for one in ends] == ["turn one", "turn two"]

    restored = project.gitcp("restore", ends[0]["id"], "-y")
    assert tree_bytes(project.top) == tree
    session = project.ready(restored["resume"])
    assert session != first
    project.turn("another way", session)
    assert (project.top / "new.txt").read_bytes() == b"n\n"
    assert project.sent_before("another way") == project.sent_before("turn two")
    last = project.checkpoints("turn-end")[-1]
    assert (last["note"], last["branch"]) == ("another way", "main")

    forked = project.gitcp("fork", ends[0]["id"], "second", "-y")
    project.turn("another way", project.ready(forked["resume"]))
    assert project.sent_before("another way") == project.sent_before("turn two")
    assert project.checkpoints()[-1]["branch"] == "second"
    assert project.gitcp("verify")["ok"]


def test_work_of_a_turn_is_saved_before_a_command_destroys_it(project):
    project.turn("lose it")
    assert not (project.top / "work").exists()
    before = project.checkpoints("before-command")[-1]
    assert before["note"].startswith("before `rm work`")
    project.gitcp("restore", before["id"], "-y")
    assert (project.top / "work").read_bytes() == b"hours\n"


def test_a_killed_client_loses_nothing_that_a_hook_saw(project):
    project.turn("turn one")
    process = project.start("die in it")
    while not (project.top / "reached").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = project.checkpoints("before-command")[-1]
    assert before["note"].startswith("before `touch reached")
    (project.top / "work").unlink()
    project.gitcp("restore", before["id"], "-y")
    assert (project.top / "work").read_bytes() == b"more\n"
    assert project.gitcp("verify")["ok"]


def test_uninstall_puts_the_settings_back(project):
    name, settings = project.client.name, project.settings
    project.gitcp("uninstall", name)
    before = settings.read_bytes() if settings.exists() else None
    project.gitcp("install", name)
    project.turn("turn one")
    project.gitcp("uninstall", name)
    assert (settings.read_bytes() if settings.exists() else None) == before
    project.turn_without_hooks("another way")
    assert [one["note"] for one in project.checkpoints("turn-end")] == ["turn one"]
