"""docs/format/object-store.md executed: documents and paths of an object store."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format import layout
from gitcp.format import store_document as documents

VECTORS = (Path(__file__).parents[2] / "docs" / "format" / "vectors.md").read_text()
PATHS = re.findall(r"^\* `(refs/\S+)`: `(sessions/\S+)`$", VECTORS, re.MULTILINE)
[DOCUMENT] = re.findall(r'^\{"format":1,"hash".*', VECTORS, re.MULTILINE)


def changed(**fields) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(DOCUMENT), **fields})


def with_pack(**fields) -> bytes:
    packs = msgspec.json.decode(DOCUMENT)["packs"]
    return changed(packs=[{**packs[0], **fields}, packs[1]])


def test_the_document_of_the_page_is_read_and_written():
    document = documents.decode(DOCUMENT.encode())
    assert document.packs[0].anchors == ("3" * 40,)
    assert documents.encode(document) == DOCUMENT.encode() + b"\n"


def test_paths_are_as_on_the_page():
    assert len(PATHS) == 3
    for ref, path in PATHS:
        assert documents.path_of(ref) == path
        key = documents.key_of(path)
        assert key == layout.ref_key(ref)


def test_the_prefixes_of_a_push_are_those_of_its_sessions():
    keys = [layout.LedgerKey.of("main")]
    assert {documents.below(one) for one in layout.prefixes_of(keys)} == {
        "sessions/main/"
    }
    assert {documents.below(one) for one in layout.prefixes_of([])} == {"sessions/"}
    assert documents.below("refs/heads/") is None


@pytest.mark.parametrize(
    "path",
    [
        "sessions/main/branches/Main.json",
        "sessions/../branches/main.json",
        "sessions/main/branches/a/b.json",
        "sessions/main/branches/main.json.7.tmp",
        "sessions/main.json",
        "packs/main.json",
    ],
)
def test_any_other_path_is_no_document(path):
    assert documents.key_of(path) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'{"format":1}',
        changed(hash="md5"),
        changed(tip="1" * 40),
        changed(tip="2" * 64),
        changed(packs=[]),
        with_pack(id="../../../../etc/passwd"),
        with_pack(id="A" * 32),
        with_pack(size=0),
        with_pack(size="1"),
        with_pack(sha256="x"),
        with_pack(tip="HEAD"),
        with_pack(anchors=["--upload-pack"]),
        b'{"format":1,"x":%b%b}' % (b"[" * 5_000, b"]" * 5_000),
        b'{"format":%b}' % (b"9" * 5_000),
        b"\xff\xfe{}",
    ],
)
def test_what_is_no_document_is_refused(raw):
    with pytest.raises(CorruptError):
        documents.decode(raw)


def test_a_newer_document_is_told_from_a_damaged_one():
    with pytest.raises(FormatTooNewError):
        documents.decode(changed(format=2, packs="else"))
