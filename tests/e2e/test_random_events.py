"""Events at random with the real Claude Code and a person: numbers stay, undo goes back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gitcp.project.workspace import open_workspace
from tests.e2e.test_open_client import Open
from tests.property.test_timeline import SEED, Table
from tests.support.claude_code import ClaudeCode, program, running
from tests.support.gitrepo import make_repo, tree_bytes
from tests.support.inprocess import ok
from tests.support.stand_in import say, use

EVENTS = 40

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        program() is None, reason="needs Claude Code: `pip install claude-agent-sdk`"
    ),
]

# A file of five, with what was never in it.
_EDIT = "date +%s%N > f$(( $(date +%N | sed 's/^0*//') % 5 ))"
_SCRIPT = {
    "re:do turn-": [
        [use("Bash", command=_EDIT, description="edits a file")],
        [say("It is done.")],
    ]
}
_ASKED = re.compile(r"do turn-(\d+)")


class RealTable(Table):
    """The same with real clients, each open until it is closed or killed."""

    def __init__(self, repo: Path, claude: ClaudeCode, seed: int) -> None:
        super().__init__(repo, claude.config, seed)
        self.claude = claude
        self.open: list[Open] = []
        self.start()

    def start(self) -> None:
        if len(self.open) < 2:
            self.open.append(Open(self.claude, self.repo))

    def turn(self) -> None:
        self.start()
        client = self.random.choice(self.open)
        self.count += 1
        client.ask(f"do turn-{self.count}")
        self.ends[self.count] = tree_bytes(self.repo)

    def prompt(self, client: object = None) -> None:
        """With a client that is open a prompt is a turn."""
        self.turn()

    def close(self) -> None:
        if not self.open:
            return
        client = self.open.pop(self.random.randrange(len(self.open)))
        before = self.state()
        client.close()
        self.let_go(client)
        assert self.state() == before

    def kill(self) -> None:
        if self.open:
            self.let_go(self.open.pop(self.random.randrange(len(self.open))))

    def let_go(self, client: Open) -> None:
        client.process.kill()
        client.process.wait()
        for stream in (client.process.stdin, client.process.stdout):
            assert stream is not None
            stream.close()

    def resume(self) -> None:
        command = getattr(self, "resumable", None)
        if not command:
            return
        self.resumable = None
        self.count += 1
        self.claude.ask(
            f"do turn-{self.count}", cwd=self.repo, resume=command.split()[-1]
        )
        self.ends[self.count] = tree_bytes(self.repo)

    def nothing_mixed(self, made: dict) -> None:
        if made["trigger"] != "turn-end":
            return
        checkpoint = open_workspace(self.repo).store.checkpoint(made["commit"])
        assert checkpoint is not None
        asked = [
            found[1]
            for line in checkpoint.conversation().splitlines()
            if (record := json.loads(line)).get("type") == "user"
            and (found := _ASKED.search(json.dumps(record.get("message"))))
        ]
        assert asked, made
        then = self.ends[int(asked[-1])]
        read = checkpoint.objects.blob
        files = {path: read(entry.oid) for path, entry in checkpoint.files()}
        assert files == {
            path: node[2] for path, node in then.items() if node[0] != "dir"
        }


def test_what_was_printed_stays_true_beside_the_real_client(tmp_path, monkeypatch):
    print(f"GITCP_TIMELINE_SEED={SEED}")
    repo = make_repo(tmp_path / "project", {"keep.txt": b"keep\n"})
    with running(tmp_path / "home", _SCRIPT) as claude:
        claude.gitcp(repo, "install", "claude-code")
        claude.gitcp(repo, "config", "hookTimeout", "60s")
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(claude.config))
        table = RealTable(repo, claude, SEED)
        try:
            for _ in range(EVENTS):
                print(table.step(), end=" ", flush=True)
        finally:
            while table.open:
                table.kill()
        for number, ident in table.numbers.items():
            assert ok(repo, "show", f"#{number}")["checkpoint"]["id"] == ident
        assert table.ends, "no turn was taken"
