"""rewind_files, without the client: whose files a program gets back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="gitcp[claude] is not installed")

import gitcp
from gitcp.adapters.claude_sdk import rewind_files
from gitcp.errors import UsageError
from tests.support.clones import results
from tests.support.gitrepo import write_files
from tests.support.inprocess import ok

FIRST, SECOND, THIRD, FOURTH = (
    f"00000000-0000-4000-8000-00000000000{digit}" for digit in "1234"
)


def said(repo: Path, session: str, text: bytes, *uuids: str) -> None:
    """Saves a file, and a transcript with some prompts."""
    records: list[dict[str, Any]] = [
        {
            "type": "user",
            "uuid": uuid,
            "parentUuid": None,
            "sessionId": "s",
            "message": {"role": "user", "content": f"prompt {uuid}"},
        }
        for uuid in uuids
    ]
    write_files(repo, {"a.py": text})
    path = repo.parent / "transcript.jsonl"
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records))
    ok(repo, "save", "-s", session, "--transcript", str(path), "--agent", "claude-code")


@pytest.fixture
def pulled(ann: Path, bob: Path) -> Path:
    """Bob's clone: his session, and ann's under another name that has his prompts."""
    said(bob, "mine", b"mine 1\n", FIRST)
    said(bob, "mine", b"mine 2\n", FIRST, SECOND)
    said(ann, "a-theirs", b"theirs 1\n", FIRST)
    said(ann, "a-theirs", b"theirs 2\n", FIRST, SECOND)
    results(ann, "push")
    results(bob, "pull")
    said(bob, "other", b"mine 3\n", THIRD)
    return bob


def test_ones_own_files_come_back_before_a_strangers(pulled, monkeypatch):
    """The ids of prompts are in what was pushed."""
    monkeypatch.chdir(pulled)
    done = rewind_files(SECOND)
    assert (done.target.session, done.target.seq) == ("mine", 1)
    assert (pulled / "a.py").read_bytes() == b"mine 1\n"


@pytest.mark.parametrize("trust", [None, "option", "remote"])
def test_a_strangers_files_need_trust(pulled, trust):
    session = gitcp.open(pulled).session("a-theirs")
    if trust is None:
        with pytest.raises(UsageError, match="made elsewhere"):
            rewind_files(SECOND, session)
        assert (pulled / "a.py").read_bytes() == b"mine 3\n"
        return
    if trust == "remote":
        ok(pulled, "trust", "origin")
    rewind_files(SECOND, session, trust=trust == "option")
    assert (pulled / "a.py").read_bytes() == b"theirs 1\n"


def test_what_was_restored_on_purpose_is_ones_own(pulled):
    ok(pulled, "restore", "a-theirs:1", "--files", "--yes")
    said(pulled, "other", b"mine 4\n", THIRD, FOURTH)
    rewind_files(FOURTH, gitcp.open(pulled).session("other"))
    assert (pulled / "a.py").read_bytes() == b"theirs 1\n"
