"""Going back never deletes what the older checkpoint did not capture."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from gitcp.worktree import one_step
from tests.support.gitrepo import git, make_repo, write_files
from tests.support.inprocess import fails, invoke, ok


def save(repo: Path, **files: bytes) -> dict:
    write_files(repo, files)
    return ok(repo, "save")["checkpoint"]


def back(repo: Path) -> dict[str, str]:
    """Restores #1; returns what was left and why, after comparing with a dry run."""
    planned = ok(repo, "restore", "1", "--dry-run")
    done = ok(repo, "restore", "-y", "1")
    assert (planned["plan"], planned["left"]) == (done["plan"], done["left"])
    for item in done["left"]:
        assert (repo / item["path"]).exists(), item
    return {item["path"]: item["reason"] for item in done["left"]}


def test_what_was_ignored_and_is_included_now_stays(repo):
    save(repo, **{".gitignore": b".env\n", ".env": b"1", "a": b"1"})
    git(repo, "config", "--add", "gitcp.include", ".env")
    save(repo, **{".env": b"2", "a": b"2"})
    assert back(repo) == {".env": "ignored in the checkpoint"}
    assert (repo / ".env").read_bytes() == b"2"
    assert (repo / "a").read_bytes() == b"1"


def test_what_was_ignored_and_is_tracked_now_stays(repo):
    save(repo, **{".gitignore": b"conf\n", "conf": b"1"})
    git(repo, "add", "-f", "conf")
    save(repo, a=b"2")
    assert back(repo) == {"conf": "ignored in the checkpoint"}
    assert not (repo / "a").exists()


def test_what_was_ignored_stays_when_a_directory_alone_is_restored(repo):
    save(repo, **{".gitignore": b"*.log\n", "d/x.log": b"1", "d/a": b"1"})
    save(repo, **{".gitignore": b"", "d/a": b"2", "d/b": b"2"})
    done = ok(repo, "restore", "-y", "1", "d")
    assert [(item["path"], item["reason"]) for item in done["left"]] == [
        ("d/x.log", "ignored in the checkpoint")
    ]
    assert (repo / "d/x.log").read_bytes() == b"1"
    assert (repo / "d/a").read_bytes() == b"1"
    assert not (repo / "d/b").exists()


def test_what_was_ignored_stays_when_a_sparse_checkout_omits_the_rules(repo):
    first = git(repo, "rev-parse", "HEAD").decode().strip()
    save(repo, **{".gitignore": b"conf\n", "conf": b"1", "a": b"1"})
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "rules")
    git(repo, "sparse-checkout", "set", "--no-cone", "/a")
    git(repo, "checkout", "-q", "-B", "without", first)
    save(repo, b=b"2")
    left = {
        item["path"]: item["reason"] for item in ok(repo, "restore", "-y", "1")["left"]
    }
    assert left["conf"] == "ignored in the checkpoint"
    assert (repo / "conf").exists()
    assert not (repo / "b").exists()


def test_what_was_too_large_stays(repo):
    git(repo, "config", "gitcp.maxFileSize", "1k")
    save(repo, f=b"x" * 2000, a=b"1")
    save(repo, f=b"small", a=b"2")
    assert back(repo) == {"f": "not in it: too-large"}


def test_what_was_a_nested_repository_stays(repo):
    make_repo(repo / "lib", {"x": b"x", "d/y": b"y"})
    save(repo, a=b"1")
    (repo / "lib/.git").rename(repo.parent / "gone")
    save(repo, a=b"2")
    assert set(back(repo)) == {"lib"}
    assert (repo / "lib/d/y").read_bytes() == b"y"


def test_what_has_become_a_nested_repository_stays_without_the_files_saved_of_it(repo):
    save(repo, a=b"1")
    write_files(repo, {"lib/x": b"x"})
    git(repo, "add", "-A")
    make_repo(repo / "lib", {"y": b"y"})
    save(repo, a=b"2")
    assert back(repo) == {}
    assert not (repo / "lib/x").exists()
    assert (repo / "lib/y").read_bytes() == b"y"


def test_what_the_checkpoint_has_otherwise_goes(repo):
    """A directory that stands where it has a file has been saved."""
    save(repo, **{".gitignore": b"f/*\n", "f": b"a file"})
    (repo / "f").unlink()
    git(repo, "config", "--add", "gitcp.include", "f")
    save(repo, **{"f/inside": b"2"})
    assert back(repo) == {}
    assert (repo / "f").read_bytes() == b"a file"


