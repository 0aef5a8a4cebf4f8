"""The lines of a log, however it is cut into chunks."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from gitcp.store.log_lines import Block, blocks

TEXT = st.lists(
    st.sampled_from([b"\n", b"a", b"bc", b"long line", b"\n\n"]), max_size=20
).map(b"".join)


def cut(text: bytes, sizes: list[int]) -> list[bytes]:
    chunks = []
    for size in sizes:
        chunks.append(text[:size])
        text = text[size:]
    return [*chunks, text]


def lines(text: bytes, found: list[Block]) -> list[bytes]:
    """Returns each line, or its digest, and checks where the blocks say they are."""
    shown = []
    at = 0
    for block in found:
        assert block.start == at
        if block.digest is None:
            assert text.startswith(block.data, at)
            shown += block.data.removesuffix(b"\n").split(b"\n")
            at += len(block.data)
        else:
            assert block.data == b""
            shown.append(block.digest)
            end = text.find(b"\n", at)
            at = len(text) if end < 0 else end + 1
    assert at == len(text)
    return shown


@given(TEXT, st.lists(st.integers(0, 9), max_size=12))
def test_all_lines_come_once_and_in_order(text, sizes):
    found = list(blocks(cut(text, sizes), None))
    wanted = text.removesuffix(b"\n").split(b"\n") if text else []
    assert lines(text, found) == wanted


@given(TEXT, st.lists(st.integers(0, 9), max_size=12), st.integers(1, 12))
def test_a_line_that_is_too_long_is_a_digest_wherever_it_was_cut(text, sizes, longest):
    found = list(blocks(cut(text, sizes), longest))
    wanted = text.removesuffix(b"\n").split(b"\n") if text else []
    assert lines(text, found) == [
        line if len(line) <= longest else hashlib.sha256(line).digest()
        for line in wanted
    ]
