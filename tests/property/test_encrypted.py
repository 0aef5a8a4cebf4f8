"""Encrypted forms: what is opened is what was encrypted, whatever came in between."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gitcp
from gitcp.encryption.age import Identities, Recipients
from gitcp.errors import CorruptError, EncryptionError
from gitcp.format import encrypted
from gitcp.format.encrypted import (
    EncryptedContent,
    decode_record,
    encode_record,
    record_name,
)
from tests.support.clones import clone, make_hub
from tests.support.crypt import Key, encrypt_to, holders, reads_with
from tests.support.gitrepo import git, write_files
from tests.support.inprocess import invoke, ok

pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")

paths = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).map(str.encode)
files = st.dictionaries(paths, st.binary(max_size=200), max_size=5)
MARKER = "wombat-7731"


@given(st.text("abc%_-", max_size=9), files, st.none() | st.binary(max_size=99))
def test_a_record_comes_back_as_it_was(session, held, commit):
    raw = encode_record(session, held.items(), commit)
    assert decode_record(raw) == EncryptedContent(session, held, commit)
    # The same content gives the same bytes.
    assert encode_record(session, reversed(list(held.items())), commit) == raw


@given(files, st.binary(max_size=40), st.integers(0, 400))
def test_a_record_that_is_not_whole_is_none(held, noise, at):
    raw = encode_record("s", held.items(), b"commit")
    body = zlib.decompress(raw)
    for broken in (noise, raw[:-1], raw + b"x", zlib.compress(body[:at] + noise)):
        try:
            found = decode_record(broken)
        except ValueError:
            continue
        # Nothing else has the same meaning.
        assert broken == raw or found != EncryptedContent("s", held, b"commit")


@pytest.mark.parametrize(
    "header",
    [
        '{"format":1,"session":"s","files":[["a",9]]}',
        '{"format":1,"session":"s","files":[["a",-1]]}',
        '{"format":1,"session":"s","files":[["a",1],["a",0]]}',
        '{"format":1,"session":"s","files":[["\\ud800",1]]}',
        '{"format":1,"session":"s","files":[["a",1.5]]}',
        '{"format":2,"session":"s","files":[["a",1]]}',
        '{"format":1,"files":[["a",1]]}',
        "[" * 100_000,
        '{"format":1,"session":"s","files":[],"commit":99999999999999999999999}',
    ],
)
def test_a_header_that_lies_is_refused(header):
    with pytest.raises(ValueError):
        decode_record(zlib.compress(header.encode() + b"\nx"))


def test_what_swells_is_stopped_early():
    packer = zlib.compressobj(9)
    chunk = b"\0" * (1 << 20)
    bomb = b"".join(packer.compress(chunk) for _ in range(256)) + packer.flush()
    assert len(bomb) < 1 << 19
    with pytest.raises(ValueError, match="holds more than 1,000,000 bytes"):
        decode_record(bomb, 1_000_000)
    with pytest.raises(ValueError, match="holds more than 134,217,728 bytes"):
        decode_record(bomb)


def test_records_of_two_files_do_not_meet():
    names = {
        record_name(b"log/conversation/main/%04x/00.jsonl" % n) for n in range(999)
    }
    assert len(names) == 999
    assert not encrypted.is_record(b"checkpoint.json", encrypted.INLINE)
    assert encrypted.is_record(b"skipped.jsonl", encrypted.INLINE + 1)
    assert encrypted.is_record(b"log/decisions/main/0000/00.jsonl", 1)
    assert not encrypted.is_record(b"log/decisions/main/meta.json", 1)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Identities]:
    """A ciphertext, and what opens it."""
    place = tmp_path_factory.mktemp("keys")
    key = Key(place, "key")
    return (
        Recipients([key.public], top=place / "top").encrypt(b"plain"),
        Identities([str(key.secret)], top=place),
    )


@given(st.integers(0, 9999), st.integers(1, 8), st.binary(max_size=8))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_ciphertext_that_was_changed_says_nothing(pair, at, length, put):
    good, identities = pair
    assert identities.decrypt(good) == b"plain"
    at %= len(good) + 1
    changed = good[:at] + put + good[at + length :]
    if changed == good:
        return
    with pytest.raises((CorruptError, EncryptionError)):
        identities.decrypt(changed)


@given(st.binary(max_size=300))
@example(
    b"age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 60\nAAAA\n--- AAAA\n"
)
@example(b"age-encryption.org/v1\n" + b"-> X25519 A\nA\n" * 20_000 + b"--- A\n")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_anything_else_is_refused(pair, noise):
    for text in (noise, b"age-encryption.org/v1\n" + noise):
        with pytest.raises((CorruptError, EncryptionError)):
            pair[1].decrypt(text)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6000)),
        st.tuples(st.just("rewrite"), st.integers(0, 3)),
        st.tuples(st.just("decide"), st.integers(0, 1)),
        st.tuples(st.just("restore"), st.integers(0, 9)),
        st.tuples(st.just("fork"), st.integers(0, 9)),
        st.tuples(st.just("prune"), st.integers(1, 3)),
        st.tuples(st.just("step"), st.integers(0, 9000)),
        st.tuples(st.just("push"), st.just(0)),
    ),
    min_size=4,
    max_size=9,
)


@given(steps)
@settings(
    max_examples=6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_both_sides_hold_the_same_commits(sealed, history):
    place = Path(tempfile.mkdtemp())
    try:
        _both(place, history)
    finally:
        shutil.rmtree(place)


def _both(place: Path, history: list[tuple[str, int]]) -> None:
    key = Key(place, "key")
    hub = make_hub(place)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    for repo in (ann, bob):
        encrypt_to(repo, key)
        reads_with(repo, key)
    talk: list[bytes] = []
    ok(ann, "save", "-s", "vat", "--allow-empty", "-m", MARKER)
    for number, (what, count) in enumerate([*history, ("push", 0)]):
        if what in {"append", "rewrite"}:
            line = (
                b'{"n":%d,"%s":"' % (number, MARKER.encode()) + b"x" * count + b'"}\n'
            )
            talk = [*talk, line] if what == "append" else [*talk[:count], line]
            write_files(ann, {"a.py": b"%d" % number})
            ok(ann, "save", "--messages", "-", input=b"".join(talk))
        elif what == "decide":
            ok(ann, "save", "--fact", f"{MARKER} {number}", "--position", f"{number}")
        elif what == "step":
            session = gitcp.open(ann).session("vat")
            text = MARKER + "x" * count
            session.step(f"{MARKER} {number}", lambda text=text: text, effect="none")
            session.flush()
        elif what in {"restore", "fork"}:
            there = ok(ann, "log")["checkpoints"]
            chosen = there[count % len(there)]["id"]
            more = [f"side-{number}"] if what == "fork" else []
            ok(ann, what, chosen, *more, "--yes")
            talk = invoke(ann, "messages", "--format", "jsonl").stdout.splitlines(True)
        elif what == "prune":
            invoke(ann, "prune", "--keep-last", str(count), "--yes")
        else:
            ok(ann, "push", "--pruned")
            ok(bob, "pull")
            below = (
                "for-each-ref",
                "--format=%(refname) %(objectname)",
                "refs/gitcp/s",
                "refs/gitcp/fx",
            )
            assert git(ann, *below) == git(bob, *below)
            assert ok(bob, "verify")["ok"]
            assert holders(hub, MARKER.encode()) == []
            assert all(
                one["result"] == "up-to-date" for one in ok(ann, "push")["branches"]
            )
