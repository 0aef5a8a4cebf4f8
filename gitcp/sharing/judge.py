"""Whether a value that stands where a secret would is one, or stands for one."""

import itertools
import math
import re
from collections import Counter

_PLACEHOLDER = re.compile(
    rb"(?i)example|sample|placeholder|change.?me|replace.?(?:me|this|with)|redacted"
    rb"|purged:|your[_.-]|my[_-]?(?:secret|token|pass|key)|dummy|fake[_-]|insert|todo"
    rb"|x{4,}|\*{3,}|\.{3,}|0{8,}|12345678|abcdefgh|deadbeef|undefined|%\(|%s|lorem"
)
_REFERENCE = re.compile(
    rb"[$%@<{]|(?:\.{1,2}|~)/|[A-Za-z]:\\|(?:self|this|os|env|process|config|settings"
    rb"|args|secrets|vars|params|req|request)[.\[]|https?://|op://|arn:aws:|sha\d{1,3}[-:]"
)
_PATH = re.compile(rb"/(?:[\w.@-]+(?:/|\Z))*")
_IDENTIFIER = re.compile(rb"[A-Za-z_$][A-Za-z_$-]*(?:\.[A-Za-z_$][\w$-]*)*")
# `b64decode`, `Ed25519PrivateKey.generate`: one number within words, or dots.
_CODE = re.compile(
    rb"[A-Za-z_]+\d{0,5}[A-Za-z_]+|[A-Za-z_]\w{0,40}(?:\.[A-Za-z_]\w{0,40})+"
)
_VERSION = re.compile(rb"[\^~=v<>]*\d+(?:\.[\dx*]+)+(?:[-+][\w.]+)?")
_NUMBER = re.compile(rb"[-+]?[\d_.,:/ -]+(?:e[-+]?\d+)?[a-z%]{0,3}", re.IGNORECASE)
_WORDS = re.compile(rb"[a-z]+(?:[_.:/-][a-z]+)*\d{0,3}", re.IGNORECASE)
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]")
# A name that says what is beside the secret, not the secret.
_BESIDE = re.compile(
    rb"(?i)[_-]?(?:names?|files?|paths?|dirs?|ur[il]s?|hosts?|endpoint|types?|kind|len"
    rb"|length|count|limit|size|index|idx|expir\w*|ttl|at|age|date|time\w*|regex|re"
    rb"|pattern|fields?|label|hint|prompt|policy|column|refs?|header|format|version"
    rb"|provider|class|method|func\w*|algorithm|alg|ids?|i[sz]e[rd]?\w*|map|list|set"
    rb"|usages?|budget|cost|price|store|manager|service|error|message|valid\w*|src"
    rb"|bytes|chars?|words?|board\w*|hash|words|_?env|less|ring|stroke|frame\w*)\Z"
)
_SECRET_KEY = re.compile(
    rb"(?i)(?:api|access|private|secret|auth|sign(?:ing)?|encrypt(?:ion)?|crypt|master"
    rb"|account|storage|shared|service|license|session|deploy|admin|client|consumer|hmac"
    rb"|jwt|cookie|app|rails|write|server|ssh|webhook|hook|function|host|token|subscription)"
    rb"[_.-]?key\Z"
)
_NOT_SECRET = re.compile(rb"(?i)public[_.-]?key|\bpubkey|(?:key|pass)[_-]?id\Z")
_SHORT = 6
_RANDOM = 3.0
_VERY_RANDOM = 3.6
_RANDOM_LENGTH = 20
_NO_PATH = 4.4
_KEY_CHARACTERS = 48
_KEY_SHARE = 0.7


def entropy(value: bytes) -> float:
    """Returns the bits a byte of the value carries, by its own distribution."""
    if not value:
        return 0.0
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())


def placeholder(value: bytes) -> bool:
    """Whether a value stands for one that is filled in elsewhere."""
    return (
        _PLACEHOLDER.search(value) is not None
        or _REFERENCE.match(value) is not None
        or (_PATH.fullmatch(value) is not None and entropy(value) < _NO_PATH)
    )


