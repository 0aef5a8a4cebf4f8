"""One process sends to an object store what the clones of a machine have for it."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from gitcp import durable
from gitcp.spool import entries, pusher
from tests.support.clones import save
from tests.support.crypt import Key, encrypt_to, reads_with
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import ok
from tests.support.spooling import run_round


@pytest.fixture
def store(hub: Path, ann: Path, bob: Path, monkeypatch) -> Path:
    monkeypatch.setenv("GITCP_PUSH_INTERVAL", "0s")
    monkeypatch.setenv("XDG_STATE_HOME", str(hub.parent / "state"))
    place = hub.parent / "store"
    place.mkdir()
    for repo in (ann, bob):
        git(repo, "remote", "add", "shelf", f"file://{place}")
        git(repo, "config", "gitcp.remote", "shelf")
    return place


def spool() -> entries.Spool:
    (found,) = entries.every_spool()
    return found


def pulled(repo: Path) -> dict[str, str]:
    """Returns what a pull from the store did, by session."""
    return {one["session"]: one["result"] for one in ok(repo, "pull")["branches"]}


def test_saves_of_two_clones_reach_the_store_together(ann, bob, store):
    for repo, session in ((ann, "vat"), (bob, "tax")):
        git(repo, "config", "gitcp.autoPush", "save")
        save(repo, "-s", session, a_py=session.encode())
    assert ok(ann, "status")["unsent"][0]["noted"]
    assert run_round(spool()) == (2, 0)
    assert ok(ann, "status")["unsent"] == []
    assert ok(ann, "push")["branches"][0]["result"] == "up-to-date"
    assert pulled(ann) == {"tax": "created", "vat": "up-to-date"}
    # A second save continues the document, and the other clone what it has pulled.
    save(ann, "-s", "tax", a_py=b"more")
    assert run_round(spool()) == (1, 0)
    assert pulled(bob)["tax"] == "fast-forward"
    assert ok(bob, "verify")["ok"]


def test_the_history_that_a_git_remote_has_is_not_stored(ann, bob, hub, store):
    (ann / "noise").write_bytes(random.Random(1).randbytes(100_000))
    git(ann, "add", "-A")
    git(ann, "commit", "-qm", "large")
    git(ann, "push", "-q", "origin", "HEAD")
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    assert run_round(spool()) == (1, 0)
    packs = list((store / "packs").rglob("*.pack"))
    assert sum(pack.stat().st_size for pack in packs) < 10_000
    git(bob, "pull", "-q", "origin", git_line(ann, "branch", "--show-current"))
    assert pulled(bob) == {"main": "created"}
    assert ok(bob, "verify")["ok"]


def test_two_that_continued_one_branch_both_arrive(ann, bob, store):
    git(ann, "config", "user.name", "Ann Lee")
    save(ann, a_py=b"one")
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "main")
    save(ann, a_py=b"ann's")
    ok(ann, "push", "--spool")
    save(bob, a_py=b"bob's")
    ok(bob, "push")
    for _ in range(3):
        run_round(spool())
    branches = {one["branch"] for one in ok(bob, "pull")["branches"]}
    assert branches == {"main", "main~ann"}


def test_a_store_that_is_away_is_tried_again(ann, store):
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    away = store.rename(store.with_name("away"))
    assert run_round(spool()) == (0, 1)
    assert spool().progress().failures == 1
    assert ok(ann, "status")["unsent"][0]["reason"]
    away.rename(store)
    assert run_round(spool()) == (1, 0)
    assert ok(ann, "status")["unsent"] == []


def test_encrypted_sessions_are_stored_encrypted(ann, bob, store, tmp_path):
    key = Key(tmp_path, "team")
    for repo in (ann, bob):
        encrypt_to(repo, key)
        reads_with(repo, key)
    save(ann, a_py=b"a-word-in-plain-text")
    ok(ann, "push", "--spool")
    assert run_round(spool()) == (1, 0)
    assert pulled(bob) == {"main": "created"}
    assert ok(bob, "verify")["ok"]


def test_a_pusher_that_failed_makes_way_for_another(ann, store, monkeypatch):
    """Another process may have the credentials that this one lacks."""
    monkeypatch.setenv("GITCP_PUSH_INTERVAL", "1s")
    monkeypatch.setattr(pusher, "_LINGER", 0.2)
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    away = store.rename(store.with_name("away"))
    serving = threading.Thread(target=pusher.serve, args=(spool(),))
    serving.start()
    end = time.monotonic() + 60
    while spool().progress().failures == 0 or (held := spool().pusher_lock()) is None:
        assert time.monotonic() < end
        time.sleep(0.02)
    durable.unlock(held)
    away.rename(store)
    serving.join(60)
    assert not serving.is_alive()
    assert not spool().pending()
