"""Real clients, hooks and all, in a project and a home of their own, against a stand-in model.

A `RealClient` is how one is set up, started and resumed; `Project` runs it. No client has a
network: see `offline`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from tests.support import claude_code, codex
from tests.support.anthropic_server import AnthropicServer, asked, plain
from tests.support.gitrepo import gitcp_environment, run_gitcp
from tests.support.model_server import ModelServer
from tests.support.offline import Gate
from tests.support.stand_in import Block, Script, use

PATIENCE = 120.0
_INSTRUCT = frozenset({"system", "developer"})
Server = ModelServer | AnthropicServer


def _no_settings(home: Path, url: str) -> None:
    del home, url


def _no_environment(url: str, home: Path) -> dict[str, str]:
    del url, home
    return {}


def _no_words(url: str) -> list[str]:
    del url
    return []


def _alone(home: Path, prompt: str, session: str | None) -> list[str]:
    del home, prompt, session
    return []


class RealClient(NamedTuple):
    """How to run a client without a person or a network.

    `words` are the arguments of a turn, and of one that continues a session; `shell` is a
    call of its shell. `prepare` writes what its user has set, `environment` is what only this
    client is told; `settings` is the file that `gitcp install` writes, or the directory of
    several, below the home. `before` stands before the program where it needs a terminal.
    `compacts` lets it sum up a session, where it can be told to without a terminal. `serves` is
    the command of one that is slow to start and can keep a server, and `attached` are the
    arguments of a turn that is to use the server at an address. `think` makes what the model
    waits for before it answers, where the client does not wait for its own hooks.
    """

    name: str
    program: str
    package: str
    words: Callable[[str, str | None], list[str]]
    shell: Callable[[str], Block]
    settings: str
    prepare: Callable[[Path, str], None] = _no_settings
    environment: Callable[[str, Path], Mapping[str, str]] = _no_environment
    server: Callable[[Script], Server] = ModelServer
    resumes: bool = True
    compacts: Callable[[Project, str], None] | None = None
    before: Callable[[Path, str, str | None], list[str]] = _alone
    serves: tuple[str, ...] = ()
    attached: Callable[[str], list[str]] = _no_words
    think: Callable[[Path], Callable[[], None]] | None = None

    @property
    def found(self) -> str | None:
        """Where its program is, or None."""
        if self.program == "claude":
            return str(claude_code.program() or "") or None
        return shutil.which(self.program)


def _write(path: Path, document: Any) -> None:
    path.parent.mkdir(parents=True)
    # As no program writes it: what `uninstall` leaves has to be this, byte for byte.
    path.write_text(json.dumps(document, indent=3) + " \n\n")


def _grows(project: Project, session: str) -> None:
    """Lets a client believe that a session fills its model's context."""
    project.server.sizes["grow"] = 900_000
    project.turn("grow", session)


def _grows_throughout(project: Project, session: str) -> None:
    """The same where a summary counts only if it was made of as much."""
    project.server.input_tokens = 900_000
    project.turn("grow", session)
    project.server.input_tokens = 100


def _resumed(option: str, session: str | None) -> list[str]:
    return [option, session] if session else []


# --- Claude Code ----------------------------------------------------------------------


def _claude_settings(home: Path, url: str) -> None:
    del url
    hook = {"type": "command", "command": "true"}
    _write(home / ".claude" / "settings.json", {"hooks": {"Stop": [{"hooks": [hook]}]}})


def _claude_environment(url: str, home: Path) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
    }


CLAUDE = RealClient(
    "claude-code",
    "claude",
    "claude-agent-sdk",
    words=lambda prompt, session: [
        *("-p", prompt, *_resumed("--resume", session)),
        *("--permission-mode", "acceptEdits", "--allowedTools", "Bash"),
    ],
    shell=lambda command: use("Bash", command=command, description="x"),
    settings=".claude/settings.json",
    prepare=_claude_settings,
    environment=_claude_environment,
    server=AnthropicServer,
    compacts=lambda project, session: project.run("/compact", session),
)

# --- Codex ----------------------------------------------------------------------------


def _codex_settings(home: Path, url: str) -> None:
    folder = home / ".codex"
    folder.mkdir(exist_ok=True)
    codex.write_settings(folder, url, compact_at=50_000)


