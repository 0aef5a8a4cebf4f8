"""Pruning: old checkpoints go, everything else is as it was, and disk comes back."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gitcp.errors import GitFailedError
from gitcp.git import process
from tests.fault.harness import fsck, nothing_left, users_state
from tests.support.forge import Forge, trailers
from tests.support.gitrepo import commit_all, git, git_line, make_repo
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path / "repo", {"file": b"0\n", "other": b"same\n"})


def save(repo: Path, number: int, *args: str, size: int = 0) -> dict:
    (repo / "file").write_bytes(b"%d\n" % number + os.urandom(size))
    done = ok(
        repo,
        "save",
        "--append",
        "-",
        "--decision",
        f"d{number}",
        *args,
        input=b'{"n":%d}\n' % number,
    )
    return done["checkpoint"]


def log(repo: Path, *args: str) -> list[dict]:
    return ok(repo, "log", *args)["checkpoints"]


def seqs(repo: Path, *args: str) -> list[int]:
    return [one["seq"] for one in log(repo, *args)]


def contents(repo: Path, ident: str) -> tuple:
    """All that a checkpoint holds, by its id."""
    shown = ok(repo, "show", ident)
    files = {
        one["path"]: invoke(repo, "cat", ident, one["path"]).stdout
        for one in ok(repo, "files", ident)["files"]
    }
    talk = invoke(repo, "messages", ident, "--format", "jsonl").stdout
    said = ok(repo, "decisions", ident)["decisions"]
    checkpoint = {k: v for k, v in shown["checkpoint"].items() if k != "commit"}
    return checkpoint, files, talk, said


@pytest.mark.ref_files
def test_a_directory_of_refs_that_git_takes_away_meanwhile_is_no_failure(
    repo, monkeypatch
):
    for number in range(4):
        save(repo, number)
    gone = repo / ".git" / "refs" / "gitcp" / "s" / "packed"
    gone.mkdir()
    look = os.scandir

    def late(place="."):
        if not isinstance(place, int) and os.fspath(place) == str(gone):
            # As where pack-refs came between the listing and the look.
            raise FileNotFoundError(errno.ENOENT, "gone", str(gone))
        return look(place)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(os, "scandir", late)
        ok(repo, "prune", "--keep-last", "1", "--yes")
        assert seqs(repo) == [4]
        ok(repo, "doctor")
        ok(repo, "du")
    sound(repo)


def test_a_pack_that_gits_gc_took_before_it_was_whole_is_a_reason_to_try_again(
    repo, monkeypatch
):
    """`git gc --prune=now` removes what another process is writing."""
    for number in range(3):
        save(repo, number)
    ok(repo, "prune", "--keep-last", "1", "--yes")
    run = process.run

    def taken(args: Sequence[str], **how: Any) -> bytes:
        if "pack-objects" in args:
            raise GitFailedError(
                "git pack-objects failed: fatal: unable to rename temporary file to"
                " 'x.pack': No such file or directory"
            )
        return run(args, **how)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(process, "run", taken)
        fails(repo, 11, "gc")
    ok(repo, "gc")
    sound(repo)


def sound(repo: Path) -> None:
    found = ok(repo, "verify")
    assert found["ok"], found["problems"]
    fsck(repo)
    nothing_left(repo)


def packs(repo: Path) -> int:
    return sum(
        path.stat().st_size for path in (repo / ".git/objects/pack").glob("*.pack")
    )


def test_the_last_ten_and_labelled_ones_stay_by_default(repo):
    made = [
        save(repo, n, *(["--label", "good"] if n == 3 else [])) for n in range(1, 21)
    ]
    before = {one["id"]: contents(repo, one["id"]) for one in made}
    user = users_state(repo)
    shown = ok(repo, "prune", "--dry-run")
    assert [one["seq"] for one in shown["removed"]] == [10, 9, 8, 7, 6, 5, 4, 2, 1]
    assert seqs(repo) == list(range(20, 0, -1))
    done = ok(repo, "prune", "-y")
    assert done["removed"] == shown["removed"]
    assert done["branches"] == [
        {"session": "main", "branch": "main", "removed": 9, "kept": 11}
    ]
    assert seqs(repo) == [*range(20, 10, -1), 3]
    for one in log(repo):
        assert contents(repo, one["id"]) == before[one["id"]]
    assert users_state(repo) == user
    sound(repo)
    # What comes next goes on counting, and the conversation is whole.
    assert save(repo, 21)["seq"] == 21
    assert len(ok(repo, "messages")) == 21
    assert ok(repo, "prune", "-y")["removed"][-1]["seq"] == 11
    sound(repo)


def test_a_gap_says_what_was_before_it(repo):
    made = [save(repo, n) for n in range(1, 6)]
    ok(repo, "prune", "-y", "--keep-last", "2")
    say = git_line(
        repo, "log", "--format=%(trailers:key=Gitcp-Pruned,valueonly,separator=)",
        "--committer=gitcp", "refs/gitcp/s/main/main",
    )  # fmt: skip
    assert say.splitlines() == ["", made[2]["id"]]
    ok(repo, "prune", "-y", "--keep-last", "1")
    assert git_line(
        repo, "log", "-1", "--format=%(trailers:key=Gitcp-Pruned,valueonly)",
        "refs/gitcp/s/main/main",
    ).strip() == made[3]["id"]  # fmt: skip
    sound(repo)


def test_forks_share_what_stays_and_start_where_they_did(repo):
    for n in range(1, 8):
        save(repo, n)
    ok(repo, "fork", "5", "try", "--no-switch")
    for n in range(8, 12):
        save(repo, n)
    for n in range(12, 16):
        save(repo, n, "-s", "main/try")
    fork = ok(repo, "show", "main/try:1")["checkpoint"]
    kept = contents(repo, ok(repo, "show", "main/main:5")["checkpoint"]["id"])
    done = ok(repo, "prune", "-y", "--keep-last", "2", "-s", "main")
    assert sorted(one["branch"] for one in done["branches"]) == ["main", "try"]
    assert seqs(repo, "-s", "main/main") == [11, 10, 5]
    assert seqs(repo, "-s", "main/try") == [5, 4, 1, 5]
    assert fork["forked_from"] == kept[0]["id"]
    assert contents(repo, kept[0]["id"]) == kept
    commits = git_line(
        repo, "rev-list", "--glob=refs/gitcp", "--committer=gitcp"
    ).split()
    assert len(commits) == 6
    sound(repo)


def test_undo_still_knows_where_to_go(repo):
    save(repo, 1)
    save(repo, 2)
    (repo / "file").write_bytes(b"unsaved\n")
    ok(repo, "restore", "1", "-y")
    for n in range(3, 9):
        save(repo, n)
    ok(repo, "prune", "-y", "--keep-last", "1")
    ok(repo, "gc")
    ok(repo, "undo", "-y")
    assert (repo / "file").read_bytes() == b"unsaved\n"
    sound(repo)


def test_there_is_nothing_to_collect_before_the_first_save(repo):
    assert ok(repo, "gc")["dropped"] == 0
    assert ok(repo, "prune", "-y")["removed"] == []


def test_pruned_and_collected_gives_the_space_back(repo):
    for n in range(1, 31):
        save(repo, n, size=100_000)
    assert packs(repo) > 3_000_000
    ok(repo, "prune", "-y", "--keep-last", "3")
    done = ok(repo, "gc")
    assert done["dropped"] > 100
    assert packs(repo) < 400_000
    assert ok(repo, "gc")["dropped"] == 0
    assert len(ok(repo, "messages")) == 30
    sound(repo)


def test_gc_leaves_what_git_reaches_and_only_gitcp_stored(repo):
    """git takes an object that it finds in our pack for its own."""
    kinds = {"committed": b"c" * 5000, "staged": b"s" * 5000, "stashed": b"t" * 5000}
    for name, data in kinds.items():
        (repo / name).write_bytes(data)
    lone = b"dangling" * 999
    (repo / "lone").write_bytes(lone)
    save(repo, 1)
    git(repo, "add", "stashed")
    git(repo, "stash", "push", "--", "stashed")
    git(repo, "add", "committed")
    git(repo, "commit", "-qm", "theirs", "--", "committed")
    git(repo, "add", "staged")
    # As other tools do it: a tree that nothing names.
    blob = git_line(repo, "hash-object", "-w", "lone")
    made = git(repo, "mktree", input=b"100644 blob %s\tlone\n" % blob.encode())
    tree = made.decode().strip()
    for path in [*kinds, "lone"]:
        (repo / path).unlink(missing_ok=True)
    save(repo, 2)
    save(repo, 3)
    ok(repo, "prune", "-y", "--keep-last", "1")
    assert ok(repo, "gc")["dropped"] > 0
    fsck(repo)
    assert git(repo, "show", "HEAD:committed") == kinds["committed"]
    assert git(repo, "show", ":staged") == kinds["staged"]
    assert git(repo, "show", "stash@{0}:stashed") == kinds["stashed"]
    assert git(repo, "show", f"{tree}:lone") == lone


def test_by_size_only_the_oldest_go(repo):
    for n in range(1, 21):
        save(repo, n, *(["--label", "big"] if n == 2 else []), size=100_000)
    done = ok(repo, "prune", "-y", "--max-size", "550k")
    assert done["bytes"]["before"] > 2_000_000
    assert 400_000 < done["bytes"]["after"] < 563_200
    assert seqs(repo) == [20, 19, 18, 17, 2]
    ok(repo, "gc")
    assert packs(repo) < 600_000
    said = fails(repo, 3, "prune", "-y", "--max-size", "1k")
    assert "more than" in said
    assert seqs(repo) == [20, 2]
    sound(repo)


def test_by_age_order_is_ancestry_and_not_the_clock(repo, monkeypatch):
    from gitcp.store.store import Store

    times = [0.0]
    original = Store.__init__

    def with_clock(self, repository, **given):
        original(self, repository, clock=lambda: times[0], **given)

    monkeypatch.setattr(Store, "__init__", with_clock)
    for at in (1000.0, 2000.0, 90_000.0, 3.0, 100_000.0):
        times[0] = at
        save(repo, int(at))
    times[0] = 100_100.0
    done = ok(repo, "prune", "-y", "--keep-within", "24h")
    # The fourth is old by a clock that was wrong; the third is not.
    assert [one["seq"] for one in done["removed"]] == [2, 1]
    assert seqs(repo) == [5, 4, 3]


def test_it_asks_and_says_what_it_will_do(repo):
    for n in range(1, 14):
        save(repo, n)
    done = invoke(repo, "prune")
    assert done.returncode == 23
    assert b"main/main: 3 of 13 checkpoints (#1-#3)" in done.stderr
    assert len(seqs(repo)) == 13
    fails(repo, 13, "prune", "-y", "-s", "nowhere")
    fails(repo, 2, "prune", "-y", "--keep-within", "soon")
    assert ok(repo, "prune", "--keep-last", "13")["removed"] == []


def test_what_goes_is_named_by_its_numbers(repo):
    for n in range(1, 7):
        save(repo, n, "-s", "even" if n % 2 == 0 else "odd")
    asked = invoke(repo, "prune", "--keep-last", "1")
    for text in (asked.stderr, invoke(repo, "prune", "--keep-last", "1", "-y").stdout):
        assert b"odd/main: 2 of 3 checkpoints (#1, #3)" in text
        assert b"even/main: 2 of 3 checkpoints (#2, #4)" in text
    save(repo, 7, "-s", "odd")
    removed = ok(repo, "prune", "--keep-last", "1", "-y")["removed"]
    assert [one["number"] for one in removed] == [5]


def test_a_limit_is_kept_by_saves(repo):
    git(repo, "config", "gitcp.maxCheckpoints", "5")
    save(repo, 1, "--label", "first")
    made = {n: save(repo, n)["id"] for n in range(2, 23)}
    assert seqs(repo) == [22, 21, 20, 19, 18, 1]
    assert [one["id"] for one in log(repo)][:2] == [made[22], made[21]]
    assert len(ok(repo, "messages")) == 22
    sound(repo)


def test_a_large_limit_is_never_exceeded_and_looked_at_now_and_then(repo):
    git(repo, "config", "gitcp.maxCheckpoints", "30")
    counts = []
    for n in range(1, 51):
        save(repo, n)
        counts.append(len(seqs(repo)))
    assert max(counts) == 30
    assert set(counts[30:]) == {28, 29, 30}
    sound(repo)


def test_a_limit_is_counted_apart_for_what_was_made_elsewhere(repo):
    """Else everyone who may push could have all of one's own removed."""
    git(repo, "config", "gitcp.maxCheckpoints", "10")
    made = [save(repo, n)["commit"] for n in range(1, 7)]
    forge, tip = Forge(), bytes.fromhex(made[-1])
    for seq in range(7, 40):
        message = trailers("main", "main", seq).replace(b"0123456789ab", b"%012x" % seq)
        tip = forge.checkpoint(
            session="main", seq=seq, parent=tip, message=message, id=f"{seq:012x}"
        )
    forge.into(repo / ".git", {"refs/gitcp/s/main/main": tip})
    save(repo, 40)
    assert seqs(repo)[-6:] == [6, 5, 4, 3, 2, 1]
    assert len(seqs(repo)) <= 20
    for n in range(41, 50):
        save(repo, n)
    assert seqs(repo)[:10] == [49, 48, 47, 46, 45, 44, 43, 42, 41, 40]
    assert len(seqs(repo)) <= 20
    sound(repo)


