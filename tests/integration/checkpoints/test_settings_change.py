"""Settings that another process changes while a program keeps its store open."""

import fcntl
import os
import subprocess
import time
from pathlib import Path

import pytest

import gitcp
from gitcp.checkpoints import watch
from gitcp.checkpoints.save import save
from gitcp.errors import BusyError, EncryptionError, SecretsFoundError, UsageError
from gitcp.git import process
from gitcp.project.workspace import open_workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft
from gitcp.sync.push import push
from tests.support.gitrepo import git


@pytest.fixture
def session(repo: Path) -> gitcp.Session:
    return gitcp.open(repo).session("work")


def aged() -> None:
    """Waits until nothing written from now on can be taken for what is there."""
    time.sleep(0.06)


def test_a_smaller_file_limit_holds_for_the_next_save(repo, session):
    (repo / "big").write_bytes(b"x" * 5000)
    assert session.save().entry(b"big") is not None
    git(repo, "config", "gitcp.maxFileSize", "1k")
    saved = session.save(allow_empty=True)
    assert saved.entry(b"big") is None
    assert [one.path for one in saved.skipped()] == [b"big"]
    git(repo, "config", "--unset", "gitcp.maxFileSize")
    assert session.save().entry(b"big") is not None


def test_what_is_excluded_and_included_changes(repo, session):
    (repo / ".gitignore").write_text("*.log\n")
    (repo / "a.log").write_text("log")
    (repo / "b.tmp").write_text("tmp")
    first = session.save()
    assert first.entry(b"a.log") is None
    git(repo, "config", "gitcp.include", "*.log")
    git(repo, "config", "gitcp.exclude", "*.tmp")
    second = session.save()
    assert second.entry(b"a.log") is not None
    assert second.entry(b"b.tmp") is None


def test_another_file_of_ignore_rules_changes_what_is_saved(repo, session, tmp_path):
    rules = tmp_path / "ignored"
    rules.write_text("*.out\n")
    (repo / "a.out").write_text("log")
    assert session.save().entry(b"a.out") is not None
    git(repo, "config", "core.excludesFile", str(rules))
    (repo / "b.out").write_text("log")
    (repo / "c").write_text("c")
    assert session.save().entry(b"b.out") is None


def test_a_limit_of_checkpoints_is_kept_from_then_on(repo, session):
    for number in range(6):
        session.save(append=[{"n": number}])
    assert len(list(session.checkpoints())) == 6
    git(repo, "config", "gitcp.maxCheckpoints", "3")
    session.save(append=[{"n": 6}])
    # The same store sees it, as every other does.
    assert len(list(gitcp.open(repo).session("work").checkpoints())) == 3


def test_a_shorter_wait_for_locks_holds_at_once(repo, session):
    session.save()
    lock = os.open(session.workspace.directory / "worktree.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    git(repo, "config", "gitcp.lockTimeout", "1ms")
    try:
        with pytest.raises(BusyError):
            session.save()
    finally:
        os.close(lock)
    assert session.workspace.settings.lock_timeout == 0.001
    assert session.workspace.repository.refs.lock_timeout == 0.001


def test_the_policy_for_secrets_and_encryption_is_the_present_one(repo, tmp_path):
    hub = tmp_path / "hub.git"
    git(tmp_path, "init", "-q", "--bare", str(hub))
    git(repo, "remote", "add", "origin", str(hub))
    workspace = open_workspace(repo, lasting=True)
    git(repo, "config", "gitcp.secrets", "off")
    (repo / "key").write_text("AKIA" + "Z7QK3MNP2RTV5WXY\n")
    save(workspace, Draft(), session="work")
    git(repo, "config", "gitcp.secrets", "block")
    with pytest.raises(SecretsFoundError):
        push(workspace)
    git(repo, "config", "gitcp.secrets", "off")
    git(repo, "config", "gitcp.encryptTo", "nonsense")
    with pytest.raises(EncryptionError):
        push(workspace)
    git(repo, "config", "gitcp.encryptTo", "off")
    assert push(workspace)


def test_another_remote_is_pushed_to(repo, tmp_path):
    workspace = open_workspace(repo, lasting=True)
    save(workspace, Draft(), session="work")
    hub = tmp_path / "hub.git"
    git(tmp_path, "init", "-q", "--bare", str(hub))
    git(repo, "remote", "add", "backup", str(hub))
    git(repo, "config", "gitcp.remote", "backup")
    assert push(workspace)
    assert git(hub, "for-each-ref")


def test_every_place_that_git_reads_is_watched(repo, session, tmp_path, monkeypatch):
    def limit() -> int:
        session.save(allow_empty=True)
        return session.workspace.settings.max_file_size

    def expect(size: int) -> None:
        assert limit() == size
        # What was read is known to be whole from now on.
        aged()
        assert limit() == size

    key = "gitcp.maxFileSize"
    home = tmp_path / "global"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home))
    expect(2 << 30)
    git(repo, "config", "-f", str(home), key, "1k")
    expect(1 << 10)
    included = tmp_path / "included"
    git(repo, "config", "include.path", str(included))
    expect(1 << 10)
    # It was not there when git looked for it.
    git(repo, "config", "-f", str(included), key, "2k")
    expect(2 << 10)
    # Written in place, with the same length.
    included.write_text(included.read_text().replace("2k", "3k"))
    expect(3 << 10)
    included.unlink()
    expect(1 << 10)
    git(repo, "config", "includeIf.onbranch:other.path", str(tmp_path / "other"))
    git(repo, "config", "-f", str(tmp_path / "other"), key, "4k")
    expect(1 << 10)
    git(repo, "switch", "-q", "-c", "other")
    expect(4 << 10)
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "config", "--worktree", key, "5k")
    expect(5 << 10)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", key)
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "6k")
    expect(6 << 10)
    monkeypatch.setenv("GITCP_MAX_FILE_SIZE", "7k")
    expect(7 << 10)


