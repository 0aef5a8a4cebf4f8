"""Heuristics: whether a value is a secret, or a placeholder for one."""

import itertools
import math
import re
import string
import unicodedata
from collections import Counter
from urllib.parse import unquote_to_bytes

from gitcp.secrets import examples, nothing, well_known, words
from gitcp.secrets.chance import ALONE, TOKEN, evidence

_PLACEHOLDER = re.compile(
    rb"(?i)example|sample|placeholder|change.?me|replace.?(?:me|this|with)|redacted"
    rb"|\xe2\x80\xa6|purged:|your[_.-]|(?-i:\A[Yy]our(?=[A-Z][a-z]))|my[_-]?(?:secret|token|pass|key)|dummy|fake[_-]|insert|todo"
    rb"|x{4,}|\*{3,}|\.{3,}|0{7,}|([1-9])\1{7}|12345678|abcdefgh|deadbeef|abcdef0?123|undefined|%\(|%s|lorem"
)
_REFERENCE = re.compile(
    rb"\$[({]|\$[A-Za-z_]\w*(?:\Z|[/\"':{.-])|%[A-Za-z_]\w*%"
    rb"|\$(?=[A-Za-z]{0,30}\d)\w{5,32}\$(?:[a-z]+\$)?[A-Za-z][A-Za-z_]{2,60}\d{0,2}\Z"
    rb"|%\(|%[sdr]\Z|<[A-Za-z/!?_| -]|\{\{|\{\$?[A-Za-z_]*\}|\{[A-Za-z_.]+[}\[]"
    rb"|@@?[A-Za-z_-]+\Z|\$\$|(?:\.{1,2}|~)/|[A-Za-z]:\\|(?:self|this|os|env"
    rb"|process|config|settings|args|secrets|vars|params|req|request)[.\[]|//[a-z]"
    rb"|op://|(?:var|calc|rgba?|url|env|file|ref|vault|include)\(|\[[a-z-]{1,30}[~|^$*]?=[^\]]{0,60}\]\Z"
    rb"|--[a-z][a-z0-9-]{1,40}(?:=|\Z)|\[[a-z]\S*-"
    rb"|&[a-z][\w.-]{0,60};\Z|\[[A-Za-z0-9_ -]+\]\Z|\([A-Za-z_ -]+\)\Z|__[\w-]+__\Z"
    rb"|\(\?|\^|arn:aws:|urn:[a-z]|(?:sha|md)\d{1,3}[-:=]|\?"
    rb"|/\^|\((?:[&|!]\()?[A-Za-z]{1,20}=%|%\{|https?%3A|\*{1,2}_?[a-z][a-z0-9]*_\w*\Z"
    rb"|(?:\.[a-z]{2,20}){3}|\d{1,4}(?:\.\d{1,6}){2}[\w.-]{0,20}@"
    rb"|(?i:uid|cn|ou|dc|o)=[^,=]{1,60},(?i:ou|dc|o|c)="
)
# Parts of programs and patterns that no secret contains.
_EXPRESSION = re.compile(
    rb"\$\{|\{\{|#include\b|[!=]==|=>|&&|\|\||\+=|://|\[\^?(?:a-z|A-Z|0-9|\\[wds])|\\[wdsb][+*]|->|::"
    rb"|[*/+-]this\.|@[a-z_]{2,30}@|:\$[A-Za-z]\w{0,30}\Z|\w\*:|\[\^?a-f0-9\]|_ref\d{0,3}\$"
    rb"|\w\[-?\d{1,3}\]\.|\{[a-z_][a-z0-9_.]{0,30}\}|\{[A-Z][A-Z0-9_]{2,30}\}|\{\d{1,2}\}|\{[a-z_][\w.]{0,40}\(|\{[a-z]{2,12}:[A-Za-z_.]{3,60}\}|%d\Z|=;|\w\?\?\w"
    # The scope of a signature as AWS makes it: a day, a region, a service.
    rb"|/\d{8}/[\w-]{1,40}/[\w-]{1,40}/\w{1,20}_request|(?:/|%2F)\d{8}(?:/|%2F)(?:#|[a-z]{2}-)"
    # The id of a commit, and the line after it.
    rb"|\A[0-9a-f]{40}[a-z]{2,20}\.[a-z]{2,3}/"
)
_MADE_UP = re.compile(rb"EXAMPLE|XXXX|FAKE|0{10}|ABCDEFGHIJ|1234567890")
_ADDRESS = re.compile(rb"0[xX](?:[0-9a-fA-F]{1,8}|[0-9a-fA-F]{40})")
_ROOTED = re.compile(
    rb"/(?:tmp|usr|etc|home|var|opt|root|Users|mnt|bin|lib|dev|proc|run|srv|app|data)/"
)
_CONSTANT = re.compile(
    rb"[*&]?_{0,2}(?:[a-z][a-z0-9]{1,5}_)?[A-Z][A-Z0-9]*(?:__?[A-Z0-9]+)+(?:\$\d{1,3}|(?<=_[A-Z]{2})_[a-z][a-z0-9]{1,12})?"
)
_SPELT = re.compile(rb"_[A-Z]{5,}(?:_|\Z)")
_PATH = re.compile(rb"/(?:[\w.@-]+(?:/|\Z))*")
_IDENTIFIER = re.compile(rb"[A-Za-z_$][A-Za-z_$-]*(?:\.[A-Za-z_$][\w$-]*)*")
# `b64decode`, `Ed25519PrivateKey.generate`: one number within words, or dots.
_CODE = re.compile(
    rb"[A-Za-z_]+\d{0,5}[A-Za-z_]+|[A-Za-z_]\w{0,40}(?:\.[A-Za-z_]\w{0,40})+"
)
_MAIL = re.compile(rb"[a-z][\w.+-]{0,40}@(?:[a-z][\w-]{0,40}\.){1,4}[a-z]{2,8}")
_VERSION = re.compile(rb"[\^~=v<>]*\d+(?:\.[\dx*]+)+(?:[-+][\w.+-]+)?")
_NUMBER = re.compile(rb"[-+]?[\d_.,:/ -]+(?:e[-+]?\d+)?[a-z%]{0,3}", re.IGNORECASE)
_WORDS = re.compile(rb"[a-z]+(?:[_.:/-][a-z]+)*\d{0,3}", re.IGNORECASE)
_SPOKEN = re.compile(
    rb"(?:x-)?[a-z]{2,}(?:[_.:/+-][a-z]{2,}){0,4}(?:[_-]?\d{1,4})?"
    # A placeholder to fill in.
    rb"|[a-z]{2,12}(?:[A-Z][a-z]{2,12}){1,3}|[A-Z]{3,12}(?:[_-][A-Z]{2,12}){0,3}"
)
# The name of a standard, a curve or a type of numbers; a time.
_STANDARD = re.compile(
    rb"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d[\d:.]*(?:[Zz]|[+-]\d\d:?\d\d)?"
    rb"|(?i:[a-z][a-z0-9]{1,7}-(?:[a-z0-9]{2,8}-){0,3}"
    rb"(?:md5|sha-?\d{1,3}|plus|cbc|ctr|gcm|crypt)|utf-?\d{1,2}[bl]e)"
    rb"|[A-Z](?:\.\d{1,3}){2,4}|[A-Za-z-]{2,30}=\d{1,3}(?:\.\d{1,3}){3}"
    rb"|[A-Z]{2,6}-\d{1,5}(?:-\d{1,4})?|(?:RFC|ISO|IEC|IEEE|FIPS|ANSI)\d{1,5}|[A-Za-z]{2,12}\d{2,4}[krtv]\d"
    rb"|(?:Big)?(?:Uint|Int|Float)\d{1,3}(?:Clamped)?Array|[A-Za-z][\w-]{1,20}\[[\w.-]{1,60}\]"
    # A protocol with its version; the id of a visit counter.
    rb"|[A-Za-z]{3,12}[ /_-]?v?\d{1,2}\.\d{1,2}|(?:G|GTM|AW)-[A-Z0-9]{6,11}"
    # A list of ciphers with signs before them; a number in the Windows registry.
    rb"|[-+!%]?[A-Z][A-Z0-9.-]{0,40}(?::[-+!%][A-Z][A-Z0-9.-]{0,40}){1,30}"
    rb"|dword:[0-9a-f]{8}|[A-Za-z]\w{1,40}(?:\$\d{1,2}){2,3}"
    # A file relative to another file; users that a server admits without a password.
    rb"|[a-z]{2,20}\d{0,3}(?:[/_-][a-z]{2,20}\d{0,3}){0,4}/[a-z]{2,20}\d{0,3}"
    rb"(?:[_-][a-z]{2,20}\d{0,3}){1,5}(?:\.[a-z]{1,4})?"
    rb"|[a-z]{2,20}@[a-z]{2,20}\.(?:com|net|org)"
    # A setting, a host with a port, a page of a manual, a locale.
    rb"|[a-z]{2,20}=\d{1,6}|(?:[a-z][a-z0-9-]{0,30}\.){1,4}[a-z]{2,6}:\d{1,5}"
    rb"|[a-z_]{2,30}\(\d\)|[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?[-_](?:[A-Z]{2}|\d{3})"
    # A colour; a version in the name of a module; a quantifier in a grammar.
    rb"|#[0-9a-fA-F]{3,8}|(?:[A-Za-z][\w-]{0,30}\.){1,5}v?\d{1,4}(?:[_.]\d{1,4}){1,5}"
    rb"|\d{0,2}\*\d{0,2}[A-Z][A-Z-]+"
    # Two lines of a session's description, joined.
    rb"|[a-z][a-z-]{2,20}:[\w./+-]{1,40}=[a-z][a-z_-]{1,20}:[\w./+-]{1,40}"
    # A place in a file, and what is there.
    rb"|\d{1,6}(?::\d{1,6}){1,3}:[A-Za-z_][\w:.-]{0,120}"
    # A type with a version.
    rb"|[A-Za-z][\w.-]{0,40}(?:/[A-Za-z][\w.-]{0,40}){1,5}@v?\d[\w.-]{0,20}"
)
# The address of a database and its protocol, without a password.
_SOURCE = re.compile(
    rb"(?!.*(?:pass|pwd|secret|key|token))[a-z]{2,20}:(?:[a-z][\w ]{0,40}=[^;=]{0,80};?){1,9}",
    re.IGNORECASE,
)
# The parameters and the salt of a hash.
_SALT_ALONE = re.compile(
    rb"\$argon2(?:id|i|d)\$(?:v=\d{1,3}\$)?[a-z]=[a-z\d,=]{1,60}(?:\$[^$]*)?"
)
# Words of a language without Latin letters.
_OTHER_LETTERS = re.compile(rb"(?:[\xe3-\xed][\x80-\xbf]{2}){2}")
# The name of a dated version, as in a list of features.
_DATED = re.compile(rb"[a-z]+(?:[_-][a-z]+)*-20\d\d-\d\d-\d\d", re.IGNORECASE)
_PADDED = re.compile(rb"(={1,2})[A-Za-z].*\Z", re.DOTALL)
_NEXT_HEADER = re.compile(rb"[A-Z][a-z]+(?:-[A-Z][a-z]+)*:\Z")
_CLASSES = bytes.maketrans(
    (string.ascii_lowercase + string.ascii_uppercase + string.digits).encode(),
    b"a" * 26 + b"A" * 26 + b"0" * 10,
)
_HEX = re.compile(rb"(?i)[0-9a-f-]+")
# Signs that join the parts of a path, of an address and of a module's name.
_STRUCTURE = re.compile(rb"[./:=&,]")
# One of several parameters: each is judged by its own name.
_PARAMETER = re.compile(rb"[?&][A-Za-z_][A-Za-z0-9_.-]{0,40}=")
_PARTS = re.compile(rb"[^\s\"':,=&{}\[\]]+")
# n times its binary logarithm, for the lengths that values have.
_SHARES = (0.0, *(n * math.log2(n) for n in range(1, 513)))
_IRREGULAR = 16
_MIXED_TURNS = 0.34
_PLAIN_TURNS = 0.2
_SHORT = 6
_PLAIN_WORD = 8
_LEAST_VARIED = 2.2
_RANDOM = 3.0
_VERY_RANDOM = 3.6
_NO_PATH = 4.4
_PARTS_OF_NAME = 3
# In a hundred random hexadecimal digits, two or three of the groups of three occur twice.
_REPEATS_LENGTH = 24
_REPEATS_LOOKED_AT = 128
_UNLIKE = 0.85
_WITHIN_WORDS = str.maketrans("", "", "-'\u2019\u02bc")