def test_an_interrupted_restore_in_another_work_tree_keeps_its_checkpoints(repo):
    """Its journal names commits; they stay until it has been ended."""
    import json

    for n in range(1, 13):
        save(repo, n)
    place = repo.with_name("elsewhere")
    git(repo, "worktree", "add", "-q", "--detach", place)
    ok(place, "switch", "main")
    found = {one["seq"]: one for one in log(repo)}
    from gitcp.worktree.journal import Journal, write

    directory = repo / ".git" / "worktrees" / "elsewhere" / "gitcp"
    write(
        directory,
        Journal(
            checkpoint="0123456789ab", session="main", branch="main",
            target=found[2]["commit"], before=found[3]["commit"], files=True,
            conversation=True, paths=(), sparse=(), note=None,
        ),
    )  # fmt: skip
    assert json.loads((directory / "restore.json").read_bytes())
    # The work tree is away, as on an unmounted disk.
    place.rename(repo.with_name("away"))
    ok(repo, "prune", "-y", "--keep-last", "1")
    ok(repo, "gc")
    assert seqs(repo) == [12, 3, 2]
    repo.with_name("away").rename(place)
    (place / "file").write_bytes(b"3\n")
    done = ok(place, "restore", "--continue")
    assert done["checkpoint"]["seq"] == 13
    assert (place / "file").read_bytes() == b"2\n"
    ok(repo, "gc")
    sound(repo)


