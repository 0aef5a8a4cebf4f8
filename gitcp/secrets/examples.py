"""Tells passwords that a test makes up from passwords in use.

A password that a person chose says nothing by itself: `Winter2031!` may open a database, or be
what a test types into a form. So the text around it decides. A password made by chance, a token
and a key count in a test, too.
"""

import bisect
import re
import unicodedata
from urllib.parse import unquote_to_bytes

from gitcp.secrets import chance, words
from gitcp.secrets.runs import Spend, at_places
from gitcp.secrets.text import Text, Words

# The evidence for chance of a password that a person chose, as it is and spelt in letters. Of
# random ones, one in ten with 8 letters has less, and one in fifty with 12.
_CHOSEN, _SPELT = 10, -4
# A host that exists for examples says that its password is an example, too.
_CHOSEN_FOR_EXAMPLE = 16
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
_SIGNS = bytes.maketrans(b"@$!", b"asi")
_LEAST_ORDERED = 3
# The evidence against chance, in bits, of each letter that follows in order.
_ORDERED = 4
# The signs above the digits of a keyboard, in their order.
_ROW = bytes.maketrans(b"!@#$%^&*()_+", b"123456789:;<")
# Letters of a keyboard as places in its rows, none of which another row goes on from.
_KEYBOARD = bytes.maketrans(
    b"qwertyuiopasdfghjklzxcvbnm",
    bytes([*range(128, 138), *range(140, 149), *range(151, 158)]),
)
_SHORT, _LONG, _LEAST_SORTS = 8, 16, 3
_SORTS = bytes(
    97 if one.islower() else 65 if one.isupper() else 48 if one.isdigit() else 33
    for one in map(chr, range(256))
)
# How a test says that it is one, in the languages that most agents write.
_TEST_BEGINS = Words(
    *(b"assert", b"expect(", b"describe(", b"it(", b"def test", b"func test", b"@test"),
    *(b"pytest", b"unittest", b"testcase", b"t.run(", b"t.error", b"t.fatal", b"mock"),
    *(b".should", b"@patch", b">>> ", b"def setup"),
)
_TEST = re.compile(
    rb"assert(?:[a-z_]{0,40}!?\(|\.[a-z_]{2,30}\(|[ \t][^\r\n]{1,120}(?:==|!=| is | in ))"
    rb"|expect\(|(?:describe|it)\([ \t]{0,4}[\"'`]|def test_?\w{0,80}\(|func test\w{1,80}\("
    rb"|@test\b|(?:pytest|unittest)\.|testcase\b|t\.(?:run|error|errorf|fatal|fatalf)\("
    rb"|mock(?:er|_\w{1,20})?[.(]|\.should[.(]|@patch|>>> |def set_?up\w{0,20}\("
)
_CASE_BEGINS = Words(b'"description"')
_CASE = re.compile(rb'"description"[ \t]{0,4}:')
_SAYS_EXAMPLE = re.compile(rb"\be\.g\.|\b(?:for example|for instance|examples?)\b")
_EXAMPLE_WORDS = (b"example", b"e.g.", b"for instance")
_JUST_BEFORE = 300
_NEAR = 2_500
_LEAST_TESTS, _LEAST_CASES = 2, 4
# Hosts that exist for examples, or on each machine (RFC 2606, 6761), and words for a host.
_RESERVED = re.compile(
    rb"(?i)\[?(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|::1|0\.0\.0\.0"
    rb"|(?:my|your|db|some)?-?(?:host(?:name)?|server|domain)\d?"
    rb"|(?:[\w-]{1,63}\.){0,5}(?:example|example\.(?:com|org|net)|test|invalid))\]?(?![\w.-])"
)


def guessable(value: bytes) -> bool:
    """Whether usual rules for passwords refuse one: eight letters of three sorts, or 16.

    So are keys of a keyboard in their order, however many.
    """
    if 2 * len(_without_order(value.translate(_KEYBOARD))) < len(value):
        return True
    if len(value) >= _LONG:
        return False
    sorts = len({*value.translate(_SORTS)})
    return len(value) < _SHORT or (
        sorts < _LEAST_SORTS and chance.evidence(value) < chance.TOKEN
    )


def chosen(value: bytes, least: float = _CHOSEN) -> bool:
    """Whether a person chose a password, by its words, letters in their order and dates."""
    plain = unicodedata.normalize(
        "NFKD", unquote_to_bytes(value).decode("utf-8", "replace")
    )
    letters = _without_order(plain.encode("ascii", "ignore"))
    in_order = len(plain) - len(letters)
    return chance.evidence(letters) - in_order * _ORDERED < least or (
        _HEX.fullmatch(letters) is None
        and chance.evidence(words.spelt(letters.translate(_SIGNS))) < _SPELT
    )


def _without_order(value: bytes) -> bytes:
    """Returns a value with only the first of letters that follow in the alphabet, or repeat."""
    kept = bytearray()
    run, step = 1, 0
    order = value.translate(_ROW)
    for at, byte in enumerate(value):
        new = order[at] - order[at - 1] if at else 2
        if new not in {-1, 0, 1}:
            run = 1
        elif new == step:
            run += 1
        else:
            run = 2
        step = new
        if run >= _LEAST_ORDERED:
            continue
        kept.append(byte)
    return bytes(kept)


def in_test(text: Text, at: int, spend: Spend) -> bool:
    """Whether an offset is within the code or the table of a test."""
    source = text.source
    if source is not None:
        text, at = source.text, source.place(at)
    tests, cases = text.places(lambda: _marks(text, spend))
    return _within(tests, at) >= _LEAST_TESTS or _within(cases, at) >= _LEAST_CASES


def says_example(data: bytes, at: int) -> bool:
    """Whether the text in small letters just before an offset announces an example."""
    near = data[max(0, at - _JUST_BEFORE) : at]
    said = any(word in near for word in _EXAMPLE_WORDS)
    return said and _SAYS_EXAMPLE.search(near) is not None


def _marks(text: Text, spend: Spend) -> tuple[list[int], list[int]]:
    spend(len(text.lower))
    tests = at_places(_TEST, text.lower, _TEST_BEGINS.starts(text))
    cases = at_places(_CASE, text.lower, _CASE_BEGINS.starts(text))
    return [one.start() for one in tests], [one.start() for one in cases]


def _within(places: list[int], at: int) -> int:
    """Returns how many places are near an offset."""
    return bisect.bisect(places, at + _NEAR) - bisect.bisect(places, at - _NEAR)


def is_reserved(host: bytes) -> bool:
    """Whether text begins with the name of a host that is no other machine's."""
    return _RESERVED.match(host) is not None


def made_up(text: Text, value: bytes, at: int, spend: Spend) -> bool:
    """Whether a person chose a password for a test, or for a host of examples in a URL."""
    # Judging a value costs more than looking around it.
    if (in_test(text, at, spend) or says_example(text.lower, at)) and chosen(value):
        return True
    end = at + len(value)
    behind = text.data[end : end + 256]
    return (
        behind[:1] == b"@"
        and is_reserved(behind[1:])
        and chosen(value, _CHOSEN_FOR_EXAMPLE)
    )
