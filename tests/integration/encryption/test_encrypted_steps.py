"""Step ledgers shared with encryption: they travel along, unreadable to others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.format import ledger as formats
from gitcp.format.ledger import INLINE, Record
from gitcp.project.workspace import open_workspace
from tests.support.clones import clone, refs
from tests.support.crypt import Key, encrypt_to, holders, reads_with
from tests.support.gitrepo import git, git_line, run_gitcp
from tests.support.inprocess import fails, invoke, ok

pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")

REF = "refs/gitcp/s/vat/main"
LEDGER = "refs/gitcp/fx/vat"
FORMS = "refs/gitcp/efx/origin/vat"
MARKER = "wombat-7731"
NOT_AGAIN = "it was done already"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Key]:
    place = tmp_path_factory.mktemp("keys")
    made = {name: Key(place, name) for name in ("ann", "bob", "eve")}
    if shutil.which("ssh-keygen") is not None:
        made["rsa"] = Key(place, "rsa", "rsa")
    return made


def vat(repo: Path) -> gitcp.Session:
    return gitcp.open(repo).session("vat")


def stepped(repo: Path, *names: str) -> gitcp.Session:
    session = vat(repo)
    for name in names:
        session.step(name, lambda name=name: {"did": name, "at": MARKER})
    session.flush()
    return session


def done(repo: Path, *names: str) -> None:
    """Calls the steps again, as a restarted program does: none is run."""

    def again() -> dict[str, str]:
        pytest.fail(NOT_AGAIN)

    session = vat(repo)
    for name in names:
        found = session.step(name, again)
        assert found == {"did": name, "at": MARKER}


def states(repo: Path) -> dict[str, str]:
    return {
        one["name"]: one["state"] for one in ok(repo, "steps", "-s", "vat")["steps"]
    }


def steps_results(repo: Path, verb: str, *args: str) -> dict[str, str]:
    found = ok(repo, verb, *args)["ledgers"]
    return {one["session"]: one["result"] for one in found}


def same(*repos: Path) -> None:
    assert len({git_line(repo, "rev-parse", LEDGER) for repo in repos}) == 1
    for repo in repos:
        assert ok(repo, "verify")["ok"]
        git(repo, "fsck", "--strict", "--no-dangling")


def blobs(repo: Path, ref: str) -> set[str]:
    """The ciphertexts that a ledger of a remote reaches."""
    listed = git(repo, "rev-list", "--objects", ref).decode().splitlines()
    return {line[:40] for line in listed if line.endswith(" encrypted")}


def said(repo: Path, exit_status: int, *args: str) -> dict[str, Any]:
    """The error document of a command that must fail."""
    ended = invoke(repo, *args, "--json")
    assert ended.returncode == exit_status, ended
    error: dict[str, Any] = json.loads(ended.stderr.strip().splitlines()[-1])["error"]
    return error


def refused(repo: Path, code: str, exit_status: int = 26) -> str:
    """What a pull says that must not change anything."""
    before = refs(repo)
    error = said(repo, exit_status, "pull")
    assert error["code"] == code, error
    assert refs(repo) == before
    assert not list((repo / ".git" / "gitcp" / "tmp").iterdir())
    return f"{error['message']} {error['hint']}"


# --- two users -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bob", "rsa"])
def test_steps_go_on_there_and_come_back(team, keys, kind):
    ann, hub, bob = team
    if kind not in keys:
        pytest.skip("there is no ssh-keygen")
    for repo in (ann, bob):
        encrypt_to(repo, keys["ann"], keys[kind])
    reads_with(bob, keys[kind])
    vat(ann).save(note="start")
    stepped(ann, "load", "mail")
    assert steps_results(ann, "push") == {"vat": "created"}
    there = refs(hub)
    assert steps_results(ann, "push") == {"vat": "up-to-date"}
    assert refs(hub) == there
    assert git(hub, "rev-parse", LEDGER) != git(ann, "rev-parse", LEDGER)
    assert steps_results(bob, "pull") == {"vat": "created"}
    same(ann, bob)
    assert ok(bob, "remote-sessions")["sessions"][0]["steps"]["here"] == "same"
    done(bob, "load", "mail")
    # And back, from Bob, who ran more.
    stepped(bob, "bobs")
    assert steps_results(bob, "push") == {"vat": "fast-forward"}
    assert steps_results(ann, "pull") == {"vat": "fast-forward"}
    same(ann, bob)
    done(ann, "load", "mail", "bobs")
    assert steps_results(ann, "pull") == {}
    # What was written here is known by its seal again, what was not is not.
    foreign = {
        one["name"]: one["foreign"] for one in ok(ann, "steps", "-s", "vat")["steps"]
    }
    assert foreign == {"load": False, "mail": False, "bobs": True}


def test_where_both_ran_steps_two_encrypted_lines_are_joined(team):
    ann, hub, bob = team
    vat(ann).save(note="start")
    stepped(ann, "load")
    ok(ann, "push")
    ok(bob, "pull")
    stepped(bob, "bobs", "both")
    stepped(ann, "anns", "both")
    ok(bob, "push")
    forms = set(git(hub, "rev-list", LEDGER).split())
    assert "its step ledger has diverged" in fails(ann, 3, "push", "origin", "vat")
    assert steps_results(ann, "pull") == {"vat": "joined"}
    assert steps_results(ann, "push") == {"vat": "fast-forward"}
    assert steps_results(bob, "pull") == {"vat": "fast-forward"}
    same(ann, bob)
    # What was there is not encrypted once more, on either side of the join.
    assert forms < set(git(hub, "rev-list", LEDGER).split())
    pages = git(ann, "rev-list", "--count", LEDGER)
    assert git(hub, "rev-list", "--count", LEDGER) == pages
    for repo in (ann, bob):
        done(repo, "load", "bobs", "anns", "both")
    stepped(bob, "more")
    assert steps_results(bob, "push") == {"vat": "fast-forward"}
    assert steps_results(ann, "pull") == {"vat": "fast-forward"}
    same(ann, bob)
    assert holders(hub, MARKER.encode()) == []
    git(hub, "fsck", "--strict")


def test_a_line_that_came_by_a_file_stands_on_what_is_encrypted(team, tmp_path):
    """What is joined leads around the newest form, to pages that have one already."""
    ann, hub, bob = team
    vat(ann).save(note="start")
    stepped(ann, "load")
    ok(ann, "push")
    ok(bob, "pull")
    stepped(bob, "bobs")
    ok(bob, "export", "vat:last", "-o", str(tmp_path / "x.bundle"))
    stepped(ann, "anns")
    ok(ann, "push")
    ok(ann, "import", str(tmp_path / "x.bundle"))
    assert steps_results(ann, "push") == {"vat": "fast-forward"}
    pages = git(ann, "rev-list", "--count", LEDGER)
    assert git(hub, "rev-list", "--count", LEDGER) == pages
    ok(bob, "pull")
    same(ann, bob)


def test_no_object_of_the_remote_tells_what_steps_did(team):
    ann, hub, bob = team
    session = vat(ann)
    session.save(note="start")
    session.step(f"step {MARKER}", lambda one: one, MARKER, key=f"key {MARKER}")
    session.step("large", lambda: {"large": MARKER * INLINE})
    with pytest.raises(ValueError, match=MARKER):
        session.step("fails", lambda: (_ for _ in ()).throw(ValueError(MARKER)))
    ran = run_gitcp(
        ann, "run", "-s", "vat", "--step", "call", "--reads", f"{MARKER}.txt",
        "--undo", f"true undo-{MARKER}", "--", "echo", MARKER,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    session.flush()
    secret = [MARKER.encode()]
    records = open_workspace(ann).ledgers.of("vat").records()
    assert {one.kind for one in records} == {"intent", "result", "failed"}
    for one in records:
        # Words of the format, and what a ciphertext may hold by chance, tell nothing.
        fields = (one.id, one.step, one.key, one.input, one.error, one.seal)
        secret += [field.encode() for field in fields if len(field) > len("large")]
    ok(ann, "push")
    ok(bob, "pull")
    same(ann, bob)
    for word in secret:
        assert holders(hub, word) == [], word
        assert holders(ann, word) != [], word
    assert vat(bob).step("large", lambda: None) == {"large": MARKER * INLINE}
    assert MARKER.encode() not in git(hub, "for-each-ref")


def test_pages_that_go_together_share_a_ciphertext(team):
    ann, hub, bob = team
    vat(ann).save()
    stepped(ann, *(f"s{number}" for number in range(9)))
    ok(ann, "push")
    first = blobs(hub, LEDGER)
    assert len(first) == 1
    assert int(git(hub, "rev-list", "--count", LEDGER)) >= 9
    stepped(ann, "more")
    ok(ann, "push")
    assert len(blobs(hub, LEDGER)) == 2
    assert first < blobs(hub, LEDGER)
    # Those that are large are several; each page is in one of them only.
    session = vat(ann)
    for number in range(4):
        session.step(f"large {number}", lambda number=number: f"{number}" * 100_000)
    session.flush()
    ok(ann, "push")
    assert len(blobs(hub, LEDGER)) == 4
    ok(bob, "pull")
    same(ann, bob)
    for number in range(4):
        assert vat(bob).step(f"large {number}", lambda: "") == f"{number}" * 100_000


def test_an_export_takes_what_steps_did_along(team, tmp_path):
    """A file is not a remote: it is as it is here, as the how-to says."""
    ann, hub, bob = team
    vat(ann).save()
    stepped(ann, "load")
    ok(ann, "push")
    bundle = tmp_path / "x.bundle"
    ok(ann, "export", "vat:last", "-o", str(bundle))
    done_there = ok(bob, "import", str(bundle))
    assert [one["result"] for one in done_there["ledgers"]] == ["created"]
    done(bob, "load")
    # Both made it from the same pages; what the remote has counts for both.
    stepped(bob, "bobs")
    assert "pull" in fails(bob, 12, "push", "origin", "vat")
    ok(bob, "pull")
    assert steps_results(bob, "push") == {"vat": "fast-forward"}
    ok(ann, "pull")
    same(ann, bob)
    # And a remote's refs in a file are not taken for a session.
    for name, ref in (("ledger", LEDGER), ("both", REF)):
        git(hub, "bundle", "create", "-q", tmp_path / name, LEDGER, ref, REF)
        message = fails(bob, 15, "import", str(tmp_path / name))
        assert "it is encrypted: only `gitcp pull` decrypts it" in message
        assert "a page that is encrypted: only `gitcp pull` decrypts it" in message


# --- who may read --------------------------------------------------------------------


def test_the_wrong_key_opens_no_ledger(team, keys):
    ann, _, bob = team
    vat(ann).save()
    stepped(ann, "load")
    ok(ann, "push")
    reads_with(bob, keys["eve"])
    assert "none of the keys here decrypts it" in refused(bob, "no-key")
    reads_with(bob, keys["bob"])
    ok(bob, "pull")
    done(bob, "load")


def test_a_session_of_steps_alone_needs_the_key_too(team, keys):
    ann, _, bob = team
    stepped(ann, "load")
    ok(ann, "push")
    reads_with(bob, keys["eve"])
    assert "ledger of its steps: none of the keys" in refused(bob, "no-key")
    reads_with(bob, keys["bob"])
    assert steps_results(bob, "pull") == {"vat": "created"}
    done(bob, "load")


def test_who_is_removed_learns_of_no_new_step(team, keys, hub):
    ann, _, bob = team
    vat(ann).save()
    stepped(ann, "load")
    ok(ann, "push")
    ok(bob, "pull")
    encrypt_to(ann, keys["ann"], keys["eve"])
    stepped(ann, "secret")
    ok(ann, "push")
    before = refs(bob)
    assert "none of the keys here decrypts it" in fails(bob, 3, "pull")
    assert refs(bob) == before
    assert states(bob) == {"load": "done"}
    # And the new recipient reads all of it once it is encrypted again.
    eve = clone(hub, "eve")
    reads_with(eve, keys["eve"])
    assert "--re-encrypt" in refused(eve, "no-key")
    fails(ann, 12, "push", "--re-encrypt")
    git(hub, "config", "gitcp.allowPruned", "true")
    assert steps_results(ann, "push", "--re-encrypt") == {"vat": "re-encrypted"}
    ok(eve, "pull")
    done(eve, "load", "secret")
    refused(bob, "no-key")
    assert steps_results(ann, "push") == {"vat": "up-to-date"}
    encrypt_to(eve, keys["ann"], keys["eve"])
    stepped(eve, "eves")
    assert steps_results(eve, "push") == {"vat": "fast-forward"}
    assert steps_results(ann, "pull") == {"vat": "fast-forward"}
    same(ann, eve)


# --- plaintext where ciphertext is due -----------------------------------------------


def test_no_ledger_is_pushed_in_plaintext_where_recipients_are_set(team):
    ann, hub, bob = team
    vat(ann).save()
    stepped(ann, "load")
    ok(ann, "push")
    ok(bob, "pull")
    stepped(bob, "bobs")
    before = refs(hub)
    git(bob, "config", "--unset-all", "gitcp.encryptTo")
    for chosen in ((), ("origin", "vat")):
        assert said(bob, 26, "push", *chosen)["code"] == "plaintext"
    git(bob, "config", "gitcp.encryptTo", "off")
    assert said(bob, 26, "push", "origin", "vat")["code"] == "plaintext"
    # What was seen of it may be the ledger alone.
    git(bob, "update-ref", "-d", "refs/gitcp/e/origin/vat/main")
    assert said(bob, 26, "push", "origin", "vat")["code"] == "plaintext"
    assert refs(hub) == before
    assert holders(hub, MARKER.encode()) == []


def test_a_ledger_that_is_there_unencrypted_is_not_mixed(team, keys):
    ann, hub, bob = team
    git(ann, "config", "--unset-all", "gitcp.encryptTo")
    vat(ann).save()
    stepped(ann, "load")
    ok(ann, "push")
    plain = refs(hub)
    assert holders(hub, MARKER.encode())
    encrypt_to(ann, keys["ann"], keys["bob"])
    stepped(ann, "more").save(note="more")
    assert "--re-encrypt" in fails(ann, 12, "push")
    assert refs(hub) == plain
    assert "came unencrypted" in refused(bob, "plaintext")
    git(hub, "config", "gitcp.allowPruned", "true")
    ok(ann, "push", "--re-encrypt")
    git(hub, "gc", "-q", "--prune=now")
    assert holders(hub, MARKER.encode()) == []
    ok(bob, "pull")
    done(bob, "load", "more")
    same(ann, bob)


def plain_page(repo: Path, parent: str | None, *, first: int = 1) -> str:
    """A page as any writer could make it."""
    empty = git(repo, "mktree", input=b"").decode().strip()
    kept = Record(
        first, "2026-01-01T00:00:00.000Z", formats.INTENT, "main", id="0" * 12
    )
    raw = formats.encode_ledger_commit(
        bytes.fromhex(empty),
        bytes.fromhex(parent) if parent else None,
        1_700_000_000,
        "vat",
        [kept],
    )
    made = git(repo, "hash-object", "-t", "commit", "-w", "--stdin", input=raw)
    return made.decode().strip()


@pytest.mark.parametrize("smuggled", ["ours", "its own", "on top", "below"])
@pytest.mark.parametrize("reader", ["with recipients", "knows it", "new"])
def test_a_plaintext_page_on_the_remote_is_not_adopted(team, keys, smuggled, reader):
    ann, hub, bob = team
    vat(ann).save()
    stepped(ann, "load")
    ok(ann, "push")
    if reader == "new":
        # It has seen nothing; that the branch is encrypted tells what is due.
        git(bob, "config", "--unset-all", "gitcp.encryptTo")
    else:
        ok(bob, "pull")
    if reader == "knows it":
        git(bob, "config", "--unset-all", "gitcp.encryptTo")
    good = git_line(hub, "rev-parse", LEDGER)
    stepped(ann, "more").save(note="more")
    ok(ann, "push")
    newest = git_line(hub, "rev-parse", LEDGER)
    (hub / "hooks" / "update").unlink()
    if smuggled == "ours":
        git(ann, "push", "-q", "--force", "origin", f"{LEDGER}:{LEDGER}")
    elif smuggled == "its own":
        git(hub, "update-ref", LEDGER, plain_page(hub, None))
    elif smuggled == "on top":
        git(hub, "update-ref", LEDGER, plain_page(hub, newest, first=5))
    else:
        raw = git(hub, "cat-file", "commit", newest)
        wrong = plain_page(hub, None)
        raw = raw.replace(
            git_line(hub, "rev-parse", f"{newest}~1").encode(), wrong.encode()
        )
        made = git(hub, "hash-object", "-t", "commit", "-w", "--stdin", input=raw)
        git(hub, "update-ref", LEDGER, made.decode().strip())
    code, status = ("corrupt", 15) if smuggled == "below" else ("plaintext", 26)
    message = refused(bob, code, status)
    assert (
        "is not encrypted" if smuggled == "below" else "came unencrypted"
    ) in message
    git(hub, "update-ref", LEDGER, newest)
    ok(bob, "pull")
    assert git_line(bob, "rev-parse", LEDGER) == git_line(ann, "rev-parse", LEDGER)
    assert good in git(bob, "rev-list", FORMS).decode()


# --- what goes wrong on the way -------------------------------------------------------


def test_a_ledger_is_encrypted_once(team):
    ann, hub, bob = team
    vat(ann).save()
    stepped(ann, "load")
    refuse = hub / "hooks" / "pre-receive"
    refuse.write_text("#!/bin/sh\nexit 1\n")
    refuse.chmod(0o755)
    fails(ann, 12, "push")
    made = git(ann, "rev-parse", FORMS)
    fails(ann, 12, "push")
    assert git(ann, "rev-parse", FORMS) == made
    refuse.unlink()
    ok(ann, "push")
    assert git(hub, "rev-parse", LEDGER) == made
    # Losing what was noted loses nothing: the remote tells.
    git(ann, "update-ref", "-d", FORMS)
    assert ok(ann, "push")["ledgers"][0]["reason"] == "it has more checkpoints: pull"
    assert steps_results(ann, "pull") == {"vat": "up-to-date"}
    assert git(ann, "rev-parse", FORMS) == made
    stepped(ann, "more")
    assert steps_results(ann, "push") == {"vat": "fast-forward"}
    ok(bob, "pull")
    same(ann, bob)


@pytest.mark.parametrize("forms_too", [False, True])
def test_a_ledger_whose_ref_is_gone_is_not_its_forms(team, forms_too):
    ann, _, _ = team
    vat(ann).save()
    stepped(ann, "load", "mail")
    ok(ann, "push")
    mine = git_line(ann, "rev-parse", LEDGER)
    for ref in (LEDGER, FORMS)[: 1 + forms_too]:
        git(ann, "update-ref", "-d", ref)
    git(ann, "update-ref", "-d", "refs/gitcp/rfx/origin/vat")
    (found,) = json.loads(invoke(ann, "verify", "--lost", "--json").stdout)["ledgers"]
    assert found["commit"] == mine
    ok(ann, "verify", "--lost", "--repair")
    assert git_line(ann, "rev-parse", LEDGER) == mine
    done(ann, "load", "mail")


def test_what_is_purged_from_a_ledger_goes_from_its_forms_too(team):
    ann, hub, bob = team
    git(hub, "config", "gitcp.allowPruned", "true")
    for repo in (ann, bob):
        git(repo, "config", "gitcp.secrets", "off")
    value = "hunter2-correct-horse"
    vat(ann).save()
    stepped(ann, "load")
    vat(ann).step("leak", lambda: {"key": value})
    stepped(ann, "after").save(note="after")
    ok(ann, "push")
    old = git_line(ann, "rev-parse", FORMS)
    ok(bob, "pull")
    stepped(bob, "bobs")
    planned = ok(ann, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert planned["ledgers"] == ["vat"]
    assert planned["remotes"] == ["origin"]
    # No ciphertext is left here that a key here would open.
    assert holders(ann, value.encode()) == []
    assert blobs(ann, FORMS) == set()
    assert not git(ann, "cat-file", "-e", old, check=False)
    assert (
        old not in git(ann, "cat-file", "--batch-all-objects", "--batch-check").decode()
    )
    # It is known what is there: it does not come back, and does not go without asking.
    assert steps_results(ann, "pull") == {}
    git(ann, "fsck", "--strict", "--no-dangling")
    assert "--pruned" in fails(ann, 3, "push", "origin", "vat")
    assert steps_results(ann, "push", "--pruned") == {"vat": "pruned"}
    assert steps_results(ann, "push") == {"vat": "up-to-date"}
    assert holders(ann, value.encode()) == []
    # Bob has it still, and ran a step since; once he purged it, too, the lines join.
    assert "purged from it there" in fails(bob, 3, "pull")
    ok(bob, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert steps_results(bob, "pull") == {"vat": "joined"}
    assert steps_results(bob, "push") == {"vat": "fast-forward"}
    ok(ann, "pull")
    same(ann, bob)
    for repo in (ann, bob):
        done(repo, "load", "after", "bobs")


def test_what_went_on_there_is_purged_by_who_has_it(team):
    ann, hub, bob = team
    git(hub, "config", "gitcp.allowPruned", "true")
    for repo in (ann, bob):
        git(repo, "config", "gitcp.secrets", "off")
    value = "hunter2-correct-horse"
    vat(ann).save()
    vat(ann).step("leak", lambda: {"key": value})
    vat(ann).flush()
    ok(ann, "push")
    ok(bob, "pull")
    stepped(bob, "bobs")
    ok(bob, "push")
    ok(ann, "purge", "--value-from-stdin", "--yes", input=value.encode())
    there = refs(hub)
    fails(ann, 3, "push", "--pruned", "origin", "vat")
    assert refs(hub) == there
    before = refs(ann)
    # It is opened to be judged, and nothing of it stays.
    assert "what you purged here" in fails(ann, 3, "pull")
    assert refs(ann) == before
    assert holders(ann, value.encode()) == []
    ok(bob, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert steps_results(bob, "push", "--pruned") == {"vat": "pruned"}
    # Each clone has a mark of its own for what is gone, so that there are two lines.
    assert steps_results(ann, "pull") == {"vat": "joined"}
    assert steps_results(ann, "push") == {"vat": "fast-forward"}
    ok(bob, "pull")
    same(ann, bob)
    assert states(ann) == {"leak": "done", "bobs": "done"}
    done(ann, "bobs")


def test_a_joined_ledger_can_be_purged_and_pushed(team):
    """The notes have the shape of what they stand for."""
    ann, hub, bob = team
    git(hub, "config", "gitcp.allowPruned", "true")
    git(ann, "config", "gitcp.secrets", "off")
    value = "hunter2-correct-horse"
    vat(ann).save()
    vat(ann).step("leak", lambda: {"key": value})
    vat(ann).flush()
    ok(ann, "push")
    ok(bob, "pull")
    stepped(bob, "bobs")
    ok(bob, "push")
    stepped(ann, "anns")
    ok(ann, "pull")
    ok(ann, "push")
    shape = git(ann, "log", "--format=%ct %p", FORMS).count(b" ")
    ok(ann, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert git(ann, "log", "--format=%ct %p", FORMS).count(b" ") == shape
    assert steps_results(ann, "pull") == {}
    assert steps_results(ann, "push", "--pruned") == {"vat": "pruned"}
    eve = clone(hub, "eve")
    reads_with(eve, Key(hub.parent, "other"))
    reads_with(eve, _key_of(ann))
    ok(eve, "pull")
    done(eve, "bobs", "anns")
    same(ann, eve)


def _key_of(repo: Path) -> Key:
    key = Key.__new__(Key)
    key.secret = Path(git_line(repo, "config", "gitcp.identity"))
    return key


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("pullMaxFile", "300k", "pullMaxFile"),
        ("pullMaxSize", "300k", "pullMaxSize"),
        ("pullMaxObjects", "20", "pullMaxObjects"),
    ],
)
def test_the_limits_of_a_pull_hold_inside_the_ciphertext(team, setting, value, words):
    ann, hub, bob = team
    session = vat(ann)
    # As ciphertext it is a few kilobytes, in a dozen objects.
    session.step("large", lambda: "x" * 500_000)
    for number in range(8):
        session.step(f"s{number}", lambda: 1)
    session.flush()
    ok(ann, "push")
    size = git(hub, "count-objects", "-v")
    assert b"500" not in size
    git(bob, "config", f"gitcp.{setting}", value)
    assert words in refused(bob, "transfer", 21)
    git(bob, "config", "--unset", f"gitcp.{setting}")
    ok(bob, "pull")
    same(ann, bob)
