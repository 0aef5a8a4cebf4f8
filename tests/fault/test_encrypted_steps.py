"""A remote that changes encrypted ledgers: each lie is refused, and nothing is adopted."""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import gitcp
from gitcp.format import encrypted, encrypted_ledger
from gitcp.format.commit import parse_commit
from gitcp.format.encrypted_ledger import EncryptedPage, HeldPage
from tests.support.clones import clone, make_hub, refs
from tests.support.crypt import Key, blob, encrypt_to, forge, reads_with, tree_with
from tests.support.forms import new_form
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import invoke, ok

pyrage = pytest.importorskip("pyrage", reason="gitcp[crypt] is not installed")

LEDGER = "refs/gitcp/fx/vat"
OTHER = "refs/gitcp/fx/other"
RECORD = "encrypted"
BOTH = ("new", "knows")


class Remote(NamedTuple):
    """A remote, and Ann, who made what it has and knows what is in it."""

    place: Path

    @property
    def hub(self) -> Path:
        return self.place / "hub.git"

    @property
    def ann(self) -> Path:
        return self.place / "ann"

    def content(self, ref: str = LEDGER) -> bytes:
        return git(self.hub, "cat-file", "blob", f"{ref}:{RECORD}")

    def change(self, path: str, data: bytes | None) -> None:
        forge(self.hub, LEDGER, {path: None if data is None else blob(self.hub, data)})

    def say(self, old: bytes, new: bytes) -> None:
        forge(self.hub, LEDGER, message=lambda raw: raw.replace(old, new))

    def oid(self, ref: str) -> bytes:
        return git_line(self.hub, "rev-parse", ref).encode()

    def plain(self, ref: str) -> bytes:
        trailer = "--format=%(trailers:key=Gitcp-Encrypted,valueonly)"
        return git(self.hub, "log", "-1", trailer, ref).strip()

    def flipped(self) -> bytes:
        data = bytearray(self.content())
        data[-1] ^= 1
        return bytes(data)

    def put_record(self, oid: str) -> None:
        forge(self.hub, LEDGER, {RECORD: oid})

    # --- what can be made with the public key, and knowledge of the plaintext ----------

    def sealed(self, plain: bytes) -> bytes:
        listed = git(self.ann, "config", "--get-all", "gitcp.encryptTo").decode()
        keys = [
            pyrage.x25519.Recipient.from_str(one) for one in listed.splitlines() if one
        ]
        made: bytes = pyrage.encrypt(plain, keys)
        return made

    def held(self, ref: str = LEDGER) -> tuple[str, HeldPage]:
        """The page that Ann has, with its values."""
        oid = git_line(self.ann, "rev-parse", ref)
        names = git(self.ann, "ls-tree", "--name-only", oid).split()
        values = {
            name: git(self.ann, "cat-file", "blob", f"{oid}:{name.decode()}")
            for name in names
        }
        return oid, HeldPage(git(self.ann, "cat-file", "commit", oid), values)

    def other_record(self, *files: tuple[bytes, bytes]) -> None:
        self.change(RECORD, self.sealed(encrypted.encode_record("vat", files)))

    def other_values(self, values: dict[bytes, bytes]) -> None:
        oid, page = self.held()
        held = page._replace(values=values)
        self.other_record(*encrypted_ledger.page_files(oid, held))

    def on_top(self, change: Callable[[bytes], bytes]) -> None:
        """A page more, well encrypted, made from the last one."""
        before, page = self.held()
        commit = parse_commit(page.raw, new_form().size)
        raw = page.raw.replace(commit.parents[0].hex().encode(), before.encode())
        raw = change(raw)
        args = ("hash-object", "--literally", "-t", "commit", "--stdin")
        oid = git(self.hub, *args, input=raw).decode().strip()
        files = encrypted_ledger.page_files(oid, HeldPage(raw, page.values))
        record = blob(self.hub, self.sealed(encrypted.encode_record("vat", files)))
        last = int(re.findall(rb"Gitcp-Last: (\d+)", raw)[-1])
        root = tree_with(
            self.hub, self.oid(f"{LEDGER}^{{tree}}").decode(), {RECORD: record}
        )
        form = encrypted_ledger.encode_page_commit(
            bytes.fromhex(root),
            [bytes.fromhex(self.oid(LEDGER).decode())],
            commit.epoch,
            EncryptedPage("vat", last, oid),
        )
        made = git(self.hub, "hash-object", "-t", "commit", "-w", "--stdin", input=form)
        git(self.hub, "update-ref", LEDGER, made.decode().strip())


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scene")
    key = Key(place, "key")
    hub = make_hub(place)
    ann, knows = clone(hub, "ann"), clone(hub, "knows")
    for repo in (ann, knows):
        encrypt_to(repo, key)
        reads_with(repo, key)

    def step(session: str, name: str) -> None:
        run = gitcp.open(ann).session(session)
        run.step(name, lambda: name * 9_000)
        run.flush()

    gitcp.open(ann).session("vat").save(note="start")
    step("vat", "a")
    step("other", "a")
    ok(ann, "push")
    ok(knows, "pull")
    step("vat", "b")
    ok(ann, "push")
    new = clone(hub, "new")
    encrypt_to(new, key)
    reads_with(new, key)
    return place


