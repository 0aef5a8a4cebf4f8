"""Two hosts and a cable: a session goes over it, and an interrupted transfer leaves nothing."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.clones import make_hub, refs, save
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    tree_bytes,
)
from tests.support.hosts import Cable, two_hosts
from tests.support.inprocess import ok
from tests.support.servers import Host, git_daemon, ssh_server

MAIN = "refs/gitcp/s/main/main"
_WAIT = 120
# The cable is cut when a part has come through; what is on its way then is no more than
# a few buffers and the window of ssh, of 2 MiB.
_PART = 400_000
_WHOLE = 6_000_000

# Passes its input on, up to a number of bytes; says that they went, and waits for leave.
_VALVE = """
import os, sys, time
left, sent, go = int(sys.argv[1]), sys.argv[2], sys.argv[3]
while data := os.read(0, 65536):
    left -= len(data)
    while data:
        data = data[os.write(1, data):]
    if left <= 0 and not os.path.exists(sent):
        open(sent, "w").close()
        while not os.path.exists(go):
            time.sleep(0.01)
"""


class Machine(NamedTuple):
    """A host, its user's home and clone."""

    host: Host
    home: Path
    clone: Path

    def start(self, *args: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.host.prefix, *args],
            cwd=cwd or self.clone,
            env=gitcp_environment({"HOME": str(self.home)}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def gitcp(self, *args: str) -> Any:
        done = self.start(*map(str, gitcp_argv(args[0], "--json", *args[1:])))
        out, err = done.communicate(timeout=_WAIT)
        assert done.returncode == 0, (args, err)
        return json.loads(out)


@pytest.fixture
def cable() -> Iterator[Cable]:
    with two_hosts() as cable:
        yield cable


@pytest.fixture
def ann(tmp_path) -> Path:
    """A clone on the host that has the server."""
    hub = make_hub(tmp_path)
    git(tmp_path, "clone", "-q", "--no-local", hub, tmp_path / "ann")
    return tmp_path / "ann"


@pytest.fixture
def hub(ann) -> Path:
    path: Path = ann.parent / "hub.git"
    return path


@pytest.fixture
def bob(cable, tmp_path) -> Machine:
    """A user on the other host, who has nothing yet."""
    home = tmp_path / "bobs-home"
    home.mkdir()
    return Machine(cable.far, home, tmp_path / "bob")


def clone(bob: Machine, url: str, *options: str) -> None:
    done = bob.start("git", *options, "clone", "-q", url, str(bob.clone), cwd=bob.home)
    _, err = done.communicate(timeout=_WAIT)
    assert done.returncode == 0, err


def test_a_session_goes_to_another_host_and_back(ann, hub, bob, cable):
    made = save(ann, "-m", "for you", a_py=os.urandom(200_000))
    ok(ann, "push")
    with git_daemon(hub.parent, cable.near) as url:
        clone(bob, f"{url}/hub.git")
        assert [one["result"] for one in bob.gitcp("pull")["branches"]] == ["created"]
        (listed,) = bob.gitcp("sessions")["sessions"]
        assert listed["branches"][0]["tip"] == made["id"]
        assert bob.gitcp("show", "main:last")["checkpoint"]["note"] == "for you"
        bob.gitcp("restore", "main:last", "--yes")
        assert tree_bytes(bob.clone) == tree_bytes(ann)
        bob.gitcp("verify")
        (bob.clone / "mine.py").write_text("mine\n")
        bob.gitcp("save", "-m", "for you, too")
        assert [one["result"] for one in bob.gitcp("push")["branches"]] == [
            "fast-forward"
        ]
    assert [one["result"] for one in ok(ann, "pull")["branches"]] == ["fast-forward"]
    assert ok(ann, "log")["checkpoints"][0]["note"] == "for you, too"


class Cut:
    """A transfer over ssh that stops half-way, so that the cable can be cut there."""

    def __init__(self, base: Path, bob: Machine, cable: Cable) -> None:
        self._sent, self._go = base / "sent", base / "go"
        (base / "valve.py").write_text(_VALVE)
        valve = [sys.executable, str(base / "valve.py"), str(_PART)]
        passes = shlex.join([*valve, str(self._sent), str(self._go)])
        self.up = base / "upload-pack"
        self.up.write_text(f'#!/bin/sh\ngit upload-pack "$@" | {passes}\n')
        self.down = base / "receive-pack"
        self.down.write_text(f'#!/bin/sh\n{passes} | git receive-pack "$@"\n')
        for path in (self.up, self.down):
            path.chmod(0o755)
        self._bob = bob
        self._cable = cable

    def during(self, *args: str) -> tuple[int, str]:
        """Runs gitcp, cuts the cable in the middle; how it ended."""
        git(self._bob.clone, "config", "gitcp.transferTimeout", "12s")
        done = self._bob.start(*map(str, gitcp_argv(*args)))
        try:
            deadline = time.monotonic() + _WAIT
            while not self._sent.exists():
                assert done.poll() is None, done.communicate()
                assert time.monotonic() < deadline
                time.sleep(0.01)
            self._cable.cut()
            self._go.touch()
            _, err = done.communicate(timeout=_WAIT)
        finally:
            done.kill()
            done.communicate()
            self._cable.mend()
            git(self._bob.clone, "config", "--unset", "gitcp.transferTimeout")
        return done.returncode, err.decode()


@pytest.fixture
def over_ssh(ann, hub, bob, cable) -> Iterator[Machine]:
    """A clone over ssh."""
    with ssh_server(hub.parent, cable.near) as (url, command):
        clone(bob, f"{url}{hub}", "-c", f"core.sshCommand={command}")
        git(bob.clone, "config", "core.sshCommand", command)
        yield bob


def nothing_under_way(repo: Path) -> None:
    git_dir = repo / ".git" if (repo / ".git").exists() else repo
    assert not list((git_dir / "refs").rglob("*.lock"))
    assert not list((git_dir / "gitcp").glob("tmp/*"))
    assert not list((git_dir / "objects" / "pack").glob("*.keep"))


def test_an_interrupted_pull_adopts_nothing(ann, over_ssh, tmp_path, cable):
    save(ann, a_py=os.urandom(_WHOLE))
    ok(ann, "push")
    bob = over_ssh
    cut = Cut(tmp_path, bob, cable)
    git(bob.clone, "config", "remote.origin.uploadpack", str(cut.up))
    before = refs(bob.clone)
    objects = git(bob.clone, "count-objects", "-v")
    status, said = cut.during("pull")
    assert status == 21, said
    assert "no data for 12 s" in said
    assert "Traceback" not in said
    assert refs(bob.clone) == before
    assert git(bob.clone, "count-objects", "-v") == objects
    nothing_under_way(bob.clone)
    # The cable is back: again, and that is all.
    assert [one["result"] for one in bob.gitcp("pull")["branches"]] == ["created"]
    bob.gitcp("restore", "main:last", "--yes")
    assert tree_bytes(bob.clone) == tree_bytes(ann)
    assert bob.gitcp("verify")["ok"]


def test_an_interrupted_push_leaves_the_remote_as_it_was(
    hub, over_ssh, tmp_path, cable
):
    bob = over_ssh
    made = save(bob.clone, a_py=os.urandom(_WHOLE))
    cut = Cut(tmp_path, bob, cable)
    git(bob.clone, "config", "remote.origin.receivepack", str(cut.down))
    there, here = refs(hub), refs(bob.clone)
    status, said = cut.during("push")
    assert status == 21, said
    assert "no data for 12 s" in said
    assert refs(hub) == there
    assert refs(bob.clone) == here
    nothing_under_way(bob.clone)
    git(bob.clone, "config", "--unset", "remote.origin.receivepack")
    assert [one["result"] for one in bob.gitcp("push")["branches"]] == ["created"]
    assert git_line(hub, "rev-parse", MAIN) == made["commit"]
    git(hub, "fsck", "--full", "--strict")


def test_a_push_whose_answer_is_lost_is_known_to_have_arrived(
    hub, over_ssh, tmp_path, cable
):
    """The server took it, and its answer was lost: the next push finds it there."""
    bob = over_ssh
    made = save(bob.clone, a_py=b"2")
    cut = Cut(tmp_path, bob, cable)
    hook = hub / "hooks" / "post-receive"
    hook.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/sent\n"
        f"while [ ! -e {tmp_path}/go ]; do sleep 0.01; done\n"
    )
    hook.chmod(0o755)
    status, said = cut.during("push")
    assert status == 21, said
    assert git_line(hub, "rev-parse", MAIN) == made["commit"]
    (one,) = bob.gitcp("push")["branches"]
    assert (one["result"], one["commit"]) == ("up-to-date", made["commit"])
    # So far that is a claim of the server's. What was sent is noted with the next one.
    noted = ("for-each-ref", "--format=%(objectname)", "refs/gitcp/r/origin/main")
    assert git_line(bob.clone, *noted) == ""
    hook.unlink()
    more = save(bob.clone, a_py=b"3")
    (one,) = bob.gitcp("push")["branches"]
    assert (one["result"], one["commit"]) == ("fast-forward", more["commit"])
    assert git_line(bob.clone, *noted) == more["commit"]
