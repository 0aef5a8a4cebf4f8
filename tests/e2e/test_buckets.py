"""Sessions through servers of buckets on the loopback interface: S3 (moto) and Azure (Azurite)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.clones import clone, make_hub, save
from tests.support.crypt import Key, encrypt_to, reads_with
from tests.support.gitrepo import git, gitcp_argv, gitcp_environment
from tests.support.stores import Server, azure_server, s3_server

pytest.importorskip("obstore")

# A list; a pack and a document of the ledger, and of the branch; one that another changed.
MOST = 6
STEP = "import gitcp, sys; gitcp.open('.').session('main').step(sys.argv[1], lambda: 7)"


@pytest.fixture(scope="module", params=["s3", "azure"])
def server(request, tmp_path_factory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp(request.param) / "log"
    if request.param == "s3":
        pytest.importorskip("moto.server")
    serve = s3_server if request.param == "s3" else azure_server
    with serve("shelf", log) as server:
        yield server


@pytest.fixture
def url(server, tmp_path) -> str:
    """A prefix of its own for each test."""
    return f"{server.url}/team/{tmp_path.name.replace('_', '-')}"


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


def step(repo: Path, name: str) -> None:
    """Records a step in the ledger of the session `main`."""
    command = [sys.executable, "-c", STEP, name]
    subprocess.run(command, cwd=repo, env=gitcp_environment(), check=True)


def results(document: Any) -> dict[str, tuple[str, str]]:
    return {
        f"{one['session']}/{one['branch']}": (one["result"], one["as"])
        for one in document["branches"]
    }


def test_a_session_goes_through_a_bucket_and_a_conflict_becomes_a_fork(
    server, url, hub
):
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    git(ann, "remote", "add", "shelf", url)
    git(ann, "config", "gitcp.remote", "shelf")
    git(ann, "config", "user.name", "Ann Lee")
    save(ann, a_py=b"two")
    before = len(server.requests())
    pushed = results(gitcp(server, ann, "push"))
    assert pushed == {"main/main": ("created", "main")}
    assert len(server.requests()) - before <= MOST
    assert gitcp(server, bob, "remote-sessions", url)["sessions"]
    assert results(gitcp(server, bob, "pull", url))["main/main"][0] == "created"
    gitcp(server, bob, "switch", "main")
    save(bob, a_py=b"bob's")
    before = len(server.requests())
    assert results(gitcp(server, bob, "push", url))["main/main"][0] == "fast-forward"
    assert len(server.requests()) - before <= MOST
    save(ann, a_py=b"ann's")
    gitcp(server, ann, "push", status=12)
    forked = results(gitcp(server, ann, "push", "--fork"))
    assert forked["main/main~ann"] == ("created", "main~ann")
    pulled = results(gitcp(server, bob, "pull", url, "main"))
    assert pulled["main/main~ann"] == ("created", "main~ann")
    assert gitcp(server, bob, "verify")["ok"]


def test_a_bucket_that_is_not_there_is_named(server, hub):
    ann = clone(hub, "ann")
    save(ann)
    nowhere = server.url.replace("shelf", "nowhere") + "/x"
    error = gitcp(server, ann, "push", nowhere, status=21)["error"]
    assert nowhere in error["message"]


def test_what_did_not_change_is_not_read_again(server, url, hub):
    ann = clone(hub, "ann")
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


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "encrypted"])
def test_a_push_with_a_ledger_makes_few_requests(server, url, hub, tmp_path, encrypted):
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    if encrypted:
        key = Key(tmp_path, "key")
        for repo in (ann, bob):
            encrypt_to(repo, key)
            reads_with(repo, key)

    def push(repo: Path, name: str, expected: str) -> None:
        save(repo, a_py=name.encode())
        step(repo, name)
        before = len(server.requests())
        pushed = gitcp(server, repo, "push", url)
        made = server.requests()[before:]
        sent = pushed["branches"] + pushed["ledgers"]
        assert [one["result"] for one in sent] == [expected] * 2
        assert len(made) <= MOST, made

    push(ann, "first", "created")
    for number in range(4):
        push(ann, f"later {number}", "fast-forward")
    gitcp(server, bob, "pull", url)
    gitcp(server, bob, "switch", "main")
    push(bob, "bob's", "fast-forward")
    gitcp(server, ann, "pull", url)
    gitcp(server, ann, "switch", "main", "--restore", "--yes")
    push(ann, "ann's", "fast-forward")


def test_what_saves_have_queued_reaches_the_bucket(
    server, url, hub, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("GITCP_PUSH_INTERVAL", "0s")
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    for repo in (ann, bob):
        git(repo, "remote", "add", "shelf", url)
        git(repo, "config", "gitcp.remote", "shelf")
        git(repo, "config", "gitcp.autoPush", "save")
        (repo / "a.py").write_text(repo.name)
        gitcp(server, repo, "save", "-s", repo.name)
        assert gitcp(server, repo, "status")["unsent"][0]["noted"]
    for repo in (ann, bob):
        before = len(server.requests())
        gitcp(server, repo, "push", "--wait")
        assert len(server.requests()) - before <= MOST
        assert not gitcp(server, repo, "status")["unsent"]
    assert results(gitcp(server, ann, "pull"))["bob/main"][0] == "created"
    assert gitcp(server, ann, "verify")["ok"]


def test_what_was_purged_leaves_the_bucket(server, url, hub):
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    save(ann, key_txt=b"not for others\n")
    gitcp(server, ann, "push", url)
    stored = gitcp(server, ann, "gc", "--remote", url)
    assert (stored["kept"], stored["waiting"]) == (1, 0)
    (ann / "key.txt").unlink()
    save(ann)
    gitcp(server, ann, "purge", "key.txt", "--yes")
    gitcp(server, ann, "push", "--pruned", url)
    # The pack that had it is not left to the collector.
    stored = gitcp(server, ann, "gc", "--remote", url)
    assert (stored["kept"], stored["waiting"]) == (1, 0)
    assert results(gitcp(server, bob, "pull", url))["main/main"][0] == "created"
