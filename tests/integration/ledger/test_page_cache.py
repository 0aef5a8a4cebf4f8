"""Pages that are kept beside the store: read instead of commits, and never believed amiss."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Raw

import gitcp
from gitcp.format.ledger import INTENT, LedgerCommit, Record
from gitcp.ledger import page_cache
from gitcp.ledger.log import Ledger
from tests.support.gitrepo import git, git_line, make_repo
from tests.support.inprocess import ok

REF = "refs/gitcp/fx/work"
SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits that are read; files hold three pages."""
    found: list[str] = []
    commit = Ledger._commit

    def noting(ledger: Ledger, tip: str):
        found.append(tip)
        return commit(ledger, tip)

    monkeypatch.setattr(Ledger, "_commit", noting)
    monkeypatch.setattr(page_cache, "_PAGES", 3)
    return found


def opened(repo: Path) -> Ledger:
    """The ledger as another process sees it."""
    return gitcp.open(repo).session("work").workspace.ledgers.of("work")


def add(ledger: Ledger, count: int, value: bytes = b"1") -> None:
    for number in range(count):
        ledger.append(
            Record(
                *(0, "", INTENT, "main"),
                id=f"{number:012}",
                step="one",
                call=str(number),
                value=Raw(value),
            )
        )
    ledger.drain()


def grown(repo: Path, count: int = 10) -> list[LedgerCommit]:
    add(opened(repo), count)
    return fresh(repo)


def fresh(repo: Path) -> list[LedgerCommit]:
    return opened(repo).pages()


def files(repo: Path) -> list[Path]:
    return sorted((repo / ".git/gitcp/pages/work").glob("*"))


def from_git(repo: Path) -> list[LedgerCommit]:
    """The pages without what is kept."""
    kept = repo / ".git/gitcp/pages"
    kept.rename(kept.with_name("aside"))
    try:
        return fresh(repo)
    finally:
        kept.with_name("aside").rename(kept)


def test_only_what_follows_is_read(repo, read):
    pages = grown(repo)
    assert len(files(repo)) == 3
    assert pages == from_git(repo)
    read.clear()
    assert fresh(repo) == pages
    assert read == [pages[9].oid]
    add(opened(repo), 2)
    assert fresh(repo) == from_git(repo)


def test_looking_keeps_nothing(repo, read):
    grown(repo)
    for path in files(repo):
        path.unlink()
    fresh(repo)
    assert not files(repo)


@pytest.mark.parametrize("damage", ["changed", "truncated", "empty", "other format"])
def test_a_damaged_file_and_those_after_it_are_not_read(repo, read, damage):
    pages = grown(repo)
    path = files(repo)[1]
    raw = path.read_bytes()
    path.write_bytes(
        {
            "changed": raw.replace(b'"value":1', b'"value":2', 1),
            "truncated": raw[:-30],
            "empty": b"",
            "other format": raw.replace(b"gitcp-pages 2", b"gitcp-pages 1", 1),
        }[damage]
    )
    assert path.read_bytes() != raw
    read.clear()
    assert fresh(repo) == pages
    assert read == [page.oid for page in reversed(pages[3:])]
    # It is written again, and those after it stand.
    add(opened(repo), 1)
    assert path.read_bytes() == raw
    assert len(fresh(repo)) == 11


def test_files_do_not_change_places(repo, read):
    pages = grown(repo)
    _, second, third = files(repo)
    second.unlink()
    third.rename(second)
    read.clear()
    assert fresh(repo) == pages
    assert read == [page.oid for page in reversed(pages[3:])]


def test_another_users_files_are_not_read(repo, tmp_path, read):
    other = make_repo(tmp_path / "other", {"f": b"1"})
    grown(other)
    pages = grown(repo)
    for theirs, ours in zip(files(other), files(repo), strict=True):
        ours.write_bytes(theirs.read_bytes())
    read.clear()
    assert fresh(repo) == pages
    assert len(read) == 10


def test_without_a_key_none_is_read(repo, read):
    pages = grown(repo)
    (repo / ".git/gitcp/key").unlink()
    read.clear()
    assert fresh(repo) == pages
    assert len(read) == 10
    assert not (repo / ".git/gitcp/key").exists()


def test_files_of_what_the_ledger_does_not_have_are_not_read(repo, read):
    pages = grown(repo)
    git(repo, "update-ref", REF, pages[4].oid)
    assert fresh(repo) == pages[:5]
    add(opened(repo), 9)
    now = fresh(repo)
    assert [page.oid for page in now[:5]] == [page.oid for page in pages[:5]]
    assert now == from_git(repo)
    read.clear()
    fresh(repo)
    assert len(read) < 4


def test_joined_lines_are_kept_whole(repo, read):
    pages = grown(repo, 5)
    add(opened(repo), 4)
    ours = git_line(repo, "rev-parse", REF)
    git(repo, "update-ref", REF, pages[3].oid)
    add(opened(repo), 5, b"2")
    theirs = git_line(repo, "rev-parse", REF)
    git(repo, "update-ref", REF, ours)
    assert opened(repo).adopt(theirs) == "joined"
    add(opened(repo), 4)
    whole = {page.oid for page in from_git(repo)}
    now = fresh(repo)
    assert len(now) == len(whole) == 19
    assert {page.oid for page in now} == whole
    seen: set[str] = set()
    for page in now:
        assert seen.issuperset(page.parents)
        seen.add(page.oid)
    read.clear()
    fresh(repo)
    assert len(read) < 5
    # A file does not end where a line is open that the other may be without.
    for path in files(repo):
        path.unlink()
    add(opened(repo), 4)
    git(repo, "update-ref", REF, theirs)
    assert len(fresh(repo)) == 9
    assert fresh(repo) == from_git(repo)


def test_a_value_that_cannot_be_kept_is_read_from_git(repo, read):
    # The escape of a lone surrogate is JSON, and msgspec refuses it.
    add(opened(repo), 5, b'"\\ud800"')
    assert not files(repo)
    assert len(fresh(repo)) == 5


def test_a_purge_leaves_no_value_in_them(repo, read):
    ok(repo, "save", "-s", "work")
    running = opened(repo)
    add(running, 5, f'"{SECRET}"'.encode())
    assert any(SECRET.encode() in path.read_bytes() for path in files(repo))
    planned = ok(
        repo, "purge", "--value-from-stdin", "--dry-run", input=SECRET.encode()
    )
    assert planned["left"] == []
    assert files(repo)
    done = ok(repo, "purge", "--value-from-stdin", "--yes", input=SECRET.encode())
    assert done["left"] == []
    assert not files(repo)
    # One that had read it before comes to keep what is there now.
    add(running, 3)
    assert files(repo)
    assert not any(SECRET.encode() in path.read_bytes() for path in files(repo))
    assert fresh(repo) == from_git(repo)
