"""Tells whether a value is composed of words, as names in programs and files are.

Names in programs have digits and capitals, too, and occur in the same places as secrets. But
their parts are words: they can be spoken, and their runs of one case are longer than random
ones.
"""

import base64
import binascii
import itertools
import math
import re
import string
from collections import Counter

from gitcp.secrets import chance

_NAME = re.compile(rb"[\w:./$<>=?@!#*+~-]+", re.ASCII)
_PART = re.compile(rb"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SNAKE = re.compile(
    rb"_*[a-z]+\d{0,4}(?:_(?:[a-z]+\d{0,4}|[a-z]{5,}\d{5,6}|\d{1,4})){2,}"
    rb"|\d{1,4}_[a-z]{3,}(?:_(?:[a-z]{3,}|\d{1,8})){1,12}",
    re.IGNORECASE,
)
_TYPE = re.compile(
    rb"[A-Za-z]+\d{0,2}(?:[:/][A-Za-z]+\d{0,2}){2,}(?:[A-Z][a-z]{2,}){0,4}"
)
# A list that a program splits: `20/m/ip,5/m/key`, `app:OKP:HKDF:Ed25519`.
_ELEMENT = rb"(?:\d{1,4}[a-z]{0,2}|(?:[A-Z]?[a-z]{1,20}|[A-Z]{2,20})\d{0,6})"
_LISTED = re.compile(_ELEMENT + rb"(?:[/,:;]" + _ELEMENT + rb"){2,20}")
# The name of a set of ciphers, of which each part is a word or a number.
_CIPHERS = re.compile(rb"[A-Z]{2,10}\d{0,4}(?:-(?:[A-Z]{2,10}\d{0,4}|\d{1,4})){3,12}")
# The parts of the names of ciphers, digests, curves and mechanisms.
_ALGORITHMS = re.compile(
    rb"(?=[^g-z]*[g-z])(?:aes|aria|camellia|seed|t?des|rc|cast|blowfish|twofish|serpent|x?chacha"
    rb"|x?salsa|poly|shake|sha|md|hmac|pss|psk|[hrep]s|edh|ed|dsa|dss|rsa|ecdsa|ecdhe?|dhe?|kwp?"
    rb"|gcm|ccm|cbc|ctr|cfb|ofb|ecb|xts|siv|eax|ocb|oaep|pkcs|pbes|pbkdf|pbe|with|and|tls|ssl"
    rb"|null|export|srp|ripemd|rmd|whirlpool|tiger|blake|keccak|kmac|cmac"
    rb"|gmac|hkdf|scrypt|bcrypt|argon|crypt|scram|plus|sasl|plain|digest|cram|ntlm|mschap|chap"
    rb"|peap|eap|ttls|secp|sect|prime|curve|mgf|jwe?s?|[aek]|[sxkrvb](?=\d)|\d{1,5}+|[-_+/.:!])"
    rb"{2,40}+",
    re.IGNORECASE,
)
_JOINED = re.compile(rb"[A-Za-z]{2,}(?:_[A-Za-z]{2,}|_\d{1,2})+_?")
_DIGITS = re.compile(rb"\d+(?:\.\d+)*")
# A letter, and the letters that follow it in nine of ten places in the words of programs.
_FOLLOWS = (
    b"aabcdgiklmnprstuvy babceilorsu cacdehiklmorstu dacdefilorsu"
    b" eabcdefgilmnopqrstvwxy fadefilorstu gaehilnrs haeiot iabcdefglmnoprstvz keis"
    b" ladeilostuy mabeimopsu nacdefgiklnostuv obcdfgiklmnoprstuvw paeiloprstuy qu"
    b" racdegilmnoprstuy sacehilopstuy tacdefhilmoprstuy uabcefilmnprst vaei waeior"
    b" xeptx ypsy zez"
)
_PAIRS = frozenset(
    bytes([row[0], letter]) for row in _FOLLOWS.split() for letter in row[1:]
)
_PAIRED = 0.7
_LONGEST_NUMBER = 5
_MEAN_PART = 2.6
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{8,4000}={0,2}")
_ONE_ALPHABET = bytes.maketrans(b"-_", b"+/")
# Base64 of 65 bytes, and the curve y² = x³ - 3x + b.
_POINT = 87
_P256 = 2**256 - 2**224 + 2**192 + 2**96 - 1
_P256_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
_HEX_POINT = re.compile(rb"04[0-9a-fA-F]{128}")
_SECP256K1 = 2**256 - 2**32 - 977
# An extended public key of a wallet, by the letters that begin it (SLIP 132).
_EXTENDED = re.compile(rb"(?:[tuvxyzUVYZ]pub|[LM]tub|dgub)[1-9A-HJ-NP-Za-km-z]{107}")
# Of DER: the letters of base64 that show its kind, the tags, and the names of PKCS #5 and #12.
_DER_HEAD = 64
_SEQUENCE, _INTEGER, _OBJECT_ID, _VERSIONED = b"\x30", b"\x02", b"\x06", b"\xa0"
_ENCRYPTIONS = (
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x05",
    b"\x2a\x86\x48\x86\xf7\x0d\x01\x0c",
)
_HEX = re.compile(rb"(?:0x)?((?:[0-9a-fA-F]{2}){6,2000})")
_PRINTED = re.compile(rb"[\t\n\r -~]{6,3000}")
_LATIN = re.compile(rb"[!-9;-~\xc0-\xff]{2,40}:[!-~\xc0-\xff]{2,80}")
_LATIN_SHARE = 4
_NOT_ASCII = bytes(range(128, 256))
# So many random bytes are not valid UTF-8.
_LEAST_FOREIGN = 9
_NO_ALGORITHM = re.compile(rb'"alg"\s*:\s*"none"', re.IGNORECASE)
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_TELLING = frozenset({b"secret", b"password", b"token", b"key", b"passphrase"})
_TELLING_PARTS = 3
_LEAST_COUNTED = 12
_STEADY = 0.8
# Digits that people write for the letters they look like.
_LOOKS_LIKE = bytes.maketrans(b"013457", b"oieast")
_LETTER_BY_DIGIT = re.compile(rb"[A-Za-z][013457]{1,2}(?=[A-Za-z])")
_LEAST_REPLACED = 2
_SURELY_WORDS = -0.4
# In longer values chance puts such letters side by side.
_LONGEST_TYPED = 32
_MIDDLE_ROW = b"asdfghjkl"
_LEAST_AT_REST = 10
_MUCH_MORE = 2.5
_ROWS = re.compile(
    rb"(?i)qwer|wert|erty|rtyu|tyui|yuio|uiop|asdf|sdfg|dfgh|fghj|ghjk|hjkl|zxcv|xcvb|cvbn|vbnm"
)
_SAYS_ITSELF = re.compile(
    rb"(?i)(?<=[a-z]{2})(?:secret|token|passw)|(?:secret|token|password)(?=[a-z]{2})"
)


