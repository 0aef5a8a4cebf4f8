"""What a restore does and does not do to files."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from gitcp.worktree import apply as applying
from gitcp.worktree import journal, one_step
from tests.support.gitrepo import (
    Executable,
    Symlink,
    commit_all,
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok


def save(repo: Path, *args: str, **given) -> dict:
    return ok(repo, "save", "--allow-empty", *args, **given)["checkpoint"]


def test_ignored_files_are_never_deleted(repo):
    write_files(repo, {"a.log": b"kept", "build/out": b"kept", "src/b.log": b"kept"})
    save(repo)
    (repo / "src/pkg/main.py").unlink()
    write_files(repo, {"untracked": b"1", "c.log": b"later", "new/d.log": b"later"})
    plan = ok(repo, "restore", "-y", "1")
    steps = {step["path"] for step in plan["plan"] if step["action"] != "rmdir"}
    assert steps == {"src/pkg/main.py", "untracked"}
    for name in ("a.log", "build/out", "src/b.log", "c.log", "new/d.log"):
        assert (repo / name).exists()
    ok(repo, "undo", "-y")
    assert (repo / "untracked").read_bytes() == b"1"
    assert not (repo / "src/pkg/main.py").exists()


def test_a_rolled_back_gitignore_does_not_delete_what_it_ignored(repo):
    save(repo)
    write_files(repo, {".gitignore": b"*.log\n/build/\n*.dat\n", "x.dat": b"precious"})
    save(repo)
    ok(repo, "restore", "-y", "1")
    assert (repo / "x.dat").read_bytes() == b"precious"
    # No longer ignored: the next restore saves it first.
    ok(repo, "restore", "-y", "2")
    ok(repo, "undo", "-y")
    assert (repo / "x.dat").read_bytes() == b"precious"


def test_a_rule_that_comes_back_spares_what_it_ignores(repo):
    write_files(repo, {"sub/a": b"1", "old/x.dat": b"captured"})
    save(repo)
    rules = {".gitignore": b".env\n/data/\n*.bak\n", "sub/.gitignore": b"*.tmp\n!a\n"}
    write_files(repo, {**rules, "new": b"2"})
    (repo / "old/x.dat").unlink()
    save(repo)
    ignored = {".env": b"KEY", "data/deep/b": b"4", "sub/c.tmp": b"5", "é.bak": b"6"}
    write_files(repo, ignored)
    (repo / "data/empty").mkdir()
    before = tree_bytes(repo)
    ok(repo, "restore", "-y", "1")
    assert not (repo / "new").exists()
    # Nothing ignores them now, so they are captured; they must not go all the same.
    write_files(repo, {"sub/later": b"7"})
    shown = ok(repo, "restore", "--dry-run", "2")
    reason = "ignored in the checkpoint"
    assert [one for one in shown["left"] if one["reason"] == reason] == [
        {"path": path, "reason": reason}
        for path in (".env", "data", "sub/c.tmp", "é.bak")
    ]
    assert ok(repo, "undo", "-y")["plan"] == shown["plan"]
    assert tree_bytes(repo) == before
    assert "sub/later" in {step["path"] for step in shown["plan"]}
    # What was captured there goes, and what the target has comes, in their place too.
    (repo / "sub").rename(repo / "moved")
    write_files(repo, {"sub": b"a file"})
    save(repo)
    ok(repo, "restore", "-y", "2")
    assert tree_bytes(repo)[b"sub/a"] == before[b"sub/a"]


def blocked(repo: Path, kind: str) -> None:
    """Puts something that no checkpoint holds where `data` was."""
    (repo / "data").unlink()
    if kind == "ignored":
        write_files(repo, {".git/info/exclude": b"data\n", "data": b"precious"})
    elif kind == "ignored-below":
        write_files(repo, {".git/info/exclude": b"data/\n", "data/x": b"precious"})
    elif kind == "oversized":
        git(repo, "config", "gitcp.maxFileSize", "10")
        write_files(repo, {"data": b"precious and large"})
    elif kind == "nested":
        make_repo(repo / "data", {"f": b"precious"})
    else:
        os.mkfifo(repo / "data")


@pytest.mark.parametrize(
    "kind", ["ignored", "ignored-below", "oversized", "nested", "special"]
)
@pytest.mark.parametrize("command", ["restore", "fork", "switch"])
def test_what_no_checkpoint_holds_stops_a_restore(repo, kind, command):
    write_files(repo, {"data": b"d"})
    commit_all(repo)
    git(repo, "rm", "-q", "--cached", "data")
    save(repo)
    ok(repo, "fork", "--no-switch", "side")
    blocked(repo, kind)
    write_files(repo, {"README.md": b"changed"})
    before = [path for path in tree_bytes(repo).items() if path[1][0] != "other"]
    arguments = {
        "restore": ["-y", "1"],
        "fork": ["-y", "1", "new"],
        "switch": ["-y", "--restore", "main/side"],
    }[command]
    said = fails(repo, 18, command, *arguments)
    assert "data" in said
    assert [p for p in tree_bytes(repo).items() if p[1][0] != "other"] == before
    assert ok(repo, "show")["checkpoint"]["seq"] == 1
    assert ok(repo, "branches")["current"] == "main"
    # Other paths come back all the same.
    ok(repo, "restore", "-y", "1", "README.md")
    assert (repo / "README.md").read_bytes() == b"# A project\n"


def test_paths_files_and_conversation(repo):
    save(repo, "--append", "-", "--decision", "one", input=b'{"n":1}\n')
    write_files(repo, {"README.md": b"x", "src/pkg/main.py": b"y", "src/new": b"z"})
    save(repo, "--append", "-", "--decision", "two", input=b'{"n":2}\n')
    both = tree_bytes(repo)

    def said() -> tuple[int, int]:
        return (len(ok(repo, "messages")), len(ok(repo, "decisions")["decisions"]))

    ok(repo, "restore", "-y", "1", "src")
    assert not (repo / "src/new").exists()
    assert (repo / "README.md").read_bytes() == b"x"
    assert said() == (2, 2)
    ok(repo, "undo", "-y")
    assert tree_bytes(repo) == both
    ok(repo, "restore", "-y", "--conversation", "1")
    assert tree_bytes(repo) == both
    assert said() == (1, 1)
    ok(repo, "undo", "-y")
    assert said() == (2, 2)
    ok(repo, "restore", "-y", "--files", "1")
    assert (repo / "README.md").read_bytes() == b"# A project\n"
    assert said() == (2, 2)
    ok(repo, "restore", "-y", "2")
    ok(repo, "restore", "-y", "1")
    assert said() == (1, 1)
    fails(repo, 2, "restore", "-y", "--conversation", "1", "src")
    fails(repo, 13, "restore", "-y", "1", "nowhere")
    fails(repo, 2, "restore", "-y", "1", "../outside")


def test_what_capture_would_leave_out_comes_back_all_the_same(repo):
    write_files(repo, {"build/kept": b"1" * 50, "large": b"2" * 50})
    save(repo, "--include", "build/*")
    write_files(repo, {"large": b"y"})
    (repo / "build/kept").unlink()
    git(repo, "config", "gitcp.maxFileSize", "20")
    ok(repo, "restore", "-y", "1")
    assert (repo / "build/kept").read_bytes() == b"1" * 50
    assert (repo / "large").read_bytes() == b"2" * 50


def test_undo_twice_is_redo(repo):
    save(repo)
    write_files(repo, {"README.md": b"2", "run": Executable(b"x"), "l": Symlink(b"y")})
    wrecked = tree_bytes(repo)
    ok(repo, "restore", "-y", "1")
    restored = tree_bytes(repo)
    for expected in (wrecked, restored, wrecked, restored):
        ok(repo, "undo", "-y")
        assert tree_bytes(repo) == expected
    # Work after a restore is saved by the undo.
    write_files(repo, {"later": b"1"})
    ok(repo, "undo", "-y")
    assert tree_bytes(repo) == wrecked
    ok(repo, "undo", "-y")
    assert (repo / "later").read_bytes() == b"1"


def test_nothing_to_undo(repo):
    fails(repo, 1, "undo", "-y")
    save(repo)
    fails(repo, 1, "undo", "-y")


def test_rollback(repo):
    save(repo)
    write_files(repo, {"README.md": b"2"})
    ok(repo, "rollback", "-y")
    assert (repo / "README.md").read_bytes() == b"# A project\n"


def test_untouched_files_keep_inode_and_mtime(repo):
    save(repo)
    before = {path: (repo / path).stat() for path in ("README.md", "src/pkg/data.bin")}
    write_files(repo, {"src/pkg/main.py": b"changed"})
    ok(repo, "restore", "-y", "1")
    for path, old in before.items():
        new = (repo / path).stat()
        assert (new.st_ino, new.st_mtime_ns) == (old.st_ino, old.st_mtime_ns)
    mode = (repo / "bin/run").stat()
    (repo / "bin/run").chmod(0o644)
    ok(repo, "restore", "-y", "1")
    assert (repo / "bin/run").stat().st_ino == mode.st_ino
    assert (repo / "bin/run").stat().st_mode & 0o111


def test_a_dry_run_changes_nothing(repo):
    save(repo)
    write_files(repo, {"README.md": b"2", "new": b"3"})
    before = tree_bytes(repo), git_line(repo, "for-each-ref")
    plan = ok(repo, "restore", "--dry-run", "1")
    assert plan["checkpoint"] is None
    assert {(one["path"], one["action"]) for one in plan["plan"]} == {
        ("README.md", "write"),
        ("new", "delete"),
    }
    assert b"README.md" in invoke(repo, "restore", "--dry-run", "1").stdout
    assert (tree_bytes(repo), git_line(repo, "for-each-ref")) == before


def test_into_another_directory(repo, tmp_path):
    write_files(repo, {"a.log": b"ignored"})
    (repo / "empty").mkdir()
    save(repo)
    expected = tree_bytes(repo)
    del expected[b"a.log"]
    before = git_line(repo, "for-each-ref")
    write_files(repo, {"README.md": b"2"})
    target = tmp_path / "deep" / "out"
    ok(repo, "restore", "1", "--to", target, "--dry-run")
    assert not target.exists()
    ok(repo, "restore", "1", "--to", target)
    assert tree_bytes(target) == expected
    assert git_line(repo, "for-each-ref") == before
    fails(repo, 18, "restore", "1", "--to", target)
    assert tree_bytes(target) == expected
    ok(repo, "restore", "1", "bin", "--to", tmp_path / "some")
    assert set(tree_bytes(tmp_path / "some")) == {b"bin", b"bin/run"}
    fails(repo, 13, "restore", "1", "nowhere", "--to", tmp_path / "none")
    fails(repo, 2, "restore", "1", "--conversation", "--to", tmp_path / "none")
    fails(repo, 2, "restore", "1", "--to", repo / "README.md")


def test_a_branch_that_another_worktree_saved_to(repo, tmp_path):
    save(repo)
    other = tmp_path / "other"
    git(repo, "worktree", "add", "-q", other)
    write_files(other, {"README.md": b"theirs"})
    save(other, "-s", "main/main")
    write_files(repo, {"README.md": b"mine"})
    done = ok(repo, "restore", "-y", "1")
    # The line holds all three, in order.
    assert done["saved"]["seq"] == 3
    assert [ok(repo, "show", str(n))["checkpoint"]["seq"] for n in (1, 2, 3, 4)] == [
        1, 2, 3, 4]  # fmt: skip
    assert invoke(repo, "cat", "2", "README.md").stdout == b"theirs"
    assert invoke(repo, "cat", "3", "README.md").stdout == b"mine"
    assert (other / "README.md").read_bytes() == b"theirs"
    ok(repo, "undo", "-y")
    assert (repo / "README.md").read_bytes() == b"mine"


def test_switch(repo):
    save(repo)
    write_files(repo, {"README.md": b"job"})
    save(repo, "-s", "job")
    ok(repo, "switch", "main")
    assert (repo / "README.md").read_bytes() == b"job"
    done = ok(repo, "switch", "-y", "main", "--restore")
    assert (repo / "README.md").read_bytes() == b"# A project\n"
    # The newest checkpoint has what was there, whichever session it is of.
    assert done["saved"] is None
    ok(repo, "undo", "-y")
    assert (repo / "README.md").read_bytes() == b"job"
    fails(repo, 13, "switch", "nowhere")


def test_fork_into_a_worktree(repo, tmp_path):
    write_files(repo, {"untracked": b"u", "run": Executable(b"r")})
    (repo / "empty").mkdir()
    save(repo)
    expected = tree_bytes(repo)
    write_files(repo, {"README.md": b"later"})
    save(repo)
    before = tree_bytes(repo)
    (repo / "sub").mkdir()
    made = ok(repo / "sub", "fork", "--worktree", "../../tree", "1", "aside")
    (repo / "sub").rmdir()
    assert made["checkpoint"]["branch"] == "aside"
    assert tree_bytes(repo) == before
    assert ok(repo, "branches")["current"] == "main"
    other = tmp_path / "tree"
    found = tree_bytes(other)
    found.pop(b".git", None)
    assert found == expected
    assert ok(other, "branches")["current"] == "aside"
    assert git(other, "status", "--porcelain") == b"?? run\n?? untracked\n"
    assert ok(other, "save")["created"] is False
    # Refused before anything is made.
    fails(repo, 2, "fork", "--worktree", tmp_path / "again", "1", "aside")
    assert not (tmp_path / "again").exists()
    fails(repo, 18, "fork", "--worktree", repo / "src", "1", "fresh")
    assert "fresh" not in str(ok(repo, "branches"))
    write_files(tmp_path, {"file": b""})
    fails(repo, 18, "fork", "--worktree", tmp_path / "file", "1", "fresh")


def test_fork_takes_the_present_state_or_restores(repo):
    first = save(repo, "--append", "-", input=b'{"n":1}\n')
    made = ok(repo, "fork", "one")["checkpoint"]
    assert (made["branch"], made["seq"], made["forked_from"]) == ("one", 1, first["id"])
    write_files(repo, {"README.md": b"2"})
    save(repo, "--append", "-", input=b'{"n":2}\n')
    fails(repo, 23, "fork", "main/main:1", "two")
    assert (repo / "README.md").read_bytes() == b"2"
    done = ok(repo, "fork", "-y", "main/main:1", "two")
    assert done["checkpoint"]["branch"] == "two"
    assert (repo / "README.md").read_bytes() == b"# A project\n"
    assert ok(repo, "messages") == [{"n": 1}]
    ok(repo, "undo", "-y")
    assert (repo / "README.md").read_bytes() == b"2"
    fails(repo, 2, "fork", "-y", "two")


def test_what_changes_between_plan_and_apply_stays(repo, monkeypatch):
    save(repo)
    write_files(repo, {"README.md": b"2", "src/pkg/main.py": b"3"})
    real = applying.apply

    def meanwhile(*args, **options):
        write_files(repo, {"README.md": b"by the user"})
        return real(*args, **options)

    monkeypatch.setattr(applying, "apply", meanwhile)
    done = invoke(repo, "restore", "-y", "1")
    assert done.returncode == 3
    assert b"README.md" in done.stderr
    assert (repo / "README.md").read_bytes() == b"by the user"
    assert (repo / "src/pkg/main.py").read_bytes() == b"print('two')\n"
    monkeypatch.undo()
    assert invoke(repo, "cat", "last", "README.md").stdout == b"by the user"
    ok(repo, "undo", "-y")
    assert (repo / "README.md").read_bytes() == b"2"


def interrupted(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A restore that is killed after its first step."""
    real = one_step.carry_out
    calls = iter(range(100))

    def killed(*args):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(one_step, "carry_out", killed)
        assert invoke(repo, "restore", "-y", "1").returncode == 130


