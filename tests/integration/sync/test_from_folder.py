"""`gitcp adopt`: a folder without git has become a repository, and its sessions move in."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import gitcp
from gitcp.git import private_stores
from gitcp.project import folders
from gitcp.project.workspace import open_workspace
from gitcp.sync import from_folder
from gitcp.user_state import state_directory
from gitcp.worktree import journal
from tests.support.gitrepo import commit_all, git, run_gitcp, write_files
from tests.support.inprocess import fails, invoke, ok

KILLED = 77


@pytest.fixture
def folder(tmp_path):
    top = tmp_path / "notes"
    write_files(top, {"a.txt": b"one\n"})
    ok(top, "save", "--init", "-m", "first", "--label", "start")
    write_files(top, {"a.txt": b"two\n"})
    ok(top, "save", "-m", "second", "--decision", "two")
    ok(top, "label", "1", "given-later")
    ok(top, "fork", "1", "other", "--no-switch")
    return top


def rows(cwd: Path) -> dict[int, tuple[str, str | None, str | None]]:
    found = ok(cwd, "log", "--full", "--all")["checkpoints"]
    return {row["number"]: (row["id"], row["note"], row["label"]) for row in found}


def origins(cwd: Path) -> set[str | None]:
    store = open_workspace(cwd).store
    return {one.origin.where for _, tip in store.tips() for one in store.line(tip)}


def test_numbers_labels_keys_and_settings_come_along(folder):
    ok(folder, "config", "maxFileSize", "1M")
    ok(folder, "decide", "wait for me")
    known = rows(folder)
    git(folder, "init", "--quiet")
    done = ok(folder, "adopt")
    assert done["numbers"] == []
    assert rows(folder) == known
    assert origins(folder) == {None}
    assert git(folder, "config", "--local", "gitcp.maxFileSize").strip() == b"1M"
    assert [one["text"] for one in ok(folder, "status")["pending"]] == ["wait for me"]
    assert private_stores.every_store() == []
    assert invoke(folder, "verify").returncode == 0


def test_numbers_that_are_taken_are_mapped(folder):
    known = rows(folder)
    git(folder, "init", "--quiet")
    commit_all(folder)
    said = invoke(folder, "save", "-m", "after git init").stderr
    assert b"`gitcp adopt`" in said
    done = ok(folder, "adopt")
    assert [(one["was"], one["now"]) for one in done["numbers"]] == [
        (1, 2),
        (2, 3),
        (3, 4),
    ]
    after = rows(folder)
    assert after[1][1] == "after git init"
    for one in done["numbers"]:
        assert after[one["now"]] == known[one["was"]]
    (forked,) = [one for one in done["branches"] if one["result"] == "forked"]
    assert (forked["branch"], forked["as"]) == ("main", "main~folder")
    # Two keys are believed now.
    assert origins(folder) == {None}
    # What was made before does not stand on top of the timeline.
    ok(folder, "restore", str(done["numbers"][0]["now"]), "--yes")
    assert (folder / "a.txt").read_bytes() == b"one\n"
    ok(folder, "undo", "--yes")
    assert (folder / "a.txt").read_bytes() == b"two\n"
    assert invoke(folder, "verify").returncode == 0


def test_the_timeline_has_what_was_made_before_git_init_below_what_came_since(folder):
    git(folder, "init", "--quiet")
    write_files(folder, {"b.txt": b"new\n"})
    ok(folder, "save", "-m", "after git init")
    ok(folder, "adopt")
    listed = ok(folder, "log")["checkpoints"]
    notes = [row["note"] for row in listed]
    assert notes == ["after git init", "second", "first"]
    assert [row["number"] for row in listed] == [1, 3, 2]
    # What changed is known across the `git init`.
    assert [row["changed"] for row in listed][:2] == [
        {"added": 1, "modified": 0, "deleted": 0},
        {"added": 0, "modified": 1, "deleted": 0},
    ]
    assert [row["note"] for row in ok(folder, "log", "--", "a.txt")["checkpoints"]] == [
        "second",
        "first",
    ]
    first = invoke(folder, "log", "-n", "1").stderr.decode()
    assert first.startswith("2 older turns")
    assert b"1 older turn" in invoke(folder, "log", "-n", "2").stderr
    assert ok(folder, "show", "last")["checkpoint"]["number"] == 1
    assert ok(folder, "show", "last~1")["checkpoint"]["note"] == "second"
    assert [one["text"] for one in ok(folder, "decisions")["decisions"]] == ["two"]
    write_files(folder, {"a.txt": b"three\n"})
    ok(folder, "save", "-m", "again")
    assert ok(folder, "log")["checkpoints"][0]["note"] == "again"
    ok(folder, "restore", "1", "--yes")
    assert [one["text"] for one in ok(folder, "decisions")["decisions"]] == ["two"]
    ok(folder, "undo", "--yes")
    assert (folder / "a.txt").read_bytes() == b"three\n"


def test_status_doctor_and_the_first_turn_say_that_adopt_is_due(folder, tmp_path):
    def hook(event: str) -> bytes:
        given = {
            "hook_event_name": event,
            "session_id": "5d1c1c9e-0000-4000-8000-000000000000",
            "transcript_path": str(tmp_path / "none.jsonl"),
            "cwd": str(folder),
            "prompt": "go on",
        }
        done = run_gitcp(
            folder, "hook", "claude-code", event, input=json.dumps(given).encode()
        )
        assert done.returncode == 0
        return done.stdout

    def checks() -> dict[str, dict[str, object]]:
        return {one["name"]: one for one in ok(folder, "doctor")["checks"]}

    due = b"`gitcp adopt` moves them"
    assert due not in invoke(folder, "status").stderr
    assert "adopt" not in checks()
    git(folder, "init", "--quiet")
    assert due in invoke(folder, "status").stderr
    (store,) = private_stores.every_store()
    assert ok(folder, "status")["left_behind"] == store.ident
    assert checks()["adopt"]["hint"] == "`gitcp adopt` moves them here"
    assert "`gitcp adopt`" in fails(folder, 13, "restore", "last", "--yes")
    assert hook("SessionStart") == b""
    assert due in json.loads(hook("UserPromptSubmit"))["systemMessage"].encode()
    # Once: the turn has a checkpoint.
    assert ok(folder, "log", "--all")["checkpoints"]
    assert hook("UserPromptSubmit") == b""
    ok(folder, "adopt")
    assert due not in invoke(folder, "status").stderr
    assert ok(folder, "status")["left_behind"] is None
    assert "adopt" not in checks()


def test_steps_are_known_as_our_own(folder):
    gitcp.open(folder).session("work").step("once", lambda: 1)
    git(folder, "init", "--quiet")
    # It has a seal of its own by now.
    gitcp.open(folder).session("other").step("own", lambda: 2)
    ok(folder, "adopt")
    assert gitcp.open(folder).session("work").step("once", lambda: 3) == 1
    for session in ("work", "other"):
        (step,) = ok(folder, "steps", "-s", session)["steps"]
        assert not step["foreign"]


def test_an_interrupted_restore_is_ended_in_the_repository(folder):
    workspace = open_workspace(folder)
    store = workspace.store
    tip = store.tip("main", "main")
    assert tip is not None
    target = next(one for one in store.line(tip) if one.seq == 1)
    journal.write(
        workspace.directory,
        journal.Journal(
            "0123456789ab",
            "main",
            "main",
            target.commit,
            tip.commit,
            files=True,
            conversation=True,
            paths=(),
            sparse=(),
            note=None,
            target_id=target.id,
            before_id=tip.id,
        ),
    )
    git(folder, "init", "--quiet")
    ok(folder, "adopt")
    fails(folder, 25, "save")
    ok(folder, "restore", "--continue")
    assert (folder / "a.txt").read_bytes() == b"one\n"


def test_an_interrupted_restore_stays_where_both_have_checkpoints(folder):
    workspace = open_workspace(folder)
    git(folder, "init", "--quiet")
    ok(folder, "save")
    (workspace.directory / "restore.json").write_text("{}")
    assert "move .git away" in fails(folder, 25, "adopt")
    assert len(private_stores.every_store()) == 1


def test_a_subfolder_does_not_move_into_the_repository_above(folder):
    above = folder.parent
    git(above, "init", "--quiet")
    said = invoke(folder, "log").stderr
    assert b"had checkpoints of its own" in said
    (store,) = folders.listed()
    assert "paths would be wrong" in fails(folder, 2, "adopt", store.store, "--yes")


def test_a_subfolder_that_became_a_repository_does_not_take_all(folder):
    write_files(folder, {"src/b.txt": b"b\n"})
    git(folder / "src", "init", "--quiet")
    (store,) = folders.listed()
    said = fails(folder / "src", 2, "adopt", store.store, "--yes")
    assert "paths would be wrong" in said
    assert invoke(folder / "src", "log").stderr.count(b"adopt") == 0


def test_nothing_moves_while_a_process_writes_steps(folder, monkeypatch):
    known = rows(folder)
    git(folder, "init", "--quiet")
    with monkeypatch.context() as patch:
        patch.setattr(
            "gitcp.sync.from_folder.log_file.names", lambda repository: ["fx.work"]
        )
        fails(folder, 11, "adopt")
    ok(folder, "adopt")
    assert rows(folder) == known


def test_a_folder_without_git_takes_nothing_in(folder):
    assert "git init" in fails(folder, 2, "adopt")


def test_a_store_of_another_hash_is_refused(folder):
    form = json.loads(invoke(folder, "doctor", "--json").stdout)
    detail = next(
        one["detail"] for one in form["checks"] if one["name"] == "repository"
    )
    other = "sha1" if "SHA-256" in detail else "sha256"
    git(folder, "init", "--quiet", f"--object-format={other}")
    assert "--object-format=" in fails(folder, 21, "adopt")
    shutil.rmtree(folder / ".git")
    assert len(rows(folder)) == 3


def test_a_moved_folder_is_asked_about(folder, tmp_path):
    known = rows(folder)
    moved = folder.rename(tmp_path / "moved")
    git(moved, "init", "--quiet")
    fails(moved, 23, "adopt")
    ok(moved, "adopt", "--yes")
    assert rows(moved) == known


def test_a_repository_without_a_store_says_so(repo):
    assert "no private store" in fails(repo, 1, "adopt")


def test_what_is_saved_meanwhile_comes_along(folder, monkeypatch):
    """A process that opened the store before `git init` writes between the two passes."""
    late = gitcp.open(folder)
    git(folder, "init", "--quiet")
    real = private_stores.renamed

    def renamed(store):
        late.session("late").save(note="late")
        return real(store)

    monkeypatch.setattr(private_stores, "renamed", renamed)
    ok(folder, "adopt")
    assert rows(folder)[4][1] == "late"
    with pytest.raises(gitcp.GitcpError):
        late.session("late").save(note="too late", allow_empty=True)
    assert not any(note == "too late" for _, note, _ in rows(folder).values())


# --- kills ----------------------------------------------------------------------------


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Runs some work in a process that ends at its n-th change of the disk, as if killed.

    Returns whether it came that far.
    """
    child = os.fork()
    if child == 0:
        left = number

        def counted(real: Callable[..., object]) -> Callable[..., object]:
            def call(*args: object, **kwargs: object) -> object:
                nonlocal left
                left -= 1
                if left == 0:
                    os._exit(KILLED)
                return real(*args, **kwargs)

            return call

        status = 1
        try:
            for name in ("fsync", "rename", "replace", "link", "unlink", "mkdir"):
                setattr(os, name, counted(getattr(os, name)))
            work()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in {0, KILLED}
    return status == KILLED


