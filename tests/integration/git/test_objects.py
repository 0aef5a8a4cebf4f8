"""Reading objects: by libgit2, and a few of them by git."""

import zlib

import pytest

from gitcp.errors import CorruptError
from gitcp.format.oid import SHA1
from gitcp.git import process
from gitcp.git.discover import discover
from tests.support.gitrepo import git, git_line, run_gitcp


def stored(repo, data):
    """Has git store a blob, and returns its id."""
    return bytes.fromhex(
        git(repo, "hash-object", "-w", "--stdin", input=data).decode().strip()
    )


def test_a_few_reads_by_git_are_the_same_reads(repo):
    for number in range(3):
        run_gitcp(repo, "save", "-m", f"note {number}", "--allow-empty")
    few = run_gitcp(repo, "log", "-n", "20", "--json")
    assert few.returncode == 0
    assert few.stdout == run_gitcp(repo, "log", "-n", "60", "--json").stdout
    assert few.stdout.count(b'"note":"note ') == 3


def test_git_is_not_believed_where_content_and_id_differ(repo):
    oid = SHA1.oid("blob", b"true")
    path = repo / ".git" / "objects" / oid.hex()[:2] / oid.hex()[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(b"blob 4\0fake"))
    objects = discover(repo).objects
    with objects.few_reads(), pytest.raises(CorruptError, match="damaged"):
        objects.blob(oid)
    with pytest.raises(CorruptError, match="damaged"):
        objects.blob(oid)


def test_git_gives_what_has_the_id_and_no_replacement(repo):
    oid, other = stored(repo, b"true"), stored(repo, b"other")
    git(repo, "replace", oid.hex(), other.hex())
    objects = discover(repo).objects
    with objects.few_reads():
        assert objects.blob(oid) == b"true"
        assert objects.header(oid) == ("blob", 4)
        assert objects.exists(other)
        assert not objects.exists(b"\1" * 20)


def test_an_object_that_git_chokes_on_is_called_damaged(repo):
    oids = [stored(repo, b"one"), stored(repo, b"two")]
    path = repo / ".git" / "objects" / oids[0].hex()[:2] / oids[0].hex()[2:]
    path.chmod(0o600)
    path.write_bytes(b"no zlib at all")
    objects = discover(repo).objects
    with objects.few_reads():
        with pytest.raises(CorruptError, match="damaged"):
            objects.blob(oids[0])
        assert objects.blob(oids[1]) == b"two"


@pytest.mark.sha1
def test_many_reads_are_left_to_libgit2(repo, monkeypatch):
    head = bytes.fromhex(git_line(repo, "rev-parse", "HEAD"))
    large = stored(repo, b"x" * 20_000)
    objects = discover(repo).objects
    with objects.few_reads(5):
        for _ in range(3):
            assert len(objects.blob(large)) == 20_000
        # What is small is asked for once.
        for _ in range(9):
            objects.commit(head)
        objects.blob(large)
        assert "_odb" not in vars(objects)
        monkeypatch.setattr(process, "start", None)
        objects.blob(large)
        assert "_odb" in vars(objects)


@pytest.mark.sha1
def test_where_many_reads_are_expected_libgit2_has_the_first(repo, monkeypatch):
    head = bytes.fromhex(git_line(repo, "rev-parse", "HEAD"))
    objects = discover(repo).objects
    monkeypatch.setattr(process, "start", None)
    with objects.few_reads(5):
        objects.expect(5)
        objects.commit(head)
    assert "_odb" in vars(objects)


@pytest.mark.sha1
def test_after_an_incomplete_answer_git_is_asked_again(repo, monkeypatch):
    oid = stored(repo, b"x" * 20_000)
    head = bytes.fromhex(git_line(repo, "rev-parse", "HEAD"))
    objects = discover(repo).objects

    class _OverError(Exception):
        """A hook's time is over, in the middle of an answer."""

    class _Cut:
        """Compared with the first line of an answer; the rest is not read yet."""

        def __eq__(self, other):
            raise _OverError

        __hash__ = object.__hash__

    with objects.few_reads():
        assert objects.blob(oid) == b"x" * 20_000
        with monkeypatch.context() as patched:
            patched.setattr("gitcp.git.libgit._HEAD_WORDS", _Cut())
            with pytest.raises(_OverError):
                objects.blob(oid)
        assert objects.commit(head).tree
        assert "_odb" not in vars(objects)


def test_what_is_missing_is_named_by_both(repo):
    objects = discover(repo).objects
    with objects.few_reads(), pytest.raises(CorruptError, match="missing"):
        objects.blob(b"\1" * 20)
    with pytest.raises(CorruptError, match="missing"):
        objects.blob(b"\1" * 20)
    head = bytes.fromhex(git_line(repo, "rev-parse", "HEAD"))
    with objects.few_reads(), pytest.raises(CorruptError, match="not a blob"):
        objects.blob(head)
