"""What gitcp reads while another git renames its packs.

The moment is too short to hit on purpose, so a script that stands before git says what git
says in it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from gitcp.errors import GitFailedError
from gitcp.git.discover import discover

_SAYS = "fatal: packfile .git/objects/pack/.tmp-7-pack-ab.pack cannot be accessed"


@pytest.fixture
def fail(tmp_path, monkeypatch):
    """Lets the next calls of some of git's commands fail; returns how many did not."""

    def next_calls(command: str, count: int, said: str = _SAYS) -> Path:
        directory = tmp_path / "before-git"
        directory.mkdir()
        left = directory / "left"
        left.write_text("x" * count)
        program = directory / "git"
        program.write_text(
            f"""#!/bin/sh
case " $* " in *" {command} "*)
  if [ -s '{left}' ]; then
    printf %s "$(cut -c2- '{left}')" >'{left}'
    echo '{said}' >&2
    exit 128
  fi
esac
exec '{shutil.which("git")}' "$@"
"""
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
        return left

    return next_calls


def test_it_is_read_again(repo, fail):
    repository = discover(repo)
    expected = repository.plumbing("rev-list", "--all")
    left = fail("rev-list", 2)
    assert repository.plumbing("rev-list", "--all") == expected
    assert not left.read_text()


def test_what_stays_unreadable_is_an_error(repo, fail):
    repository = discover(repo)
    left = fail("rev-list", 9)
    with pytest.raises(
        GitFailedError, match=r"git rev-list failed: .*cannot be accessed"
    ):
        repository.plumbing("rev-list", "--all")
    assert left.read_text() == "x" * 6


@pytest.mark.parametrize(
    ("command", "said"), [("update-ref", _SAYS), ("rev-list", "fatal: bad object")]
)
def test_nothing_else_is_tried_twice(repo, fail, command, said):
    repository = discover(repo)
    left = fail(command, 2, said)
    with pytest.raises(GitFailedError, match=command):
        repository.plumbing("-c", "core.abbrev=8", command, "--all")
    assert left.read_text() == "x"