def _codex_with_hooks(home: Path, url: str) -> None:
    _codex_settings(home, url)
    entry = {"type": "command", "command": "true"}
    (home / ".codex" / "hooks.json").write_text(
        json.dumps({"hooks": {"Stop": [{"hooks": [entry]}]}}, indent=3) + "\n\n"
    )


def _codex_words(prompt: str, session: str | None) -> list[str]:
    how = ["--json", "--dangerously-bypass-hook-trust"]
    return ["exec", *_resumed("resume", session), *how, prompt]


CODEX = RealClient(
    "codex",
    "codex",
    "@openai/codex",
    words=_codex_words,
    shell=lambda command: use("exec_command", cmd=command),
    settings=".codex/hooks.json",
    prepare=_codex_with_hooks,
    environment=lambda url, home: {"STAND_IN_KEY": "dummy"},
    compacts=_grows,
)

# --- Copilot CLI ----------------------------------------------------------------------

COPILOT = RealClient(
    "copilot",
    "copilot",
    "@github/copilot",
    words=lambda prompt, session: [
        *_resumed("--resume", session),
        *("-p", prompt, "--allow-all"),
    ],
    shell=lambda command: use("bash", command=command, description="x"),
    settings=".copilot/hooks/gitcp.json",
    environment=lambda url, home: {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_MODEL": "gpt-5.5",
    },
    compacts=_grows,
)

# --- Gemini CLI and Qwen Code ---------------------------------------------------------


def _gemini_settings(home: Path, url: str) -> None:
    del url
    settings = {
        "security": {
            "auth": {"selectedType": "gemini-api-key"},
            "folderTrust": {"enabled": False},
        },
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        # Under an older name for the second one, Gemini CLI rewrites the file.
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "model": {"name": "gemini-2.5-flash"},
    }
    _write(home / ".gemini" / "settings.json", settings)


GEMINI = RealClient(
    "gemini",
    "gemini",
    "@google/gemini-cli",
    words=lambda prompt, session: [
        *_resumed("-r", session),
        *("-p", prompt, "--approval-mode", "yolo", "--output-format", "json"),
    ],
    shell=lambda command: use("run_shell_command", command=command),
    settings=".gemini/settings.json",
    prepare=_gemini_settings,
    environment=lambda url, home: {
        "GEMINI_API_KEY": "dummy",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GOOGLE_GEMINI_BASE_URL": url,
    },
    compacts=_grows,
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
    _write(home / ".qwen" / "settings.json", settings)


QWEN = RealClient(
    "qwen",
    "qwen",
    "@qwen-code/qwen-code",
    words=lambda prompt, session: [
        *_resumed("--resume", session),
        *("-p", prompt, "--approval-mode", "yolo"),
    ],
    shell=lambda command: use(
        "run_shell_command", command=command, is_background=False
    ),
    settings=".qwen/settings.json",
    prepare=_qwen_settings,
    environment=lambda url, home: {
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "qwen3-coder-plus",
    },
    compacts=_grows_throughout,
)

# --- Pi -------------------------------------------------------------------------------


def _pi_settings(home: Path, url: str) -> None:
    provider = {
        "baseUrl": f"{url}/v1",
        "api": "openai-completions",
        "apiKey": "x",
        "models": [{"id": "model"}],
    }
    models = home / ".pi" / "agent" / "models.json"
    _write(models, {"providers": {"stand-in": provider}})
    recent = {"compaction": {"enabled": True, "keepRecentTokens": 1}}
    models.with_name("settings.json").write_text(json.dumps(recent))


PI = RealClient(
    "pi",
    "pi",
    "@earendil-works/pi-coding-agent",
    words=lambda prompt, session: [
        *_resumed("--session", session),
        *("--provider", "stand-in", "--model", "model", "-p", prompt),
    ],
    shell=lambda command: use("bash", command=command),
    settings=".pi/agent/extensions/gitcp.ts",
    prepare=_pi_settings,
    environment=lambda url, home: {"PI_OFFLINE": "1"},
    compacts=_grows,
)

# --- OpenCode and Kilo ----------------------------------------------------------------


def open_client_settings(url: str) -> dict[str, Any]:
    """Returns the settings with which OpenCode and its kin ask a stand-in model."""
    model = {"tool_call": True, "limit": {"context": 100_000, "output": 1000}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "dummy"},
        "models": {"model": model},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": "stand-in/model",
        "small_model": "stand-in/model",
        "provider": {"stand-in": provider},
        "permission": {"edit": "allow", "bash": "allow"},
    }