@pytest.fixture
def scene(template: Path, tmp_path: Path) -> Remote:
    for name in ("hub.git", "ann", *BOTH):
        shutil.copytree(template / name, tmp_path / name, symlinks=True)
    for name in BOTH:
        git(tmp_path / name, "remote", "set-url", "origin", str(tmp_path / "hub.git"))
    return Remote(tmp_path)


def other_recipient(data: bytes) -> bytes:
    letter = b"B" if data.split(b"-> X25519 ", 1)[1].startswith(b"A") else b"A"
    return re.sub(rb"-> X25519 .", b"-> X25519 " + letter, data, count=1)


def moved(it: Remote) -> None:
    git(it.hub, "update-ref", "refs/gitcp/fx/more", LEDGER)
    git(it.hub, "update-ref", "-d", LEDGER)


def parent_too(it: Remote) -> None:
    line = b"parent " + it.oid(f"{LEDGER}~1") + b"\n"
    it.say(line, line + b"parent " + it.oid(f"{LEDGER}~2") + b"\n")


LIES: dict[str, tuple[Callable[[Remote], object], str]] = {
    "record changed": (lambda it: it.change(RECORD, it.flipped()), "tampered with"),
    "record truncated": (lambda it: it.change(RECORD, it.content()[:-9]), "tampered"),
    "record empty": (lambda it: it.change(RECORD, b""), "not encrypted with age"),
    "record in plaintext": (
        lambda it: it.change(RECORD, it.held()[1].raw),
        "not encrypted with age",
    ),
    "recipient changed": (
        lambda it: it.change(RECORD, other_recipient(it.content())),
        "none of the keys here decrypts it",
    ),
    "no record": (lambda it: forge(it.hub, LEDGER, {RECORD: None}), "not encrypted"),
    "something beside it": (lambda it: it.change("4.json", b"1"), "not encrypted"),
    "record of older pages": (
        lambda it: it.change(RECORD, it.content(f"{LEDGER}~2")),
        "does not hold the page",
    ),
    "record of another session": (
        lambda it: it.change(RECORD, it.content(OTHER)),
        "of another session",
    ),
    "record of a checkpoint": (
        lambda it: it.put_record(
            it.oid("refs/gitcp/s/vat/main:.gitcp/encrypted/head").decode()
        ),
        "holds what is not a page",
    ),
    "another page for it": (
        lambda it: it.other_record(
            (f"fx/{it.held()[0]}".encode(), it.held(f"{LEDGER}~1")[1].raw)
        ),
        "does not hold the page",
    ),
    "another value": (
        lambda it: it.other_values({b"4.json": b'"' + b"c" * 9_000 + b'"'}),
        "not those that were encrypted",
    ),
    "a value left out": (lambda it: it.other_values({}), "not those that were"),
    "a value more": (
        lambda it: it.other_values(
            {**it.held()[1].values, b"5.json": b"1"},
        ),
        "not those that were encrypted",
    ),
    "a value without a page": (
        lambda it: it.other_record((b"fx/" + b"a" * 40 + b"/1.json", b"1")),
        "a value without its page",
    ),
    "a path that climbs": (
        lambda it: it.other_record((b"fx/../../x", b"1")),
        "holds what is not a page",
    ),
    "another number": (
        lambda it: it.say(b"Last: 4", b"Last: 5"),
        "does not match its content",
    ),
    "another session": (
        lambda it: it.say(b"Ledger: vat", b"Ledger: other"),
        "of another session",
    ),
    "another page": (
        lambda it: it.say(it.plain(LEDGER), it.plain(f"{LEDGER}~1")),
        "does not match its content",
    ),
    "a page of no ledger": (
        lambda it: it.say(it.plain(LEDGER), b"ab" * 20),
        "does not hold the page",
    ),
    "of version 1": (
        lambda it: it.say(b"Version: 2", b"Version: 1"),
        "came unencrypted",
    ),
    "one left out": (
        lambda it: it.say(it.oid(f"{LEDGER}~1"), it.oid(f"{LEDGER}~2")),
        "not the one that was there",
    ),
    "a parent more": (parent_too, "not the one that was there"),
    "a checkpoint before it": (
        lambda it: it.say(it.oid(f"{LEDGER}~1"), it.oid("refs/gitcp/s/vat/main")),
        "is not encrypted",
    ),
    "of another ref": (moved, "of another session"),
    "well encrypted, with a gap": (
        lambda it: it.on_top(
            lambda raw: raw.replace(b'{"n":4,', b'{"n":9,').replace(
                b"Last: 4", b"Last: 9"
            )
        ),
        "(E3)",
    ),
    "well encrypted, not as it is written": (
        lambda it: it.on_top(
            lambda raw: raw.replace(b'{"n":4,', b'{"n":5, ').replace(
                b"Last: 4", b"Last: 5"
            )
        ),
        "not written as it should be",
    ),
    "well encrypted, of another session": (
        lambda it: it.on_top(lambda raw: raw.replace(b"Ledger: vat", b"Ledger: job")),
        "does not match its content",
    ),
}
STATUS = {"recipient changed": {26}, "of version 1": {26}}


