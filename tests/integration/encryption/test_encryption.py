"""Sharing with encryption: two users on loopback, keys of all kinds, remotes that lie."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from gitcp.encryption.age import Identities
from gitcp.errors import NoKeyError
from tests.support.clones import clone, refs, results
from tests.support.crypt import (
    Key,
    encrypt_to,
    holders,
    reads_with,
    records,
)
from tests.support.gitrepo import git, git_line, write_files
from tests.support.inprocess import fails, invoke, ok

pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")

REF = "refs/gitcp/s/vat/main"
HEAD = ".gitcp/encrypted/head"
MARKER = "wombat-7731"
TALK = f'{{"role":"user","content":"Add {MARKER}."}}\n'


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Key]:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    place = tmp_path_factory.mktemp("keys")
    kinds = {"ann": "age", "bob": "age", "eve": "age", "ed25519": "ed25519"}
    made = {name: Key(place, name, kind) for name, kind in kinds.items()}
    made["rsa"] = Key(place, "rsa", "rsa")
    made["phrase"] = Key(place, "phrase", "ed25519", "secret")
    return made


def work(repo: Path, turns: int = 1, *, session: str = "vat", say: str = TALK) -> bytes:
    """Saves a growing conversation, with something of everything; returns it."""
    talk = b""
    for turn in range(turns):
        talk += say.encode()
        talk += b'{"role":"assistant","content":"turn %d"}\n' % turn
        write_files(repo, {"a.py": b"turn %d\n" % turn})
        ok(
            repo, "save", "-s", session, "--messages", "-",
            "-m", f"note {MARKER}", "--decision", f"decided {MARKER}",
            "--why", f"because {MARKER}", "--task", f"task {MARKER}",
            "--trigger", f"trigger-{MARKER}", "--position", f'{{"at":"{MARKER}"}}',
            "--label", f"label {MARKER} {turn}",
            input=talk,
        )  # fmt: skip
    return talk


def talk_of(repo: Path, selector: str = "vat:last") -> bytes:
    return invoke(repo, "messages", selector, "--format", "jsonl").stdout


def said(repo: Path, exit_status: int, *args: str) -> dict:
    """The error document of a command that must fail."""
    done = invoke(repo, *args, "--json")
    assert done.returncode == exit_status, done
    line = done.stderr.strip().splitlines()[-1]
    error: dict = json.loads(line)["error"]
    return error


# --- two users -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bob", "ed25519", "rsa"])
def test_what_is_pulled_is_what_was_pushed(team, keys, kind):
    ann, hub, bob = team
    encrypt_to(ann, keys["ann"], keys[kind])
    encrypt_to(bob, keys["ann"], keys[kind])
    reads_with(bob, keys[kind])
    talk = work(ann, 3)
    assert results(ann, "push") == {"vat/main": ("created", "main")}
    assert results(ann, "push") == {"vat/main": ("up-to-date", "main")}
    assert results(bob, "pull") == {"vat/main": ("created", "main")}
    # The same commits, and not only the same words.
    assert git(ann, "rev-parse", REF) == git(bob, "rev-parse", REF)
    assert git(ann, "rev-parse", REF) != git(hub, "rev-parse", REF)
    assert talk_of(bob) == talk
    for command in (("context", "vat:last"), ("decisions", "vat:last")):
        assert MARKER in invoke(bob, *command).stdout.decode()
    ok(bob, "restore", "vat:last", "--yes")
    assert (bob / "a.py").read_bytes() == b"turn 2\n"
    assert ok(bob, "remote-sessions")["sessions"][0]["branches"][0]["here"] == "same"
    # And back.
    ok(bob, "switch", "vat")
    more = talk + b'{"role":"user","content":"from Bob"}\n'
    ok(bob, "save", "--messages", "-", input=more)
    assert results(bob, "push", "origin", "vat")["vat/main"][0] == "fast-forward"
    assert results(ann, "pull", "origin", "vat")["vat/main"][0] == "fast-forward"
    assert talk_of(ann) == more
    assert results(ann, "push", "origin", "vat")["vat/main"][0] == "up-to-date"
    for repo in (ann, bob):
        assert ok(repo, "verify")["ok"]
    for repo in (ann, hub, bob):
        git(repo, "fsck", "--strict")


def test_no_object_of_the_remote_holds_plaintext(team, keys):
    ann, hub, bob = team
    work(ann, 3)
    (ann / "nested").mkdir()
    git(ann / "nested", "init", "-q")
    ok(ann, "fork", "2", "side", "--yes")
    ok(ann, "save", "--append", "-", input=TALK.encode())
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "vat/main", "--restore", "--yes")
    ok(bob, "save", "--append", "-", input=TALK.encode())
    ok(bob, "push")
    assert holders(hub, MARKER.encode()) == []
    assert MARKER.encode() not in git(hub, "log", "--all", "--format=%B", "-p")
    assert MARKER.encode() not in git(hub, "for-each-ref")
    # The same look finds it where nothing is encrypted.
    plain = clone(hub, "plain")
    git(plain, "config", "gitcp.encryptTo", "off")
    work(plain, session="other")
    ok(plain, "push")
    assert holders(hub, MARKER.encode())


def test_only_what_is_new_is_encrypted(team):
    ann, hub, _ = team
    work(ann, 3)
    ok(ann, "push")
    before = records(hub, REF)
    forms = git(hub, "rev-list", REF).split()
    ok(ann, "save", "-s", "vat", "--append", "-", input=TALK.encode())
    ok(ann, "push")
    after = records(hub, REF)
    assert {path: one for path, one in after.items() if path in before} == {
        **before,
        HEAD: after[HEAD],
    }
    assert len(after) == len(before) + 1
    assert git(hub, "rev-list", REF).split()[1:] == forms


def test_who_pushes_needs_no_key_of_ones_own(team, keys):
    ann, _, bob = team
    git(ann, "config", "--unset-all", "gitcp.identity")
    encrypt_to(ann, keys["bob"])
    talk = work(ann, 2)
    ok(ann, "push")
    ok(ann, "save", "-s", "vat", "-m", "more", "--allow-empty")
    assert results(ann, "push")["vat/main"][0] == "fast-forward"
    ok(bob, "pull")
    assert talk_of(bob) == talk


def test_both_grew_and_both_are_kept(team):
    ann, hub, bob = team
    work(ann)
    ok(ann, "push")
    ok(bob, "pull")
    for repo, name in ((ann, "ann"), (bob, "bob")):
        line = f'{{"role":"user","content":"{name}"}}\n'.encode()
        ok(repo, "save", "-s", "vat", "--append", "-", input=line)
    ok(bob, "push")
    assert "pull" in fails(ann, 12, "push")
    assert results(ann, "pull")["vat/main"] == ("forked", "main~origin")
    assert b"bob" in talk_of(ann, "vat/main~origin:last")
    ok(ann, "switch", "vat/main")
    ok(ann, "fork", "anns")
    assert results(ann, "push")["vat/anns"][0] == "created"
    ok(bob, "pull")
    assert b"ann" in talk_of(bob, "vat/anns:last")
    assert ok(bob, "verify")["ok"]
    # What was there is not encrypted again for the new branch.
    old = set(git(hub, "rev-list", f"{REF}~1").split())
    assert old <= set(git(hub, "rev-list", "refs/gitcp/s/vat/anns").split())


def test_what_the_remote_takes_back_is_noticed(team):
    ann, hub, bob = team
    work(ann, 3)
    ok(ann, "push")
    ok(bob, "pull")
    mine = git(bob, "rev-parse", REF)
    git(hub, "update-ref", REF, f"{REF}~1")
    done = invoke(bob, "pull")
    assert b"rewound" in done.stderr
    assert git(bob, "rev-parse", REF) == mine


def test_a_pruned_session_goes_on_encrypted(team):
    ann, hub, bob = team
    git(hub, "config", "gitcp.allowPruned", "true")
    value = "hunter2-correct-horse"
    work(ann, say=f'{{"role":"user","content":"DB_PASSWORD={value}"}}\n')
    for number in range(4):
        write_files(ann, {"a.py": b"%d" % number})
        ok(ann, "save", "-s", "vat")
    # What is scanned is what will be encrypted.
    error = said(ann, 24, "push")
    assert error["code"] == "secrets-found"
    git(ann, "config", "gitcp.secrets", "off")
    ok(ann, "push")
    ok(bob, "pull")
    ok(ann, "prune", "--keep-last", "2", "-y", "-s", "vat")
    assert results(ann, "push", "--pruned")["vat/main"][0] == "pruned"
    assert results(bob, "pull", "--pruned")["vat/main"][0] == "pruned"
    assert ok(bob, "verify")["ok"]
    assert talk_of(bob) == talk_of(ann)
    assert results(ann, "push")["vat/main"][0] == "up-to-date"
    assert holders(hub, value.encode()) == []


def pruned(ann: Path, hub: Path) -> tuple[set[str], set[str]]:
    """Prunes all but some checkpoints, here and there.

    Returns the ciphertexts that the old line had, and those that were sent.
    """
    git(hub, "config", "gitcp.allowPruned", "true")
    git(hub, "config", "receive.unpackLimit", "1")
    old = set(
        git(hub, "rev-list", "--objects", "--no-object-names", REF).decode().split()
    )
    packs = set((hub / "objects" / "pack").glob("*.idx"))
    ok(ann, "prune", "--keep-last", "3", "-y", "-s", "vat")
    assert results(ann, "push", "--pruned")["vat/main"][0] == "pruned"
    sent: set[str] = set()
    for index in set((hub / "objects" / "pack").glob("*.idx")) - packs:
        listed = git(hub, "show-index", input=index.read_bytes()).decode()
        sent |= {line.split()[1] for line in listed.splitlines()}
    return old, sent


def growing(ann: Path, turns: int = 6) -> None:
    """Saves checkpoints that may be pruned, all but the first."""
    work(ann)
    for turn in range(turns):
        write_files(ann, {"a.py": b"%d" % turn})
        ok(ann, "save", "-s", "vat", "--append", "-", input=TALK.encode() * 90)


def test_what_a_pruned_line_has_there_is_not_sent_again(team):
    ann, hub, bob = team
    growing(ann)
    ok(ann, "push")
    ok(bob, "pull")
    before = records(hub, REF)
    first = git_line(hub, "rev-list", "--reverse", f"{REF}~6", "-1")
    assert len(before) > 6
    old, sent = pruned(ann, hub)
    after = records(hub, REF)
    assert {**after, HEAD: ""} == {**before, HEAD: ""}
    # Of each checkpoint that stays there is a new head, for its commit is another one.
    heads = {records(hub, one)[HEAD] for one in (f"{REF}~{n}" for n in range(3))}
    new = {oid for oid in sent if git(hub, "cat-file", "-t", oid) == b"blob\n"}
    assert new - old == heads
    assert not new & set(before.values())
    # What lies before all that went stays as it is.
    assert first in git(hub, "rev-list", REF).decode()
    assert results(bob, "pull", "--pruned")["vat/main"][0] == "pruned"
    new_one = clone(hub, "new")
    git(new_one, "config", "gitcp.identity", git_line(bob, "config", "gitcp.identity"))
    ok(new_one, "pull")
    for repo in (bob, new_one):
        assert git(repo, "rev-parse", REF) == git(ann, "rev-parse", REF)
        assert ok(repo, "verify")["ok"]
    git(hub, "fsck", "--strict")


def test_a_pruned_line_of_plaintext_is_not_sent_again_either(team):
    ann, hub, bob = team
    git(ann, "config", "--unset-all", "gitcp.encryptTo")
    growing(ann)
    ok(ann, "push")
    _, sent = pruned(ann, hub)
    held = git(hub, "ls-tree", "-r", REF, "--", ".gitcp/log").decode().splitlines()
    assert len(held) > 6
    assert not sent & {line.split()[2] for line in held}
    git(hub, "fsck", "--strict")
    git(bob, "config", "--unset-all", "gitcp.encryptTo")
    ok(bob, "pull")
    assert git(bob, "rev-parse", REF) == git(ann, "rev-parse", REF)


@pytest.mark.parametrize("change", ["added", "removed", "another"])
def test_a_pruned_line_is_for_those_who_are_to_read_it_now(team, keys, change):
    ann, hub, bob = team
    encrypt_to(ann, keys["ann"], keys["ed25519"])
    growing(ann)
    ok(ann, "push")
    now = {
        "added": (keys["ann"], keys["ed25519"], keys["eve"]),
        "removed": (keys["ann"],),
        "another": (keys["ann"], keys["phrase"]),
    }[change]
    encrypt_to(ann, *now)
    ok(ann, "save", "-s", "vat", "--append", "-", input=TALK.encode())
    ok(ann, "push")
    pruned(ann, hub)
    if change == "added":
        eve = clone(hub, "eve")
        reads_with(eve, keys["eve"])
        ok(eve, "pull")
        assert talk_of(eve) == talk_of(ann)
    else:
        reads_with(bob, keys["ed25519"])
        git(bob, "config", "--unset-all", "gitcp.encryptTo")
        refused(bob, "no-key")
        before = Identities([str(keys["ed25519"].secret)], top=bob)
        for oid in records(hub, REF).values():
            with pytest.raises(NoKeyError):
                before.decrypt(git(hub, "cat-file", "blob", oid))


def test_what_is_purged_goes_from_the_forms_too(team):
    ann, hub, bob = team
    git(hub, "config", "gitcp.allowPruned", "true")
    git(ann, "config", "gitcp.secrets", "off")
    value = "hunter2-correct-horse"
    work(ann)
    write_files(ann, {"notes.txt": f"it is {value}\n".encode()})
    ok(ann, "save", "-s", "vat", "--append", "-", input=f'{{"x":"{value}"}}\n'.encode())
    ok(ann, "save", "-s", "vat", "--allow-empty")
    ok(ann, "push")
    assert holders(hub, value.encode())
    ok(bob, "pull")
    (ann / "notes.txt").unlink()
    ok(ann, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert holders(ann, value.encode()) == []
    # What is there is known, and does not come back.
    assert results(ann, "pull")["vat/main"] == ("up-to-date", "main")
    assert "--pruned" in fails(ann, 12, "push")
    assert results(ann, "push", "--pruned")["vat/main"][0] == "pruned"
    assert results(ann, "push")["vat/main"][0] == "up-to-date"
    assert holders(ann, value.encode()) == []
    git(hub, "gc", "-q", "--prune=now")
    assert holders(hub, value.encode()) == []
    ok(ann, "save", "-s", "vat", "--allow-empty")
    assert results(ann, "push")["vat/main"][0] == "fast-forward"
    assert results(bob, "pull")["vat/main"] == ("forked", "main~origin")
    for repo in (ann, bob):
        assert ok(repo, "verify")["ok"]
        git(repo, "fsck", "--strict")


# --- who may read --------------------------------------------------------------------


def refused(repo: Path, code: str, *args: str, exit_status: int = 26) -> str:
    """What a pull says that must not change anything."""
    before = refs(repo)
    error = said(repo, exit_status, "pull", *args)
    assert error["code"] == code, error
    assert refs(repo) == before
    assert not list((repo / ".git" / "gitcp" / "tmp").iterdir())
    return f"{error['message']} {error['hint']}"


def test_the_wrong_key_opens_nothing(team, keys):
    ann, _, bob = team
    work(ann)
    ok(ann, "push")
    reads_with(bob, keys["eve"])
    assert "none of the keys here decrypts it" in refused(bob, "no-key")
    reads_with(bob, keys["bob"])
    ok(bob, "pull")


def test_without_a_key_it_says_where_one_is_looked_for(team, keys, sealed):
    ann, _, bob = team
    encrypt_to(ann, keys["ed25519"], keys["phrase"])
    talk = work(ann)
    ok(ann, "push")
    git(bob, "config", "--unset-all", "gitcp.identity")
    assert "gitcp.identity" in refused(bob, "no-key")
    # A key that needs a passphrase is named, whether it was asked for or found.
    ssh = sealed / ".ssh"
    ssh.mkdir()
    shutil.copy(keys["phrase"].secret, ssh / "id_ed25519")
    assert "id_ed25519 is protected by a passphrase" in refused(bob, "no-key")
    reads_with(bob, keys["phrase"])
    assert "protected by a passphrase" in refused(bob, "encryption")
    git(bob, "config", "--unset-all", "gitcp.identity")
    shutil.copy(keys["ed25519"].secret, ssh / "id_ed25519")
    ok(bob, "pull")
    assert talk_of(bob) == talk


def test_without_the_library_it_says_what_to_install(team, monkeypatch):
    ann, hub, bob = team
    work(ann)
    ok(ann, "push")
    before = refs(hub)
    monkeypatch.setitem(sys.modules, "pyrage", None)
    assert "gitcp[crypt]" in refused(bob, "encryption")
    ok(ann, "save", "-s", "vat", "--allow-empty")
    assert "gitcp[crypt]" in said(ann, 26, "push")["hint"]
    assert refs(hub) == before


def test_who_is_removed_reads_nothing_new(team, keys):
    ann, _, bob = team
    work(ann)
    ok(ann, "push")
    ok(bob, "pull")
    encrypt_to(ann, keys["ann"])
    ok(ann, "save", "-s", "vat", "--append", "-", input=TALK.encode())
    ok(ann, "push")
    refused(bob, "no-key")
    assert talk_of(bob) == talk_of(ann, "vat:~1")


def test_a_new_recipient_reads_everything_once_it_is_encrypted_again(team, keys, hub):
    ann, _, bob = team
    eve = clone(hub, "eve")
    reads_with(eve, keys["eve"])
    work(ann, 2)
    ok(ann, "push")
    ok(bob, "pull")
    encrypt_to(ann, keys["ann"], keys["bob"], keys["eve"])
    ok(ann, "save", "-s", "vat", "--append", "-", input=TALK.encode())
    ok(ann, "push")
    assert "--re-encrypt" in refused(eve, "no-key")
    # It replaces what is there: the server has to allow that.
    there = refs(hub)
    fails(ann, 12, "push", "--re-encrypt")
    assert refs(hub) == there
    assert results(ann, "push")["vat/main"][0] == "up-to-date"
    git(hub, "config", "gitcp.allowPruned", "true")
    assert results(ann, "push", "--re-encrypt")["vat/main"][0] == "re-encrypted"
    ok(eve, "pull")
    assert talk_of(eve) == talk_of(ann)
    # For the others nothing has changed, and they go on from there.
    assert results(bob, "pull")["vat/main"][0] == "fast-forward"
    assert git(bob, "rev-parse", REF) == git(ann, "rev-parse", REF)
    ok(bob, "save", "-s", "vat", "--append", "-", input=TALK.encode())
    assert results(bob, "push")["vat/main"][0] == "fast-forward"
    ok(ann, "pull")
    ok(eve, "save", "-s", "vat", "--allow-empty")


def test_recipients_may_lie_in_a_file_but_not_in_the_project(team, keys, tmp_path):
    ann, hub, bob = team
    listed = f"# the team\n{keys['bob'].public}\n\n{keys['ed25519'].public}\n"
    (tmp_path / "team.txt").write_text(listed)
    git(
        ann,
        "config",
        "--replace-all",
        "gitcp.encryptTo",
        str(tmp_path / "team.txt"),
        ".*",
    )
    work(ann)
    ok(ann, "push")
    ok(bob, "pull")
    write_files(ann, {"team.txt": listed.encode()})
    before = refs(hub)
    for place in ("team.txt", "../ann/team.txt"):
        git(ann, "config", "gitcp.encryptTo", place)
        assert "is inside the project" in said(ann, 26, "push")["message"]
    for wrong in (
        "age1nothing",
        "ssh-ed25519 AAAA",
        "ecdsa-sha2-nistp256 AAAA",
        "/none",
    ):
        git(ann, "config", "gitcp.encryptTo", wrong)
        assert said(ann, 26, "push")["code"] == "encryption"
    assert refs(hub) == before


# --- plaintext where ciphertext is due -----------------------------------------------


def test_plaintext_is_not_pushed_where_ciphertext_is_due(team, keys):
    ann, hub, bob = team
    work(ann)
    ok(ann, "push")
    ok(bob, "pull")
    before = refs(hub)
    git(bob, "config", "--unset-all", "gitcp.encryptTo")
    ok(bob, "switch", "vat")
    ok(bob, "fork", "last", "plain-fork", "--yes")
    work(bob, session="another")
    for chosen in (
        (),
        ("origin", "vat"),
        ("origin", "vat/plain-fork"),
        ("origin", "another"),
    ):
        assert said(bob, 26, "push", *chosen)["code"] == "plaintext"
    # Said in so many words, other sessions go as they are; this one never.
    git(bob, "config", "gitcp.encryptTo", "off")
    assert said(bob, 26, "push", "origin", "vat")["code"] == "plaintext"
    assert said(bob, 26, "push")["code"] == "plaintext"
    assert refs(hub) == before
    assert holders(hub, MARKER.encode()) == []
    assert results(bob, "push", "origin", "another")["another/main"][0] == "created"
    encrypt_to(bob, keys["ann"])
    assert results(bob, "push", "origin", "vat")["vat/plain-fork"][0] == "created"


def test_plaintext_is_not_pulled_where_ciphertext_is_due(team):
    ann, hub, bob = team
    work(ann, 2)
    ok(ann, "push")
    ok(bob, "pull")
    there = git_line(hub, "rev-parse", REF)
    ok(ann, "save", "-s", "vat", "--allow-empty")
    # A remote, or an attacker in its place, has it unencrypted: a downgrade.
    (hub / "hooks" / "update").unlink()
    git(ann, "push", "-q", "--force", "origin", f"{REF}:{REF}")
    assert "unencrypted" in refused(bob, "plaintext")
    # It is refused by what was there before, too, with nothing set here.
    git(bob, "config", "--unset-all", "gitcp.encryptTo")
    refused(bob, "plaintext")
    # And no branch continues it.
    assert results(ann, "push")["vat/main"][0] == "up-to-date"
    ok(ann, "save", "-s", "vat", "--allow-empty")
    assert "unencrypted" in fails(ann, 12, "push")
    git(hub, "update-ref", REF, there)
    assert results(bob, "pull")["vat/main"][0] == "up-to-date"


def test_what_is_there_unencrypted_is_not_mixed(team, keys):
    ann, hub, bob = team
    git(ann, "config", "--unset-all", "gitcp.encryptTo")
    work(ann, 2)
    ok(ann, "push")
    encrypt_to(ann, keys["ann"], keys["bob"])
    assert results(ann, "push")["vat/main"][0] == "up-to-date"
    ok(ann, "save", "-s", "vat", "--allow-empty")
    work(ann, session="new")
    done = invoke(ann, "push")
    assert done.returncode == 3
    assert b"--re-encrypt" in done.stderr
    refused(bob, "plaintext", "origin", "vat")
    git(hub, "config", "gitcp.allowPruned", "true")
    ok(ann, "push", "--re-encrypt")
    git(hub, "gc", "-q", "--prune=now")
    assert holders(hub, MARKER.encode()) == []
    assert results(bob, "pull")["vat/main"][0] == "created"


# --- what goes wrong on the way -------------------------------------------------------


def test_a_push_that_was_refused_is_not_encrypted_twice(team):
    ann, hub, bob = team
    work(ann, 2)
    refuse = hub / "hooks" / "pre-receive"
    refuse.write_text("#!/bin/sh\nexit 1\n")
    refuse.chmod(0o755)
    fails(ann, 12, "push")
    mine = "refs/gitcp/e/origin/vat/main"
    made = git(ann, "rev-parse", mine)
    fails(ann, 12, "push")
    assert git(ann, "rev-parse", mine) == made
    refuse.unlink()
    ok(ann, "push")
    assert git(hub, "rev-parse", REF) == made
    ok(bob, "pull")


def test_losing_what_was_noted_loses_nothing(team):
    ann, _, bob = team
    talk = work(ann, 2)
    ok(ann, "push")
    git(ann, "update-ref", "-d", "refs/gitcp/e/origin/vat/main")
    fails(ann, 12, "push")
    assert results(ann, "pull")["vat/main"][0] == "up-to-date"
    ok(ann, "save", "-s", "vat", "--allow-empty")
    assert results(ann, "push")["vat/main"][0] == "fast-forward"
    ok(bob, "pull")
    assert talk_of(bob) == talk


def test_an_export_is_not_mistaken_for_it(team, tmp_path):
    ann, hub, bob = team
    work(ann)
    ok(ann, "push")
    bundle = tmp_path / "x.bundle"
    git(hub, "bundle", "create", "-q", bundle, REF)
    assert "only `gitcp pull` decrypts it" in fails(bob, 15, "import", str(bundle))