def _adopt(top: Path) -> None:
    workspace = open_workspace(top)
    (store,) = private_stores.every_store()
    from_folder.move_in(workspace, store)


def _killed_adoptions(
    folder: Path, points: list[int], tmp_path: Path, *, taken: bool
) -> None:
    known = rows(folder)
    home = state_directory()
    for number in points:
        # The folder stays, as it is known by its inode; all else is put back.
        saved = tmp_path / f"saved-{number}"
        shutil.copytree(home, saved)
        git(folder, "init", "--quiet")
        if taken:
            ok(folder, "save", "-m", "own")
        came = killed_at(number, lambda: _adopt(folder))
        if private_stores.every_store():
            ok(folder, "adopt")
        after = rows(folder)
        if taken:
            assert after.pop(1)[1] == "own"
            # The branch whose name was taken is forked, once.
            assert len(after) == len(known) + 1
            after = {was: after[was + 1] for was in known}
        assert after == known, number
        assert origins(folder) == {None}
        assert invoke(folder, "verify").returncode == 0
        assert private_stores.every_store() == []
        shutil.rmtree(folder / ".git")
        shutil.rmtree(home)
        shutil.copytree(saved, home)
        if not came:
            break


@pytest.mark.parametrize("taken", [False, True])
def test_a_killed_adopt_is_finished_by_the_next(folder, tmp_path, taken):
    _killed_adoptions(folder, [3, 17, 40, 64, 90], tmp_path, taken=taken)


@pytest.mark.slow
@pytest.mark.parametrize("taken", [False, True])
def test_an_adopt_killed_at_any_change_is_finished(folder, tmp_path, taken):
    _killed_adoptions(folder, list(range(1, 1000)), tmp_path, taken=taken)


def test_an_init_killed_at_any_change_leaves_no_half_store(tmp_path):
    top = tmp_path / "new"
    write_files(top, {"a.txt": b"one\n"})
    number = 1
    while killed_at(number, lambda: private_stores.make(top)):
        found = private_stores.find(top)
        assert found is None or found.how == private_stores.HERE
        number += 1
        for store in private_stores.every_store():
            private_stores.remove(store)
    ok(top, "save", "--init", "-m", "first")
    assert number > 10
