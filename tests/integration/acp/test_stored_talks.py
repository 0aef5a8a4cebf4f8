"""Conversations behind `gitcp acp`: removed when a checkpoint holds them, and not before."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from gitcp.acp import stored_talks
from gitcp.agents import bindings
from gitcp.checkpoints.save import save
from gitcp.cli import acp_worker
from gitcp.clients import acp_folder
from gitcp.clients.acp_folder import About, SessionFolder
from gitcp.clients.acp_talk import Heading
from gitcp.format.layout import BranchKey
from gitcp.project.workspace import open_workspace
from gitcp.store.draft import Draft, NewRecords
from tests.support.forge import Forge, trailers
from tests.support.gitrepo import git, git_line, write_files
from tests.support.inprocess import invoke, ok

LATER = stored_talks.KEPT * 2


class Session:
    """A session as the proxy writes it down, and as the worker saves it."""

    def __init__(self, repo: Path) -> None:
        self.repo = repo
        self.root = acp_folder.root(os.environ)
        self.folder = SessionFolder(self.root / "s1")
        self.folder.note(About(str(repo), "s1", "agent"))
        self.turns = 0

    def write(self, text: str) -> None:
        """Writes a turn down that is not in the talk yet."""
        self.turns += 1
        prompt = {"method": "session/prompt", "params": {"prompt": [{"text": text}]}}
        fd = self.folder.begin(self.turns)
        heading = Heading(self.turns, "2026-11-23T10:00:00Z", str(self.repo))
        os.write(fd, msgspec.json.encode(heading) + b"\n")
        os.write(fd, json.dumps(prompt).encode() + b"\n")
        os.close(fd)

    def ask(self, event: str) -> None:
        answer, sound = acp_worker._answer(
            {
                "event": event,
                "session": "s1",
                "cwd": str(self.repo),
                "upto": self.turns,
            }
        )
        assert (answer, sound) == ({}, True)

    def turn(self, text: str) -> None:
        self.ask("turn-start")
        self.write(text)
        write_files(self.repo, {"a": text.encode()})
        self.ask("turn-end")

    def remove_old(self) -> int:
        now = self.folder.talk.stat().st_mtime + LATER
        return stored_talks.remove_old(self.root, now)

    def said(self) -> list[str]:
        """What the newest checkpoint has of the conversation."""
        raw = invoke(self.repo, "messages", "last", "--format", "jsonl").stdout
        return [
            json.loads(line)["content"][0]["text"] for line in raw.splitlines() if line
        ]


@pytest.fixture
def session(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Session(repo)


def test_a_talk_that_a_checkpoint_holds_is_removed_and_comes_back_on_use(session):
    session.turn("one")
    session.turn("two")
    talk = session.folder.talk.read_bytes()
    assert stored_talks.remove_old(session.root, session.folder.noted_at) == 0
    assert session.remove_old() == 1
    assert not session.folder.talk.exists()
    assert stored_talks.remove_old(session.root, session.folder.noted_at + LATER) == 0
    session.turn("three")
    assert session.folder.talk.read_bytes().startswith(talk)
    assert session.said() == ["one", "two", "three"]
    assert session.folder.stored() is None
    assert len({one["session"] for one in ok(session.repo, "log")["checkpoints"]}) == 1


def test_what_a_stranger_put_on_top_does_not_come_back_on_use(session, tmp_path):
    session.turn("one")
    talk = session.folder.talk.read_bytes()
    assert session.remove_old() == 1
    [made] = {one["session"] for one in ok(session.repo, "log")["checkpoints"]}
    # What another repository's key has sealed was made elsewhere.
    key, mine = session.repo / ".git" / "gitcp" / "key", tmp_path / "mine"
    key.rename(mine)
    workspace = open_workspace(session.repo)
    bound = bindings.find(workspace, "acp", "s1")
    assert bound is not None
    data = talk.replace(b"one", b"evil")
    records = NewRecords(data, whole=True, kind="acp", source=bound.source)
    save(workspace, Draft(records=(records,)), session=made, branch=bound.branch)
    mine.replace(key)
    tip = open_workspace(session.repo).store.tip(made, bound.branch)
    assert tip is not None
    assert tip.origin.logs == "elsewhere"
    session.turn("two")
    assert session.folder.talk.read_bytes().startswith(talk)


def test_a_stranger_who_leaves_the_conversation_out_removes_none_of_it(session):
    session.turn("one")
    talk = session.folder.talk.read_bytes()
    assert session.remove_old() == 1
    [made] = {one["session"] for one in ok(session.repo, "log")["checkpoints"]}
    bound = bindings.find(open_workspace(session.repo), "acp", "s1")
    assert bound is not None
    key = BranchKey.of(made, bound.branch)
    tip = git_line(session.repo, "rev-parse", key.ref)
    seq = len(ok(session.repo, "log", "-s", f"{made}/{bound.branch}")["checkpoints"])
    forge = Forge()
    evil = forge.checkpoint(
        session=made,
        branch=bound.branch,
        seq=seq + 1,
        parent=bytes.fromhex(tip),
        message=trailers(key.session, key.branch, seq + 1),
    )
    forge.into(session.repo / ".git", {key.ref: evil})
    ok(session.repo, "save", "-s", f"{made}/{bound.branch}", "--allow-empty")
    assert ok(session.repo, "messages", f"{made}/{bound.branch}:last") == []
    session.turn("two")
    assert session.folder.talk.read_bytes().startswith(talk)


def test_a_kill_between_the_steps_of_a_removal_loses_nothing(session):
    session.turn("one")
    talk = session.folder.talk.read_bytes()
    # As a process left it that was killed before it removed the talk; an older gitcp,
    # which knows nothing of that, has added to it since.
    session.folder.put_away(1)
    session.folder.talk.write_bytes(talk + talk.replace(b"one", b"two"))
    session.turn("three")
    assert session.said() == ["one", "two", "three"]
    assert session.folder.stored() is None


def not_saved(session):
    with session.folder.talk.open("ab") as talk:
        talk.write(b'{"role":"user","content":[{"type":"text","text":"lost?"}]}\n')


def not_added(session):
    session.write("two")


def unlike(session):
    talk = session.folder.talk.read_bytes()
    session.folder.talk.write_bytes(talk.replace(b"one", b"two"))


def without_a_branch(session):
    for name in git(session.repo, "for-each-ref", "--format=%(refname)").split():
        if name.startswith(b"refs/gitcp/s/"):
            git(session.repo, "update-ref", "-d", name)


def without_a_repository(session):
    session.folder.note(About("/nowhere", "s1", "agent"))


@pytest.mark.parametrize(
    "change", [not_saved, not_added, unlike, without_a_branch, without_a_repository]
)
def test_a_talk_that_no_checkpoint_holds_whole_stays(session, change):
    session.turn("one")
    change(session)
    before = session.folder.talk.read_bytes()
    assert session.remove_old() == 0
    assert session.folder.talk.read_bytes() == before
    assert session.folder.stored() is None


def test_a_talk_that_a_proxy_has_open_stays(session):
    session.turn("one")
    held = session.folder.lock()
    assert held is not None
    assert session.remove_old() == 0
    os.close(held)
    assert session.remove_old() == 1


def test_a_removal_that_takes_long_is_left_to_the_next_proxy(session, monkeypatch):
    session.turn("one")
    monkeypatch.setattr(stored_talks, "_LIMIT", -1.0)
    assert session.remove_old() == 0


@pytest.mark.parametrize("damage", ["no description", "no binding"])
def test_a_talk_of_an_unknown_session_stays(session, damage):
    session.write("one")
    session.folder.fold(1)
    if damage == "no description":
        (session.folder.path / "session.json").unlink()
    assert session.remove_old() == 0
    assert b"one" in session.folder.talk.read_bytes()


def test_a_session_whose_stored_talk_is_nowhere_begins_again(session):
    session.turn("one")
    assert session.remove_old() == 1
    without_a_branch(session)
    session.turn("two")
    assert session.said() == ["two"]
    assert session.folder.stored() is None
