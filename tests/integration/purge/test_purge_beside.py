"""A purged secret is gone from what lies beside the store, or is named there."""

import json

import pytest

from gitcp import durable
from gitcp.checkpoints import run_command
from gitcp.checkpoints.first_line import LEFT_OUT
from gitcp.clients import acp_folder
from gitcp.clients.acp_folder import About, SessionFolder
from gitcp.project.workspace import open_workspace
from tests.support.agent import Agent
from tests.support.gitrepo import git as run_git
from tests.support.gitrepo import git_line, make_repo
from tests.support.inprocess import invoke, ok

CANARY = "k3J9dLq0" + "Xz7Yv3Wn5Bt1"
# Nothing about it says that it is a secret: the prompt is kept as it is.
WORDS = "wombat-quokka-numbat"


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


def purge(repo, value, *more):
    done = invoke(
        *(repo, "purge", "--value-from-stdin", "--yes", "--json", *more),
        input=value.encode(),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_prompt_that_a_hook_kept_does_not_bring_a_purged_value_back(agent, repo):
    agent.turn(f"log in with {WORDS}", new="1")
    log = repo / ".git/gitcp/hooks.log"
    with log.open("ab") as file:
        file.write(f"2026-11-22T08:00:00Z hook 0.1s {WORDS}\n".encode())
    kept = list((repo / ".git/gitcp/agents").rglob("*.json"))
    assert any(WORDS in path.read_text() for path in kept)
    report = purge(repo, WORDS)
    assert not any(WORDS in path.read_text() for path in kept)
    assert WORDS not in log.read_text()
    assert all(json.loads(path.read_text()) for path in kept)
    # The client's own file is the client's.
    (named,) = [one for one in report["left"] if "conversation" in one]
    assert str(agent.transcript) in named
    assert WORDS in agent.transcript.read_text()


def test_what_was_written_for_clients_is_purged_or_named(agent, repo):
    """A page that gitcp wrote is cleared; a copy that is the client's now is named."""
    made = agent.turn(f"log in with {WORDS}", new="1")
    agent.turn("and on", new="2")
    ok(repo, "restore", made.id, "--yes")
    ok(repo, "resume", made.id, "--with", "gemini")
    copies = list(agent.transcript.parents[1].rglob("*.jsonl"))
    assert len(copies) == 2
    (page,) = (repo / ".git/gitcp/handed-over").iterdir()
    assert WORDS in page.read_text()
    assert all(WORDS in path.read_text() for path in copies)
    report = purge(repo, WORDS)
    assert WORDS not in page.read_text()
    assert "log in with" in page.read_text()
    named = "\n".join(one for one in report["left"] if "conversation" in one)
    assert all(str(path) in named for path in copies)


@pytest.fixture
def session(repo, tmp_path, monkeypatch):
    """A session that `gitcp acp` wrote down: one turn in the talk, one that waits."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = acp_folder.root({"XDG_STATE_HOME": str(tmp_path / "state")})

    def make(name, cwd):
        folder = SessionFolder(root / name)
        folder.note(About(str(cwd)))
        line = json.dumps({"role": "user", "content": WORDS}) + "\n"
        folder.talk.write_text(line)
        (folder.path / "2.turn").write_text(line)
        return folder

    (repo / "notes").write_text(WORDS)
    ok(repo, "save")
    (repo / "notes").write_text("")
    make("other", tmp_path)
    return make("mine", repo)


def holding(folder):
    return [path for path in folder.said() if WORDS in path.read_text()]


def test_the_talk_of_a_session_behind_the_proxy_is_purged(repo, session):
    assert purge(repo, WORDS, "--dry-run")["left"] == []
    assert len(holding(session)) == 2
    assert purge(repo, WORDS)["left"] == []
    assert len(session.said()) == 2
    assert holding(session) == []
    assert all(json.loads(path.read_text()) for path in session.said())
    # What was said in another project is not this one's to change.
    assert len(holding(SessionFolder(session.path.parent / "other"))) == 2


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize("busy", ["proxy", "half added"])
def test_the_talk_of_a_session_in_use_is_left_and_named(repo, session, busy, more):
    held = session.lock() if busy == "proxy" else None
    if busy == "half added":
        (session.path / "2.turn").rename(session.path / "2@0.adding")
    before = holding(session)
    left = purge(repo, WORDS, *more)["left"]
    if held is not None:
        durable.close(held)
    assert holding(session) == before
    assert left == [f"gitcp's own file {path}" for path in before]


def test_the_end_of_an_output_holds_no_half_of_a_secret(repo):
    (repo / ".env").write_text(f"API_TOKEN={CANARY}\n")
    workspace = open_workspace(repo)
    cut = f"{'x' * 3000}\nit is {CANARY}\n{'y' * 2040}\n".encode()
    assert run_command._told(workspace, cut, b"") == LEFT_OUT
    assert (
        run_command._told(workspace, b"", f"{CANARY[:6]} {CANARY}".encode()) == LEFT_OUT
    )
    assert (
        run_command._told(workspace, b"all is well\n", b"exit 3")
        == "all is well\nexit 3"
    )


def test_a_secret_in_a_name_is_not_printed_beside_the_refusal(tmp_path):
    repo = make_repo(tmp_path / "q", {"a.txt": b"a\n"})
    run_git(tmp_path, "init", "--quiet", "--bare", "r.git")
    run_git(repo, "remote", "add", "origin", str(tmp_path / "r.git"))
    run_git(repo, "push", "--quiet", "origin", "main")
    token = "gh" + "p_" + (CANARY * 2)[:36]
    ok(repo, "save", "--allow-empty")
    ok(repo, "fork", f"try {token}")
    ok(repo, "save", "--allow-empty")
    for arguments in (("push",), ("push", "--json"), ("scan",)):
        done = invoke(repo, *arguments)
        assert done.returncode == 24, done
        assert token not in (done.stdout + done.stderr).decode()
    assert git_line(tmp_path / "r.git", "for-each-ref", "refs/gitcp") == ""