def entropy(value: bytes) -> float:
    """Returns the bits that a byte of the value carries, by the value's own distribution."""
    total = len(value)
    if not total:
        return 0.0
    counts = Counter(value).values()
    if total >= len(_SHARES):
        return math.log2(total) - sum(n * math.log2(n) for n in counts) / total
    return (_SHARES[total] - sum(map(_SHARES.__getitem__, counts))) / total


def placeholder(value: bytes) -> bool:
    """Whether a value is a placeholder for one that is filled in elsewhere."""
    if _PLACEHOLDER.search(value) is not None or _ADDRESS.fullmatch(value) is not None:
        return True
    # A value of letters and digits alone is not an expression of a program.
    return not value.isalnum() and (
        _REFERENCE.match(value) is not None
        or _EXPRESSION.search(value) is not None
        or _ROOTED.match(value) is not None
        or (
            _CONSTANT.fullmatch(value) is not None
            and (
                value.count(b"_") >= _PARTS_OF_NAME
                or _SPELT.search(value) is not None
                or words.worded(value)
                or not irregular(value)
            )
        )
        or (_PATH.fullmatch(value) is not None and entropy(value) < _NO_PATH)
    )


def token(value: bytes) -> bool:
    """Whether a value in a token's form is more than an example of one."""
    return _MADE_UP.search(value.upper()) is None and len(set(value)) > _SHORT


