"""Two users, two clones, a live agent each: one works, the other reads why and goes on."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.claude_code import ClaudeCode, conversation, program, running
from tests.support.gitrepo import git, git_line, make_repo
from tests.support.stand_in import say, use

pytestmark = pytest.mark.skipif(
    program() is None, reason="needs Claude Code: `pip install claude-agent-sdk`"
)

FILES = {"invoice.py": b"def total(net):\n    return net\n"}


def shell(command: str) -> dict[str, Any]:
    return use("Bash", command=command, description="does it")


def turn(*commands: str, done: str) -> list[list[dict[str, Any]]]:
    return [*([shell(command)] for command in commands), [say(done)]]


SCRIPT = {
    "add VAT": turn(
        "sed -i 's/return net/return net * 1.21/' invoice.py",
        "gitcp decide 'VAT is in total()' --why 'callers must not forget it'",
        "git commit -q -a -m 'Add VAT'",
        done="VAT is added.",
    ),
    "round it": turn(
        "sed -i 's/return \\(.*\\)/return round(\\1, 2)/' invoice.py",
        done="It is rounded.",
    ),
    "write a test": turn(
        "echo 'assert total(1) == 1.21' > test_invoice.py", done="A test is there."
    ),
    "name the rate": turn(
        "sed -i '1i RATE = 1.21' invoice.py", done="The rate has a name."
    ),
}


class User(NamedTuple):
    """A user with a home, a client and a clone."""

    claude: ClaudeCode
    clone: Path

    def gitcp(self, *args: str, cwd: Path | None = None) -> Any:
        return self.claude.gitcp(cwd or self.clone, *args)

    def tried(self, *args: str) -> subprocess.CompletedProcess[bytes]:
        """A command that may be refused."""
        return subprocess.run(
            ["gitcp", *args],
            cwd=self.clone,
            env=self.claude.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=120,
        )

    def git(self, *args: str) -> None:
        # The hooks that this starts are the user's, with the user's home.
        git(self.clone, *args, env=self.claude.environment)

    def heard(self, prompt: str) -> list[tuple[str, Any]]:
        """What this user's model was told when it was asked something."""
        return conversation(self.claude.server.messages(prompt))


@pytest.fixture
def hub(tmp_path) -> Path:
    seed = make_repo(tmp_path / "seed", FILES)
    git(tmp_path, "clone", "-q", "--bare", seed, tmp_path / "hub.git")
    return tmp_path / "hub.git"


@pytest.fixture
def users(tmp_path, hub) -> Iterator[tuple[User, User]]:
    with ExitStack() as stack:
        made = []
        for name in ("ann", "bob"):
            client = stack.enter_context(running(tmp_path / f"{name}-home", SCRIPT))
            made.append(User(client, tmp_path / name))
        yield made[0], made[1]
        for user in made:
            log = user.clone / ".git" / "gitcp" / "hooks.log"
            for line in log.read_text().splitlines() if log.exists() else ():
                # A commit says what it made; everything else would be a failure.
                assert " made " in line, line


def settle_in(user: User, hub: Path) -> None:
    """Clones and installs, as the README says."""
    git(hub.parent, "clone", "-q", "--no-local", hub, user.clone)
    git(user.clone, "config", "user.name", user.clone.name)
    git(user.clone, "config", "user.email", f"{user.clone.name}@example.invalid")
    user.gitcp("install", "claude-code")
    user.gitcp("install", "git-hooks")
    # How long a hook may take is not the matter here, and this machine may be busy.
    user.gitcp("config", "hookTimeout", "60s")
    # To compile the library's rules takes seconds in a home that is new.
    user.gitcp("config", "secretsLibrary", "false")


def resume(document: dict[str, Any]) -> str:
    command: str = document["resume"]
    assert "claude --resume " in command
    return command.rsplit(maxsplit=1)[-1]


