"""Weighs whether chance made a value or a person wrote it as a name.

Both models give a probability for just this value. Chance takes each letter of an alphabet
equally often. A person who writes a name follows the order of letters in words, and that of
capitals, small letters and digits in names of programs. The difference, in bits, is the
evidence: a name in a program has negative evidence, and a random token of 20 letters nearly
always more than 20. So no list of the forms of names is needed.
"""

import math
import re
import string

# The least evidence for a value beside the name of a password, of a token, and by itself.
PASSWORD, TOKEN, ALONE = 7, 14, 20

# In half bits, `a` for 0: the first letter stands for the sign before (`9` for a digit, `_` for
# any other sign), then follows the cost of each letter of the alphabet after it. Counted in
# 290,000 words of programs and manuals that are in at least two files, or of letters alone.
_FOLLOWS = (
    b"aqkijqpjqkqogihqjqgiflonnmq",
    b"bfomogpoqhjqfpohnqjjngqqqjq",
    b"chqmpgpqglqhimqfnqjmgkqqqnq",
    b"dgmmjdmmpgqqknoimqkjlkppqnq",
    b"ejoiimkmqoqqhkgplmfghqlojnq",
    b"fhqpoiipqeqqiqnfoqikkiqqqmq",
    b"gjomodpljhqqjmjlmqhiljqqqpq",
    b"hfoopeqqqgqqnmqgnqjlhlqpqnq",
    b"iklijkljqqqqijeglqlhhqlqoql",
    b"jhooqeqqqkqnooqgnlqeqiooqqq",
    b"kjolmcllogqqlnlmmqnhnkqkqqq",
    b"lhookfhpqfqqhqqhoqpjijmqqmq",
    b"mfknmepqqhqqlkphgqpjolqqqpq",
    b"nhqighjhqjqmnplimqogflmqqqq",
    b"omljiqnmqmqmiiekiqfkjimkqqq",
    b"pfqlmfpqljqpiqogiqgkhjqqqjq",
    b"qkpnnloqpqqqjoppnmlknbqqqqq",
    b"rgqklepkqhqmmklgoqjiilmqqkq",
    b"skqjpeopkhqlkoojjqphejqoqlq",
    b"tgqkoeoqifqqnnqhmqhjklqpqjq",
    b"ukkllhmmqkqqhifoiqghgqqqqqq",
    b"veqmpcqqqgqomjqklqpmoqqqqpq",
    b"wgommgpqkfqqnoifoqghoqqoqqq",
    b"xlpimhmppiqiikoofqojeqpqmnq",
    b"ykmkkknmqlqqjiildqmhhppkqqq",
    b"zgqqqcpooiqqlooipqqnomqqqmj",
    b"9hiiiiiiqhqqoqoqmqokopnodqq",
    b"_ikhijjklipnkjkkiqigillmnqq",
)
# The same for the sorts of signs: small letters, capitals, digits, others.
_SORTS = (b"ajsh", b"ebqg", b"ekcf", b"beoh")
# And for the signs that join words, among all signs that are none of the first three.
_JOINS, _JOINED, _NO_JOIN = b"_.-/", 4, 10
_DIGIT = 2 * math.log2(10)
_LETTERS = string.ascii_lowercase.encode()
_OTHER, _JOIN = 63, 62
# Letters are numbers from 0 and, capitals, from 26; a digit is 52.
_KINDS = bytes(
    _LETTERS.index(bytes([byte]).lower()) + (26 if byte < ord("a") else 0)
    if bytes([byte]).isalpha()
    else 52
    if bytes([byte]).isdigit()
    else _JOIN
    if byte in _JOINS
    else _OTHER
    for byte in range(256)
)
_ALPHABETS = (
    (re.compile(rb"[a-z]"), 26),
    (re.compile(rb"[A-Z]"), 26),
    (re.compile(rb"\d"), 10),
    (re.compile(rb"[_+/=.-]"), 2),
    (re.compile(rb"[^\w+/=.-]"), 12),
)
_HEX = re.compile(rb"(?:(?=.*\d)(?:[0-9a-f]+|[0-9A-F]+))\Z")
_RUN = re.compile(rb"[A-Za-z0-9]+")
# The bytes of a value that are judged: they are enough for an answer.
_LOOKED_AT = 64


def _costs() -> list[float]:
    """Returns the cost of each kind of sign after each kind, at 64 * the first + the second."""
    costs = [0.0] * (64 * 64)
    for before in (*range(53), _JOIN, _OTHER):
        for one in (*range(53), _JOIN, _OTHER):
            sort, behind = _sort(before), _sort(one)
            cost = float(_SORTS[sort][behind] - ord("a"))
            if behind < 2:  # noqa: PLR2004  a letter
                row = before % 26 if sort < 2 else 24 + sort  # noqa: PLR2004
                cost += _FOLLOWS[row][1 + one % 26] - ord("a")
            elif behind == 2:  # noqa: PLR2004  a digit
                cost += _DIGIT
            else:
                cost += _JOINED if one == _JOIN else _NO_JOIN
            costs[before * 64 + one] = cost / 2
    return costs


def _sort(kind: int) -> int:
    return kind // 26 if kind < _JOIN else 3


_COSTS = _costs()


def evidence(value: bytes) -> float:
    """Returns the bits of evidence for chance, of a value or of the longest run in it."""
    value = value[:_LOOKED_AT]
    bare = value.replace(b"-", b"")
    if _HEX.match(bare):
        return _bits(bare)
    return max(_bits(value), _bits(max(_RUN.findall(value), key=len, default=b"")))


def _bits(value: bytes) -> float:
    kinds = value.translate(_KINDS)
    written = sum(
        _COSTS[before * 64 + one]
        for before, one in zip(bytes([_JOIN]) + kinds, kinds, strict=False)
    )
    if _HEX.match(value):
        return written - 4 * len(value)
    size = sum(count for pattern, count in _ALPHABETS if pattern.search(value))
    return written - len(value) * math.log2(size) if size else 0.0
