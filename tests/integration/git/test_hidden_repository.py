"""For moments of a `git refs migrate`, git does not see the repository: gitcp asks again."""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import contextmanager

import pytest

from gitcp.errors import (
    BusyError,
    CorruptError,
    GitcpError,
    GitFailedError,
    GitUnseenError,
    StorageError,
)
from gitcp.format.oid import SHA256
from gitcp.git import migrating, process, questions
from gitcp.git.discover import discover
from gitcp.git.executable import GitObjects
from gitcp.git.git_refs import GitRefs
from gitcp.git.libgit import streamed
from gitcp.git.ref_storage import RefStorage
from gitcp.git.refs import FileRefs
from gitcp.git.transaction import transaction
from tests.integration.git.test_migrate import migrated
from tests.support.gitrepo import commit_all, git, git_line, make_repo, write_files
from tests.support.inprocess import fails, ok
from tests.support.needs import needs_migrate

HIDDEN = 0.3
VERSION_0 = "repositoryformatversion = 0"
LARGE = b"large " * 1000


@pytest.fixture(params=["head", "version"])
def hide(request):
    """Hides a repository from git for a moment, as a migration does."""

    @contextmanager
    def hiding(top, *, end=True):
        head, away = top / ".git" / "HEAD", top / ".git" / "away"
        config = top / ".git" / "config"
        before = config.read_text()

        def show():
            time.sleep(HIDDEN)
            if request.param == "head":
                away.rename(head)
            else:
                # As git does it, with a lock.
                lock = config.with_name("config.lock")
                lock.write_text(before)
                lock.rename(config)

        if request.param == "head":
            head.rename(away)
        else:
            # Any git knows this extension, and refuses it in the old version.
            old = before.replace("repositoryformatversion = 1", VERSION_0)
            assert VERSION_0 in old
            form = git_line(top, "rev-parse", "--show-object-format")
            config.write_text(f"{old}[extensions]\n\tobjectFormat = {form}\n")
        thread = threading.Thread(target=show if end else lambda: None)
        thread.start()
        yield
        thread.join()

    return hiding


@pytest.fixture
def top(tmp_path):
    return make_repo(tmp_path / "r", {"f": b"0", "large": LARGE})


def test_a_git_that_saw_no_repository_is_run_again(top, hide):
    head = git_line(top, "rev-parse", "@")
    repository = discover(top)
    with hide(top):
        assert repository.git("rev-parse", "HEAD").decode().strip() == head
    with hide(top):
        assert repository.plumbing("rev-parse", "HEAD").decode().strip() == head


def test_a_repository_that_git_did_not_see_is_found(top, hide):
    with hide(top):
        assert discover(top).top == top
    with hide(top):
        assert discover(top / ".git", worktree=False).git_dir == top / ".git"


def test_a_git_directory_that_appears_while_git_is_asked_is_found(top, monkeypatch):
    head, away = top / ".git" / "HEAD", top / ".git" / "away"
    head.rename(away)
    ask = questions.ask

    def and_show(where, named):
        if away.exists():
            away.rename(head)
        return ask(where, named)

    monkeypatch.setattr(questions, "ask", and_show)
    assert discover(top / ".git", worktree=False).git_dir == top / ".git"


def test_a_command_works_in_a_repository_that_git_did_not_see(top, hide):
    with hide(top):
        assert ok(top, "save", "-m", "one")["checkpoint"]["note"] == "one"


def test_a_submodule_that_git_did_not_see_is_found(top, tmp_path):
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", "-q", top, "sub")
    head = top / ".git" / "modules" / "sub" / "HEAD"
    head.rename(tmp_path / "HEAD")
    thread = threading.Timer(HIDDEN, lambda: (tmp_path / "HEAD").rename(head))
    thread.start()
    assert discover(top / "sub").top == top / "sub"
    thread.join()


def test_what_the_user_has_broken_is_reported(top, hide, monkeypatch):
    monkeypatch.setattr(migrating, "_AFTERWARDS", 0.05)
    with hide(top, end=False), pytest.raises(GitcpError, match="repository"):
        discover(top)