def test_a_checkpoint_without_history_keeps_its_anchor(tmp_path):
    origin = tmp_path / "origin.git"
    repo = make_repo(tmp_path / "repo", {"file": b"0\n"})
    git(tmp_path, "init", "-q", "--bare", origin)
    git(repo, "remote", "add", "origin", origin)
    git(repo, "push", "-q", "origin", "main")
    head = git_line(repo, "rev-parse", "HEAD")
    for n in range(1, 5):
        save(repo, n)
    commit_all(repo)
    ok(repo, "prune", "-y", "--keep-last", "1")
    assert git_line(repo, "rev-parse", "refs/gitcp/s/main/main~1") == head
    sound(repo)


# --- threads of LangGraph ------------------------------------------------------------


def test_a_thread_of_langgraph_is_not_pruned_behind_its_back(repo):
    pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")
    from tests.support.graphs import chain, everything, opened

    git(repo, "config", "gitcp.maxCheckpoints", "3")
    for number in range(8):
        save(repo, number, "-s", "langgraph-notes")
    with opened(repo) as saver:
        chain(saver, "t", 12)
        before = everything(saver)
    assert len(before) == 12
    done = ok(repo, "prune", "--keep-last", "1", "-y")
    assert done["threads"] == ["langgraph-t"]
    # By what is in it, not by its name.
    assert {one["session"] for one in done["removed"]} == {"langgraph-notes"}
    said = fails(repo, 2, "prune", "-s", "langgraph-t", "--keep-last", "1", "-y")
    assert "GitcpSaver.prune" in said
    # Nor by a save into the same session.
    for number in range(8):
        save(repo, number, "-s", "langgraph-t")
    with opened(repo) as saver:
        assert everything(saver) == before
        saver.prune(["t"])
        assert len(everything(saver)) == 1
    fsck(repo)
