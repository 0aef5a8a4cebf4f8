"""A pattern over repositories behind real servers, with gitcp's own pusher."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clones import clone, make_hub, results, save
from tests.support.gitrepo import git, run_gitcp
from tests.support.inprocess import fails, invoke, ok
from tests.support.servers import ssh_server, web_server


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Three of sixteen repositories; the sessions below are in two of them."""
    base = tmp_path / "shards"
    for digit in "0cd":
        path = base / f"s-{digit}.git"
        git(tmp_path, "init", "-q", "--bare", path)
        git(path, "config", "http.receivepack", "true")
    return base


@pytest.fixture
def clones(tmp_path: Path) -> tuple[Path, Path]:
    hub = make_hub(tmp_path)
    return clone(hub, "ann"), clone(hub, "bob")


def there_and_back(ann: Path, bob: Path, pattern: str) -> None:
    for repo in (ann, bob):
        git(repo, "config", "gitcp.remote", pattern)
    for name in ("main", "vat"):
        save(ann, "-s", name, a_py=name.encode())
    ok(ann, "push", pattern, "main")
    assert results(bob, "pull") == {"main/main": ("created", "main")}
    ok(ann, "push", pattern, "vat")
    assert results(bob, "pull", pattern, "vat") == {"vat/main": ("created", "main")}
    save(bob, "-s", "vat", a_py=b"bob")
    assert results(bob, "push", pattern, "vat") == {
        "vat/main": ("fast-forward", "main")
    }
    told = ok(ann, "remote-sessions")["sessions"]
    assert {one["name"]: one["branches"][0]["here"] for one in told} == {
        "main": "same",
        "vat": "behind",
    }


def test_over_http_with_credentials_that_are_never_shown(
    shards, clones, sealed, monkeypatch
):
    ann, bob = clones
    with web_server(shards, "ann", "s3cret-pass") as url:
        pattern = f"{url}/s-{{shard:x}}.git"
        host = url.removesuffix("/git")
        git(ann, "config", "gitcp.remote", pattern)
        save(ann, a_py=b"0")
        # Without a password no repository can be asked.
        assert "cannot be reached" in fails(ann, 21, "push")
        given = pattern.replace("//", "//ann:s3cret-pass@")
        for verb in ("push", "pull", "remote-sessions", "trust"):
            said = fails(ann, 2, verb, given)
            assert "password" in said
            assert "s3cret-pass" not in said
        # What the refusal advises.
        secret = host.replace("//", "//ann:s3cret-pass@")
        for repo in clones:
            git(repo, "config", f"url.{secret}.insteadOf", host)
        there_and_back(ann, bob, pattern)
        # The repository of this one is not there.
        save(ann, "-s", "away", a_py=b"1")
        done = invoke(ann, "push", pattern, "away")
        said = (done.stdout + done.stderr).decode()
        assert done.returncode == 21
        assert "s-" in said
        assert "s3cret-pass" not in said
        refs = git(ann, "for-each-ref").decode()
        assert "s3cret" not in refs


def test_over_ssh_the_pusher_of_the_machine_sends(
    shards, clones, monkeypatch, tmp_path
):
    ann, bob = clones
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ssh_server(tmp_path) as (url, command):
        for repo in clones:
            git(repo, "config", "core.sshCommand", command)
        pattern = f"{url}{shards}/s-{{shard:x}}.git"
        git(ann, "config", "gitcp.pushInterval", "0s")
        for name in ("main", "vat"):
            save(ann, "-s", name, a_py=name.encode())
        done = run_gitcp(ann, "push", "--wait", pattern)
        assert done.returncode == 0, done.stderr
        assert results(bob, "pull", pattern, "vat") == {"vat/main": ("created", "main")}
        git(bob, "config", "gitcp.remote", pattern)
        assert results(bob, "pull") == {
            "main/main": ("created", "main"),
            "vat/main": ("up-to-date", "main"),
        }