def worded(value: bytes) -> bool:
    """Whether a value is made of words and a few numbers, or of words spelt with digits."""
    return _made_of_words(value) or (
        len(_LETTER_BY_DIGIT.findall(value)) >= _LEAST_REPLACED
        and not _HEX.fullmatch(value)
        and chance.evidence(spelt(value)) < _SURELY_WORDS * len(value)
    )


def spelt(value: bytes) -> bytes:
    """Returns a value with letters for the digits that people write in their place."""
    return value.translate(_LOOKS_LIKE)


def named(value: bytes) -> bool:
    """Whether a value is words joined like a name in a program, such as `test_user_1_`."""
    return _JOINED.fullmatch(value) is not None and chance.evidence(value) < 0


def says_itself(value: bytes) -> bool:
    """Whether a value holds a word like `secret` with letters beside it, so is not random."""
    return _SAYS_ITSELF.search(value) is not None


def typed(value: bytes) -> bool:
    """Whether a person typed a value of up to 32 letters without aim.

    Four neighbours in a row of a keyboard show that, and more letters of the middle row than
    one in a thousand random values has.
    """
    if len(value) > _LONGEST_TYPED:
        return False
    if _ROWS.search(value) is not None:
        return True
    letters = value.translate(None, string.digits.encode())
    if not letters.translate(None, b"abcdef"):
        # Of the letters of hexadecimal digits, three of six are in that row.
        return False
    at_rest = len(letters) - len(letters.translate(None, _MIDDLE_ROW))
    expected = len(letters) * len(_MIDDLE_ROW) / 26
    return (
        letters.isalpha()
        and letters.islower()
        and len(letters) >= _LEAST_AT_REST
        and at_rest >= expected + _MUCH_MORE * math.sqrt(expected)
    )


def _made_of_words(value: bytes) -> bool:
    if not value.isascii():
        # Some models write a blank before a word as such a letter.
        value = value.translate(None, _NOT_ASCII)
    parts = _PART.findall(value)
    if not parts or _NAME.fullmatch(value) is None:
        return False
    if _SNAKE.fullmatch(value) is not None or _TYPE.fullmatch(value) is not None:
        return True
    numbers = _DIGITS.findall(value)
    letters = sum(map(len, parts))
    return (
        len(numbers) <= (len(parts) + 1) // 2
        and max(map(len, numbers), default=0) <= _LONGEST_NUMBER
        and letters >= _MEAN_PART * len(parts)
        and letters >= sum(map(len, numbers))
        and _paired(parts) >= _PAIRED
    )


def listed(value: bytes) -> bool:
    """Whether a value is a list of words and numbers, or the name of a set of ciphers."""
    if _LISTED.fullmatch(value) or _ALGORITHMS.fullmatch(value):
        return True
    if _CIPHERS.fullmatch(value) is None:
        return False
    # Parts of equal length are those of a key that people type.
    return len({len(part) for part in value.split(b"-")}) > 1


