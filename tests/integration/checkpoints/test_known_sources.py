"""A transcript is compared with what is stored of it, at a bounded cost for each save."""

import json
import os
from pathlib import Path

import pytest

import gitcp
from gitcp.checkpoints import known_sources
from gitcp.git.libgit import LibgitObjects
from tests.support.inprocess import ok

# A line; sixteen of them are a block of the tests.
LINE = 1024
BLOCK = 16 * LINE


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of 16 KiB: what holds for them holds for larger ones."""
    monkeypatch.setattr(known_sources, "_BLOCK", BLOCK)
    monkeypatch.setattr(known_sources, "_END", BLOCK)


def line(number: int) -> bytes:
    start = b'{"type":"user","sessionId":"s","n":%d,"x":"' % number
    return start.ljust(LINE - 3, b"x") + b'"}\n'


class Talk:
    """A transcript, and the saves of it."""

    def __init__(self, repo: Path, path: Path) -> None:
        self.repo = repo
        self.path = path
        self.lines = 0

    def grow(self, count: int) -> None:
        with self.path.open("ab") as file:
            file.writelines(
                line(number) for number in range(self.lines, self.lines + count)
            )
        self.lines += count

    def save(self) -> None:
        ok(self.repo, "save", "--transcript", str(self.path))

    def is_stored(self) -> bool:
        return stored(self.repo) == self.path.read_bytes()


def stored(repo: Path) -> bytes:
    return gitcp.open(repo).checkpoint("last").conversation()


@pytest.fixture
def talk(repo, tmp_path) -> Talk:
    """Thirty blocks, in three parts; the notes of them are made."""
    talk = Talk(repo, tmp_path / "talk.jsonl")
    for _ in range(3):
        talk.grow(161)
        talk.save()
    return talk


def overwrite(path: Path, number: int) -> None:
    """Changes a line where it stands, as nothing but its content shows."""
    with path.open("r+b") as file:
        file.seek(number * LINE)
        file.write(line(number).replace(b"xxx", b"XXX"))


def test_what_was_added_is_stored_and_nothing_else(talk):
    for count in (1, 15, 16, 17, 0, 40):
        talk.grow(count)
        talk.save()
        assert talk.is_stored()
    assert gitcp.open(talk.repo).checkpoint("last").seq == 8


def test_a_save_reads_no_more_of_a_longer_transcript(talk, monkeypatch):
    read = []
    pread = os.pread

    def counted(fd: int, size: int, at: int) -> bytes:
        data = pread(fd, size, at)
        read.append(len(data))
        return data

    def sizes(*_: object) -> None:
        raise AssertionError("the size of a part was asked for")

    monkeypatch.setattr("gitcp.checkpoints.known_sources.os.pread", counted)
    monkeypatch.setattr(LibgitObjects, "header", sizes)
    for _ in range(3):
        read.clear()
        talk.grow(2)
        talk.save()
        # Four in turn, the end, and what is new.
        assert sum(read) <= 6 * BLOCK + 2 * LINE
    assert talk.is_stored()


@pytest.mark.parametrize("number", [0, 200, 320, 400])
def test_a_middle_that_was_overwritten_is_noticed_after_some_saves(talk, number):
    overwrite(talk.path, number)
    saves = 0
    while not saves or not talk.is_stored():
        talk.grow(1)
        talk.save()
        saves += 1
        assert saves <= 9, "thirty blocks are eight turns of four"
    assert json.loads(stored(talk.repo).splitlines()[number])["x"].startswith("XXX")


def test_an_end_that_was_overwritten_is_noticed_at_once(talk):
    overwrite(talk.path, talk.lines - 10)
    talk.grow(1)
    talk.save()
    assert talk.is_stored()


def test_a_transcript_in_place_of_another_is_compared_whole(talk, tmp_path):
    new = tmp_path / "new"
    new.write_bytes(talk.path.read_bytes())
    overwrite(new, 200)
    new.replace(talk.path)
    talk.grow(1)
    talk.save()
    assert talk.is_stored()


def test_a_middle_of_another_length_is_noticed_at_once(talk):
    whole = talk.path.read_bytes()
    at = 200 * LINE
    talk.path.write_bytes(whole[:at] + whole[at + LINE :] + line(999) + line(1000))
    talk.save()
    assert talk.is_stored()


@pytest.mark.parametrize("notes", [b"", b"\x81", b"\x81\xa1a\x01", None])
def test_without_its_notes_a_save_compares_everything(talk, notes):
    overwrite(talk.path, 200)
    kept = talk.repo / ".git/gitcp/transcripts"
    if notes is None:
        kept.unlink()
    else:
        kept.write_bytes(notes)
    talk.grow(1)
    talk.save()
    assert talk.is_stored()


def test_notes_of_another_branch_do_not_count(talk):
    ok(talk.repo, "fork", "2", "other")
    overwrite(talk.path, 200)
    talk.grow(1)
    ok(talk.repo, "save", "-s", "main/other", "--transcript", str(talk.path))
    assert talk.is_stored()