def test_git_is_right_where_nothing_has_changed_of_late(top, monkeypatch):
    (top / ".git" / "HEAD").rename(top / "HEAD")
    os.utime(top / ".git", (1, 1))
    asked: list[object] = []
    ask = questions.ask

    def counted(*given):
        asked.append(given)
        return ask(*given)

    monkeypatch.setattr(questions, "ask", counted)
    assert "is not in a git repository" in fails(top, 10, "status")
    assert len(asked) == 1
    started: list[object] = []
    start = process.start

    def noted(*args, **kwargs):
        started.append(args)
        return start(*args, **kwargs)

    monkeypatch.setattr(process, "start", noted)
    with pytest.raises(GitUnseenError):
        process.run(["rev-parse"], cwd=top)
    with pytest.raises(GitUnseenError):
        process.run(["rev-parse"], cwd=top, env={"GIT_DIR": str(top / ".git")})
    assert len(started) == 2


def test_a_folder_without_git_is_asked_about_once(tmp_path, monkeypatch):
    (tmp_path / "objects").mkdir()
    monkeypatch.setattr(time, "sleep", pytest.fail)
    assert "is not in a git repository" in fails(tmp_path, 10, "status")


def test_a_migration_that_takes_long_is_named(top, monkeypatch):
    monkeypatch.setattr(migrating, "_PATIENCE", 0.1)
    other = top / ".git" / "ref_migration.x"
    other.mkdir()
    (top / ".git" / "HEAD").rename(other / "HEAD")
    said = fails(top, BusyError.exit_status, "status")
    assert "is moving the refs" in said


def test_settings_that_git_did_not_see_are_read_again(top, monkeypatch):
    git(top, "config", "gitcp.exclude", "large")
    ask = questions.ask
    hidden: list[object] = []

    def without(where, named):
        answers = ask(where, named)
        if hidden:
            return answers
        hidden.append(where)
        values = {
            name: value
            for name, value in answers[0].values.items()
            if not name.startswith(("core.", "gitcp."))
        }
        return answers[0]._replace(values=values), *answers[1:]

    monkeypatch.setattr(questions, "ask", without)
    assert discover(top).setting("gitcp.exclude") == "large"
    assert hidden


@pytest.mark.parametrize("large", [False, True])
def test_an_object_of_a_repository_that_git_did_not_see_is_no_damage(tmp_path, large):
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", top)
    write_files(top, {"f": LARGE})
    commit_all(top)
    oid = bytes.fromhex(git_line(top, "rev-parse", "@:f"))
    head = top / ".git" / "HEAD"
    head.rename(top / "HEAD")
    thread = threading.Timer(HIDDEN, lambda: (top / "HEAD").rename(head))
    thread.start()
    if large:
        found = b"".join(streamed(top / ".git", oid, len(LARGE), SHA256))
    else:
        found = GitObjects(top / ".git", SHA256).blob(oid)
    thread.join()
    assert found == LARGE


def test_an_object_is_damaged_if_git_sees_no_repository_for_good(tmp_path):
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", top)
    write_files(top, {"f": b"0"})
    commit_all(top)
    oid = bytes.fromhex(git_line(top, "rev-parse", "@:f"))
    (top / ".git" / "HEAD").unlink()
    os.utime(top / ".git", (1, 1))
    with pytest.raises(CorruptError, match="not a git repository"):
        GitObjects(top / ".git", SHA256).blob(oid)


@pytest.mark.ref_files
@pytest.mark.parametrize("together", [False, True])
def test_a_change_whose_lock_met_a_migration_is_made_where_the_refs_are(
    top, monkeypatch, together
):
    ok(top, "save", "-m", "one")
    ref = "refs/gitcp/s/main/main"
    before = git_line(top, "rev-parse", ref)
    after = git_line(top, "rev-parse", "@")
    repository = discover(top)
    lock = FileRefs._linked

    def and_migrate(refs, name, staged):
        monkeypatch.undo()
        migrated(top)
        return lock(refs, name, staged)

    monkeypatch.setattr(FileRefs, "_linked", and_migrate)
    with transaction(repository) as txn:
        if together:
            txn.publish_together([ref], lambda: {ref: after})
        else:
            txn.move_ref(ref, expect=before, new=after)
    assert git_line(top, "rev-parse", ref) == after


