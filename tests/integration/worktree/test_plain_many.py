"""Reading thousands of files on all cores gives what reading them one by one gives."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
import time
import zlib
from pathlib import Path

import pytest

from gitcp.format.chunked import MAGIC
from gitcp.format.oid import SHA1, SHA256
from gitcp.worktree import build, files, plain, plain_many
from gitcp.worktree.clock import Clock
from gitcp.worktree.files import Root
from gitcp.worktree.plain import PlainReader
from gitcp.worktree.plain_worker import Answer, Job, Wire
from tests.support.gitrepo import commit_all, git_line, write_files
from tests.support.snapshots import capture, captured, on_disk, reads

# More than a worker is given at once.
COUNT = 400
NOTHING = bytes(20)


@pytest.fixture(autouse=True)
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has few files read as if they were many, on three cores."""
    monkeypatch.setattr(build, "MANY", 1)
    monkeypatch.setattr(plain_many, "cores", lambda: 3)


def content(number: int) -> bytes:
    return b"%d\n" % number * (number + 1)


def write_many(repo: Path, count: int = COUNT) -> list[bytes]:
    files = {f"d{n % 7}/e{n % 3}/f{n}": content(n) for n in range(count)}
    write_files(repo, files)
    time.sleep(0.03)
    return sorted(map(os.fsencode, files))


def read_many(repo: Path, paths: list[bytes], **more: object) -> list[plain_many.Read]:
    clock = Clock(repo / ".git" / "clock")
    with Root(repo) as root:
        given = {"form": SHA1, "proof": clock.proof(), "most": 1 << 20, **more}
        blocks = plain_many.read_many(paths, lambda _: NOTHING, root=root, **given)  # type: ignore[arg-type]
        return [one for block in blocks for one in block]


def test_every_kind_of_file_is_captured_as_one_by_one(
    repo: Path, monkeypatch: pytest.MonkeyPatch
):
    write_many(repo)
    commit_all(repo)
    write_files(
        repo,
        {
            "d0/e0/f0": b"changed",
            "d1/e1/new": os.urandom(3_000_000),
            "pointer": MAGIC + b"of a stranger",
            "empty": b"",
            "sorted-wal": b"no database",
        },
    )
    (repo / "d2/link").symlink_to("../d0")
    (repo / "d2/e0/run").write_bytes(b"#!/bin/sh\n")
    (repo / "d2/e0/run").chmod(0o755)
    os.mkfifo(repo / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(repo / "socket"))
    database = sqlite3.connect(repo / "base.db")
    database.execute("pragma journal_mode=wal")
    database.execute("create table t (x)")
    database.execute("insert into t values (1)")
    database.commit()
    time.sleep(0.03)
    at_once = capture(repo, fresh=True)
    with_workers = captured(repo, at_once)
    monkeypatch.setattr(build, "MANY", 1_000_000)
    one_by_one = capture(repo, fresh=True)
    database.close()

    assert with_workers == captured(repo, one_by_one)
    assert at_once.skipped == one_by_one.skipped
    assert at_once.state.overlay == one_by_one.state.overlay
    assert len(with_workers) > COUNT
    assert git_line(repo, "fsck", "--no-dangling") == ""


def test_what_was_read_at_once_is_not_read_again(repo: Path):
    write_many(repo)
    snapshot = capture(repo)
    assert captured(repo, snapshot) == on_disk(repo)
    with reads() as noted:
        assert capture(repo).tree == snapshot.tree
    assert noted == []


def test_workers_send_what_is_new_and_only_that(repo: Path):
    paths = write_many(repo)
    found = read_many(repo, paths)
    assert sorted(one.path for one in found) == paths
    sent = {one.path: zlib.decompress(one.stored) for one in found if one.stored}
    own = {one.path: one.data for one in found if one.data is not None}
    # Each worker was given some before this process read any.
    assert len(sent) >= 2 * 64
    assert {**sent, **own} == {
        path: (repo / os.fsdecode(path)).read_bytes() for path in paths
    }

    known = {one.path: one.oid for one in found}
    clock = Clock(repo / ".git" / "clock")
    with Root(repo) as root:
        again = [
            one
            for block in plain_many.read_many(
                paths,
                known.__getitem__,
                root=root,
                form=SHA1,
                proof=clock.proof(),
                most=9**9,
            )
            for one in block
        ]
    assert {one.path: one.oid for one in again} == known
    assert all(one.data is None and one.stored is None for one in again)