def test_a_single_value_of_the_environment_may_hold_a_colon(repo, monkeypatch):
    monkeypatch.setenv("GITCP_REMOTE", "ssh://host:22/team.git")
    monkeypatch.setenv("GITCP_EXCLUDE", "*.log:build")
    settings = gitcp.open(repo).session("work").workspace.settings
    assert settings.sharing.remote == "ssh://host:22/team.git"
    assert settings.exclude == ("*.log", "build")


def test_a_linked_work_tree_has_its_own(repo, tmp_path):
    git(repo, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    git(repo, "config", "extensions.worktreeConfig", "true")
    session = gitcp.open(tmp_path / "linked").session("work")
    session.save()
    git(repo, "config", "--worktree", "gitcp.maxFileSize", "1k")
    session.save()
    assert session.workspace.settings.max_file_size == 2 << 30
    git(tmp_path / "linked", "config", "--worktree", "gitcp.maxFileSize", "2k")
    session.save()
    assert session.workspace.settings.max_file_size == 2 << 10


def test_a_value_that_makes_no_sense_is_told_and_nothing_is_saved(repo, session):
    first = session.save()
    git(repo, "config", "gitcp.maxFileSize", "soon")
    (repo / "new").write_text("new")
    with pytest.raises(UsageError, match="maxFileSize"):
        session.save()
    assert session.last == first
    git(repo, "config", "gitcp.maxFileSize", "1k")
    assert session.save() != first


def test_unchanged_files_cost_no_process(repo, session, monkeypatch):
    session.save(append=[1])
    aged()
    session.save(append=[2])
    started: list[object] = []
    start = process.start

    def counted(args: object, **given: object) -> subprocess.Popen[bytes]:
        started.append(args)
        return start(args, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(process, "start", counted)
    session.save(append=[3])
    assert not [args for args in started if "config" in args]  # type: ignore[operator]


def test_a_command_looks_at_no_file_of_settings_again(repo, monkeypatch):
    workspace = open_workspace(repo)
    monkeypatch.setattr(workspace.repository, "reread", pytest.fail)
    save(workspace, Draft())


def test_a_changed_setting_holds_for_the_next_step(repo, session):
    (repo / "big").write_bytes(b"x" * 5000)
    session.step("one", lambda: None, effect="local")
    git(repo, "config", "gitcp.maxFileSize", "1k")
    (repo / "big").write_bytes(b"y" * 5000)
    session.step("two", lambda: None, effect="local")
    last = session.last
    assert last is not None
    assert last.entry(b"big") is None


def test_watching_takes_another_interval(repo):
    git(repo, "config", "gitcp.intervalMinutes", "10")
    workspace = open_workspace(repo, lasting=True)
    now = [1_000_000_000.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds
        if len(slept) == 2:
            (repo / "new").write_text("changed")
            git(repo, "config", "gitcp.intervalMinutes", "0")
        if len(slept) == 200:
            git(repo, "config", "gitcp.intervalMinutes", "1")

    workspace.store._clock = lambda: now[0]
    found = watch.watch(workspace, sleep=sleep, clock=lambda: now[0])
    assert isinstance(next(found), Checkpoint)
    assert isinstance(next(found), Checkpoint)
    # For as long as it was 0, none was due, though the ten minutes were over.
    assert len(slept) == 200
