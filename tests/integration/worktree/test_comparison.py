"""Git's comparison may start before all else: where it is safe, and if it still holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gitcp.git import launch, process
from gitcp.worktree import comparison, state
from tests.conftest import GitRunner
from tests.support.gitrepo import write_files
from tests.support.inprocess import invoke, ok
from tests.support.snapshots import capture, captured, on_disk

pytestmark = pytest.mark.sha1


@pytest.fixture(autouse=True)
def left_over() -> Iterator[None]:
    yield
    comparison.drop()


@pytest.fixture
def started(monkeypatch) -> list[str]:
    """The directories whose comparison was started, early or not."""
    noted: list[str] = []

    def note(module: ModuleType, name: str) -> None:
        begin = getattr(module, name)

        def noting(args, **how):
            if "diff-files" in args:
                noted.append(how["env"]["GIT_DIR"])
            return begin(args, **how)

        monkeypatch.setattr(module, name, noting)

    note(launch, "launch")
    note(process, "start")
    return noted


@pytest.fixture
def known(repo: Path, monkeypatch) -> Path:
    """A repository with an index of gitcp's; the current directory is below its top."""
    write_files(repo, {"below/file": b"1"})
    monkeypatch.setattr(state, "_FOLD_AT", 0)
    capture(repo)
    monkeypatch.chdir(repo / "below")
    return repo


def test_a_save_takes_the_comparison_that_was_started_early(known, started):
    comparison.start_early()
    assert started == [str(known / ".git/gitcp/scan")]
    write_files(known, {"README.md": b"other", "below/file": b"2"})
    files = captured(known, capture(known))
    assert len(started) == 1
    assert files[b"below/file"] == on_disk(known)[b"below/file"]


def test_the_command_line_starts_it(known, started, monkeypatch):
    ok(known / "below", "-q", "save", "--json")
    assert len(started) == 1
    write_files(known, {"README.md": b"other"})
    early: list[bool] = []
    monkeypatch.setattr(comparison, "start_early", lambda: early.append(True))
    elsewhere = str(known.with_name("elsewhere"))
    for words in (
        ("-C", "..", "save"),
        ("save", "--help"),
        ("status",),
        ("restore", "1", "--dry-run", "-y"),
        ("restore", "1", "-y", "--to", elsewhere),
    ):
        assert invoke(known / "below", *words).returncode == 0
    assert early == []
    for words in (("save",), ("restore", "1", "-y"), ("undo", "--yes")):
        ok(known / "below", *words)
    assert early == [True] * 3


def test_a_restore_compares_before_and_after_with_what_was_started_early_first(
    known, started
):
    ok(known, "save")
    write_files(known, {"below/file": b"2"})
    started.clear()
    ok(known / "below", "restore", "1", "-y")
    # The second one is of the result: none that began before the restore will do.
    assert len(started) == 2
    assert (known / "below/file").read_bytes() == b"1"
    ok(known / "below", "undo", "-y")
    # A plan that is not shown is made once.
    assert len(started) == 4
    assert (known / "below/file").read_bytes() == b"2"


def replace_index(repo: Path) -> None:
    index = repo / ".git/gitcp/scan/index"
    again = index.with_name("again")
    again.write_bytes(index.read_bytes())
    again.replace(index)


def test_one_of_another_index_is_ended(known, started):
    comparison.start_early()
    replace_index(known)
    write_files(known, {"README.md": b"other"})
    capture(known)
    assert len(started) == 2


def test_one_of_another_work_tree_is_ended(known, tmp_path):
    comparison.start_early()
    assert comparison.take(known / ".git/gitcp/scan", tmp_path) is None


def test_an_old_one_is_ended(known, monkeypatch):
    comparison.start_early()
    monkeypatch.setattr(comparison, "_FRESH", 0.0)
    assert comparison.take(known / ".git/gitcp/scan", known) is None


def config(scan: Path) -> None:
    with (scan / "config").open("a") as file:
        file.write('[filter "x"]\n\tclean = false\n')


def attributes(scan: Path) -> None:
    (scan / "info/attributes").write_text("* filter=x\n")


def redirection(scan: Path) -> None:
    (scan / "commondir").write_text("../..\n")


def watcher(scan: Path) -> None:
    (scan / "watcher").write_bytes(b"")


def link(scan: Path) -> None:
    scan.rename(scan.with_name("elsewhere"))
    scan.symlink_to("elsewhere")


def owner(scan: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root")
    os.chown(scan, 12_345, 12_345)


@pytest.mark.parametrize(
    "spoil", [config, attributes, redirection, watcher, link, owner]
)
def test_nothing_starts_where_git_would_find_other_settings(known, started, spoil):
    spoil(known / ".git/gitcp/scan")
    comparison.start_early()
    assert started == []


def test_nothing_starts_where_git_is_a_file_or_nowhere(
    known, started, git: GitRunner, tmp_path, monkeypatch
):
    git("worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "empty").mkdir()
    for place in ("linked", "empty"):
        monkeypatch.chdir(tmp_path / place)
        comparison.start_early()
    assert started == []


def test_a_scan_lets_no_file_lead_git_to_other_settings(known):
    redirection(known / ".git/gitcp/scan")
    capture(known)
    assert not (known / ".git/gitcp/scan/commondir").exists()