@pytest.mark.parametrize(
    "script",
    [
        "raise SystemExit(1)",
        "import os; os.read(0, 1); os._exit(0)",
        "import os, time; os.close(1); time.sleep(60)",
        "import sys, os; os.read(0, 1000); os.write(1, b'\\1' * 30); os._exit(0)",
    ],
)
def test_a_worker_that_dies_leaves_its_files_to_the_caller(
    repo: Path, monkeypatch: pytest.MonkeyPatch, script: str
):
    write_many(repo)
    monkeypatch.setattr(plain_many, "_SCRIPT", script)
    assert captured(repo, capture(repo)) == on_disk(repo)


def test_a_worker_follows_no_link_and_enters_no_closed_directory(repo: Path):
    paths = write_many(repo)
    (repo / "way").symlink_to("d0")
    through = [
        path.replace(b"d0/", b"way/", 1) for path in paths if path.startswith(b"d0/")
    ]
    assert read_many(repo, sorted(through)) == []

    status = (repo / "d1").stat()
    clock = Clock(repo / ".git" / "clock")
    with Root(repo, frozenset({(status.st_dev, status.st_ino)})) as root:
        blocks = plain_many.read_many(
            paths,
            lambda _: NOTHING,
            root=root,
            form=SHA1,
            proof=clock.proof(),
            most=9**9,
        )
        found = {one.path for block in blocks for one in block}
    assert found == {path for path in paths if not path.startswith(b"d1/")}


def test_a_file_that_changes_meanwhile_is_left(
    repo: Path, monkeypatch: pytest.MonkeyPatch
):
    file = repo / "file"
    file.write_bytes(b"before")
    time.sleep(0.03)
    proof = Clock(repo / ".git" / "clock").proof()
    with Root(repo) as root:
        reader = PlainReader(root, SHA1, proof)
        assert reader.read(b"file") is not None
        read = os.read

        def late(fd: int, size: int) -> bytes:
            data = read(fd, size)
            file.write_bytes(b"behind")
            return data

        monkeypatch.setattr(os, "read", late)
        assert reader.read(b"file") is None
        monkeypatch.undo()
        # Its stamp is not older than the moment of the proof.
        assert reader.read(b"file") is None


def test_a_file_that_is_replaced_before_it_is_opened_is_left(
    repo: Path, monkeypatch: pytest.MonkeyPatch
):
    (repo / "file").write_bytes(b"one")
    (repo / "other").write_bytes(b"two")
    time.sleep(0.03)
    proof = Clock(repo / ".git" / "clock").proof()
    opened = files.open_file
    monkeypatch.setattr(
        files, "open_file", lambda directory, _: opened(directory, b"other")
    )
    with Root(repo) as root:
        assert PlainReader(root, SHA1, proof).read(b"file") is None


@pytest.mark.parametrize("form", [SHA1, SHA256])
def test_the_pipe_carries_paths_and_answers_whole(form):
    wire = Wire(form)
    oid = bytes(range(form.size))
    asked = [(b"a", oid), (b"b" * 5_000, bytes(form.size))]
    raw = b"".join(wire.ask(*one) for one in asked)
    status = plain.index_stat(os.stat(__file__))
    given = [Answer(oid, status, b"packed"), None, Answer(oid, status, None)]
    answers = b"".join(map(wire.answer, given))
    for cut in (0, 1, 40, 5_000, len(raw)):
        found, rest = wire.asked(raw[:cut])
        assert found + wire.asked(rest + raw[cut:])[0] == asked
    for cut in range(len(answers) + 1):
        some, rest = wire.answers(answers[:cut])
        assert some + wire.answers(rest + answers[cut:])[0] == given


def test_a_job_goes_through_the_arguments_of_a_process():
    job = Job(
        "sha256", 5, plain.Proof(1, 2, by_change=True), 3, frozenset({(4, 5), (6, 7)})
    )
    assert Job.parse(job.words()) == job
    assert Job.parse(job._replace(closed=frozenset()).words()).closed == frozenset()


def test_an_owner_without_execute_has_an_ordinary_mode(repo: Path):
    file = repo / "file"
    file.write_bytes(b"x")
    file.chmod(0o655)
    assert stat.S_IMODE(plain.index_stat(file.stat()).mode) == 0o644
