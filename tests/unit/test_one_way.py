"""What is done in one place only; docs/architecture.md says where, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "gitcp"

# What only these modules may write, as a pattern of source text.
ONLY = {
    "changes of refs by git": (
        r'"update-ref"',
        {"git/refs.py", "git/git_refs.py", "git/gathering.py"},
    ),
    "refs moved by compare-and-swap": (
        r"\.compare_and_swap\(",
        {"git/transaction.py"},
    ),
    "damaged refs removed": (
        r"\.drop_damaged\(",
        {"wal/drain.py", "maintenance/lost_refs.py"},
    ),
    "the head of a commit": (
        r'b"tree " \+|b"parent " \+',
        {"format/commit.py"},
    ),
    # The second one imports the function for encrypted commits.
    "the commit of a checkpoint": (
        r"(?<!encrypted\.)(?<!def )\bencode_commit\(",
        {"store/builder.py", "sync/encrypted_refs.py"},
    ),
    "commits made by git or libgit2": (
        r'"(?:commit-tree|fast-import|hash-object)"|create_commit\(',
        set(),
    ),
}


@pytest.mark.parametrize("what", ONLY)
def test_it_is_done_in_one_place(what):
    pattern, places = ONLY[what]
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(pattern, path.read_text("utf-8"))
    }
    assert found == places