@pytest.mark.parametrize("end", ["--continue", "--abort"])
def test_an_interrupted_restore_stops_everything_until_it_is_ended(
    repo, monkeypatch, tmp_path, end
):
    save(repo)
    first = tree_bytes(repo)
    write_files(repo, {"README.md": b"2", "src/pkg/main.py": b"3", "z": b"4"})
    second = tree_bytes(repo)
    interrupted(repo, monkeypatch)
    half = tree_bytes(repo)
    assert half not in (first, second)
    for command in (
        ["save"], ["save", "--allow-empty"], ["restore", "-y", "1"],
        ["restore", "--dry-run", "1"], ["rollback", "-y"], ["undo", "-y"],
        ["fork", "x"], ["fork", "-y", "1", "x"], ["fork", "--no-switch", "x"],
        ["fork", "--worktree", str(tmp_path / "x"), "x"], ["switch", "main"],
        ["switch", "--restore", "-y", "main"],
    ):  # fmt: skip
        said = fails(repo, 25, *command)
        assert "--continue" in said
        assert "--abort" in said
    assert run_gitcp(repo, "run", "--", "true").returncode == 25
    assert tree_bytes(repo) == half
    for command in (
        ["log"],
        ["show"],
        ["files"],
        ["messages"],
        ["context"],
        ["status"],
    ):
        assert invoke(repo, *command).returncode == 0, command
    assert invoke(repo, "restore", end).returncode == 0
    assert tree_bytes(repo) == (first if end == "--continue" else second)
    fails(repo, 1, "restore", end)
    if end == "--continue":
        ok(repo, "undo", "-y")
        assert tree_bytes(repo) == second
    assert ok(repo, "save")["created"] is False