def test_what_is_gone_is_not_reported_as_left(repo):
    git(repo, "config", "gitcp.maxFileSize", "1k")
    save(repo, f=b"x" * 2000, a=b"1")
    (repo / "f").unlink()
    save(repo, a=b"2")
    assert back(repo) == {}
    ok(repo, "undo", "-y")
    done = invoke(repo, "restore", "-y", "1")
    assert b"left: f" not in done.stderr
    assert b"absent: f (not in it: too-large)" in done.stderr


# --- what the restore itself brought --------------------------------------------------


@pytest.fixture
def brought(repo: Path) -> Path:
    """A work tree into which a restore has brought a `.env` that is ignored."""
    git(repo, "config", "gitcp.include", ".env")
    save(repo, **{".gitignore": b".env\n", ".env": b"1", "a": b"1"})
    git(repo, "config", "--unset", "gitcp.include")
    (repo / ".env").unlink()
    save(repo, a=b"2")
    ok(repo, "restore", "-y", "1")
    assert (repo / ".env").read_bytes() == b"1"
    return repo


def test_undo_takes_away_what_the_restore_brought(brought):
    done = ok(brought, "undo", "-y")
    assert {"path": ".env", "action": "delete"} in done["plan"]
    assert not (brought / ".env").exists()
    assert (brought / "a").read_bytes() == b"2"


def test_undo_takes_away_what_a_later_rule_ignores(repo):
    save(repo, x=b"restored", **{"d/y": b"restored"})
    git(repo, "rm", "-q", "-r", "--cached", "--ignore-unmatch", "x", "d")
    (repo / "x").unlink()
    (repo / "d/y").unlink()
    (repo / "d").rmdir()
    save(repo, a=b"2")
    ok(repo, "restore", "-y", "1")
    (repo / ".git/info/exclude").write_text("x\n/d/\n")
    done = ok(repo, "undo", "-y")
    assert {"path": "x", "action": "delete"} in done["plan"]
    assert not (repo / "x").exists()
    assert not (repo / "d").exists()


def test_undo_leaves_what_has_another_spelling_by_now(repo):
    """Where the disk knows no case, the old name still leads to it."""
    save(repo, Name=b"1")
    (repo / "Name").rename(repo / "name")
    save(repo)
    ok(repo, "restore", "-y", "1")
    (repo / "Name").rename(repo / "name")
    ok(repo, "undo", "-y")
    assert (repo / "name").read_bytes() == b"1"


def test_undo_leaves_what_was_edited_since(brought):
    (brought / ".env").write_bytes(b"mine")
    done = ok(brought, "undo", "-y")
    assert done["left"] == [{"path": ".env", "reason": "changed since it was restored"}]
    assert (brought / ".env").read_bytes() == b"mine"


def test_undo_leaves_what_was_purged_since(brought):
    """It may be the last copy."""
    ok(brought, "purge", "-y", ".env")
    done = ok(brought, "undo", "-y")
    reason = "changed or purged since it was restored"
    assert done["left"] == [{"path": ".env", "reason": reason}]
    assert (brought / ".env").read_bytes() == b"1"
    assert (brought / "a").read_bytes() == b"2"


def test_another_restore_to_the_same_checkpoint_is_no_undo(brought):
    ok(brought, "restore", "-y", "2")
    assert (brought / ".env").exists()


def test_undo_leaves_what_was_there_before_the_restore(repo):
    git(repo, "config", "gitcp.include", ".env")
    save(repo, **{".gitignore": b".env\n", ".env": b"1", "a": b"1"})
    git(repo, "config", "--unset", "gitcp.include")
    save(repo, a=b"2")
    planned = ok(repo, "restore", "1", "--dry-run")["plan"]
    assert [step["path"] for step in planned] == ["a"]
    ok(repo, "restore", "-y", "1")
    ok(repo, "undo", "-y")
    assert (repo / ".env").read_bytes() == b"1"


def test_undo_takes_away_what_a_rule_that_comes_back_ignores(repo):
    """The restore took the rule away, and brought what it ignores."""
    save(repo, x=b"restored")
    (repo / "x").unlink()
    save(repo, **{".gitignore": b"x\ny\n"})
    write_files(repo, {"y": b"was there before"})
    ok(repo, "restore", "-y", "1")
    assert (repo / "x").exists()
    ok(repo, "undo", "-y")
    assert not (repo / "x").exists()
    assert (repo / "y").exists()


KINDS = {
    "file": {"x": b"%d"},
    "directory": {"x/y": b"%d"},
    "directories": {"x/y": b"%d", "x/z/y": b"%d"},
    "empty directory": {},
}


@pytest.fixture
def exchanged(repo: Path, before: str, now: str) -> Path:
    """A work tree in which a restore brought one kind of `x` for another, ignored by now."""
    for number, kind in enumerate([before, now], 1):
        write_files(repo, {path: data % number for path, data in KINDS[kind].items()})
        if not KINDS[kind]:
            (repo / "x/g").mkdir(parents=True)
        save(repo)
        if number == 1:
            (repo / "x").rename(repo.parent / "away")
    ok(repo, "restore", "-y", "1")
    (repo / ".git/info/exclude").write_text("x\n")
    return repo


