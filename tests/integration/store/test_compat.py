"""What earlier formats wrote stays readable: tests/compat/, never regenerated."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from gitcp.format.ledger import ABOUT_STEPS, BACK, JOINED, KINDS, LINE, document
from gitcp.git import area
from gitcp.ledger.state import LedgerState
from gitcp.maintenance.verify import verify
from gitcp.project.workspace import open_workspace
from tests.support.clones import clone
from tests.support.gitrepo import git, git_line, make_repo, tree_bytes
from tests.support.inprocess import invoke, ok
from tests.support.needs import needs_reftable

COMPAT = Path(__file__).parents[2] / "compat"


def unpack(name: str, directory: Path) -> None:
    """Unpacks an archive; Python's own module would need 3.11.4, for its filters."""
    archive = COMPAT / f"{name}.tgz"
    command: list[str | Path] = ["tar", "-xzf", archive, "--no-same-owner"]
    subprocess.run([*command, "-C", directory], check=True)


@pytest.mark.sha1
def test_a_ledger_of_format_1_is_read_as_it_was_written(repo):
    git(repo, "fetch", "-q", COMPAT / "ledger-1.bundle", "refs/gitcp/*:refs/gitcp/*")
    workspace = open_workspace(repo)
    ledger = workspace.ledgers.of("Main line")
    records = ledger.records()
    expected = json.loads((COMPAT / "ledger-1.json").read_text())
    assert [document(one) for one in records] == expected["records"]
    # It holds every kind of record that this format writes.
    assert {one.kind for one in records} == (ABOUT_STEPS & KINDS) | {BACK, LINE}
    book = LedgerState(ledger.pages())
    for branch, steps in expected["steps"].items():
        found = {
            "/".join(one.slot): [one.id, one.state, one.kept]
            for one in book.live(branch).values()
        }
        assert found == steps
    large = next(one for one in records if one.size)
    assert ledger.value(large) == b'"%b"' % (b"x" * 9000)
    assert verify(workspace.store).problems == ()


@pytest.mark.sha1
def test_a_redo_log_of_a_ledger_is_read_as_it_was_written(repo):
    """Three steps of which git has one; recorded by `killed` of test_ledger_log."""
    git(repo, "fetch", "-q", COMPAT / "ledger-2.bundle", "refs/gitcp/*:refs/gitcp/*")
    log = repo / ".git" / "gitcp" / "redo" / "fx.work.redo"
    log.parent.mkdir(parents=True)
    shutil.copy(COMPAT / "ledger-2.redo", log)
    expected = json.loads((COMPAT / "ledger-2.json").read_text())
    workspace = open_workspace(repo)
    ledger = workspace.ledgers.of("work")
    assert [document(one) for one in ledger.records()] == expected
    large = next(one for one in ledger.records() if one.size)
    assert ledger.value(large) == b'"%b"' % (b"x" * 9000)
    ledger.drain()
    assert not log.exists()
    again = open_workspace(repo)
    records = again.ledgers.of("work").records()
    assert [document(one) for one in records] == expected
    assert verify(again.store).problems == ()


@pytest.mark.sha1
def test_encrypted_forms_of_format_1_are_opened_as_they_were_made(tmp_path):
    """A remote of two checkpoints and a joined ledger, to the key of docs/format/vectors.md."""
    pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")
    expected = json.loads((COMPAT / "encrypted-1.json").read_text())
    hub = make_repo(tmp_path / "hub")
    git(hub, "fetch", "-q", COMPAT / "encrypted-1.bundle", "refs/gitcp/*:refs/gitcp/*")
    repo = clone(hub, "repo")
    (tmp_path / "key").write_text(expected["key"])
    git(repo, "config", "gitcp.identity", str(tmp_path / "key"))
    ok(repo, "pull")
    for ref, oid in expected["refs"].items():
        assert git_line(repo, "rev-parse", ref) == oid
        assert git_line(hub, "rev-parse", ref) == expected["forms"][ref] != oid
    workspace = open_workspace(repo)
    ledger = workspace.ledgers.of("Main line")
    records = ledger.records()
    assert [document(one) for one in records] == expected["records"]
    assert JOINED in {one.kind for one in records}
    large = next(one for one in records if one.size)
    assert ledger.value(large) == b'"%b"' % (b"x" * 9000)
    talk = invoke(repo, "messages", "Main line:last", "--format", "jsonl").stdout
    assert [json.loads(line)["content"] for line in talk.splitlines()] == [
        "hello",
        "more",
    ]
    assert verify(workspace.store).problems == ()


