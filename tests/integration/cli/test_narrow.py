"""A narrow terminal: sentences break between words, what is copied stays whole."""

from __future__ import annotations

import pytest

from gitcp.cli.layout import cells, terminal_of
from tests.support.agent import Agent
from tests.support.inprocess import invoke, ok

COLUMNS = 44


def shown(repo, *args: str) -> list[str]:
    with terminal_of(COLUMNS):
        done = invoke(repo, *args)
    return (done.stdout + done.stderr).decode().splitlines()


@pytest.fixture
def worked(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    agent = Agent(repo, tmp_path / "claude")
    agent.turn("round half up as the tax office does it, please", a="1\n")
    ok(repo, "decide", "round half up, as the tax office does", "--why",
       "banker rounding was off by a cent in half of the invoices")  # fmt: skip
    agent.turn("and now write 四角形四角形四角形四角形四角形四角形 down", a="2\n")
    return repo


@pytest.mark.parametrize(
    "command",
    ["config", "context", "decisions", "sessions", "status", "doctor", "show", "log",
     "restore --dry-run 1", "restore -y 1", "uninstall --everything --dry-run",
     "restore nothing", "blame", "help selectors"],
)  # fmt: skip
def test_lines_fit_and_no_word_is_broken(worked, command):
    words = command.split()
    narrow = shown(worked, *words)
    assert narrow
    for line in narrow:
        if "claude --resume" in line or line.startswith("  gitcp export"):
            continue
        # A path or an id that is too long stays whole.
        longest = max(map(cells, line.split()), default=0)
        assert cells(line) <= COLUMNS or longest > COLUMNS - 24, (command, line)


def test_a_pipe_gets_whole_lines(worked):
    wide = invoke(worked, "context").stdout.decode()
    assert "off by a cent in half of the invoices)\n" in wide
    assert "off by a cent in half of the invoices)" not in "\n".join(
        shown(worked, "context")
    )
