"""What an agent waits for: hooks of Claude Code in a project of 20,000 files.

python bench/hooks.py --gitcp VENV/bin/gitcp [--clients]

Each case is a shell with the very command that `gitcp install claude-code` writes, as the
client starts it, beside the same shell with no hook in it. `--clients` does so with the
hooks of each client whose conversations gitcp keeps, and needs a Python that has gitcp.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import uuid
from pathlib import Path

from generate import make
from measure import Case, Edits, in_turn, run, table

_TURNS = 30
_MANY = 2_000
# What makes a long history: the hooks of so many turns, in one process.
_GROW = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from hooks import Agent
from gitcp.clients import registry
from gitcp.agents import hook_events as turns
home, top, ident, count = sys.argv[2:]
agent, client = Agent(Path(home), Path(top), ident), registry.client("claude-code")
for turn in range(int(count)):
    agent.speak()
    (Path(top) / "turn.txt").write_text(str(turn))
    raw = json.dumps(agent.payload("Stop")).encode()
    event = turns.read_event(client, "Stop", raw, os.environ)
    turns.handle(turns.workspace_of(event), client, event)
"""


class Agent:
    """An agent's session, as its hooks and its transcript show it."""

    def __init__(self, home: Path, top: Path, ident: str | None = None) -> None:
        self.ident = ident or str(uuid.uuid4())
        self.top = top
        self.transcript = home / "projects" / "x" / f"{self.ident}.jsonl"
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        settings = json.loads((home / "settings.json").read_text())
        self.commands = {
            event: groups[0]["hooks"][0]["command"]
            for event, groups in settings["hooks"].items()
        }
        self.turns = 0

    def record(self, kind: str, text: str) -> None:
        """Adds a record to the transcript."""
        content = [{"type": "text", "text": text}]
        entry = {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "sessionId": self.ident,
            "cwd": str(self.top),
            "message": {"role": kind, "content": content},
        }
        with self.transcript.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def speak(self) -> None:
        """Adds a turn of about 10 KB to the transcript."""
        self.turns += 1
        self.record("user", f"turn {self.turns}: " + "please " * 700)
        self.record("assistant", f"done {self.turns}" + " indeed" * 700)

    def payload(self, event: str, **more: object) -> dict[str, object]:
        """Returns what the client would send."""
        return {
            "session_id": self.ident,
            "transcript_path": str(self.transcript),
            "cwd": str(self.top),
            "hook_event_name": event,
            **more,
        }

    def hook(self, event: str, **more: object) -> None:
        """Runs one hook as the client does."""
        subprocess.run(
            ["/bin/sh", "-c", self.commands[event]],
            input=json.dumps(self.payload(event, **more)).encode(),
            cwd=self.top,
            check=True,
        )

    def nothing(self) -> None:
        """Runs the shell without a hook in it."""
        payload = json.dumps({"cwd": str(self.top)}).encode()
        subprocess.run(["/bin/sh", "-c", ":"], input=payload, cwd=self.top, check=True)


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--long", action="store_true", help="with 2,000 turns, too")
    parser.add_argument("--clients", action="store_true", help="those of each client")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    gitcp = shutil.which(given.gitcp) or given.gitcp
    if given.clients:
        each_client(gitcp, given.files, given.rounds)
        return
    with tempfile.TemporaryDirectory() as scratch:
        home, top = Path(scratch, "home"), Path(scratch, "project")
        home.mkdir()
        os.environ.update(
            HOME=str(home), CLAUDE_CONFIG_DIR=str(home), CLAUDE_PROJECT_DIR=str(top)
        )
        make(top, given.files)
        run([gitcp, "install", "claude-code"], top)
        agent = Agent(home, top)
        edits = Edits(top, 3)
        agent.hook("UserPromptSubmit", prompt="the first", prompt_id="p0")
        for _ in range(_TURNS):
            agent.speak()
        agent.hook("Stop")

        def work() -> None:
            agent.speak()
            edits()

        cases = [
            Case("no hook", agent.nothing),
            Case("after tools, nothing due", lambda: agent.hook("PostToolBatch")),
            Case(
                "before a prompt, nothing to save",
                lambda: agent.hook("UserPromptSubmit", prompt="x", prompt_id="p"),
            ),
            Case("end of a session, nothing to save", lambda: agent.hook("SessionEnd")),
            Case(
                "end of a turn, 3 files and 10 KB saved",
                lambda: agent.hook(
                    "Stop",
                    last_assistant_message=f"done {agent.turns}" + " indeed" * 700,
                ),
                work,
            ),
        ]
        title = f"Hooks, {given.files:,} files (bars 0.15 s and 0.35 s)"
        table(title, in_turn(cases, given.rounds), "no hook")
        if given.long:
            long_session(gitcp, home, Path(scratch, "long"), given.rounds)


def each_client(gitcp: str, files: int, rounds: int) -> None:
    """Times three hooks of each client; ends where a turn was not saved with its talk."""
    from client_hooks import FORMS, ClientSession  # it imports gitcp

    with tempfile.TemporaryDirectory() as scratch:
        home, top = Path(scratch, "home"), Path(scratch, "project")
        home.mkdir()
        os.environ["HOME"] = str(home)
        make(top, files)
        edits = Edits(top, 3)
        cases = [Case("no hook", lambda: run(["/bin/sh", "-c", ":"], top))]
        sessions = []
        for name in FORMS:
            run([gitcp, "install", name], top)
            one = ClientSession(name, home, top)
            sessions.append(one)
            one.begin()
            for _ in range(_TURNS):
                one.speak()
            one.end()

            def work(one: ClientSession = one) -> None:
                one.speak()
                edits()

            cases += [
                Case(f"{name}: after a tool, nothing due", one.after_tool),
                Case(f"{name}: before a prompt, nothing to save", one.begin),
                Case(f"{name}: end of a turn, saved", one.end, work),
            ]
        title = f"Hooks of each client, {files:,} files (bars 0.15 s and 0.35 s)"
        table(title, in_turn(cases, rounds), "no hook")
        found = json.loads(run([gitcp, "log", "--json", "-n", "9999", "--all"], top))
        saved = [each["conversation"] or {} for each in found["checkpoints"]]
        for one in sessions:
            turns = [
                each
                for each in saved
                if each.get("agent_session") == one.ident and each["messages"]
            ]
            if len(turns) <= rounds:
                raise SystemExit(
                    f"{one.name}: {len(turns)} of {rounds + 1} turns saved"
                )


def long_session(gitcp: str, home: Path, top: Path, rounds: int) -> None:
    """Times the end of a turn in a short session and in one of 2,000 turns."""
    make(top, 300)
    os.environ["CLAUDE_PROJECT_DIR"] = str(top)
    python = Path(gitcp).with_name("python")
    cases = []
    for turns in (10, _MANY):
        agent = Agent(home, top)
        here = Path(__file__).parent
        run([python, "-c", _GROW, here, home, top, agent.ident, str(turns)], top)
        edits = Edits(top, 3)

        def work(agent: Agent = agent, edits: Edits = edits) -> None:
            agent.speak()
            edits()

        name = f"end of a turn after {turns:,} turns"
        cases.append(Case(name, lambda agent=agent: agent.hook("Stop"), work))
    title = f"A session of {_MANY:,} turns of 10 KB"
    table(title, in_turn(cases, rounds), cases[0].name)


if __name__ == "__main__":
    main()