@pytest.mark.sha1
def test_chunked_files_of_format_3_are_put_together_as_they_were(repo):
    """Two checkpoints with a file of 58,890 bytes, in the second one with a line put in."""
    git(repo, "fetch", "-q", COMPAT / "chunked-1.bundle", "refs/gitcp/*:refs/gitcp/*")
    lines = [
        b"%d %b\n" % (n, hashlib.sha256(b"%d" % n).hexdigest()[:4].encode())
        for n in range(6000)
    ]
    large = b"".join(lines)
    ok(repo, "restore", "-y", "--trust", "1")
    assert (repo / "large").read_bytes() == large
    ok(repo, "restore", "-y", "--trust", "2")
    assert (repo / "large").read_bytes() == large[:20_000] + b"put in\n" + large[
        20_000:
    ]
    # It begins as a pointer does, and is none.
    assert (repo / "like").read_bytes() == b"gitcp chunked file 1\nmine\n"
    assert ok(repo, "verify")["problems"] == []


@pytest.mark.parametrize("name", ["sha256-files", "sha1-reftable", "sha256-reftable"])
def test_a_repository_of_each_kind_is_restored(tmp_path, name):
    """Two branches of four checkpoints, packed by `gc`; see what the test expects."""
    if name.endswith("reftable"):
        needs_reftable()
    top = tmp_path / "r"
    top.mkdir()
    unpack(name, top)
    _check_restores(top)
    git(top, "fsck", "--strict", "--no-dangling")


def test_a_private_store_is_restored_and_moved_into_a_repository(tmp_path):
    """The same checkpoints, of a folder without git."""
    top = tmp_path / "r"
    top.mkdir()
    root = area.private_stores()
    root.mkdir(parents=True, mode=0o700)
    unpack("private-store", root)
    ok(top, "folders", "--use", "0123456789ab")
    _check_restores(top)
    git(top, "init", "-q", "--object-format=sha1")
    assert ok(top, "adopt")["numbers"] == []
    ok(top, "restore", "-y", "1")
    assert (top / "f").read_bytes() == b"one\n"
    assert ok(top, "verify")["problems"] == []


@pytest.mark.sha1
def test_what_0_1_0_sealed_counts_as_made_here(tmp_path):
    """Two checkpoints, a step with an undo, and a fingerprint, by three key files.

    Of a checkpoint made elsewhere a restore would leave out `.vscode/tasks.json`, and an
    undo would not be run without `--trust`.
    """
    unpack("sealed-0.1.0", tmp_path)
    top = tmp_path / "repo"
    state = top / ".git" / "gitcp"
    keys = {
        name: (state / name).read_bytes() for name in ("key", "fx/seal", "secrets/key")
    }
    assert [one["foreign"] for one in ok(top, "steps")["steps"]] == [False]
    ok(top, "undo", "--effects", "--to", "1", "--yes")
    assert not (top / "made.txt").exists()
    ok(top, "restore", "-y", "1")
    assert (top / ".vscode/tasks.json").read_text() == '{"tasks":[]}\n'
    assert ok(top, "show", "2")["checkpoint"]["foreign"] is False
    assert b"dc2968b01c76" in invoke(top, "scan").stderr
    assert keys == {name: (state / name).read_bytes() for name in keys}


def _check_restores(top: Path) -> None:
    """Restores the two branches of the four checkpoints that the fixtures have."""
    ok(top, "restore", "-y", "1", "--trust")
    assert tree_bytes(top)[b"f"] == ("file", 0, b"one\n")
    assert tree_bytes(top)[b"d/run"] == ("file", 0o111, b"#!/bin/sh\n")
    assert tree_bytes(top)[b"l"] == ("link", 0, b"f")
    ok(top, "restore", "-y", "main/main:good")
    assert sorted(tree_bytes(top)) == [b"d", b"d/run", b"f"]
    assert (top / "f").read_bytes() == b"two\n"
    assert [one["text"] for one in ok(top, "decisions", "2")["decisions"]] == [
        "keep it small"
    ]
    ok(top, "restore", "-y", "4")
    assert (top / "f").read_bytes() == b"side\n"
    assert ok(top, "save")["created"] is False
    assert ok(top, "verify")["problems"] == []
