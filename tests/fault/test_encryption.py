"""A remote that changes what is encrypted: each lie is refused, and nothing is adopted."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import gitcp
from tests.support.clones import clone, make_hub, refs, results
from tests.support.crypt import Key, blob, encrypt_to, forge, reads_with, records
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    write_files,
)
from tests.support.inprocess import invoke, ok

pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")

REF = "refs/gitcp/s/vat/main"
OTHER = "refs/gitcp/s/other/main"
HEAD = ".gitcp/encrypted/head"
TALK = b'{"role":"user","content":"Add VAT."}\n'
BOTH = ("new", "knows")


class Scene(NamedTuple):
    """A remote, and two who read: one knows all but the last checkpoint, one nothing."""

    place: Path

    @property
    def hub(self) -> Path:
        return self.place / "hub.git"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scene")
    key = Key(place, "key")
    hub = make_hub(place)
    ann, knows = clone(hub, "ann"), clone(hub, "knows")
    for repo in (ann, knows):
        encrypt_to(repo, key)
        reads_with(repo, key)
    for number in (1, 2):
        write_files(ann, {"a.py": b"%d" % number})
        ok(ann, "save", "-s", "vat", "--append", "-", "--decision", "x", input=TALK)
    ok(ann, "save", "-s", "other", "--append", "-", "--decision", "x", input=TALK)
    ok(ann, "push")
    ok(knows, "pull")
    ok(ann, "save", "-s", "vat", "--append", "-", "--fact", "y", input=TALK * 2)
    ok(ann, "push")
    new = clone(hub, "new")
    encrypt_to(new, key)
    reads_with(new, key)
    return place


@pytest.fixture
def scene(template: Path, tmp_path: Path) -> Scene:
    for name in ("hub.git", *BOTH):
        shutil.copytree(template / name, tmp_path / name, symlinks=True)
    for name in BOTH:
        git(tmp_path / name, "remote", "set-url", "origin", str(tmp_path / "hub.git"))
    return Scene(tmp_path)


def content(hub: Path, oid: str) -> bytes:
    return git(hub, "cat-file", "blob", oid)


def flipped(hub: Path, oid: str) -> str:
    data = bytearray(content(hub, oid))
    data[-1] ^= 1
    return blob(hub, bytes(data))


def other_recipient(data: bytes) -> bytes:
    """The same with another key share, well-formed."""
    letter = b"B" if data.split(b"-> X25519 ", 1)[1].startswith(b"A") else b"A"
    return re.sub(rb"-> X25519 .", b"-> X25519 " + letter, data, count=1)


def said(hub: Path, ref: str, key: str) -> bytes:
    trailer = f"--format=%(trailers:key=Gitcp-{key},valueonly)"
    return git(hub, "log", "-1", trailer, ref).strip()


def oid(hub: Path, ref: str) -> bytes:
    return git_line(hub, "rev-parse", ref).encode()


class Held(NamedTuple):
    """The ciphertexts of the newest checkpoint: all, and two that are records."""

    hub: Path
    all: Mapping[str, str]
    one: str
    two: str

    def change(self, changes: Mapping[str, str | None]) -> None:
        forge(self.hub, REF, changes)

    def say(self, old: bytes, new: bytes) -> None:
        forge(self.hub, REF, message=lambda raw: raw.replace(old, new))

    def there(self, ref: str) -> dict[str, str]:
        return records(self.hub, ref)

    def older(self) -> dict[str, str | None]:
        before = self.there(f"{REF}~1")
        return {path: before.get(path) for path in self.all}

    def stand_on_plaintext(self) -> None:
        knows = self.hub.parent / "knows"
        git(self.hub, "fetch", "-q", str(knows), REF)
        self.say(oid(self.hub, f"{REF}~1"), oid(self.hub, "FETCH_HEAD"))

    def move(self) -> None:
        git(self.hub, "update-ref", "refs/gitcp/s/vat/other", REF)
        git(self.hub, "update-ref", "-d", REF)

    def put(self, path: str, data: bytes) -> None:
        self.change({path: blob(self.hub, data)})


def held(hub: Path) -> Held:
    found = records(hub, REF)
    one, two = [path for path in found if path != HEAD][:2]
    return Held(hub, found, one, two)


LIES: dict[str, tuple[Callable[[Held], object], str]] = {
    "record changed": (
        lambda it: it.change({it.one: flipped(it.hub, it.all[it.one])}),
        "tampered with",
    ),
    "head changed": (
        lambda it: it.change({HEAD: flipped(it.hub, it.all[HEAD])}),
        "tampered with",
    ),
    "recipient changed": (
        lambda it: it.put(HEAD, other_recipient(content(it.hub, it.all[HEAD]))),
        "none of the keys here decrypts it",
    ),
    "record truncated": (
        lambda it: it.put(it.one, content(it.hub, it.all[it.one])[:-9]),
        "tampered with",
    ),
    "header truncated": (
        lambda it: it.put(it.one, content(it.hub, it.all[it.one])[:40]),
        "has no end",
    ),
    "record empty": (lambda it: it.put(it.one, b""), "not encrypted with age"),
    "record in plaintext": (
        lambda it: it.put(it.one, TALK),
        "not encrypted with age",
    ),
    "records exchanged": (
        lambda it: it.change({it.one: it.all[it.two], it.two: it.all[it.one]}),
        "lies in another's place",
    ),
    "record left out": (
        lambda it: it.change({it.one: None}),
        "not the encrypted ones",
    ),
    "record twice": (
        lambda it: it.change({f"{it.one}0": it.all[it.one]}),
        "lies in another's place",
    ),
    "record for a head": (
        lambda it: it.change({HEAD: it.all[it.one]}),
        "holds no commit",
    ),
    "record of another session": (
        lambda it: it.change(
            {it.one: next(one for path, one in it.there(OTHER).items() if path != HEAD)}
        ),
        "of another session",
    ),
    "head of another session": (
        lambda it: it.change({HEAD: it.there(OTHER)[HEAD]}),
        "of another session",
    ),
    "head of an older checkpoint": (
        lambda it: it.change({HEAD: it.there(f"{REF}~1")[HEAD]}),
        "head is of another checkpoint",
    ),
    "all records older": (
        lambda it: it.change(it.older()),
        "head is of another checkpoint",
    ),
    "file of the project changed": (
        lambda it: it.put("a.py", b"evil\n"),
        "not the encrypted ones",
    ),
    "something beside it": (
        lambda it: it.put(".gitcp/summary.md", b"hello\n"),
        "not encrypted in .gitcp",
    ),
    "marker changed": (
        lambda it: it.put(".gitcp/checkpoint.json", b'{"format":2}\n'),
        "does not know",
    ),
    "no ciphertext": (
        lambda it: it.change(dict.fromkeys(it.all)),
        "not encrypted in .gitcp",
    ),
    "another number": (
        lambda it: it.say(b"Seq: 3", b"Seq: 4"),
        "does not match its content",
    ),
    "another id": (
        lambda it: it.say(said(it.hub, REF, "Checkpoint"), b"0123456789ab"),
        "does not match its content",
    ),
    "another commit": (
        lambda it: it.say(
            said(it.hub, REF, "Encrypted"), said(it.hub, f"{REF}~1", "Encrypted")
        ),
        "head is of another checkpoint",
    ),
    "one left out": (
        lambda it: it.say(oid(it.hub, f"{REF}~1"), oid(it.hub, f"{REF}~2")),
        "not the original one",
    ),
    "another one before it": (
        lambda it: it.say(oid(it.hub, f"{REF}~1"), oid(it.hub, OTHER)),
        "",
    ),
    "plaintext before it": (Held.stand_on_plaintext, "is not encrypted"),
    "of another branch": (Held.move, "of another branch"),
}


@pytest.mark.parametrize("how", LIES)
def test_a_remote_that_changes_something_is_refused(scene, how):
    lie, words = LIES[how]
    good = git_line(scene.hub, "rev-parse", REF)
    lie(held(scene.hub))
    for name in BOTH:
        repo = scene.place / name
        before = refs(repo)
        done = invoke(repo, "pull", "origin", "vat")
        assert words in done.stderr.decode(), name
        assert done.returncode == (26 if how == "recipient changed" else 15)
        assert refs(repo) == before
        assert not list((repo / ".git" / "gitcp" / "tmp").iterdir())
    # What was there is none the worse.
    git(scene.hub, "update-ref", "-d", "refs/gitcp/s/vat/other")
    git(scene.hub, "update-ref", REF, good)
    for name, result in zip(BOTH, ("created", "fast-forward"), strict=True):
        repo = scene.place / name
        assert results(repo, "pull", "origin", "vat")["vat/main"][0] == result


def test_one_bad_session_keeps_no_other_away(scene):
    it = held(scene.hub)
    it.change({HEAD: flipped(it.hub, it.all[HEAD])})
    new = scene.place / "new"
    done = invoke(new, "pull")
    assert done.returncode == 3
    assert b"tampered with" in done.stdout
    assert git_line(new, "rev-parse", OTHER)
    assert not git(new, "rev-parse", "-q", "--verify", REF, check=False)


def test_pushes_of_one_clone_at_once_make_one_form(scene):
    knows = scene.place / "knows"
    ok(knows, "pull")
    for number in range(6):
        write_files(knows, {"a.py": b"%d" % number})
        ok(knows, "save", "-s", "vat", "--append", "-", input=TALK)
        ok(knows, "save", "-s", f"new-{number}", "--append", "-", input=TALK)
        session = gitcp.open(knows).session(f"new-{number % 2}")
        session.step(f"step {number}", str.upper, "x")
        session.flush()
    started = [
        subprocess.Popen(
            gitcp_argv("push"),
            cwd=knows,
            env=gitcp_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        for _ in range(3)
    ]
    for one in started:
        said, _ = one.communicate(timeout=250)
        assert one.returncode == 0, said
    for theirs, ours, count in (("s", "e", 8), ("fx", "efx", 2)):
        listed = ("for-each-ref", "--format=%(objectname)")
        there = git(scene.hub, *listed, f"refs/gitcp/{theirs}")
        assert there == git(knows, *listed, f"refs/gitcp/{ours}/origin")
        assert len(there.split()) == count
    new = scene.place / "new"
    ok(new, "pull")
    namespaces = ("refs/gitcp/s", "refs/gitcp/fx")
    below = ("for-each-ref", "--format=%(refname) %(objectname)", *namespaces)
    assert git(new, *below) == git(knows, *below)