def random(value: bytes) -> bool:
    """Whether a value is too irregular for a word or a name."""
    mixed = re.search(rb"\d", value) is not None and re.search(rb"[A-Za-z]", value)
    return bool(mixed) and not placeholder(value) and entropy(value) >= _RANDOM


def irregular(value: bytes) -> bool:
    """Whether the order of letters and digits is one that only chance makes.

    Judged by how often capitals, small letters and digits alternate: in three of five places
    of a random token, in one of four of a name that a person wrote.
    """
    if len(value) < _IRREGULAR or (not re.search(rb"\d", value) and len(value) < 24):  # noqa: PLR2004
        return False
    if repeats(value):
        return False
    if _HEX.fullmatch(value):
        return entropy(value) >= _RANDOM and len(set(value)) >= 10  # noqa: PLR2004
    classes = value.translate(_CLASSES)
    taken = turns(value)
    both = b"a" in classes and b"A" in classes
    if b"0" not in classes:
        return both and taken >= _MIXED_TURNS and entropy(value) >= _VERY_RANDOM
    return (
        taken >= (_MIXED_TURNS if both else _PLAIN_TURNS)
        and entropy(value) >= _RANDOM
        and classes.count(b"0") >= (1 if both else 3)
    )


def turns(value: bytes) -> float:
    """Returns the share of places that another sort of letter follows."""
    pairs = itertools.pairwise(value.translate(_CLASSES))
    return sum(one != two for one, two in pairs) / (len(value) - 1)


