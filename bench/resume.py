"""How much of a conversation a model is sent again, word for word, after a restore.

    python bench/resume.py [CLIENT...]

Each client that is installed takes two turns against a stand-in model; gitcp restores the end
of the first one, and the client continues from there. Compared are the messages before
the second prompt with those before the prompt after the restore, without what only says
where a cache ends: the longest prefix that both share, divided by the former. A provider's
cache pays for that part. Instructions that a client puts before the conversation are compared by
themselves: in some interfaces they are a message, in others they are not. Needs the extra
`test`, and the clients in PATH. Fails below the bars.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.e2e import test_gemini, test_opencode, test_table_clients
from tests.support import claude_code, codex
from tests.support.anthropic_server import plain
from tests.support.gitrepo import make_repo, run_gitcp
from tests.support.model_server import ModelServer
from tests.support.stand_in import Block, Script, say, use

Messages = list[Any]
FIRST, SECOND, OTHER = "turn one", "turn two", "the other way"
_WHOLE, _MOST = 1.0, 0.95
_INSTRUCT = frozenset({"system", "developer"})


def script(tool: str, **more: str) -> Script:
    """Two turns with tools, and one that takes another way."""

    def shell(command: str) -> Block:
        argument = {"exec_command": "cmd"}.get(tool, "command")
        return use(tool, **{argument: command}, **more)

    return {
        FIRST: [
            [shell("echo one > one; cat one")],
            [shell("ls")],
            [say("turn one done")],
        ],
        SECOND: [[shell("echo two > two")], [say("turn two done")]],
        OTHER: [[say("the other way done")]],
    }


class Driver(Protocol):
    """A client with a project: asks it something, and shows what its model was sent."""

    def ask(self, prompt: str, session: str | None = None) -> str:
        """Lets it take a turn; returns the id of the conversation."""

    def resume(self, shown: str) -> str:
        """Returns the conversation that a restore's command continues."""

    def sent(self, prompt: str) -> Messages:
        """The messages of the first request about a prompt, without that one."""

    def gitcp(self, *args: str) -> Any:
        """The document of a command of gitcp's."""


class OfClaudeCode:
    """Claude Code."""

    def __init__(self, top: Path, claude: claude_code.ClaudeCode) -> None:
        self._top, self._claude = top, claude

    def ask(self, prompt: str, session: str | None = None) -> str:
        return self._claude.ask(prompt, cwd=self._top, resume=session)

    def resume(self, shown: str) -> str:
        return shown.rsplit(maxsplit=1)[-1]

    def sent(self, prompt: str) -> Messages:
        for body in self._claude.server.requests:
            found: Messages = plain(body["messages"])
            if _is_last(found, prompt):
                return found[: _place(found, prompt)]
        raise SystemExit(f"no request has {prompt!r}")

    def gitcp(self, *args: str) -> Any:
        return self._claude.gitcp(self._top, *args)


class OfCodex:
    """Codex."""

    def __init__(self, project: codex.Project) -> None:
        self._project = project
        self.gitcp = project.gitcp

    def ask(self, prompt: str, session: str | None = None) -> str:
        return self._project.codex(*(("resume", session) if session else ()), prompt)

    def resume(self, shown: str) -> str:
        return shown.rsplit(maxsplit=1)[-1]

    def sent(self, prompt: str) -> Messages:
        return self._project.said_before(prompt)


class OfGemini:
    """Gemini CLI."""

    def __init__(self, project: test_gemini.Project) -> None:
        self._project = project
        self.gitcp = project.gitcp

    def ask(self, prompt: str, session: str | None = None) -> str:
        return self._project.gemini(prompt, session)

    def resume(self, shown: str) -> str:
        return shown.rsplit(maxsplit=1)[-1]

    def sent(self, prompt: str) -> Messages:
        return self._project.sent_before(prompt)


class OfOpenCode:
    """OpenCode."""

    def __init__(self, project: test_opencode.Project) -> None:
        self._project = project
        self.resume = project.resume

    def ask(self, prompt: str, session: str | None = None) -> str:
        return self._project.turn(prompt, *(("-s", session) if session else ()))

    def sent(self, prompt: str) -> Messages:
        found: Messages = self._project.server.bodies(prompt)[0]["messages"]
        return found[: _place(found, prompt)]

    def gitcp(self, *args: str) -> Any:
        return _gitcp(self._project.top, self._project.extra, *args)


class OfRow:
    """A client of the table."""

    def __init__(self, project: test_table_clients.Project) -> None:
        self._project = project
        self.gitcp = project.gitcp
        self.resume = project.ready

    def ask(self, prompt: str, session: str | None = None) -> str:
        self._project.turn(prompt, session)
        last = self._project.checkpoints("turn-end")[-1]
        return str(last["conversation"]["agent_session"])

    def sent(self, prompt: str) -> Messages:
        found: Messages = self._project.server.bodies(prompt)[0]["messages"]
        return found[: _place(found, prompt)]


def _gitcp(top: Path, extra: Mapping[str, str], *args: str) -> Any:
    done = run_gitcp(top, *args, "--json", env=extra)
    if done.returncode:
        raise SystemExit(f"gitcp {args}: {done.stderr!r}")
    return json.loads(done.stdout)


