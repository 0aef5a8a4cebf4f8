"""A command that is forked from the tests reads right where they have packs open."""

import os
from pathlib import Path

import pygit2
import pytest

from tests.support import forked
from tests.support.gitrepo import git, git_line, make_repo


# libgit2 opens no other repository.
@pytest.mark.sha1
@pytest.mark.ref_files
def test_a_fork_does_not_take_another_file_for_a_pack_of_the_tests(
    tmp_path: Path, monkeypatch
):
    content = os.urandom(9_000)
    repo = make_repo(tmp_path / "packed", {"a": os.urandom(9_000), "b": content})
    git(repo, "repack", "-a", "-d", "-q")
    oid = git_line(repo, "rev-parse", "HEAD:b")
    held = pygit2.Repository(str(repo))
    # Opens the pack, and maps nothing of it.
    assert held.odb.exists(oid)
    (tmp_path / "short").write_bytes(b"x")

    def read(words: list[str]) -> int:
        others = [os.open(tmp_path / "short", os.O_RDONLY) for _ in range(20)]
        same = pygit2.Repository(str(repo)).odb.read(oid)[1] == content
        return 0 if same and others else 1

    monkeypatch.setattr(forked, "_command", read)
    done = forked.run(tmp_path, [], b"", dict(os.environ), 60)
    assert (done.returncode, done.stderr) == (0, b"")
