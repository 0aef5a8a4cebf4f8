"""Lines of the Agent Client Protocol: every byte passes, whole lines are seen."""

import random

import pytest

from gitcp.acp.framing import Framing

LINES = [
    b'{"id":1}\n',
    b"\n",
    b'{"text":"' + b"x" * 500 + b'"}\r\n',
    b"\xff\x00 not JSON \x1b[31m\n",
    b'  {"method":"m"}\n',
]


def _passed(framing: Framing, chunks: list[bytes]) -> tuple[bytes, list[bytes]]:
    data, seen = b"", []
    for chunk in chunks:
        for piece in framing.feed(chunk):
            data += piece.data
            if piece.line is not None:
                seen.append(piece.line)
    return data + framing.rest(), seen


@pytest.mark.parametrize("hold", [0, 7, 100, 10_000])
def test_every_byte_passes_however_it_is_cut(hold):
    whole = b"".join(LINES) * 3 + b'{"unfinished'
    drawn = random.Random(7)
    for _ in range(200):
        cuts = sorted(drawn.sample(range(len(whole)), drawn.randrange(12)))
        chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
        data, seen = _passed(Framing(hold=hold, keep=10_000), chunks)
        assert data == whole
        assert seen == LINES * 3


def test_an_unfinished_object_is_held_back_and_an_unfinished_word_is_not():
    framing = Framing(hold=100, keep=100)
    assert list(framing.feed(b'{"id":')) == []
    assert [piece.data for piece in framing.feed(b"1}\nready? ")] == [
        b'{"id":1}\n',
        b"ready? ",
    ]
    assert framing.rest() == b""


def test_of_a_line_that_is_too_long_nothing_is_kept():
    framing = Framing(hold=10, keep=20)
    data, seen = _passed(framing, [b'{"a":"' + b"x" * 9, b"x" * 9, b'"}\n{}\n'])
    assert data == b'{"a":"' + b"x" * 18 + b'"}\n{}\n'
    assert seen == [b"{}\n"]


def test_a_batch_and_a_blank_beginning_pass_in_their_place():
    framing = Framing(hold=100, keep=100)
    assert [piece.data for piece in framing.feed(b'[{"id":1},')] == [b'[{"id":1},']
    assert list(framing.feed(b"{}]\n  ")) == [(b"{}]\n", b'[{"id":1},{}]\n')]
    assert list(framing.feed(b"{}\n")) == [(b"  {}\n", b"  {}\n")]
    assert framing.rest() == b""


def test_the_end_of_a_stream_is_not_handed_on_twice():
    framing = Framing(hold=4, keep=100)
    assert [piece.data for piece in framing.feed(b'{"a":')] == [b'{"a":']
    assert framing.rest() == b""
    assert list(framing.feed(b"{")) == []
    assert framing.rest() == b"{"