@pytest.mark.parametrize(
    ("before", "now"),
    [pair for pair in itertools.permutations(KINDS, 2) if "file" in pair],
)
def test_undo_takes_away_what_is_in_the_way_of_another_kind(exchanged, before, now):
    ok(exchanged, "undo", "-y")
    found = {
        str(path.relative_to(exchanged)): path.read_bytes() if path.is_file() else b""
        for path in [exchanged / "x", *exchanged.glob("x/**/*")]
        if path.is_file() or not any(path.iterdir())
    }
    assert found == (dict.fromkeys(KINDS[now], b"2") or {"x/g": b""})


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [("file", "directory", "x"), ("directory", "file", "x/y")],
)
def test_undo_keeps_what_is_in_the_way_and_was_edited_since(exchanged, changed):
    (exchanged / changed).write_bytes(b"mine")
    fails(exchanged, 18, "undo", "-y")
    assert (exchanged / changed).read_bytes() == b"mine"


@pytest.fixture
def hidden(repo: Path) -> Path:
    """A work tree without the empty directory f/g of #1, which rules exclude by now."""
    (repo / "f/g").mkdir(parents=True)
    save(repo, a=b"1")
    (repo / "f/g").rmdir()
    (repo / "f").rmdir()
    (repo / ".git/info/exclude").write_text("/f/\n")
    save(repo, a=b"2")
    return repo


def test_undo_takes_away_the_ignored_directories_that_the_restore_made(hidden):
    ok(hidden, "restore", "-y", "1")
    assert (hidden / "f/g").is_dir()
    ok(hidden, "undo", "-y")
    assert not (hidden / "f").exists()


def test_undo_leaves_an_ignored_directory_in_which_something_was_written_since(hidden):
    ok(hidden, "restore", "-y", "1")
    write_files(hidden, {"f/x": b"mine"})
    ok(hidden, "undo", "-y")
    assert (hidden / "f/x").read_bytes() == b"mine"
    assert not (hidden / "f/g").exists()


@pytest.mark.parametrize("there", ["f", "f/g"])
def test_undo_leaves_ignored_directories_that_were_there_before(hidden, there):
    (hidden / there).mkdir(parents=True)
    ok(hidden, "restore", "-y", "1")
    assert (hidden / "f/g").is_dir()
    ok(hidden, "undo", "-y")
    assert (hidden / there).is_dir()
    assert (hidden / "f/g").exists() == (there == "f/g")


@pytest.mark.parametrize("rules", ["/f/\n", ""])
def test_undo_enters_no_repository_that_was_made_since(hidden, rules):
    (hidden / ".git/info/exclude").write_text(rules)
    ok(hidden, "restore", "-y", "1")
    git(hidden, "init", "-q", "f")
    done = ok(hidden, "undo", "-y")
    assert (hidden / "f/g").is_dir()
    assert (hidden / "f/.git").is_dir()
    assert {item["reason"] for item in done["left"]} == {"nested-repository"}


@pytest.mark.parametrize("rule", ["/d/*", "d/", "d"])
def test_a_directory_goes_unless_the_rules_name_it(repo, rule):
    """Git takes the path `d/` for one that `/d/*` names."""
    (repo / ".git/info/exclude").write_text(f"{rule}\n!/d/a\n")
    save(repo, a=b"1")
    write_files(repo, {"d/a": b"2", ".gitignore": b"*.log\n"})
    git(repo, "add", "-f", "d/a")
    save(repo)
    back(repo)
    assert (repo / "d").exists() == (rule != "/d/*")


def test_a_restore_beside_a_writer_says_to_stop_it(repo, monkeypatch):
    save(repo, a=b"1", b=b"1")
    save(repo, a=b"2", b=b"2")
    carry_out = one_step.carry_out

    def written_before(root, step, *more):
        if step.path == b"a":
            (repo / "a").write_bytes(b"by another program")
        return carry_out(root, step, *more)

    monkeypatch.setattr(one_step, "carry_out", written_before)
    done = invoke(repo, "restore", "-y", "1")
    assert done.returncode == 3
    assert b"\n  a: changed meanwhile\n" in done.stderr
    assert (
        b"\n  stop the program that writes to them, then restore again;" in done.stderr
    )
    assert (repo / "a").read_bytes() == b"by another program"
    monkeypatch.undo()
    ok(repo, "restore", "-y", "1")
    assert (repo / "a").read_bytes() == b"1"