def names_itself(value: bytes) -> bool:
    """Whether a value is words that describe it, such as `a-secret-of-4-levels`."""
    parts = re.split(rb"[-_]", value.lower())
    return len(parts) >= _TELLING_PARTS and (
        any(part in _TELLING for part in parts)
        and all(part.isalpha() or (part.isdigit() and len(part) <= 2) for part in parts)  # noqa: PLR2004
        and _paired(parts) >= _PAIRED
    )


def counts(value: bytes) -> bool:
    """Whether base64 or digits stand for bytes that count up, as in test vectors."""
    raw = _raw(value)
    if len(raw) < _LEAST_COUNTED:
        return False
    steps = Counter((two - one) % 256 for one, two in itertools.pairwise(raw))
    return max(steps.values()) >= _STEADY * (len(raw) - 1)


def _raw(value: bytes) -> bytes:
    """Returns the bytes of a value in base64 or in digits; empty for any other value."""
    digits = _HEX.fullmatch(value)
    if digits is not None:
        return bytes.fromhex(digits[1].decode())
    value = value.translate(_ONE_ALPHABET).rstrip(b"=")
    if _BASE64.fullmatch(value) is None or len(value) % 4 == 1:
        return b""
    return base64.b64decode(value + b"=" * (-len(value) % 4))


def _paired(parts: list[bytes]) -> float:
    """Returns the share of pairs of letters that are common in words."""
    words = [part.lower() for part in parts if not part.isupper()]
    pairs = [word[at : at + 2] for word in words for at in range(len(word) - 1)]
    return sum(pair in _PAIRS for pair in pairs) / len(pairs) if pairs else 0.0


def text(value: bytes) -> bool:
    """Whether bytes are printable text, and not part of a picture, for example."""
    if value.isascii():
        return _CONTROL.search(value) is None
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def public(value: bytes) -> bool:
    """Whether a value is public: a wallet's key, a point in base64 or in digits, or DER."""
    if _EXTENDED.fullmatch(value) is not None:
        return True
    if value.startswith(b"M") and _public_der(_raw(value[:_DER_HEAD])):
        return True
    hexadecimal = _HEX_POINT.fullmatch(value) is not None
    if not hexadecimal and (len(value.rstrip(b"=")) != _POINT or value[:1] != b"B"):
        return False
    try:
        if hexadecimal:
            raw = bytes.fromhex(value.decode())
        else:
            raw = base64.b64decode(value.translate(_ONE_ALPHABET).rstrip(b"=") + b"=")
    except binascii.Error:
        return False
    x, y = int.from_bytes(raw[1:33]), int.from_bytes(raw[33:])
    return raw[0] == 4 and (  # noqa: PLR2004
        (y * y - x**3 + 3 * x - _P256_B) % _P256 == 0
        or (y * y - x**3 - 7) % _SECP256K1 == 0
    )


def _public_der(raw: bytes) -> bool:
    """Whether DER begins like a certificate, public key or signature, not like a private key.

    A private key is a sequence that begins with its version, a small number. If it is
    encrypted, it begins with the name of the encryption.
    """
    inner = _within(raw, _SEQUENCE)
    if inner[:1] == _INTEGER:
        return inner[1:2] > b"\x01"
    first = _within(inner, _SEQUENCE)
    return first[:1] == _VERSIONED or (
        first[:1] == _OBJECT_ID and not first[2:].startswith(_ENCRYPTIONS)
    )


def _within(raw: bytes, tag: bytes) -> bytes:
    """Returns the beginning of a DER element's content; empty if its tag is another."""
    if raw[:1] != tag or len(raw) < 2:  # noqa: PLR2004  a tag and a length
        return b""
    return raw[2 + (raw[1] & 0x7F if raw[1] & 0x80 else 0) :]


def unsigned(value: bytes) -> bool:
    """Whether a value is a JSON web token that declares that it has no signature."""
    head, dot, _ = value.partition(b".")
    if not dot or not head.startswith(b"eyJ"):
        return False
    plain = decoded(head)
    return plain is not None and _NO_ALGORITHM.search(plain) is not None


def decoded(value: bytes) -> bytes | None:
    """Returns the printable text that a value encodes in base64 or digits, or None."""
    digits = _HEX.fullmatch(value)
    if digits is not None:
        plain = bytes.fromhex(digits[1].decode())
        return plain if _PRINTED.fullmatch(plain) else None
    value = value.translate(_ONE_ALPHABET)
    if _BASE64.fullmatch(value) is None:
        return None
    try:
        plain = base64.b64decode(value + b"=" * (-len(value) % 4))
    except binascii.Error:
        return None
    if plain.isascii():
        return plain if _PRINTED.fullmatch(plain) else None
    return plain if len(plain) >= _LEAST_FOREIGN and text(plain) else None


def latin(value: bytes) -> bytes | None:
    """Returns a name and a password in base64 of ISO 8859-1, as UTF-8; None for other text."""
    raw = _raw(value)
    accents = len(raw) - len(raw.translate(None, _NOT_ASCII))
    if _LATIN.fullmatch(raw) is None or accents * _LATIN_SHARE > len(raw):
        return None
    return raw.decode("latin-1").encode()