def token(value: bytes) -> bool:
    """Whether what has a token's form is more than an example of it."""
    upper = value.upper()
    return b"EXAMPLE" not in upper and b"XXXX" not in upper and len(set(value)) > _SHORT


def random(value: bytes) -> bool:
    """Whether a value is too irregular for a word or a name."""
    mixed = re.search(rb"\d", value) is not None and re.search(rb"[A-Za-z]", value)
    return bool(mixed) and not placeholder(value) and entropy(value) >= _RANDOM


def password(value: bytes) -> bool:
    """Whether what stands for a password in a URL is one."""
    if placeholder(value) or value.lower() in _COMMON:
        return False
    if value.isalpha() and len(value) < _SHORT:
        return False
    return len(set(value)) > 2 and not value.isdigit()  # noqa: PLR2004  a port, or ***


def key_body(body: bytes) -> bool:
    """Whether what lies between the lines of a key is one, and not an ellipsis."""
    letters = len(_BASE64.findall(body))
    blank = sum(body.count(space) for space in (b" ", b"\n", b"\r", b"\t"))
    return (
        letters >= _KEY_CHARACTERS
        and letters >= _KEY_SHARE * (len(body) - blank)
        and entropy(body) > _VERY_RANDOM
    )


def key_letters(body: bytes) -> bytes:
    """Returns a key without what lies between its lines."""
    return b"".join(_BASE64.findall(body))


def secret_name(name: bytes, rest: bytes) -> bool:
    """Whether a name that ends in a keyword, and what follows, names a secret."""
    whole = name + rest
    if _BESIDE.search(rest) or _NOT_SECRET.search(whole):
        return False
    if name.lower().endswith(b"key"):
        return _SECRET_KEY.search(name) is not None and rest[:1] in {b"", b"_", b"-"}
    # `tokens`, `secrets`, `passwords`: of these there are many, and they are counted.
    return rest.lower() not in {b"s", b"ing", b"ed", b"es"} or b"ey" in name


def code(name: bytes, value: bytes) -> bool:
    """Whether what stands bare beside a name is an expression of a program.

    A name in capitals is a variable of the environment, and has values.
    """
    return name != name.upper() and _CODE.fullmatch(value) is not None


def assigned(value: bytes, *, quoted: bool, password: bool) -> bool:
    """Whether the value beside a secret's name is one."""
    if (
        len(value) < _SHORT
        or b" " in value
        or placeholder(value)
        or value.lower() in _COMMON
        or _VERSION.fullmatch(value)
        or _NUMBER.fullmatch(value)
    ):
        return False
    if _IDENTIFIER.fullmatch(value) or _WORDS.fullmatch(value):
        # Letters alone are a name, unless nobody would think of it.
        return len(value) >= _RANDOM_LENGTH and _scrambled(value)
    digits = re.search(rb"\d", value) is not None
    letters = re.search(rb"[A-Za-z]", value) is not None
    if not letters:
        return False
    if password:
        return (digits or quoted) and entropy(value) >= 2.2  # noqa: PLR2004  eight unlike
    return digits and len(value) >= 10 and entropy(value) >= _RANDOM  # noqa: PLR2004


def _scrambled(value: bytes) -> bool:
    """Whether capitals stand where no way of writing names puts them."""
    if not value.isalpha():
        return False
    turns = sum(
        97 <= one < 123 and two < 97  # noqa: PLR2004  ASCII
        for one, two in itertools.pairwise(value)
    )
    return turns > len(value) / 5 and entropy(value) > _VERY_RANDOM


_COMMON = frozenset(
    b"admin changeit changeme dev development guest letmein local localhost mysql none"
    b" null pass passwd password postgres production qwerty redis root secret string test"
    b" testing token true user username your-password undefined hunter2 foobar foo bar"
    b" password1 password123 pwd pw".split()
)
