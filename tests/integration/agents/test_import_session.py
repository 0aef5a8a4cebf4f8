"""Old `.session` checkpoints: the log gets their entries, every byte is kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gitcp.agents import markdown_page
from gitcp.project.workspace import open_workspace
from tests.support.gitrepo import git, tree_bytes, write_files
from tests.support.inprocess import fails, invoke, ok

FIRST = b"""\
---
timestamp: 2026-03-01T10:00:00Z
summary: Login works
current_task: "Move to JWT"
active_files:
  - src/auth.py
  - src/db.py
decisions:
  - decision: JWT instead of sessions
    reason: sessions raced
  - keep bcrypt
tried:
  - "HS256: the key leaked"
next_steps: [test refresh, rate limit]
---
# Notes

Anything else.
"""
SECOND = b"""\
---
created: 2026-03-02 09:30:00+01:00
message: Refresh works
decisions:
  - keep bcrypt
---

## Dead Ends

* Redis for tokens: too slow
  on the small machine
* a second table

## Next steps

- [ ] write the docs

## Something else

- not an entry
"""
CONFIG = b'{"maxCheckpoints": 20, "autoCheckpoint": true}'


@pytest.fixture
def old(repo: Path) -> Path:
    write_files(
        repo,
        {
            ".session/checkpoints/checkpoint-2.md": SECOND,
            ".session/checkpoints/checkpoint-1.md": FIRST,
            ".session/config.json": CONFIG,
            ".session/README.md": b"# What this is\n",
        },
    )
    return repo / ".session"


def entries(repo: Path, selector: str = "old-session:last") -> list[tuple[Any, ...]]:
    found = ok(repo, "decisions", selector)["decisions"]
    return [
        (one["kind"], one["paths"] or one["text"], one["why"], one["at"])
        for one in found
    ]


def test_pages_become_checkpoints_at_their_times(repo, old):
    before = tree_bytes(repo)
    done = ok(repo, "import", ".session")
    assert (done["checkpoints"], done["left"]) == (2, [])
    assert done["branches"][0]["result"] == "created"
    found = ok(repo, "log", "-s", "old-session")["checkpoints"]
    assert [one["note"] for one in found] == ["Refresh works", "Login works"]
    assert [one["created"] for one in found] == [
        "2026-03-02T08:30:00.000Z",
        "2026-03-01T10:00:00.000Z",
    ]
    first, second = "2026-03-01T10:00:00.000Z", "2026-03-02T08:30:00.000Z"
    assert entries(repo) == [
        ("note", "Login works", None, first),
        ("task", "Move to JWT", None, first),
        ("active", ["src/auth.py", "src/db.py"], None, first),
        ("decision", "JWT instead of sessions", "sessions raced", first),
        ("decision", "keep bcrypt", None, first),
        ("tried", "HS256: the key leaked", None, first),
        ("next", "test refresh", None, first),
        ("next", "rate limit", None, first),
        ("note", "Anything else.", None, first),
        ("note", "Refresh works", None, second),
        ("decision", "keep bcrypt", None, second),
        ("tried", "Redis for tokens: too slow on the small machine", None, second),
        ("tried", "a second table", None, second),
        ("next", "write the docs", None, second),
    ]
    # Nothing of the user's work has moved, and the current session is what it was.
    assert tree_bytes(repo) == before
    assert ok(repo, "verify")["ok"]
    context = invoke(repo, "context", "old-session:last").stdout.decode()
    assert "JWT instead of sessions" in context


def test_every_file_is_kept_byte_for_byte(repo, old):
    ok(repo, "import", str(repo))  # the directory that has it will do
    tip = open_workspace(repo).store.require_tip("old-session", "main")
    for path in old.rglob("*"):
        if path.is_file():
            name = path.relative_to(old).as_posix()
            assert tip.conversation(name) == path.read_bytes(), name
    assert git(repo, "fsck", "--strict", "--no-dangling") == b""


def test_again_only_what_is_new_comes_in(repo, old):
    ok(repo, "import", ".session")
    tips = git(repo, "for-each-ref", "refs/gitcp")
    done = ok(repo, "import", ".session")
    assert (done["checkpoints"], done["entries"]) == (0, 0)
    assert done["branches"][0]["result"] == "up-to-date"
    assert git(repo, "for-each-ref", "refs/gitcp") == tips
    page = old / "checkpoints" / "checkpoint-2.md"
    page.write_bytes(SECOND.replace(b"a second table", b"a third table"))
    (old / "checkpoints" / "checkpoint-3.md").write_bytes(FIRST.replace(b"01T", b"03T"))
    done = ok(repo, "import", ".session")
    assert done["checkpoints"] == 2
    texts = [one[1] for one in entries(repo)]
    assert texts.count("Redis for tokens: too slow on the small machine") == 1
    assert "a third table" in texts


def test_restoring_one_leaves_the_files_alone(repo, old):
    ok(repo, "import", ".session")
    before = tree_bytes(repo)
    assert ok(repo, "restore", "old-session:1", "--yes")["plan"] == []
    assert tree_bytes(repo) == before


def test_what_is_not_understood_is_kept_and_told(repo, old):
    bad = b"---\nsummary: *anchor\n---\n"
    latin = b"---\nsummary: caf\xe9\n---\n"
    write_files(repo, {".session/bad.md": bad, ".session/latin.md": latin})
    os.symlink("/etc/passwd", old / "link.md")
    done = invoke(repo, "import", ".session")
    said = done.stderr.decode()
    assert done.returncode == 3
    assert "bad.md: kept, but not understood: line 2" in said
    assert "latin.md: kept, but not understood" in said
    assert "link.md: not a regular file" in said
    tip = open_workspace(repo).store.require_tip("old-session", "main")
    assert tip.conversation("bad.md") == bad
    assert tip.conversation("latin.md") == latin
    assert len(entries(repo)) == 14


def test_a_directory_without_pages_is_refused(repo, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "holds no checkpoints" in fails(repo, 1, "import", str(tmp_path / "empty"))


def test_without_the_yaml_library_nothing_is_imported(repo, old, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    assert "gitcp[yaml]" in fails(repo, 2, "import", ".session")
    assert git(repo, "for-each-ref", "refs/gitcp") == b""


def test_a_time_comes_from_the_name_where_the_page_has_none(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    import time

    time.tzset()
    for name in ("checkpoint-20260301-100000.md", "2026-03-01T10-00-00_login.md"):
        page = markdown_page.read("---\nsummary: x\n---\n", name)
        assert page.entries[0].at == "2026-03-01T10:00:00.000Z"
    for said in (
        "1772359200",
        "1772359200000",
        "2026-03-01 10:00",
        "2026-03-01T10:00:00",
    ):
        page = markdown_page.read(f"---\ndate: {said}\nsummary: x\n---\n", "a.md")
        assert page.entries[0].at == "2026-03-01T10:00:00.000Z", said


@pytest.mark.parametrize(
    "text",
    [
        "---\ntried:\n  - approach: HS256\n    why: leaked\n---\n",
        "---\ndead_ends:\n  - what: HS256\n    result: leaked\n---\n",
        "---\nx:\n  Failed Approaches:\n    - {}\n    - text: HS256\n      reason: leaked\n---\n",
    ],
)
def test_entries_with_reasons_in_many_spellings(text):
    [found] = markdown_page.read(text, "x.md").entries
    assert (found.kind, found.text, found.why) == ("tried", "HS256", "leaked")


def test_a_page_of_headings_alone_as_skills_write_them():
    text = """# Session Handoff: 2026-03-01

**Branch**: fix/rates

## Session Summary

The rates are a table now.

---

### Technical Decisions
- A table, as they change each year

### Modified Files
- `invoice.py` - the table

## What's Next (Open Work)

**Objectives**:
- [ ] Ask for the rates of 2027

## Next Steps (Suggested)

1. Run the tests

## Results

| a | b |
|---|---|
"""
    page = markdown_page.read(text, "checkpoints/2026-03-01T10-00-00-HANDOFF.md")
    assert page.summary == "The rates are a table now."
    assert [(one.kind, one.text, one.paths) for one in page.entries] == [
        ("note", "The rates are a table now.", ()),
        ("decision", "A table, as they change each year", ()),
        ("active", "files in work", ("invoice.py",)),
        ("next", "Ask for the rates of 2027", ()),
        ("next", "Run the tests", ()),
    ]
