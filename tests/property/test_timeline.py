"""Two clients and a person in one work tree: numbers stay, undo goes back, nothing mixes."""

from __future__ import annotations

import os
import random
import re

import pytest

from gitcp.project.workspace import open_workspace
from tests.support.agent import Agent
from tests.support.gitrepo import tree_bytes
from tests.support.inprocess import invoke, ok

# Read here: a test runs without what the environment says to gitcp.
SEED = int(os.environ.get("GITCP_TIMELINE_SEED", "0")) or random.randrange(2**31)
STEPS = int(os.environ.get("GITCP_TIMELINE_STEPS", "40"))


class Table:
    """The work tree, its clients and its person; and what each is to find again."""

    def __init__(self, repo, config, seed: int) -> None:
        self.repo = repo
        self.config = config
        self.random = random.Random(seed)
        self.clients = [Agent(repo, config)]
        self.numbers: dict[int, str] = {}
        # The files before the last command that replaced files, and before its undo.
        self.before: dict | None = None
        # The files at the moment of each answer.
        self.ends: dict[int, dict] = {}
        self.seen: set[int] = set()
        self.count = 0

    def step(self) -> str:
        name = self.random.choice(
            (
                *["turn"] * 6,
                *["save", "edit", "start", "close", "restore", "restore", "undo"],
                *["fork", "prompt", "resume", "decide", "switch", "kill"],
            )
        )
        getattr(self, name)()
        self.look()
        return name

    # --- what happens ---------------------------------------------------------------

    def client(self) -> Agent:
        return self.random.choice(self.clients)

    def start(self) -> None:
        if len(self.clients) < 2:
            self.clients.append(Agent(self.repo, self.config))

    def edit(self) -> None:
        self.count += 1
        name = f"f{self.random.randrange(5)}"
        (self.repo / name).write_text(f"{self.count}\n")

    def turn(self) -> None:
        client = self.client()
        self.prompt(client)
        self.edit()
        self.ends[self.count] = tree_bytes(self.repo)
        client.answer(f"done {self.count}")

    def prompt(self, client: Agent | None = None) -> None:
        client = client or self.client()
        self.count += 1
        client.ask(f"ask {self.count}")

    def close(self) -> None:
        client = self.client()
        before = self.state()
        client.hook("SessionEnd", reason="exit")
        assert self.state() == before
        self.clients.remove(client)
        self.clients.append(Agent(self.repo, self.config))

    def kill(self) -> None:
        """A client that is killed says nothing."""
        self.clients.remove(self.client())
        self.clients.append(Agent(self.repo, self.config))

    def save(self) -> None:
        self.edit()
        ok(self.repo, "save")

    def decide(self) -> None:
        self.count += 1
        ok(self.repo, "decide", f"because of {self.count}")

    def restore(self) -> None:
        made = [number for number in self.numbers if number]
        if not made:
            return
        number = self.random.choice(made)
        before = tree_bytes(self.repo)
        done = ok(self.repo, "restore", f"#{number}", "-y")
        assert done["checkpoint"]["restored_from"] == self.numbers[number]
        self.before = before
        self.resumable = done["resume"]

    def resume(self) -> None:
        """The client goes on in the conversation that the last restore wrote for it."""
        command = getattr(self, "resumable", None)
        if not command:
            return
        self.resumable = None
        client = Agent(self.repo, self.config, command.split()[-1])
        (client.transcript,) = self.config.glob(f"projects/*/{client.ident}.jsonl")
        self.clients = [client, *self.clients[:1]]
        self.turn()

    def undo(self) -> None:
        if self.before is None:
            assert invoke(self.repo, "undo", "-y").returncode == 1
            return
        now = tree_bytes(self.repo)
        ok(self.repo, "undo", "-y")
        assert tree_bytes(self.repo) == self.before
        self.before = now

    def fork(self) -> None:
        if self.numbers and invoke(self.repo, "show", "last").returncode == 0:
            self.count += 1
            ok(self.repo, "fork", "--no-switch", "last", f"way-{self.count}")

    def switch(self) -> None:
        listed = ok(self.repo, "sessions")["sessions"]
        if listed:
            session = self.random.choice(listed)
            branch = self.random.choice(session["branches"])["name"]
            ok(self.repo, "switch", f"{session['name']}/{branch}")

    # --- what has to hold -----------------------------------------------------------

    def state(self) -> tuple:
        workspace = open_workspace(self.repo)
        return tree_bytes(self.repo), workspace.noted()

    def look(self) -> None:
        listed = ok(self.repo, "log", "--all", "--full")["checkpoints"]
        for one in listed:
            number = one["number"]
            assert number is not None
            # A number that was ever printed names the same checkpoint.
            assert self.numbers.setdefault(number, one["id"]) == one["id"]
        assert {one["number"] for one in listed} == set(self.numbers)
        assert len(listed) == len(self.numbers)
        for one in listed:
            if one["number"] not in self.seen:
                self.seen.add(one["number"])
                self.nothing_mixed(one)

    def nothing_mixed(self, made: dict) -> None:
        """The files of a turn's end are of the moment of its last answer."""
        if made["trigger"] != "turn-end":
            return
        checkpoint = open_workspace(self.repo).store.checkpoint(made["commit"])
        assert checkpoint is not None
        answers = re.findall(rb'"done (\d+)"', checkpoint.conversation())
        assert answers, made
        then = self.ends[int(answers[-1])]
        read = checkpoint.objects.blob
        files = {path: read(entry.oid) for path, entry in checkpoint.files()}
        assert files == {
            path: node[2] for path, node in then.items() if node[0] != "dir"
        }


@pytest.mark.parametrize("run", range(2))
def test_what_was_printed_stays_true(repo, tmp_path, monkeypatch, run):
    print(f"GITCP_TIMELINE_SEED={SEED}")
    _play(repo, tmp_path / "claude", monkeypatch, SEED + run, STEPS)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_what_was_printed_stays_true_for_three_hundred_events(
    repo, tmp_path, monkeypatch
):
    print(f"GITCP_TIMELINE_SEED={SEED}")
    _play(repo, tmp_path / "claude", monkeypatch, SEED, 300)


def _play(repo, config, monkeypatch, seed: int, steps: int) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(config))
    table = Table(repo, config, seed)
    for _ in range(steps):
        print(table.step(), end=" ")
    workspace = open_workspace(repo)
    for number, ident in table.numbers.items():
        found = ok(repo, "show", f"#{number}")["checkpoint"]
        assert found["id"] == ident
    assert workspace.store.numbers.damaged == 0