def outcome(document: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {
        f"{one['session']}/{one['branch']}": (one["result"], one["as"])
        for one in document["branches"]
    }


def test_two_users_with_agents_hand_work_to_each_other(users, hub, tmp_path):
    ann, bob = users

    # Ann's agent changes a file, decides, commits; she pushes both.
    settle_in(ann, hub)
    own = ann.claude.ask("add VAT", cwd=ann.clone)
    head = git_line(ann.clone, "rev-parse", "HEAD")
    assert git_line(ann.clone, "log", "-1", "--format=%s") == "Add VAT"
    ann.git("push", "-q", "origin", "main")
    session = ann.gitcp("log")["checkpoints"][0]["session"]
    assert outcome(ann.gitcp("push")) == {f"{session}/main": ("created", "main")}

    # Bob, on a machine that never saw it, finds out why.
    settle_in(bob, hub)
    assert not list(bob.claude.config.glob("projects/*/*"))
    assert outcome(bob.gitcp("pull")) == {f"{session}/main": ("created", "main")}
    (listed,) = bob.gitcp("sessions")["sessions"]
    assert listed["name"] == session
    shown = bob.gitcp("show", head)
    assert [(one["text"], one["why"]) for one in shown["decisions"]] == [
        ("VAT is in total()", "callers must not forget it")
    ]
    assert shown["checkpoint"]["trigger"] == "commit"
    assert shown["checkpoint"]["conversation"]["agent_session"] == own
    tip = bob.gitcp("log", "-s", session)["checkpoints"][0]
    # Byte for byte what Ann's client has.
    raw = bob.tried("messages", f"{session}:last", "--format", "jsonl").stdout
    assert ann.claude.transcript(own).read_bytes().startswith(raw)
    assert b"VAT is added." in raw

    # He continues it in a work tree of its own, on a fork, and pushes it back.
    aside = tmp_path / "bob-aside"
    forked = bob.gitcp(
        "fork",
        f"{session}:last",
        "rounded",
        "--worktree",
        str(aside),
        "--yes",
        "--trust",
    )
    assert (aside / "invoice.py").read_bytes() == (
        ann.clone / "invoice.py"
    ).read_bytes()
    bobs = resume(forked)
    bob.claude.ask("round it", cwd=aside, resume=bobs)
    prior = ann.heard("add VAT")
    heard = bob.heard("round it")
    assert heard[: len(prior)] == prior
    assert heard[len(prior)] == (
        "assistant",
        [{"type": "text", "text": "VAT is added."}],
    )
    assert b"round(" in (aside / "invoice.py").read_bytes()
    assert outcome(bob.gitcp("push"))[f"{session}/rounded"] == ("created", "rounded")

    # Ann takes it in: nothing of hers has moved. Her model hears what Bob's said.
    before = git_line(ann.clone, "rev-parse", f"refs/gitcp/s/{session}/main")
    assert outcome(ann.gitcp("pull"))[f"{session}/rounded"] == ("created", "rounded")
    assert git_line(ann.clone, "rev-parse", f"refs/gitcp/s/{session}/main") == before
    hers = tmp_path / "ann-aside"
    again = ann.gitcp(
        "fork",
        f"{session}/rounded:last",
        "tested",
        "--worktree",
        str(hers),
        "--yes",
        "--trust",
    )
    ann.claude.ask("write a test", cwd=hers, resume=resume(again))
    prior = bob.heard("round it")
    assert ann.heard("write a test")[: len(prior)] == prior

    # Then both go on with the same branch at once.
    ann.claude.ask("name the rate", cwd=ann.clone, resume=own)
    switched = bob.gitcp("switch", session, "--restore", "--yes", "--trust")
    bob.claude.ask("write a test", cwd=bob.clone, resume=resume(switched))
    assert bob.heard("write a test")[: len(ann.heard("add VAT"))] == ann.heard(
        "add VAT"
    )
    assert outcome(ann.gitcp("push"))[f"{session}/main"] == ("fast-forward", "main")
    late = bob.tried("push", "--json")
    assert late.returncode in {3, 12}, late
    assert outcome(json.loads(late.stdout))[f"{session}/main"] == ("rejected", "main")
    assert b"gitcp pull origin" in late.stderr
    assert outcome(bob.gitcp("pull"))[f"{session}/main"] == ("forked", "main~origin")
    # Bob's own line is as it was, and shared under a name of its own.
    mine = bob.gitcp("log", "-s", f"{session}/main")["checkpoints"]
    assert mine[0]["note"] == "write a test"
    theirs = bob.gitcp("log", "-s", f"{session}/main~origin")["checkpoints"]
    assert theirs[1]["note"] == "name the rate"
    assert tip["id"] in {one["id"] for one in mine} & {one["id"] for one in theirs}
    bob.gitcp("fork", "bobs-way")
    assert outcome(bob.gitcp("push"))[f"{session}/bobs-way"] == ("created", "bobs-way")
    assert outcome(ann.gitcp("pull"))[f"{session}/bobs-way"] == ("created", "bobs-way")
    for user in users:
        assert user.gitcp("verify")["ok"]
        git(user.clone, "fsck", "--full", "--strict")