def _has_fetched(folder: Path, library: str) -> None:
    """Leaves a folder of plugins as one in which the client has fetched its library.

    It tries at each start otherwise. A start that ends first leaves a lock behind, for which
    the next one waits a minute.
    """
    (folder / "node_modules").mkdir()
    listed = {"dependencies": {library: "*"}}
    (folder / "package.json").write_text(json.dumps(listed))
    locked = {"lockfileVersion": 3, "requires": True, "packages": {"": listed}}
    (folder / "package-lock.json").write_text(json.dumps(locked))


def _open_client(name: str, package: str, library: str) -> RealClient:
    """Returns OpenCode, or what was made from it."""
    prefix = name.upper()

    def prepare(home: Path, url: str) -> None:
        folder = home / ".config" / name
        _write(folder / f"{name}.json", open_client_settings(url))
        _has_fetched(folder, library)

    def environment(url: str, home: Path) -> dict[str, str]:
        return {
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            f"{prefix}_DISABLE_AUTOUPDATE": "1",
            f"{prefix}_DISABLE_MODELS_FETCH": "1",
            f"{prefix}_DISABLE_LSP_DOWNLOAD": "1",
            f"{prefix}_DISABLE_DEFAULT_PLUGINS": "1",
            # A registry that says at once that it has nothing.
            "npm_config_registry": f"{url}/npm/",
            "npm_config_fetch_retries": "0",
        }

    return RealClient(
        name,
        name,
        package,
        words=lambda prompt, session: [
            *("run", "--format", "json", "--auto"),
            *_resumed("--session", session),
            prompt,
        ],
        shell=lambda command: use("bash", command=command, description="x"),
        settings=f".config/{name}/plugin/gitcp.js",
        prepare=prepare,
        environment=environment,
        compacts=_grows,
    )


OPENCODE = _open_client("opencode", "opencode-ai", "@opencode-ai/plugin")
# Each start of Kilo costs some twenty seconds of a processor.
KILO = _open_client("kilo", "@kilocode/cli-linux-x64", "@kilocode/plugin")._replace(
    serves=("serve", "--port", "0"), attached=lambda url: ["--attach", url]
)

# --- Cline CLI ------------------------------------------------------------------------


def _cline_settings(home: Path, url: str) -> None:
    name = "openai-native"
    settings = {
        "provider": name,
        "apiKey": "x",
        "model": "gpt-5.5",
        "baseUrl": f"{url}/v1",
    }
    entry = {
        "settings": settings,
        "updatedAt": "2026-11-24T08:00:00.000Z",
        "tokenSource": "manual",
    }
    document = {"version": 1, "lastUsedProvider": name, "providers": {name: entry}}
    _write(home / ".cline" / "data" / "settings" / "providers.json", document)
    own = home / ".cline" / "hooks" / "TaskComplete"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\ncat >/dev/null \n\n")
    own.chmod(0o755)


def _cline_at_a_terminal(home: Path, prompt: str, session: str | None) -> list[str]:
    if session is None:
        return []
    script = Path(__file__).with_name("cline_terminal.py")
    folder = home / ".cline" / "data" / "sessions" / session
    document = folder / f"{session}.messages.json"
    return [sys.executable, "-P", str(script), prompt, str(document)]


def _cline_hooks_first(home: Path) -> Callable[[], None]:
    """Lets the hook at the beginning of a turn end before the turn does.

    Cline waits for neither, and the model of these tests answers at once.
    """
    log = home / ".cline" / "data" / "logs" / "cline.log"
    began = 0

    def think() -> None:
        nonlocal began
        if not list((home / ".cline" / "hooks").glob("TaskResume*")):
            return
        deadline = time.monotonic() + 10
        while (now := begun()) <= began and time.monotonic() < deadline:
            time.sleep(0.02)
        began = now

    def begun() -> int:
        lines = log.read_bytes().splitlines() if log.exists() else []
        names = (b'"hookName":"agent_start"', b'"hookName":"agent_resume"')
        return sum(
            b"hooks.detached_runtime" in line and any(name in line for name in names)
            for line in lines
        )

    return think


