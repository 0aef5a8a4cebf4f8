"""What all clones on a machine have for one remote leaves in one push."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp import durable
from gitcp.git import remote
from gitcp.git.discover import discover
from gitcp.git.remote import Update
from gitcp.git.transport import Limits
from gitcp.spool import entries, policy, pusher
from gitcp.spool.kept_clones import KeptClones
from tests.support.clones import save
from tests.support.crypt import Key, encrypt_to, holders, reads_with
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, invoke, ok
from tests.support.spooling import run_round

MAIN = "refs/gitcp/s/main/main"


@pytest.fixture(autouse=True)
def at_once(monkeypatch, tmp_path):
    """No interval, and a state directory of its own."""
    monkeypatch.setenv("GITCP_PUSH_INTERVAL", "0s")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def spool() -> entries.Spool:
    (found,) = entries.every_spool()
    return found


def run_rounds(count: int = 1) -> None:
    owed: dict[str, str] = {}
    for _ in range(count):
        run_round(spool(), owed)


def tip(repo: Path, ref: str) -> str:
    return git_line(repo, "rev-parse", ref)


def there(hub: Path) -> set[str]:
    listed = git(hub, "for-each-ref", "--format=%(refname)", "refs/gitcp/").decode()
    return set(listed.split())


def pushes(hub: Path) -> Path:
    """Counts the pushes that a hub gets, a line each."""
    counted = hub / "pushes"
    counted.write_text("")
    hook = hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nwc -l >>'{counted}'\n")
    hook.chmod(0o755)
    return counted


def refuse(hub: Path, script: str, name: str = "update") -> None:
    hook = hub / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def unsent(repo: Path) -> list[dict[str, Any]]:
    waiting: list[dict[str, Any]] = ok(repo, "status")["unsent"]
    return waiting


def test_two_clones_leave_in_one_push(ann, bob, hub):
    counted = pushes(hub)
    save(ann, "-s", "one", a_py=b"ann")
    save(bob, "-s", "two", a_py=b"bob")
    ok(ann, "push", "--spool")
    ok(bob, "push", "--spool")
    assert not there(hub)
    (waiting,) = unsent(ann)
    assert waiting["refs"] == ["refs/gitcp/s/one/main"]
    assert b"Not sent to origin yet: 1 ref" in invoke(ann, "status").stdout
    run_rounds()
    assert there(hub) == {"refs/gitcp/s/one/main", "refs/gitcp/s/two/main"}
    assert counted.read_text().split() == ["2"]
    assert unsent(ann) == unsent(bob) == []
    # As after any push, each clone knows what the remote has.
    assert tip(ann, "refs/gitcp/r/origin/one/main") == tip(hub, "refs/gitcp/s/one/main")
    assert set(ok(ann, "remote-sessions")["sessions"][0]["branches"][0].values()) >= {
        "same"
    }


def test_what_was_handed_over_leaves_without_its_clone(ann, bob, hub):
    save(ann, "-s", "one", a_py=b"ann")
    save(bob, "-s", "two", a_py=b"bob")
    done = ok(ann, "push", "--spool")
    ok(bob, "push", "--spool")
    shutil.rmtree(ann)
    run_rounds()
    ref = "refs/gitcp/s/one/main"
    assert tip(hub, ref) == done["branches"][0]["commit"]
    git(hub, "fsck", "--full", "--strict")


def test_several_checkpoints_of_a_session_are_one_update(ann, hub):
    counted = pushes(hub)
    for number in range(3):
        save(ann, a_py=b"%d" % number)
        ok(ann, "push", "--spool")
    run_rounds()
    assert counted.read_text().split() == ["1"]
    assert tip(hub, MAIN) == tip(ann, MAIN)


def test_one_that_the_server_refuses_does_not_keep_the_others(ann, bob, hub):
    refuse(hub, "case $1 in */bad/*) echo 'not this one' >&2; exit 1;; esac")
    save(ann, "-s", "bad", a_py=b"ann")
    save(bob, "-s", "good", a_py=b"bob")
    ok(ann, "push", "--spool")
    ok(bob, "push", "--spool")
    run_rounds()
    assert there(hub) == {"refs/gitcp/s/good/main"}
    assert "not this one" in unsent(ann)[0]["reason"]
    assert b"not this one" in invoke(ann, "status").stderr
    assert unsent(bob) == []


def test_a_server_that_refuses_whole_pushes_gets_all_but_the_one(ann, hub):
    refuse(hub, "! grep -q /bad/", "pre-receive")
    for name in ("a", "b", "bad", "c", "d"):
        save(ann, "-s", name, a_py=name.encode())
    ok(ann, "push", "--spool")
    run_rounds(12)
    assert there(hub) == {f"refs/gitcp/s/{name}/main" for name in "abcd"}


def test_a_limit_on_pushes_is_waited_for_and_loses_nothing(ann, hub, monkeypatch):
    monkeypatch.setenv("GITCP_PUSH_INTERVAL", "5s")
    refuse(hub, "echo 'rate limit exceeded' >&2; exit 1", "pre-receive")
    save(ann, a_py=b"ann")
    ok(ann, "push", "--spool")
    run_rounds(2)
    assert not there(hub)
    progress = spool().progress()
    assert progress.failures == 2
    assert progress.due - progress.last > 15
    (hub / "hooks" / "pre-receive").unlink()
    run_rounds()
    assert there(hub) == {MAIN}
    assert spool().progress().failures == 0


def test_a_remote_that_was_away_gets_all_when_it_is_back(ann, hub):
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    away = hub.with_name("away.git")
    hub.rename(away)
    run_rounds()
    save(ann, a_py=b"two")
    ok(ann, "push", "--spool")
    assert "cannot be reached" in unsent(ann)[0]["reason"]
    away.rename(hub)
    run_rounds()
    assert tip(hub, MAIN) == tip(ann, MAIN)
    assert unsent(ann) == []


def test_a_remote_that_was_never_reached_gets_all_when_it_is_there(ann, hub):
    away = hub.with_name("away.git")
    hub.rename(away)
    save(ann, a_py=b"one")
    fails(ann, 21, "push", "--spool")
    assert unsent(ann)[0]["noted"]
    away.rename(hub)
    run_rounds()
    assert tip(hub, MAIN) == tip(ann, MAIN)


def test_a_secret_never_enters_the_spool_and_keeps_no_other_session(ann, hub):
    save(ann, "-s", "clean", a_py=b"ann")
    token = b"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzK9pQ2mLtr\n"
    save(ann, "-s", "dirty", a_py=token)
    fails(ann, 24, "push", "--spool")
    dirty = tip(ann, "refs/gitcp/s/dirty/main")
    objects = git(ann, "rev-parse", f"{dirty}:a.py").decode().strip()
    assert not spool().gathering().holds(objects)
    run_rounds()
    assert there(hub) == {"refs/gitcp/s/clean/main"}


def test_what_diverged_meanwhile_goes_as_a_fork(ann, bob, hub):
    git(ann, "config", "user.name", "Ann")
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    save(bob, a_py=b"bob")
    ok(bob, "push")
    run_rounds(2)
    assert there(hub) == {MAIN, "refs/gitcp/s/main/main%7eann"}
    assert tip(hub, MAIN) == tip(bob, MAIN)
    assert unsent(ann) == []


def test_what_diverged_is_held_if_its_clone_is_gone(ann, bob, hub):
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    save(bob, a_py=b"bob")
    ok(bob, "push")
    save(bob, "-s", "other", a_py=b"more")
    ok(bob, "push", "--spool", "origin", "other")
    shutil.rmtree(ann)
    run_rounds(2)
    assert tip(hub, MAIN) == tip(bob, MAIN)
    (waiting,) = unsent(bob)
    assert waiting["refs"] == [MAIN]
    assert "deleted" in waiting["reason"]


def test_steps_go_before_the_branch_that_counts_on_them(ann, hub):
    """One push an interval, whatever the ledger does meanwhile: the branch is not starved."""
    counted = pushes(hub)
    owed: dict[str, str] = {}
    tips = []
    for number in range(3):
        session = gitcp.open(ann).session("job")
        session.step(f"s{number}", str, number)
        (ann / "a.py").write_text(f"{number}\n")
        session.save()
        tips.append(tip(ann, "refs/gitcp/s/job/main"))
        ok(ann, "push", "--spool")
        run_round(spool(), owed)
        if number == 0:
            assert there(hub) == {"refs/gitcp/fx/job"}
        else:
            assert tip(hub, "refs/gitcp/s/job/main") in tips
    for _ in range(2):
        run_round(spool(), owed)
    assert tip(hub, "refs/gitcp/s/job/main") == tips[-1]
    assert tip(hub, "refs/gitcp/fx/job") == tip(ann, "refs/gitcp/fx/job")
    assert len(counted.read_text().split()) <= 5


def test_a_pusher_that_is_killed_is_followed_by_another(ann, hub):
    """It is killed in the push; the lock is free, and nothing is lost or sent twice."""
    started = hub / "started"
    refuse(hub, f"echo $$ > '{started}'; exec sleep 600", "pre-receive")
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    victim = subprocess.Popen(
        [sys.executable, "-m", "gitcp", "pusher", spool().ident],
        start_new_session=True,
    )
    while not started.exists() or not started.read_text().strip():
        assert victim.poll() is None
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    os.kill(int(started.read_text()), signal.SIGKILL)
    (hub / "hooks" / "pre-receive").unlink()
    ok(ann, "push", "--wait")
    assert tip(hub, MAIN) == tip(ann, MAIN)


def test_what_is_noted_during_a_push_is_gathered_before_that_ends(ann, bob, hub):
    """A round does not keep the next one from being gathered."""
    started, ended = hub / "started", hub / "ended"
    refuse(
        hub,
        f"touch '{started}'; until [ -e '{ended}' ]; do sleep 0.05; done",
        "pre-receive",
    )
    save(ann, "-s", "one", a_py=b"one")
    ok(ann, "push", "--spool")
    sender = subprocess.Popen([sys.executable, "-m", "gitcp", "pusher", spool().ident])
    try:
        while not started.exists():
            assert sender.poll() is None
        git(bob, "config", "gitcp.autoPush", "save")
        save(bob, "-s", "two", a_py=b"two")
        while "refs/gitcp/s/two/main" not in spool().pending():
            assert sender.poll() is None
        assert not there(hub)
    finally:
        ended.touch()
    assert sender.wait() == 0
    assert there(hub) == {"refs/gitcp/s/one/main", "refs/gitcp/s/two/main"}
    assert unsent(ann) == unsent(bob) == []


def test_a_clone_that_is_kept_open_is_read_as_it_is_now(ann, bob, hub):
    """Its settings may change, and another clone may take its place."""
    clones = KeptClones()
    assert clones.open(str(ann)).settings.sharing.secrets == "block"
    git(ann, "config", "gitcp.secrets", "warn")
    assert clones.open(str(ann)).settings.sharing.secrets == "warn"
    save(ann, a_py=b"ann")
    save(bob, "-s", "bobs", a_py=b"bob")
    assert clones.open(str(ann)).store.refs_of("main")
    ann.rename(ann.with_name("moved"))
    assert not clones.is_there(str(ann))
    bob.rename(ann)
    found = clones.open(str(ann))
    assert found.settings.sharing.secrets == "block"
    assert found.store.refs_of("bobs")
    assert not found.store.refs_of("main")


def test_a_round_of_many_sessions_is_one_push(ann, hub):
    """The limit of a host is on pushes, however many refs each moves."""
    counted = pushes(hub)
    save(ann, a_py=b"ann")
    commit = tip(ann, MAIN)
    moves = [
        Update(f"refs/gitcp/s/{'long-' * 20}{number}/main", None, commit)
        for number in range(500)
    ]
    answers = remote.send(discover(ann), str(hub), moves, limits=Limits(60.0, 600.0))
    assert all(answer.done for answer in answers.values())
    assert counted.read_text().split() == ["500"]


def test_an_answer_that_was_not_noted_is_seen_in_the_next_round(ann, hub):
    counted = pushes(hub)
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    (one,) = spool().pending().values()
    run_rounds()
    # As a kill between the push and the note leaves it.
    spool().put(one)
    spool().note_listed({})
    run_rounds()
    assert not spool().pending()
    assert counted.read_text().split() == ["1"]


def test_only_one_process_sends(ann, hub):
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    held = spool().pusher_lock()
    assert held is not None
    try:
        assert not pusher.serve(spool())
    finally:
        durable.unlock(held)
    assert not there(hub)


def test_waiting_ends_when_all_is_there_or_was_refused(ann, hub):
    save(ann, a_py=b"one")
    ok(ann, "push", "--wait")
    assert tip(hub, MAIN) == tip(ann, MAIN)
    refuse(hub, "echo no >&2; exit 1")
    save(ann, a_py=b"two")
    assert "declined" in fails(ann, 12, "push", "--wait")


def test_a_remote_with_another_address_gets_what_is_saved_from_then_on(ann, hub):
    other = hub.with_name("other.git")
    git(hub.parent, "clone", "-q", "--bare", str(hub), str(other))
    save(ann, "-s", "one", a_py=b"one")
    ok(ann, "push", "--spool")
    first = spool()
    git(ann, "remote", "set-url", "origin", str(other))
    run_round(first, {})
    assert there(hub) == {"refs/gitcp/s/one/main"}
    assert not there(other)
    save(ann, "-s", "two", a_py=b"two")
    ok(ann, "push", "--wait")
    assert there(other) == {"refs/gitcp/s/one/main", "refs/gitcp/s/two/main"}
    assert there(hub) == {"refs/gitcp/s/one/main"}


def test_a_full_spool_takes_no_more_and_the_clone_keeps_it(ann, hub, monkeypatch):
    save(ann, "-s", "one", a_py=os.urandom(20_000))
    ok(ann, "push", "--spool")
    monkeypatch.setenv("GITCP_SPOOL_MAX_SIZE", "10k")
    save(ann, "-s", "two", a_py=b"two")
    assert "spoolMaxSize" in fails(ann, 21, "push", "--spool")
    assert unsent(ann)[0]["noted"]
    # The first leaves, and makes room for the second.
    run_rounds(2)
    assert len(there(hub)) == 2


def test_each_save_is_handed_over_if_so_set(ann, hub):
    git(ann, "config", "gitcp.autoPush", "save")
    save(ann, a_py=b"one")
    assert unsent(ann)[0]["noted"]
    run_rounds()
    assert tip(hub, MAIN) == tip(ann, MAIN)


def test_what_cannot_wait_in_a_spool_is_refused_with_the_reason(ann, hub):
    save(ann, a_py=b"one")
    assert "take no --pruned" in fails(ann, 2, "push", "--spool", "--pruned")
    git(ann, "config", "--add", "remote.origin.pushurl", "/a")
    git(ann, "config", "--add", "remote.origin.pushurl", "/b")
    assert "several addresses" in fails(ann, 2, "push", "--spool")


def test_only_its_owner_can_read_the_spool(ann, hub):
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    assert spool().directory.stat().st_mode & 0o77 == 0
    assert entries.root().stat().st_mode & 0o77 == 0


def test_what_is_purged_does_not_leave(ann, hub):
    word = b"a-word-that-is-to-go-away"
    save(ann, "-s", "one", a_py=word)
    ok(ann, "push", "--spool")
    (waiting,) = spool().pending().values()
    (ann / "a.py").write_text("clean\n")
    ok(ann, "purge", "--value-from-stdin", "--yes", input=word)
    assert not spool().gathering().holds(waiting.new)
    run_rounds()
    sent = tip(hub, "refs/gitcp/s/one/main")
    assert word not in git(hub, "show", f"{sent}:a.py")
    assert sent == tip(ann, "refs/gitcp/s/one/main")


def test_the_lock_of_a_git_that_was_killed_is_in_no_way(ann, hub):
    save(ann, a_py=b"one")
    ok(ann, "push", "--spool")
    save(ann, a_py=b"two")
    (spool().gathering().git_dir / f"{MAIN}.lock").touch()
    ok(ann, "push", "--wait")
    assert tip(hub, MAIN) == tip(ann, MAIN)


def wait() -> None:
    """Serves the spool until nothing of its clone waits."""
    found = spool()
    (clone,) = found.clones()
    pusher.wait(found, clone, timeout=60)


def test_what_waits_leaves_encrypted_once_the_clone_encrypts(ann, hub, tmp_path):
    """It was queued in plain text; the remote does not have it yet."""
    save(ann, "-s", "other", a_py=b"other")
    save(ann, "-s", "one", a_py=b"one")
    ok(ann, "decide", "a-word-in-plain-text")
    save(ann, "-s", "one", a_py=b"two")
    ok(ann, "push", "--spool", "origin", "one")
    key = Key(tmp_path, "team")
    encrypt_to(ann, key)
    reads_with(ann, key)
    wait()
    assert there(hub) == {"refs/gitcp/s/one/main"}
    assert holders(hub, b"a-word-in-plain-text") == []
    assert unsent(ann) == []


def test_what_waits_is_scanned_once_the_clone_scans(ann, hub):
    git(ann, "config", "gitcp.secrets", "off")
    token = b"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzK9pQ2mLtr\n"
    save(ann, "-s", "dirty", a_py=token)
    ok(ann, "push", "--spool")
    git(ann, "config", "gitcp.secrets", "block")
    wait()
    assert there(hub) == set()
    assert "secret" in unsent(ann)[0]["reason"]


def test_what_a_clone_queued_that_is_gone_leaves_as_it_was_queued(ann, hub):
    save(ann, a_py=b"ann")
    ok(ann, "push", "--spool")
    ann.rename(ann.with_name("moved"))
    wait()
    assert there(hub) == {MAIN}


def test_what_waits_stays_while_the_settings_cannot_be_read(ann, hub):
    save(ann, a_py=b"ann")
    ok(ann, "push", "--spool")
    git(ann, "config", "gitcp.secrets", "nonsense")
    policy.decide_again(spool(), KeptClones())
    (one,) = spool().pending().values()
    assert "nonsense" in one.reason
    assert one.due > entries.now()


def test_a_pusher_without_the_clones_variables_sends_what_was_queued(
    ann, hub, tmp_path, monkeypatch
):
    """Else it would queue again in plain text what the clone encrypted."""
    key = Key(tmp_path, "team")
    ok(ann, "decide", "a-word-in-plain-text")
    save(ann, a_py=b"two")
    monkeypatch.setenv("GITCP_ENCRYPT_TO", key.public)
    ok(ann, "push", "--spool")
    monkeypatch.delenv("GITCP_ENCRYPT_TO")
    wait()
    assert there(hub) == {MAIN}
    assert holders(hub, b"a-word-in-plain-text") == []