def _place(messages: Messages, prompt: str) -> int:
    """Returns where the message with a prompt is, from the end."""
    places = [at for at, one in enumerate(messages) if _asks(one, prompt)]
    return places[-1]


def _is_last(messages: Messages, prompt: str) -> bool:
    asked = [one for one in messages if one["role"] == "user"]
    return bool(asked) and _asks(asked[-1], prompt)


def _asks(message: Any, prompt: str) -> bool:
    return message.get("role") == "user" and prompt in json.dumps(message)


@contextmanager
def on_claude_code(top: Path, home: Path) -> Iterator[Driver]:
    more = {"description": "does it"}
    with claude_code.running(home, script("Bash", **more)) as claude:
        yield OfClaudeCode(top, claude)


@contextmanager
def on_codex(top: Path, home: Path) -> Iterator[Driver]:
    home.mkdir()
    with ModelServer(script("exec_command")) as server:
        yield OfCodex(codex.Project(top, home, server))


@contextmanager
def on_gemini(top: Path, home: Path) -> Iterator[Driver]:
    with ModelServer(script("run_shell_command")) as server:
        yield OfGemini(test_gemini.Project(top, home, server))


@contextmanager
def on_opencode(top: Path, home: Path) -> Iterator[Driver]:
    with ModelServer(script("bash", description="does it")) as server:
        yield OfOpenCode(test_opencode.Project(top, home, server))


def on_row(
    client: test_table_clients.RealClient,
) -> Callable[[Path, Path], AbstractContextManager[Driver]]:
    """Returns how a client of the table is started."""

    @contextmanager
    def started(top: Path, home: Path) -> Iterator[Driver]:
        call = client.shell("")
        given = {name: value for name, value in call["input"].items() if value != ""}
        with ModelServer(script(call["name"], **given)) as server:
            yield OfRow(test_table_clients.Project(client, top, home, server))

    return started


class Client(NamedTuple):
    """A client to measure, the program it is, and the least that it has to be sent again."""

    name: str
    program: str | None
    start: Callable[[Path, Path], Any]
    bar: float


def row(client: test_table_clients.RealClient, bar: float) -> Client:
    """Returns a client of the table, to measure."""
    return Client(client.name, shutil.which(client.program), on_row(client), bar)


CLIENTS = (
    Client("claude-code", str(claude_code.program() or ""), on_claude_code, _WHOLE),
    Client("codex", codex.PROGRAM, on_codex, _WHOLE),
    row(test_table_clients.COPILOT, _WHOLE),
    Client("gemini", test_gemini.GEMINI, on_gemini, _MOST),
    row(test_table_clients.KILO, _MOST),
    Client("opencode", test_opencode.OPENCODE, on_opencode, _MOST),
    row(test_table_clients.PI, _MOST),
    row(test_table_clients.QWEN, _MOST),
)


def shared(before: Messages, after: Messages) -> int:
    """Returns how many messages two requests begin with alike."""
    pairs = zip(before, after, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other),
        min(len(before), len(after)),
    )


class Measured(NamedTuple):
    """How many messages were sent again as they were, of how many, and the instructions."""

    same: int
    of: int
    instructions: str


def parted(messages: Messages) -> tuple[Messages, Messages]:
    """Returns the client's instructions, and the conversation after them."""
    at = next(
        (n for n, one in enumerate(messages) if one.get("role") not in _INSTRUCT),
        len(messages),
    )
    return messages[:at], messages[at:]


def measure(client: Client, scratch: Path) -> Measured:
    """Measures one client in a project of its own."""
    top = make_repo(scratch / "project")
    with client.start(top, scratch / "home") as driver:
        driver.gitcp("install", client.name)
        driver.gitcp("config", "hookTimeout", "60s")
        session = driver.ask(FIRST)
        driver.ask(SECOND, session)
        rows = driver.gitcp("log", "--full")["checkpoints"]
        ends = [one for one in rows if one["trigger"] == "turn-end"]
        restored = driver.gitcp("restore", ends[-1]["id"], "--yes")
        driver.ask(OTHER, driver.resume(restored["resume"]))
        told, before = parted(driver.sent(SECOND))
        told_again, after = parted(driver.sent(OTHER))
        same = shared(before, after)
        if same < len(before):
            found = after[same] if same < len(after) else "nothing"
            print(f"{client.name}: {before[same]}\n  became {found}", file=sys.stderr)
        words = "same" if told == told_again else "changed"
        return Measured(same, len(before), words if told else "apart")


def main() -> None:
    """Measures each client that is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [one.name for one in CLIENTS]
    parser.add_argument("clients", nargs="*", choices=[*names, []], metavar="CLIENT")
    given = parser.parse_args()
    os.environ.setdefault("GIT_CONFIG_NOSYSTEM", "1")
    below = False
    print("| client | messages sent again | of | share | bar | instructions |")
    print("|---|---|---|---|---|---|")
    for client in CLIENTS:
        if given.clients and client.name not in given.clients:
            continue
        if not client.program:
            print(f"| {client.name} | not installed | | | | |")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            found = measure(client, Path(scratch))
        share = found.same / found.of if found.of else 0.0
        below = below or share < client.bar
        print(
            f"| {client.name} | {found.same} | {found.of} | {share:.1%}"
            f" | {client.bar:.0%} | {found.instructions} |"
        )
    if below:
        raise SystemExit("a client is below its bar")


if __name__ == "__main__":
    main()
