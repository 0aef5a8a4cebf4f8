"""Chunked files: their names, their pointers, and the lists of their chunks."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcp.format import chunked, tree
from gitcp.format.chunked import ChunkedName
from gitcp.format.tree import DIRECTORY, FILE, Entry


class Trees(dict):
    """Trees by their ids, as a repository keeps them."""

    def write(self, entries: tree.Tree) -> bytes:
        oid = hashlib.sha1(tree.encode(entries), usedforsecurity=False).digest()
        self[oid] = dict(entries)
        return oid


def oid(number: int) -> bytes:
    return hashlib.sha1(b"%d" % number, usedforsecurity=False).digest()


@given(st.lists(st.binary(min_size=20, max_size=20), max_size=700))
def test_a_list_gives_back_its_chunks_in_order(chunks):
    trees = Trees()
    root = chunked.write_list(chunks, trees.write)
    assert list(chunked.read_list(root, trees.__getitem__)) == chunks


def test_a_group_never_has_more_names_than_its_digits_can_count():
    # None of them ends a group by its last byte.
    chunks = [b"\1" * 20] * 9000
    trees = Trees()
    root = chunked.write_list(chunks, trees.write)
    assert list(chunked.read_list(root, trees.__getitem__)) == chunks
    assert sorted(trees[root]) == [b"0000", b"0001", b"0002"]
    assert max(map(len, trees.values())) == 4096


@given(st.integers(0, 5000))
def test_a_chunk_that_is_put_in_changes_one_group(place):
    chunks = [oid(number) for number in range(5000)]
    trees = Trees()
    chunked.write_list(chunks, trees.write)
    before = len(trees)
    chunks.insert(place, b"\1" * 20)
    chunked.write_list(chunks, trees.write)
    # That group, and the tree above.
    assert len(trees) <= before + 2


def test_what_is_no_list_is_refused():
    trees = Trees()
    group = trees.write({b"000": Entry(DIRECTORY, oid(1))})
    for root in (
        trees.write({b"0000": Entry(FILE, oid(1))}),
        trees.write({b"0000": Entry(DIRECTORY, group)}),
    ):
        with pytest.raises(ValueError, match="not a list"):
            list(chunked.read_list(root, trees.__getitem__))


@pytest.mark.parametrize("size", [20, 32])
def test_a_name_is_read_as_it_was_written(size):
    name = ChunkedName(b"\xab" * size, 1234)
    assert ChunkedName.parse(name.path) == name
    assert name.pointer.startswith(chunked.MAGIC)
    assert name.path in name.pointer
    assert len(name.pointer) < 1024


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"ab" * 20,
        b"ab" * 20 + b"-",
        b"ab" * 20 + b"-01",
        b"ab" * 20 + b"-1\n",
        b"AB" * 20 + b"-1",
        b"ab" * 19 + b"-1",
        b"ab" * 20 + b"-" + b"9" * 17,
        b"\xff-1",
    ],
)
def test_other_names_are_none(path):
    assert ChunkedName.parse(path) is None
