"""Reading objects: by libgit2, and a few of them by git."""

import zlib

import pytest

from gitcp.errors import CorruptError
from gitcp.git.objects import object_id
from gitcp.git.repository import discover
from tests.support.gitrepo import git_line, run_gitcp


def test_a_few_reads_by_git_are_the_same_reads(repo):
    for number in range(3):
        run_gitcp(repo, "save", "-m", f"note {number}", "--allow-empty")
    few = run_gitcp(repo, "log", "-n", "20", "--json")
    assert few.returncode == 0
    assert few.stdout == run_gitcp(repo, "log", "-n", "60", "--json").stdout
    assert few.stdout.count(b'"note":"note ') == 3


def test_git_is_not_believed_where_content_and_id_differ(repo):
    oid = object_id("blob", b"true")
    path = repo / ".git" / "objects" / oid.hex()[:2] / oid.hex()[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(b"blob 4\0fake"))
    objects = discover(repo).objects
    with objects.few_reads(), pytest.raises(CorruptError, match="damaged"):
        objects.blob(oid)
    with pytest.raises(CorruptError, match="damaged"):
        objects.blob(oid)


def test_what_is_missing_is_named_by_both(repo):
    objects = discover(repo).objects
    with objects.few_reads(), pytest.raises(CorruptError, match="missing"):
        objects.blob(b"\1" * 20)
    with pytest.raises(CorruptError, match="missing"):
        objects.blob(b"\1" * 20)
    head = bytes.fromhex(git_line(repo, "rev-parse", "HEAD"))
    with objects.few_reads(), pytest.raises(CorruptError, match="not a blob"):
        objects.blob(head)