def test_a_restore_that_only_left_its_journal_was_complete(repo, monkeypatch):
    save(repo)
    write_files(repo, {"README.md": b"2"})

    def killed(directory):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal, "remove", killed)
        assert invoke(repo, "fork", "-y", "1", "side").returncode == 130
    done = invoke(repo, "restore", "--abort")
    assert done.returncode == 0
    assert b"was already complete" in done.stdout
    assert ok(repo, "branches")["current"] == "side"
    ok(repo, "undo", "-y")
    assert (repo / "README.md").read_bytes() == b"2"


def test_a_directory_that_cannot_be_written(repo, monkeypatch):
    save(repo)
    first = tree_bytes(repo)
    write_files(repo, {"README.md": b"2", "src/pkg/main.py": b"3"})
    if os.geteuid():
        (repo / "src/pkg").chmod(0o555)
        done = invoke(repo, "restore", "-y", "1")
        (repo / "src/pkg").chmod(0o755)
    else:

        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        # Root may write anywhere.
        with monkeypatch.context() as patch:
            patch.setattr(one_step, "write", refuse)
            done = invoke(repo, "restore", "-y", "1")
    assert done.returncode == 20, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"permission denied (" in done.stderr
    assert b"gitcp-tmp" not in done.stderr
    assert b"`gitcp restore --continue` finishes it" in done.stderr
    fails(repo, 25, "save")
    assert invoke(repo, "restore", "--continue").returncode == 0
    assert tree_bytes(repo) == first