@pytest.mark.ref_files
def test_a_lock_that_a_signal_has_left_does_not_stay(top, monkeypatch):
    """The file that it is a link to tells that its transaction has ended."""
    ok(top, "save", "-m", "one")
    ref = "refs/gitcp/s/main/main"
    before = git_line(top, "rev-parse", ref)
    check = RefStorage.check

    def interrupted(storage):
        if (top / ".git" / f"{ref}.lock").exists():
            raise KeyboardInterrupt
        check(storage)

    monkeypatch.setattr(RefStorage, "check", interrupted)
    with pytest.raises(KeyboardInterrupt), transaction(discover(top)) as txn:
        txn.move_ref(ref, expect=before, new=git_line(top, "rev-parse", "@"))
    monkeypatch.undo()
    assert not (top / ".git" / f"{ref}.lock").exists()
    ok(top, "save", "--allow-empty", "-m", "two")


def test_a_change_of_refs_in_tables_is_repeated_if_git_saw_no_repository(
    top, monkeypatch
):
    git_dir = top / ".git"
    (git_dir / "reftable").mkdir(exist_ok=True)
    with (git_dir / "config").open("a") as config:
        config.write("[extensions]\n\trefStorage = reftable\n")
    tried: list[object] = []

    def change(refs, changes):
        tried.append(changes)
        if len(tried) == 1:
            raise GitUnseenError("git update-ref failed: fatal: not a git repository")
        return True

    monkeypatch.setattr(GitRefs, "_change", change)
    refs = GitRefs(git_dir, git_dir)
    name = "refs/gitcp/s/main/main"
    refs.compare_and_swap(name, expect=None, new="1" * 40, staged=top / "ref")
    assert len(tried) == 2


@pytest.mark.parametrize("times", [1, 10])
def test_a_ref_that_a_migration_has_left_behind_is_moved_once_more(
    tmp_path, monkeypatch, times
):
    """git found another process's ref; the migration that was at work took none along."""
    name, new = "refs/gitcp/s/main/main", "1" * 40
    said = f"prepare: cannot lock ref '{name}': reference already exists"
    asked: list[object] = []

    def update(refs, lines, doing):
        asked.append(lines)
        if len(asked) <= times:
            raise GitFailedError(said)

    monkeypatch.setattr(GitRefs, "_update", update)
    monkeypatch.setattr(GitRefs, "read", lambda refs, name: None)
    refs = GitRefs(tmp_path, tmp_path)
    if times == 1:
        refs.compare_and_swap(name, expect=None, new=new, staged=tmp_path / "ref")
        assert len(asked) == 2
    else:
        with pytest.raises(StorageError, match="already exists"):
            refs.compare_and_swap(name, expect=None, new=new, staged=tmp_path / "ref")
        assert len(asked) < times


def test_a_git_that_has_ended_before_it_is_asked_for_a_change_says_why(
    top, monkeypatch
):
    """Python's own error would look as if the reader of gitcp's output had gone."""
    start = process.start

    def ended(*args, **kwargs):
        running = start(*args, **kwargs)
        running.wait()
        return running

    monkeypatch.setattr(process, "start", ended)
    (top / ".git" / "HEAD").rename(top / ".git" / "away")
    refs = GitRefs(top / ".git", top / ".git")
    with pytest.raises(GitUnseenError, match="not a git repository"):
        refs._change([b"delete refs/gitcp/s/main/main"])


def test_git_is_not_believed_before_the_configuration_names_the_tables(top):
    """It looks for refs in files then, and reports that there are none."""
    needs_migrate()
    ok(top, "save", "--allow-empty", "-m", "one")
    if not (top / ".git" / "reftable").exists():
        git(top, "refs", "migrate", "--ref-format=reftable")
    repository = discover(top)
    refs = repository.refs
    before = git_line(top, "rev-parse", "refs/gitcp/s/main/main")
    config = top / ".git" / "config"
    named = config.read_text()
    config.write_text(
        re.sub(r"\trefstorage = reftable\n", "", named, flags=re.IGNORECASE)
    )
    assert git(top, "for-each-ref") == b""
    lock = config.with_name("config.lock")
    lock.write_text(named)
    thread = threading.Timer(HIDDEN, lock.rename, (config,))
    thread.start()
    assert refs.read("refs/gitcp/s/main/main") == before
    thread.join()
