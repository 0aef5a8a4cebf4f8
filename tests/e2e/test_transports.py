"""push and pull over what git offers: real servers, with the user's own credentials."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.clones import clone, refs, results, save
from tests.support.gitrepo import git, run_gitcp, tree_bytes
from tests.support.inprocess import fails, invoke, ok
from tests.support.servers import deaf, git_daemon, ssh_server, web_server


def there_and_back(ann: Path, bob: Path, hub: Path, url: str) -> None:
    """A session goes from one clone to the other, and back with one checkpoint more."""
    for repo in (ann, bob):
        git(repo, "remote", "set-url", "origin", url)
    save(ann, "-s", "vat", a_py=os.urandom(200_000))
    assert results(ann, "push", "origin", "vat") == {"vat/main": ("created", "main")}
    assert results(bob, "pull") == {"vat/main": ("created", "main")}
    ok(bob, "switch", "vat", "--restore", "--yes")
    assert tree_bytes(bob) == tree_bytes(ann)
    assert results(bob, "push", "origin", "vat") == {
        "vat/main": ("fast-forward", "main")
    }
    assert results(ann, "pull", "origin", "vat") == {
        "vat/main": ("fast-forward", "main")
    }
    assert results(ann, "push", "origin", "vat") == {"vat/main": ("up-to-date", "main")}
    assert ok(ann, "verify")["ok"]
    # What is pruned is replaced there; what the new line shares with the old stays there.
    git(hub, "config", "receive.unpackLimit", "1")
    for number in range(3):
        save(ann, "-s", "vat", b_py=b"%d" % number)
    ok(ann, "push", "origin", "vat")
    packs = set((hub / "objects" / "pack").glob("*.pack"))
    ok(ann, "prune", "--keep-last", "1", "-y", "-s", "vat")
    assert results(ann, "push", "origin", "vat", "--pruned") == {
        "vat/main": ("pruned", "main")
    }
    new = set((hub / "objects" / "pack").glob("*.pack")) - packs
    assert 0 < sum(one.stat().st_size for one in new) < 100_000
    ok(bob, "pull", "origin", "vat")
    below = ("for-each-ref", "--format=%(objectname)", "refs/gitcp/s/vat")
    assert git(bob, *below) == git(ann, *below)


def test_git_daemon(ann, bob, hub):
    with git_daemon(hub.parent) as url:
        there_and_back(ann, bob, hub, f"{url}/hub.git")


def test_smart_http_with_a_password(ann, bob, hub, sealed, monkeypatch):
    git(hub, "config", "http.receivepack", "true")
    with web_server(hub.parent, "ann", "s3cret-pass") as url:
        address = f"{url}/hub.git"
        for repo in (ann, bob):
            git(repo, "remote", "set-url", "origin", address)
        save(ann, a_py=b"2")
        for verb in ("push", "pull"):
            said = fails(ann, 21, verb)
            assert "cannot be reached" in said
        wrong = address.replace("//", "//ann:wrong-pass@")
        git(ann, "remote", "set-url", "origin", wrong)
        said = fails(ann, 21, "push")
        assert "wrong-pass" not in said
        # What a user sets up for git: a credential helper.
        host = url.removeprefix("http://").removesuffix("/git")
        (sealed / "credentials").write_text(f"http://ann:s3cret-pass@{host}\n")
        (sealed / ".gitconfig").write_text(
            f"[credential]\n\thelper = store --file={sealed}/credentials\n"
        )
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(sealed / ".gitconfig"))
        there_and_back(ann, bob, hub, address)


def test_ssh_with_a_key(ann, bob, hub, monkeypatch):
    with ssh_server(hub.parent) as (url, command):
        git(ann, "remote", "set-url", "origin", f"{url}{hub}")
        save(ann, a_py=b"2")
        monkeypatch.setenv("GIT_SSH_COMMAND", "ssh -F none -o IdentityAgent=none")
        said = fails(ann, 21, "push")
        assert "cannot be reached" in said
        monkeypatch.delenv("GIT_SSH_COMMAND")
        for repo in (ann, bob):
            git(repo, "config", "core.sshCommand", command)
        there_and_back(ann, bob, hub, f"{url}{hub}")


@pytest.mark.parametrize("drip", [0, 0.1], ids=["silent", "dripping"])
@pytest.mark.parametrize("scheme", ["git", "http"])
def test_a_deaf_remote_is_an_error_in_time(ann, scheme, drip):
    save(ann, a_py=b"2")
    git(ann, "config", "gitcp.transferTimeout", "0.4s")
    before = refs(ann)
    # One line of four thousand bytes, each of which takes its time.
    with deaf((b"0fff" if scheme == "git" else b"") + b"x" * 4000, drip=drip) as port:
        git(ann, "remote", "set-url", "origin", f"{scheme}://127.0.0.1:{port}/x.git")
        git(ann, "config", "gitcp.transferLimit", "1.2s")
        for verb in ("push", "pull", "remote-sessions"):
            # git alone would wait for ever.
            done = run_gitcp(ann, verb, timeout=120)
            assert done.returncode == 21, done.stderr
            assert b"gitcp: " in done.stderr
    assert refs(ann) == before
    assert list((ann / ".git" / "gitcp").glob("tmp/*")) == []
    save(ann, a_py=b"3")


def test_a_remote_that_stops_in_the_middle_leaves_nothing(ann, bob, hub, tmp_path):
    """The helper that git starts for the transport goes silent behind the pack."""
    save(ann, a_py=os.urandom(300_000))
    ok(ann, "push")
    stub = tmp_path / "upload-pack"
    stub.write_text(
        "#!/bin/sh\n"
        '[ -e "$0.second" ] || { touch "$0.second"; exec git-upload-pack "$@"; }\n'
        'git-upload-pack "$@" | head -c 20000\nsleep 600\n'
    )
    stub.chmod(0o755)
    git(bob, "config", "remote.origin.uploadpack", str(stub))
    git(bob, "config", "gitcp.transferTimeout", "1s")
    before = refs(bob)
    done = run_gitcp(bob, "pull", timeout=120)
    assert done.returncode == 21, done.stderr
    assert refs(bob) == before
    assert list((bob / ".git" / "gitcp").glob("tmp/*")) == []
    git(bob, "config", "--unset", "remote.origin.uploadpack")
    git(bob, "config", "--unset", "gitcp.transferTimeout")
    assert results(bob, "pull") == {"main/main": ("created", "main")}


def test_the_users_hooks_do_not_run_and_others_environment_does_not_lead_astray(
    ann, hub, tmp_path
):
    canary = tmp_path / "canary"
    for name in ("pre-push", "reference-transaction", "post-merge"):
        hook = ann / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n")
        hook.chmod(0o755)
    save(ann, a_py=b"2")
    elsewhere = clone(hub, "elsewhere")
    misled = {
        "GIT_DIR": str(elsewhere / ".git"),
        "GIT_INDEX_FILE": "/nowhere",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_WORK_TREE": "/nowhere",
    }
    done = invoke(ann, "push", env=misled)
    assert done.returncode == 0, done.stderr
    assert b"refs/gitcp/s/main/main" in refs(hub)
    done = invoke(elsewhere, "pull", env={**misled, "GIT_DIR": str(ann / ".git")})
    assert done.returncode == 0, done.stderr
    assert b"refs/gitcp/s/main/main" in refs(elsewhere)
    assert not canary.exists()
