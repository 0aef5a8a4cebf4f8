"""A value as a log: joined it is the value, whatever came before it."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("langgraph.checkpoint.base", reason="gitcp[langgraph] is missing")

import ormsgpack

from gitcp.adapters.langgraph import values
from gitcp.adapters.langgraph.msgpack_split import head_length, split
from gitcp.adapters.langgraph.values import Value, encode_value, load_value
from gitcp.format import tree
from gitcp.format.graph import EventHeader, GraphKey, encode_header
from gitcp.format.layout import GRAPH
from gitcp.format.oid import SHA1
from gitcp.format.tree import DIRECTORY, Entry
from gitcp.wal.record_sink import RecordSink

# Making the values takes longer than the test; a busy machine must not fail it.
few = settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])


class Memory(RecordSink):
    """Objects in a dict; counts what was added."""

    def __init__(self) -> None:
        super().__init__({}, SHA1)
        self.held: dict[bytes, bytes] = {}
        self.added = 0

    def add_blob(self, data: bytes) -> bytes:
        oid = super().add_blob(data)
        if oid not in self.held:
            self.added += len(data)
        self.held[oid] = data
        return oid

    def add_tree(self, entries: tree.Tree) -> bytes:
        oid = super().add_tree(entries)
        self.held[oid] = tree.encode(entries)
        return oid

    def tree(self, oid: bytes) -> tree.Tree:
        return tree.parse(self.held[oid])


def loaded(memory: Memory, name: str, value: Value) -> Value:
    """The value as another process reads it."""
    if value.tree is None:
        return value
    source = memory.add_tree({name.encode(): Entry(DIRECTORY, value.tree)})
    log = memory.add_tree({GRAPH.encode(): Entry(DIRECTORY, source)})
    return load_value(
        name, value.kind, value.head, log, memory.tree, memory.held.__getitem__
    )


TEXTS = st.lists(st.binary(min_size=1, max_size=1500), max_size=40)


@few
@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_each_value_is_the_bytes_it_was_made_of(lists):
    memory = Memory()
    before = None
    for items in lists:
        data = ormsgpack.packb(items)
        made = encode_value("ch", "msgpack", data, before, memory)
        assert made.data == data
        found = loaded(memory, "ch", made)
        assert found == made
        before = found


@few
@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 60))
def test_any_window_of_a_list_is_kept(first, start, length):
    memory = Memory()
    items = [hashlib.sha256(bytes([n])).hexdigest() * 20 for n in range(120)]
    before = encode_value(
        "ch", "msgpack", ormsgpack.packb(items[first : first + 60]), None, memory
    )
    data = ormsgpack.packb(items[start : start + length])
    made = encode_value("ch", "msgpack", data, before, memory)
    assert loaded(memory, "ch", made).data == data


def test_a_growing_list_writes_what_is_new_and_stays_in_few_pieces():
    memory = Memory()
    items: list[str] = []
    before = None
    for number in range(400):
        items.append(f"{number:05}" * 240)
        before = encode_value("ch", "msgpack", ormsgpack.packb(items), before, memory)
    assert before is not None
    # Four hundred times 1.2 kB: twice, for what is merged, and once more for the rest.
    assert memory.added < 3.5 * 400 * 1200
    assert len(before.segments) < 400 * 1200 / values._PIECE + values._TAIL + 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
    | st.floats(allow_nan=False) | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)  # fmt: skip


@few
@given(st.lists(JSON, max_size=30), st.integers(1, 200))
def test_pieces_end_where_items_do(items, least):
    data = ormsgpack.packb(items)
    body = data[head_length(data) :]
    pieces = split(body, least)
    assert b"".join(pieces) == body
    ends = set()
    at = 0
    for item in items:
        at += len(ormsgpack.packb(item))
        ends.add(at)
    at = 0
    for piece in pieces:
        at += len(piece)
        assert at in ends
    assert all(len(piece) >= least for piece in pieces[:-1])


@few
@given(st.binary(max_size=400), st.integers(1, 50))
def test_bytes_of_any_kind_are_split_without_loss(data, least):
    assert b"".join(split(data, least)) == data


def test_the_vector_of_the_format():
    """docs/format.md, 15."""
    memory = Memory()
    data = ormsgpack.packb(["x" * 1100])
    made = encode_value("ch", "msgpack", data, None, memory)
    assert made.head == b"\x91"
    (segment,) = made.segments
    assert segment.size == 1103
    assert memory.held[segment.oid] == bytes.fromhex("da044c") + b"x" * 1100


def test_the_trailer_of_the_format():
    """docs/format.md, 15."""
    key = GraphKey("node:1|two", "1f0-a")
    assert encode_header(EventHeader("put", key, "p,1", None)) == (
        "Graph",
        "put,node%3A1%7Ctwo,1f0-a,p%2C1,",
    )