@pytest.mark.skipif(
    not os.geteuid() and shutil.which("setpriv") is None,
    reason="root may read everything, and there is no setpriv",
)
def test_a_directory_that_cannot_be_read_stops_a_restore(repo):
    """In a process that must ask for permission, which root need not."""
    save(repo)
    write_files(repo, {"README.md": b"2"})
    (repo / "src").chmod(0)
    argv = [os.fsdecode(arg) for arg in gitcp_argv("restore", "-y", "1")]
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"]
    done = subprocess.run(
        argv if os.geteuid() else drop + argv,
        cwd=repo,
        env=gitcp_environment(),
        capture_output=True,
        check=False,
    )
    (repo / "src").chmod(0o755)
    assert done.returncode == 18, done.stderr
    assert b"src/pkg/main.py" in done.stderr
    assert (repo / "README.md").read_bytes() == b"2"
    assert ok(repo, "restore", "-y", "1")["checkpoint"]["restored_from"]


def test_a_damaged_target_is_refused_before_the_first_write(repo):
    saved = save(repo)
    write_files(repo, {"README.md": b"only in the second\n" * 50})
    save(repo)
    write_files(repo, {"README.md": b"3", "src/pkg/main.py": b"3"})
    before = tree_bytes(repo)
    for pack in (repo / ".git/objects/pack").glob("*.pack"):
        listed = git(repo, "verify-pack", "-v", pack.with_suffix(".idx"))
        oid = git_line(repo, "rev-parse", "refs/gitcp/s/main/main:README.md")
        if oid.encode() in listed:
            raw = bytearray(pack.read_bytes())
            at = next(int(row.split()[4]) for row in listed.decode().splitlines()
                      if row.startswith(oid))  # fmt: skip
            raw[at + 8] ^= 0xFF
            pack.chmod(0o644)
            pack.write_bytes(raw)
    said = fails(repo, 15, "restore", "-y", "2")
    assert "README.md" in said
    assert tree_bytes(repo) == before
    ok(repo, "restore", "-y", saved["id"])


def test_the_plan_names_other_sessions_that_saved_since(repo):
    run_gitcp(repo, "save", "-s", "mine", "-m", "first")
    time.sleep(1.1)
    (repo / "theirs.txt").write_text("theirs")
    run_gitcp(repo, "save", "-s", "theirs", "-m", "by another")
    shown = run_gitcp(repo, "restore", "mine:1", "--dry-run").stdout
    assert b'#2 "by another" was made here later, in another session' in shown
    shown = run_gitcp(repo, "restore", "theirs:1", "--dry-run").stdout
    assert b"another session" not in shown


@pytest.mark.ref_files
def test_damage_in_another_session_stops_no_restore(repo):
    run_gitcp(repo, "save", "-s", "mine", "-m", "first")
    ref = repo / ".git" / "refs" / "gitcp" / "s" / "theirs" / "main"
    ref.parent.mkdir()
    ref.write_text("1" * 40 + "\n")
    done = run_gitcp(repo, "restore", "mine:1", "--dry-run")
    assert done.returncode == 0, done.stderr
