"""A project brings devices and pipes in place of git's own files: gitcp reads none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from gitcp.git.own_file import read_regular
from tests.support.gitrepo import git, gitcp_argv, gitcp_environment, write_files
from tests.support.inprocess import ok

# Kilobytes of addresses: far more than gitcp takes, far less than a device would.
_MEMORY = 2_000_000


def limited(repo, *args: str) -> subprocess.CompletedProcess[str]:
    script = f'ulimit -v {_MEMORY}; exec "$@"'
    argv = ["sh", "-c", script, "sh", *gitcp_argv(*args)]
    return subprocess.run(
        argv,
        check=False,
        cwd=repo,
        env=gitcp_environment(),
        capture_output=True,
        text=True,
    )


@pytest.mark.ref_files
@pytest.mark.parametrize(
    "name", ["info/exclude", "info/sparse-checkout", "packed-refs", "excludes"]
)
def test_a_device_is_as_good_as_no_file(repo, name):
    ok(repo, "save")
    place = repo / ".git" / name
    place.unlink(missing_ok=True)
    place.symlink_to("/dev/zero")
    if name == "excludes":
        git(repo, "config", "core.excludesFile", str(place))
    if name == "info/sparse-checkout":
        git(repo, "config", "core.sparseCheckout", "true")
    write_files(repo, {"new": b"1"})
    for args in (("status",), ("save", "-m", "beside a device")):
        done = limited(repo, *args)
        assert done.returncode == 0, done.stderr
    assert "beside a device" in limited(repo, "log").stdout


def test_only_a_regular_file_is_read(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"words")
    (tmp_path / "link").symlink_to(file)
    assert read_regular(file) == read_regular(tmp_path / "link") == b"words"
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", tmp_path, Path("/dev/zero"), tmp_path / "none"):
        with pytest.raises(FileNotFoundError):
            read_regular(other)
