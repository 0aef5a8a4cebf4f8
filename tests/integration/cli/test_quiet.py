"""With `-q`, before or after it, a command that changes something prints nothing."""

from __future__ import annotations

import pytest

from gitcp.cli.app import COMMANDS
from gitcp.cli.silence import CHANGING, changes_something
from tests.support.clones import clone, make_hub, save
from tests.support.gitrepo import git, run_gitcp, write_files
from tests.support.inprocess import invoke, ok

# They show something, which is what they were called for.
SHOWING = frozenset(
    {
        *("log", "ui", "show", "diff", "status", "messages", "context", "decisions"),
        *("sessions", "branches", "files", "cat", "remote-sessions", "scan"),
        *("doctor", "verify", "search", "why", "view", "du", "help", "demo", "resume"),
        "completion",
        *("hook", "git-hook", "pusher", "acp", "mcp"),
    }
)
# They list, or change something, depending on their arguments.
MIXED = frozenset({"trust", "config", "steps", "folders"})
# In an order in which each of them has something to do.
CALLS = (
    ("save", "-m", "note", "--label", "own", "--decision", "why not"),
    ("label", "last", "green"),
    ("label", "green", "--remove"),
    ("decide", "a reason", "--why", "none"),
    ("restore", "1", "--yes"),
    ("undo", "--yes"),
    ("rollback", "--yes"),
    ("run", "--", "true"),
    ("fork", "try", "--no-switch"),
    ("fork", "1", "other", "--yes"),
    ("switch", "main"),
    ("switch", "main/other", "--restore", "--yes"),
    ("push",),
    ("pull",),
    ("export", "last", "-o", "out.bundle", "--force"),
    ("import", "out.bundle"),
    ("import-history",),
    ("install", "git-hooks"),
    ("uninstall", "git-hooks"),
    ("trust", "origin"),
    ("trust", "origin", "--remove"),
    ("config", "remote", "origin"),
    ("config", "remote", "--unset"),
    ("save",),
    ("purge", "late.txt", "--yes"),
    ("prune", "--keep-last", "1", "--yes"),
    ("gc",),
)


@pytest.fixture
def repo(tmp_path, monkeypatch):
    """A clone with a remote, where each of the calls has something to do."""
    settings = tmp_path / "gitconfig"
    settings.touch()
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    hub = make_hub(tmp_path)
    there = clone(hub, "there")
    other = clone(hub, "other")
    for number in range(3):
        save(there, a_py=b"%d" % number)
    git(there, "config", "user.name", "Ann")
    save(other, "-s", "elsewhere", a_py=b"elsewhere")
    ok(other, "push")
    write_files(there, {"a.py": b"unsaved"})
    return there


@pytest.mark.parametrize("before", [True, False])
def test_what_changes_something_prints_nothing_when_quiet(repo, before):
    for number, (name, *rest) in enumerate(CALLS):
        write_files(repo, {"a.py": b"edit %d" % number})
        if (name, *rest) == ("save",):
            write_files(repo, {"late.txt": b"late"})
        if name == "purge":
            # No remote has it, and it is not here either: a purge would warn of that.
            (repo / "late.txt").unlink()
        arguments = ["-q", name, *rest] if before else [name, "-q", *rest]
        # A command that is run writes to descriptors, which a test has none of here.
        call = run_gitcp if name == "run" else invoke
        done = call(repo, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), arguments


def test_every_command_that_changes_something_is_called():
    called = {name for name, *_ in CALLS}
    # `watch` has no end, and `steps` needs a step that was interrupted. What `folders`
    # changes is not in a repository (test_folders), nor is what `adopt` moves.
    assert called == (CHANGING | MIXED) - {*("watch", "steps", "folders", "adopt")}
    assert set(COMMANDS) == CHANGING | MIXED | SHOWING


def test_what_was_asked_for_is_printed_when_quiet(repo):
    save(repo, a_py=b"more")
    for arguments in (
        ("log",),
        ("status",),
        ("config",),
        ("restore", "1", "--dry-run"),
        ("prune", "--keep-last", "1", "--dry-run"),
        ("push", "--dry-run"),
    ):
        assert invoke(repo, "-q", *arguments).stdout != b"", arguments
    ok(repo, "trust", "origin")
    assert invoke(repo, "trust", "-q").stdout != b""


def test_json_is_printed_when_quiet(repo):
    assert invoke(repo, "save", "-q", "--json").stdout.startswith(b'{"schema"')


def test_an_error_is_printed_when_quiet(repo):
    done = invoke(repo, "-q", "restore", "99", "--yes")
    assert done.returncode == 13
    assert done.stderr.startswith(b"gitcp: there is no checkpoint")


def test_what_lists_or_changes_is_told_by_its_arguments():
    assert changes_something("steps", {"words": ("answer", "send", "done")})
    assert not changes_something("steps", {"words": ("show", "send")})
    assert not changes_something("steps", {"words": ()})
    assert not changes_something("config", {"value": None, "unset": False})
    assert changes_something("watch", {})
    assert not changes_something("undo", {"dry_run": True})