def repeats(value: bytes) -> bool:
    """Whether the same letters are side by side too often for chance.

    Programs encode their tables in base64, and such tables repeat.
    """
    if len(value) < _REPEATS_LENGTH:
        return False
    begin = value[:_REPEATS_LOOKED_AT].lower()
    threes = {begin[at : at + 3] for at in range(len(begin) - 2)}
    if len(threes) < _UNLIKE * (len(begin) - 2):
        return True
    pairs = Counter(itertools.pairwise(begin))
    return max(pairs.values()) > 3 + len(begin) // 12


def chance(value: bytes) -> bool:
    """Whether a value is random, even if it is as short as a password."""
    if len(value) >= _IRREGULAR:
        return irregular(value)
    classes = value.translate(_CLASSES)
    kinds = len({*classes} & {48, 65, 97}) + any(byte not in b"0aA" for byte in classes)
    if len(value) < 8 or kinds < 3:  # noqa: PLR2004  a password of any length worth it
        return False
    return b"0" in classes and turns(value) >= 0.4  # noqa: PLR2004


def salt_alone(value: bytes) -> bool:
    """Whether a password's hash ends with its salt, so that the hash is not there."""
    return _SALT_ALONE.fullmatch(value) is not None


def plausible(value: bytes) -> bool:
    """Whether a value can be a secret at all, which most words of a text cannot."""
    if _DATED.fullmatch(value) or _STANDARD.fullmatch(value) or not words.text(value):
        return False
    if (
        _SOURCE.fullmatch(value)
        or _OTHER_LETTERS.search(value)
        or words.unsigned(value)
        or salt_alone(value)
    ):
        return False
    if words.listed(value) or words.public(value) or words.names_itself(value):
        return False
    if _PARAMETER.search(value) or words.counts(value) or nothing.is_digest(value):
        return False
    if (len(value) >= _IRREGULAR or value.endswith(b"=")) and not _encodes(value):
        return False
    return len(value) >= _SHORT and (not value.isalpha() or len(value) >= _PLAIN_WORD)