CLINE = RealClient(
    "cline",
    "cline",
    "cline",
    # One word is a command to it.
    words=lambda prompt, session: ["--id", session] if session else [f"{prompt} "],
    shell=lambda command: use("run_commands", commands=[command]),
    settings=".cline/hooks",
    prepare=_cline_settings,
    # Otherwise it leaves a process behind that serves sessions.
    environment=lambda url, home: {"CLINE_SESSION_BACKEND_MODE": "local"},
    compacts=lambda project, session: project.run("/compact", session),
    before=_cline_at_a_terminal,
    think=_cline_hooks_first,
)

CLIENTS = (CLAUDE, CODEX, COPILOT, GEMINI, QWEN, PI, OPENCODE, KILO, CLINE)


class _Kept:
    """A client's server, in a network of its own; `beside` starts a program in that."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.beside = ["nsenter", "--net", "--target", str(process.pid)]
        self.url = self._told()
        # What it says later is of no interest, and must not make it wait.
        self._readers = [
            threading.Thread(target=_drain, args=(pipe,))
            for pipe in (process.stdout, process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def _told(self) -> str:
        """Returns the address that it says it listens on."""
        assert self._process.stdout is not None
        heard = []
        for line in self._process.stdout:
            heard.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                return found[1]
        raise AssertionError(f"the server has ended: {heard}")

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for reader in self._readers:
            reader.join()


def _drain(pipe: IO[str] | None) -> None:
    assert pipe is not None
    with pipe:
        for _ in pipe:
            pass


def _goes_well(process: subprocess.Popen[str]) -> None:
    told = process.communicate()
    assert process.returncode == 0, told


class Project:
    """A project with a client in it, in a home of its own."""

    def __init__(
        self, client: RealClient, top: Path, home: Path, server: Server, gate: Gate
    ) -> None:
        self.client, self.top, self.home, self.server = client, top, home, server
        self._gate = gate
        client.prepare(home, server.url)
        if client.think is not None:
            assert isinstance(server, ModelServer)
            server.think = client.think(home)
        self.extra = {"HOME": str(home), "CI": "1"}
        self.extra |= client.environment(server.url, home)
        self.settings = home / client.settings
        # What the user has set himself.
        self.own = self._settings()
        self.environment = gitcp_environment(self.extra)
        self._kept: _Kept | None = None

    def _settings(self) -> bytes | Mapping[str, bytes] | None:
        if self.settings.is_dir():
            return {one.name: one.read_bytes() for one in self.settings.iterdir()}
        return self.settings.read_bytes() if self.settings.exists() else None

    @property
    def is_unchanged(self) -> bool:
        """Whether the settings are what the user has set himself."""
        return self._settings() == self.own

    def install(self) -> None:
        """Puts the hooks in."""
        self.gitcp("install", self.client.name)
        # How long a hook may take is another test's matter, not one of a busy machine.
        self.gitcp("config", "hookTimeout", "60s")

    def _begin(self, words: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            words,
            cwd=self.top,
            # OpenCode and Kilo believe this one rather than the system.
            env={**self.environment, "PWD": str(self.top)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _words(self, prompt: str, session: str | None) -> list[str]:
        program = self.client.found
        assert program is not None
        before = self.client.before(self.home, prompt, session)
        return [*before, program, *self.client.words(prompt, session)]

    def start(self, prompt: str, session: str | None = None) -> subprocess.Popen[str]:
        """Begins a turn, in a process of its own."""
        return self._begin([*self._gate.prefix, *self._words(prompt, session)])

    def run(self, prompt: str, session: str | None = None) -> None:
        """Lets the client do what it is told, in a process of its own, which has to go well."""
        _goes_well(self.start(prompt, session))

    def _attach(self, prompt: str, session: str | None) -> None:
        """The same with the client's server, which is begun when it is first wanted."""
        if self._kept is None:
            program = self.client.found
            assert program is not None
            words = [*self._gate.prefix, program, *self.client.serves]
            self._kept = _Kept(self._begin(words))
        prefix = self._kept.beside if self._gate.prefix else []
        words = self._words(prompt, session)
        _goes_well(
            self._begin([*prefix, *words, *self.client.attached(self._kept.url)])
        )

    def close(self) -> None:
        """Ends the client's server."""
        if self._kept is not None:
            self._kept.close()

    def turn(self, prompt: str, session: str | None = None) -> dict[str, Any]:
        """Lets it take a turn; returns the checkpoint at its end."""
        before = {one["id"] for one in self.ends("--all")}
        if self.client.serves:
            self._attach(prompt, session)
        else:
            self.run(prompt, session)
        # Some clients end before their last hook does.
        deadline = time.monotonic() + PATIENCE
        while True:
            new = [one for one in self.ends("--all") if one["id"] not in before]
            if new:
                return new[-1]
            if time.monotonic() > deadline:
                made = [(one["trigger"], one["note"]) for one in self.checkpoints()]
                told = (made, self.gitcp("status"))
                raise AssertionError(f"there is no checkpoint of the turn: {told}")
            time.sleep(0.05)

    def kill(self, prompt: str, once: Path) -> None:
        """Begins a turn, and kills the client once there is a file."""
        process = self.start(prompt)
        deadline = time.monotonic() + PATIENCE
        while not once.exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def ready(self, document: Mapping[str, Any]) -> str:
        """Runs what has to be run before a session is resumed; returns its id."""
        first, _, then = document["resume"].rpartition(" && ")
        if first:
            path = {"PWD": str(self.top), "PATH": os.environ["PATH"]}
            done = subprocess.run(
                [*self._gate.prefix, "sh", "-c", first],
                cwd=self.top,
                env={**self.environment, **path},
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done
        found: str = then.split()[-1]
        return found

    def gitcp(self, *args: str) -> Any:
        """The document of a command of gitcp's that has to go well."""
        done = run_gitcp(self.top, *args, "--json", env=self.extra)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def checkpoints(self, *options: str) -> list[dict[str, Any]]:
        """The checkpoints, oldest first."""
        found: list[dict[str, Any]] = self.gitcp("log", "--full", *options)[
            "checkpoints"
        ]
        for one in found:
            # OpenCode and Kilo put quotes around what stands in their command line.
            one["note"] = (one["note"] or "").replace('"', "")
        return found[::-1]

    def ends(self, *options: str) -> list[dict[str, Any]]:
        """Those at the ends of turns."""
        found = self.checkpoints(*options)
        return [one for one in found if one["trigger"] == "turn-end"]

    def sent(self, prompt: str) -> list[Any]:
        """The conversation in the first request about a prompt, before that prompt."""
        return [
            one for one in self.messages(prompt) if one.get("role") not in _INSTRUCT
        ]

    def messages(self, prompt: str) -> list[Any]:
        """The same with the client's own instructions."""
        if isinstance(self.server, AnthropicServer):
            requests = self.server.requests
            bodies = [one for one in requests if asked(one["messages"])[0] == prompt]
        else:
            bodies = self.server.bodies(prompt)
        assert bodies, f"no request has {prompt!r}"
        (key,) = {"messages", "input", "contents"} & set(bodies[0])
        found = [_in_blocks(one) for one in bodies[0][key]]
        places = [at for at, one in enumerate(found) if _asks(one, prompt)]
        return found[: places[-1]]

    def log(self) -> str:
        """What hooks had to tell."""
        path = self.top / ".git" / "gitcp" / "hooks.log"
        return path.read_text() if path.exists() else ""


def _asks(message: Any, prompt: str) -> bool:
    return message.get("role") == "user" and prompt in json.dumps(message)


def _in_blocks(message: Any) -> Any:
    """A message without what only says where a cache ends, and a text as its blocks."""
    found = plain(message)
    content = found.get("content")
    if isinstance(content, str):
        found["content"] = [{"type": "text", "text": content}]
    return found


@contextmanager
def running(
    client: RealClient, top: Path, home: Path, script: Script
) -> Iterator[Project]:
    """A project with a client that is not served by gitcp yet."""
    home.mkdir(parents=True)
    with client.server(script) as server:
        port = urlsplit(server.url).port
        assert port is not None
        with Gate(port, home) as gate:
            project = Project(client, top, home, server, gate)
            try:
                yield project
            finally:
                project.close()
