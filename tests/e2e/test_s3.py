"""Sessions through an S3 server (moto's, on the loopback interface)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.clones import clone, make_hub, save
from tests.support.gitrepo import git, gitcp_argv, gitcp_environment
from tests.support.stores import Server, s3_server

pytest.importorskip("moto.server")
pytest.importorskip("obstore")

URL = "s3://shelf/team/one"
# Of one branch: a list, two documents, a pack, a document, and one to spare.
MOST = 6


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    with s3_server("shelf", tmp_path_factory.mktemp("s3") / "log") as server:
        yield server


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return make_hub(tmp_path)


def gitcp(server: Server, repo: Path, *args: str, status: int = 0) -> Any:
    """Runs gitcp as a process: its store's threads must not be in this one."""
    done = subprocess.run(
        gitcp_argv(args[0], "--json", *args[1:]),
        cwd=repo,
        env=gitcp_environment(server.environment),
        capture_output=True,
        check=False,
    )
    assert done.returncode == status, (args, done.stdout, done.stderr)
    return json.loads(done.stdout or done.stderr)


def results(document: Any) -> dict[str, tuple[str, str]]:
    return {
        f"{one['session']}/{one['branch']}": (one["result"], one["as"])
        for one in document["branches"]
    }


def test_a_session_goes_through_a_bucket_and_a_conflict_becomes_a_fork(server, hub):
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    git(ann, "remote", "add", "shelf", URL)
    git(ann, "config", "gitcp.remote", "shelf")
    git(ann, "config", "user.name", "Ann Lee")
    save(ann, a_py=b"two")
    before = len(server.requests())
    pushed = results(gitcp(server, ann, "push"))
    assert pushed == {"main/main": ("created", "main")}
    assert len(server.requests()) - before <= MOST
    assert gitcp(server, bob, "remote-sessions", URL)["sessions"]
    assert results(gitcp(server, bob, "pull", URL))["main/main"][0] == "created"
    gitcp(server, bob, "switch", "main")
    save(bob, a_py=b"bob's")
    before = len(server.requests())
    assert results(gitcp(server, bob, "push", URL))["main/main"][0] == "fast-forward"
    assert len(server.requests()) - before <= MOST
    save(ann, a_py=b"ann's")
    gitcp(server, ann, "push", status=12)
    forked = results(gitcp(server, ann, "push", "--fork"))
    assert forked["main/main~ann"] == ("created", "main~ann")
    pulled = results(gitcp(server, bob, "pull", URL, "main"))
    assert pulled["main/main~ann"] == ("created", "main~ann")
    assert gitcp(server, bob, "verify")["ok"]


def test_a_bucket_that_is_not_there_is_named(server, hub):
    ann = clone(hub, "ann")
    save(ann)
    error = gitcp(server, ann, "push", "s3://nowhere/x", status=21)["error"]
    assert "s3://nowhere/x" in error["message"]


def test_what_did_not_change_is_not_read_again(server, hub):
    ann = clone(hub, "ann")
    url = f"{URL}/often"
    save(ann, a_py=b"two")
    for content in (b"three", b"four"):
        gitcp(server, ann, "push", url)
        save(ann, a_py=content)
    before = len(server.requests())
    gitcp(server, ann, "push", url)
    made = [method for method, _, _ in server.requests()[before:]]
    assert made == ["GET", "PUT", "PUT"]
    # A listing, the clock's object, and no pack that is a day old.
    collected = gitcp(server, ann, "gc", "--remote", url)
    assert (collected["removed"], collected["kept"] > 0) == (0, True)