def mixed(value: bytes) -> bool:
    """Whether a value has many capitals, small letters and digits each."""
    classes = value.translate(_CLASSES)
    return (
        min(classes.count(b"a"), classes.count(b"A")) >= len(value) // 6
        and classes.count(b"0") >= 2  # noqa: PLR2004
        and len(set(value)) >= len(value) // 3
    )


def password(value: bytes) -> bool:
    """Whether the password in a URL is a real one, not a word or two."""
    value = unquote_to_bytes(value)
    if placeholder(value) or well_known.common(value) or not words.text(value):
        return False
    if _MAIL.fullmatch(value) or _foreign(value):
        return False
    if examples.guessable(value) or b" " in value or _SPOKEN.fullmatch(value):
        return False
    return len(set(value)) > 2 and not value.isdigit()  # noqa: PLR2004  a port, or ***


def proof(value: bytes) -> bool:
    """Whether the authorization of a request is more than an example of one."""
    plain = credentials(value)
    if plain is None:
        return not placeholder(value) and not words.worded(value)
    # A name and a password in base64 are judged as in a URL.
    return password(plain)


def credentials(value: bytes) -> bytes | None:
    """Returns the password of a name and a password in base64; None for anything else."""
    # After the padding of base64 another word begins.
    value = _NEXT_HEADER.sub(b"", _PADDED.sub(rb"\1", value))
    plain = words.decoded(value) or words.latin(value)
    if plain is None:
        return None
    return plain.partition(b":")[2] or plain.rstrip(b":")


def spoken(value: bytes) -> bool:
    """Whether the password that a command or a file holds is a real one."""
    return (
        password(value)
        and re.search(rb"\d", value) is not None
        and not _VERSION.fullmatch(value)
        and not _NUMBER.fullmatch(value)
        and not _STANDARD.fullmatch(value)
        and (chance(value) or entropy(value) >= 2.5)  # noqa: PLR2004  eight unlike
    )


def mixed_or_hex(value: bytes) -> bool:
    """Whether the order of a value's digits and letters is one that no name has."""
    return irregular(re.sub(rb"[^A-Za-z0-9]", b"", value))


def code(name: bytes, value: bytes) -> bool:
    """Whether an unquoted value beside a name is an expression of a program.

    A name in capitals is an environment variable, which has plain values.
    """
    return name != name.upper() and _CODE.fullmatch(value) is not None


def assigned(value: bytes, *, quoted: bool, password: bool) -> bool:
    """Whether the value beside a secret's name is a secret."""
    if (
        len(value) < _SHORT
        or b" " in value
        or placeholder(value)
        or _VERSION.fullmatch(value)
        or _NUMBER.fullmatch(value)
    ):
        return False
    if len(value) >= _IRREGULAR and not _encodes(value):
        return False
    if well_known.common(value) or words.named(value):
        return False
    plain = value.strip(b"-:@_.")
    if _foreign(plain) or _IDENTIFIER.fullmatch(plain) or _WORDS.fullmatch(plain):
        # Letters alone are a name, unless they are random.
        return (
            value.isalpha()
            and evidence(value) >= ALONE
            and entropy(value) >= _LEAST_VARIED
        )
    digits = re.search(rb"\d", value) is not None
    letters = re.search(rb"[A-Za-z]", value) is not None
    if not letters:
        return False
    if chance(value) or mixed_or_hex(value):
        return digits and entropy(value) >= (_LEAST_VARIED if password else _RANDOM)
    # It is not random. People make such passwords: short ones, or of words.
    return (
        password
        and (len(value) < _IRREGULAR or (quoted and not _STRUCTURE.search(value)))
        and (digits or quoted)
        and entropy(value) >= _LEAST_VARIED
    )


def _foreign(value: bytes) -> bool:
    """Whether a value is one or two words of a language with letters beyond ASCII."""
    text = value.decode("utf-8", "replace")
    letters = "".join(one for one in text if not unicodedata.combining(one))
    return not text.isascii() and letters.translate(_WITHIN_WORDS).isalpha()


def _encodes(value: bytes) -> bool:
    """Whether a value is not base64 of text, or a part of that text may be random."""
    plain = words.decoded(value)
    return plain is None or any(
        chance(part) and evidence(part) >= TOKEN and not nothing.is_digest(part)
        for part in _PARTS.findall(plain)
    )