@pytest.mark.parametrize("how", LIES)
def test_a_remote_that_changes_what_steps_did_is_refused(scene, how):
    lie, words = LIES[how]
    good = scene.oid(LEDGER).decode()
    lie(scene)
    for name in BOTH:
        repo = scene.place / name
        git(repo, "config", "gitcp.pullMaxFile", "100m")
        before = refs(repo)
        sessions = () if how == "of another ref" else ("vat",)
        done = invoke(repo, "pull", "origin", *sessions)
        said = done.stderr.decode()
        assert words in said, (name, said)
        # What else the remote has may have come: of what was changed there is nothing.
        allowed = STATUS.get(how, {15}) | {3}
        assert done.returncode in allowed, (name, said)
        if sessions:
            assert refs(repo) == before
        assert git(repo, "for-each-ref", "refs/gitcp/fx/more") == b""
        assert not list((repo / ".git" / "gitcp" / "tmp").iterdir())
    git(scene.hub, "update-ref", "-d", "refs/gitcp/fx/more")
    git(scene.hub, "update-ref", LEDGER, good)
    for name in BOTH:
        repo = scene.place / name
        ok(repo, "pull", "origin", "vat")
        assert git(repo, "rev-parse", LEDGER) == git(scene.ann, "rev-parse", LEDGER)
        assert ok(repo, "verify")["ok"]


def test_a_record_that_swells_is_stopped(scene):
    header = b'{"format":1,"session":"vat","files":[["fx/%b",%d]]}\n'
    bomb = zlib.compress(header % (b"a" * 40, 1 << 24) + bytes(1 << 24))
    scene.change(RECORD, scene.sealed(bomb))
    for name in BOTH:
        repo = scene.place / name
        git(repo, "config", "gitcp.pullMaxFile", "8m")
        before = refs(repo)
        done = invoke(repo, "pull", "origin", "vat")
        assert done.returncode == 21, done.stderr
        assert b"pullMaxFile" in done.stderr
        assert refs(repo) == before


def test_one_bad_ledger_keeps_no_other_session_away(scene):
    scene.change(RECORD, scene.flipped())
    new = scene.place / "new"
    done = invoke(new, "pull")
    assert done.returncode == 3
    assert b"tampered with" in done.stdout
    assert git_line(new, "rev-parse", OTHER)
    # Not the branch either: its step ledger would not be known.
    listed = git(new, "for-each-ref", "--format=%(refname)", "refs/gitcp").decode()
    assert "/vat" not in listed
