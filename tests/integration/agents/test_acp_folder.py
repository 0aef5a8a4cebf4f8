"""The folder of a session behind `gitcp acp`: a turn is in the talk once, whatever is killed."""

import json
import os

import msgspec
import pytest

from gitcp.clients.acp_folder import SessionFolder
from gitcp.clients.acp_talk import Heading


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "s1"
    path.mkdir()
    return SessionFolder(path)


def _write(folder: SessionFolder, turn: int, text: str) -> None:
    prompt = {"method": "session/prompt", "params": {"prompt": [{"text": text}]}}
    fd = folder.begin(turn)
    os.write(fd, msgspec.json.encode(Heading(turn, "2026-11-23T10:00:00Z", "/p")))
    os.write(fd, b"\n" + json.dumps(prompt).encode() + b"\n")
    os.close(fd)


def _said(folder: SessionFolder) -> list[str]:
    lines = folder.talk.read_bytes().splitlines()
    return [json.loads(line)["content"][0]["text"] for line in lines]


def test_turns_are_added_in_their_order_up_to_one(folder):
    for turn, text in ((3, "c"), (1, "a"), (2, "b")):
        _write(folder, turn, text)
    folder.fold(2)
    assert (_said(folder), folder.turns()) == (["a", "b"], [3])
    folder.fold(9)
    assert (_said(folder), folder.turns()) == (["a", "b", "c"], [])
    assert folder.talk.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("written", [0, 10, None])
def test_a_kill_while_a_turn_is_added_leaves_it_in_the_talk_once(folder, written):
    _write(folder, 1, "a")
    folder.fold(1)
    size = folder.talk.stat().st_size
    _write(folder, 2, "b")
    before = folder.path / "2.turn"
    kept = before.read_bytes()
    folder.fold(2)
    whole = folder.talk.read_bytes()
    # As a process left it that was killed before it removed the turn's file.
    (folder.path / f"2@{size}.adding").write_bytes(kept)
    end = len(whole) if written is None else size + written
    folder.talk.write_bytes(whole[:end])
    assert folder.turns() == [2]
    folder.fold(2)
    assert (folder.talk.read_bytes(), folder.turns()) == (whole, [])
