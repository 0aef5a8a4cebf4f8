"""Finds secrets by structure: keys, URLs, headers, records of passwords."""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote_to_bytes

from gitcp.secrets import (
    chance,
    ed25519,
    examples,
    heuristics,
    nothing,
    pem,
    tokens,
    words,
)
from gitcp.secrets.runs import Spend, at_places
from gitcp.secrets.text import Text, Words
from gitcp.secrets.tokens import KEY, Token

_BEGIN = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"
)
_PRIVATE_KEY, _PRIVATE_LINES = Words(b"private key"), Words(b"private-lines")
# The cost of judging a value, in bytes scanned.
_JUDGED = 250
_LONGEST_KEY = 20_000
_SHORTEST_KEY = 40
# The beginning of a key with dots for the rest, as in a manual, is shorter than this.
_CUT_KEY = 200
_PUTTY = re.compile(
    rb"Private-Lines: ?\d{1,4}\s{1,4}((?:[A-Za-z0-9+/=]{8,128}+\s{1,4}){2,200})"
)
_IN_URL = Words(b"://")
_AFTER_SCHEME = re.compile(
    rb"://([^\s/:@\"'<>\\`|{}()\[\],]{0,200}):([^\s/@\"'<>\\`|(),]{3,300})@(?=[\w\[.-])"
)
# If this matches, the query of a URL has begun, and the sign after it belongs to the query.
_IN_QUERY = re.compile(rb"\?[a-z_]{1,20}=", re.IGNORECASE)
# In the address of a network's node the key is public; in ssh it is a user's name.
_ALONE = re.compile(
    rb"://(?<!enrtree://)(?<!enode://)(?<!ssh://)([A-Za-z0-9_-]{20,255})@(?=[\w\[-])"
)
# The address to which a program that is given away reports its errors: a key that everyone may
# use to write, and the number of a project.
_REPORTS = re.compile(
    rb"[0-9a-f]{32}@[\w.-]{1,200}(?::\d{1,5})?/(?:[\w-]{1,40}/){0,3}\d{1,20}(?![\w/-])"
)
_HEADER = re.compile(
    rb"(?:\b(?:bearer|basic|ssws|bot|apikey|geniekey|flyv1|splunk|negotiate"
    rb"|token token=\"?)[ \t]{1,4}"
    # A key authorization is published to prove who owns a host.
    rb"|(?<!key_)(?<!key)(?<!key )authorization[\"']?[ \t]{0,4}[:=,][ \t]{0,4}[\"'`]?"
    rb"(?:[a-z][\w-]{1,30}[ \t]{1,4})?)"
    rb"(?P<value>[a-z0-9_.~+/=:-]{16,4000})"
)
# A scheme, behind which its parameters follow, or which a program joins with them.
_ONLY_SCHEME = re.compile(rb"[ \t]{1,4}(?:[A-Za-z]{2,20}=|[\"'][ \t]{0,4}[+.,)]|,)")
_SCHEMES = Words(b"bearer", b"basic", b"authorization", b"ssws", b"apikey", b"flyv1")
# Schemes that count only if one of the others is there as well.
_FEWER_SCHEMES = Words(b"bot", b"geniekey", b"splunk", b"negotiate", b"token token=")
_QUERY = re.compile(rb"[?&](?:sig|key|code|token|auth)=([A-Za-z0-9%+/=_-]{24,300})")
# The letters of issued values; programs have blanks, brackets and quotes, too.
_OPAQUE = re.compile(rb"[A-Za-z0-9+/=_.~:-]+")
# The number of a picture or a page: everyone who may see the page may see it.
_NUMBER = re.compile(rb"(?i)[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")


def keys(text: Text) -> Iterator[Token]:
    """Yields the private keys of a text, by the lines that begin them."""
    data = text.data
    if _PRIVATE_KEY.found_in(text):
        for head in _BEGIN.finditer(data):
            end = data.find(b"----", head.end(), head.end() + _LONGEST_KEY)
            body = data[head.end() : end if end >= 0 else head.end() + _LONGEST_KEY]
            # If line ends are escapes, the text without escapes is scanned as well.
            if (
                len(body) >= _SHORTEST_KEY
                and b"\\" not in body
                and not (b"..." in body and len(body) < _CUT_KEY)
                and pem.key_body(body)
            ):
                yield Token(KEY, body, head.end())
    if _PRIVATE_LINES.found_in(text):
        for match in _PUTTY.finditer(data):
            yield Token(KEY, match[1], match.start(1))


def urls(text: Text, spend: Spend) -> Iterator[Token]:
    """Yields the passwords in URLs."""
    data = text.data
    if not _IN_URL.found_in(text) or b"@" not in data:
        return
    for match in _AFTER_SCHEME.finditer(data):
        spend(_JUDGED)
        if match[1].lower() == b"anonymous":
            # Such a user's password is at most an address.
            continue
        if words.spelt(match[2].lower()) == match[1].lower():
            # It repeats the user's name.
            continue
        if _IN_QUERY.search(match[2]) is None and heuristics.password(match[2]):
            if not examples.made_up(text, match[2], match.start(2), spend):
                yield Token("url-password", match[2], match.start(2))
        elif heuristics.irregular(match[1]):
            yield Token("url-password", match[1], match.start(1))
    for match in _ALONE.finditer(data):
        spend(_JUDGED)
        public = _REPORTS.match(data, match.start(1)) is not None
        if not public and heuristics.irregular(match[1]):
            yield Token("url-password", match[1], match.start(1))


def headers(text: Text, spend: Spend) -> Iterator[Token]:
    """Yields the credentials in the headers of requests."""
    schemes = _SCHEMES.starts(text)
    if not schemes:
        return
    data = text.data
    schemes = sorted({*schemes, *_FEWER_SCHEMES.starts(text)})
    for match in at_places(_HEADER, text.lower, schemes):
        spend(_JUDGED)
        start, end = match.span("value")
        value = data[start:end]
        if not heuristics.irregular(value) or not heuristics.proof(value):
            continue
        if _ONLY_SCHEME.match(data, end):
            continue
        password = heuristics.credentials(value)
        if password is None or not examples.made_up(text, password, start, spend):
            yield Token("authorization", value, start)


# --- records of passwords ------------------------------------------------------------

_HASH = re.compile(
    rb"\$(?:1|2[abxy]|5|6|7|y|gy|apr1|sha1|scrypt|argon2(?:id|i|d)|pbkdf2(?:-sha\d+)?"
    rb"|bcrypt-sha256|8|9|P|H|S)\$[\w./,=+$-]{20,400}"
)
_LDAP_HASH = re.compile(
    rb"\{(?:SSHA|SHA|SMD5|MD5|CRYPT|PBKDF2|SSHA256|SSHA512|SHA512-CRYPT"
    rb"|ARGON2ID?)\}[\w./+=$-]{20,300}"
)
_NAMED_HASH = re.compile(
    rb"(?:pbkdf2_sha(?:256|1|512)|argon2|bcrypt_sha256|scrypt|pbkdf2:sha\d+"
    rb"|scrypt:\d+):?[\d:]{0,20}\$[\w./,=+$-]{20,300}"
    rb"|SCRAM-SHA-(?:1|256)\$\d+:[\w+/=]{16,200}\$[\w+/=]{20,200}:[\w+/=]{20,200}"
)
_NT_HASH = re.compile(rb"(?<![\w$])[0-9a-fA-F]{32}:[0-9a-fA-F]{32}:::")
_NAMED_HASHES = Words(b"pbkdf2", b"argon2", b"bcrypt_sha256", b"scrypt", b"scram-sha")
_LDAP_HASHES = Words(
    *(b"{ssha", b"{sha", b"{smd5", b"{md5", b"{crypt", b"{pbkdf2", b"{argon2"),
)
_NT_HASHES = Words(b":::")
_NETRC = re.compile(
    rb"(?:\bmachine[ \t]+\S{2,100}|\bdefault)\s{1,8}login\s{1,4}\S{1,100}\s{1,8}"
    rb"(?:account\s+\S{1,80}\s+)?password\s{1,4}(?P<value>\S{4,400})"
)
_PGPASS = re.compile(
    rb"(?<![^\r\n])[\w.*-]{1,100}:(?:\d{2,5}|\*):[\w*-]{1,60}:[\w.*@-]{1,60}:"
    rb"(?P<value>[^\s:]{6,200})(?![^\r\n])"
)
_CHAP = re.compile(
    rb"(?<![^\r\n])[\"']?[\w.@*-]{1,60}[\"']?[ \t]+(?:\*|pppd|PPTP"
    rb"|l2tpd?)[ \t]+[\"']?(?P<value>[^\s\"']{6,100})[\"']?[ \t]+\*"
)
_FILES = (
    (Words(b"machine ", b"default login"), _NETRC),
    (Words(b":*:", b":5432:", b":6432:", b":5433:"), _PGPASS),
    (Words(b"pppd", b' * "'), _CHAP),
)
_JWK = re.compile(
    rb"[\"'](?:d|k|p|q|dp|dq|qi)[\"']\s{0,9}:\s{0,9}[\"']"
    rb"(?P<value>[A-Za-z0-9_-]{32,1400})={0,2}[\"']"
)
_NUMBERS = re.compile(rb"\[\s{0,4}(?:\d{1,3}\s{0,4},\s{0,8}){63}\d{1,3}\s{0,4}\]")
_SAYS_PAIR = re.compile(rb"(?i)key[ _-]?pair")
# Proving that a list is a pair takes some milliseconds.
_PROOFS = 16
_WIF = re.compile(rb"(?<![A-Za-z0-9])[5KLc9][1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9])")
_STELLAR = re.compile(rb"(?<![A-Za-z0-9])S[A-Z2-7]{55}(?![A-Za-z0-9])")
_SECRET_HEX = re.compile(rb"(?<![0-9a-fA-F])(?:0x)?[0-9a-fA-F]{64}(?![0-9a-zA-Z])")
_SAYS_SECRET = re.compile(
    rb"(?i)priv(?!ileg|acy|ate[ \t]+(?!key)[a-z])|secret|wallet|signing|\bsk\b|seed"
    rb"|(?<!pub)(?<!public)(?<!public[ _-])key[ \"'=:]{1,4}\Z"
)
# `walletTxId` names a transaction of a wallet.
_NAMES_ID = re.compile(
    rb"(?:Id|_id|Hash|_hash|HASH|Address|_address)[\"']?[ \t]{0,4}[:=][ \t\"'x0]*\Z"
)
# Names of digests, and of keys for lookups.
_NO_KEY = re.compile(
    rb"(?i)checksum|digest|fingerprint|thumbprint|sha-?[1235]"
    # An encrypted key is not the key, and cannot be read without another.
    rb"|(?:encrypted|wrapped|hashed)[_.-]?key[ \"'=:]{1,4}(?:0x)?\Z"
    rb"|(?:cache|partition|sort|primary|foreign|object|storage|idempotency|dedup\w{0,10}|lookup"
    rb"|hash|index|group|item|row|map)[_.-]?key[ \"'=:]{1,4}(?:0x)?\Z"
)
# The key of an entry in a map.
_OPENS_ENTRY = re.compile(rb"[{,][ \t\r\n]{0,40}[\"']?\Z")
_ENDS_ENTRY = re.compile(rb"[\"']?[ \t]{0,4}:")
_BEFORE = 48
_MNEMONIC = re.compile(
    rb"(?: (?:is|are|of))?[^a-z0-9]{1,16}"
    rb"(?P<words>(?:[a-z]{3,8}(?: {1,2}|, ?)){11,23}[a-z]{3,8})(?![a-z])(?! [a-z])"
)
_NEAR_WORDS = Words(
    *(b"mnemonic", b"seed", b"recovery", b"secret", b"backup", b"wallet"),
    *(b"bip39", b"bip-39"),
)
_NEAR = re.compile(
    rb"(?:mnemonic|(?:seed|recovery|secret|backup)[ _-]?(?:phrase|words?|key)|bip-?39|wallet"
    rb"|seed(?<![a-z]seed)[\"' ]?[:=])[a-z_]{0,12}"
)
# Words of prose that no list of such words has.
_PROSE = frozenset(
    b"and the for with from are was not has have had its but you were been which their"
    b" his her our may must does did than where when what who how why because would should"
    b" into by all any more most such no nor so if each they them these those there".split()
)
_COUNTS = frozenset({12, 15, 18, 21, 24})
_DISTINCT = 9
_ALPHABET = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_OTP = Words(b"otpauth")
_OTPAUTH = re.compile(
    rb"(?i)otpauth(?:-migration)?://[^\s\"'<>]{1,200}?(?:secret"
    rb"|data)=([A-Za-z0-9%+/=]{16,400})"
)


def records(text: Text, spend: Spend) -> Iterator[Token]:
    """Yields the passwords in commands and in files that hold nothing else."""
    data = text.data
    for match in _hashes(text):
        spend(_JUDGED)
        if (
            heuristics.token(match[0])
            # With nothing after its last sign, it only describes how to hash.
            and not match[0].endswith(b"$")
            and not heuristics.salt_alone(match[0])
            and not heuristics.placeholder(match[0][3:])
            and heuristics.mixed_or_hex(match[0])
        ):
            yield Token("password-hash", match[0], match.start())
    for signs, pattern in _FILES:
        if signs.found_in(text):
            for match in pattern.finditer(data):
                spend(_JUDGED)
                value, at = match["value"], match.start("value")
                if not heuristics.spoken(value):
                    continue
                if not examples.made_up(text, value, at, spend):
                    yield Token("password-file", value, at)
    if _OTP.found_in(text):
        for match in _OTPAUTH.finditer(data):
            if heuristics.token(match[1]):
                yield Token("otp-secret", match[1], match.start(1))


def _hashes(text: Text) -> Iterator[re.Match[bytes]]:
    data = text.data
    if b"$" in data:
        yield from _HASH.finditer(data)
    if _LDAP_HASHES.found_in(text):
        yield from _LDAP_HASH.finditer(data)
    if _NT_HASHES.found_in(text):
        yield from _NT_HASH.finditer(data)
    yield from at_places(_NAMED_HASH, data, _NAMED_HASHES.starts(text))


def queries(data: bytes, start: int, end: int, spend: Spend) -> Iterator[Token]:
    """Yields the keys in the query of a URL, in a run of letters of URLs."""
    if data.find(b"=", start, end) < 0:
        return
    for match in _QUERY.finditer(data, start, end):
        spend(_JUDGED)
        if heuristics.irregular(match[1]) and _issued(unquote_to_bytes(match[1])):
            yield Token("url-key", match[1], match.start(1))


def _issued(value: bytes) -> bool:
    """Whether a value in a query is a key, and not a quoted program or text."""
    return (
        _OPAQUE.fullmatch(value) is not None
        and _NUMBER.fullmatch(value) is None
        and chance.evidence(value) >= chance.TOKEN
    )


def numbers_and_words(text: Text) -> Iterator[Token]:
    """Yields keys that are written as numbers or as words, or have a checksum."""
    data = text.data
    if b"kty" in data:
        for match in _JWK.finditer(data):
            if heuristics.irregular(match["value"]):
                yield Token("jwk-private-key", match["value"], match.start("value"))
    yield from _pairs(data)
    yield from _mnemonics(text)


def _pairs(data: bytes) -> Iterator[Token]:
    """Yields key pairs of 64 numbers: those that are proven, and those that their line names.

    Most lists of 64 numbers are tables and test vectors.
    """
    proofs = _PROOFS
    for match in _NUMBERS.finditer(data):
        values = [int(part) for part in re.findall(rb"\d+", match[0])]
        # If each number occurs once, the list is a permutation table.
        distinct = len(set(values))
        # Among 64 random bytes at least one is high; a table need not have one.
        if not (200 < max(values) < 256 and 45 < distinct < len(values)):  # noqa: PLR2004
            continue
        before = data[max(0, match.start() - _BEFORE) : match.start()]
        line = before[max(before.rfind(b"\n"), before.rfind(b"\r")) + 1 :]
        if _SAYS_SECRET.search(line) or _SAYS_PAIR.search(line):
            yield Token(KEY, match[0], match.start())
        elif proofs:
            proofs -= 1
            pair = bytes(values)
            if ed25519.public_key(pair[:32]) == pair[32:]:
                yield Token(KEY, match[0], match.start())


def _mnemonics(text: Text) -> Iterator[Token]:
    for near in at_places(_NEAR, text.lower, _NEAR_WORDS.starts(text)):
        match = _MNEMONIC.match(text.lower, near.end())
        if match is None:
            continue
        start, end = match.span("words")
        words = re.findall(rb"[a-z]+", match["words"])
        known = len(words) in _COUNTS and len(set(words)) >= _DISTINCT
        if known and not _PROSE.intersection(words):
            yield Token("mnemonic", text.data[start:end], start)


def checked(data: bytes, start: int, end: int, spend: Spend) -> Iterator[Token]:
    """Yields the keys in a run that have a key's length, and a checksum or a name."""
    for pattern, sound in _CHECKED:
        for match in pattern.finditer(data, start, end):
            spend(_JUDGED)
            if sound(match[0]):
                yield Token("wallet-key", match[0], match.start())
    for match in _SECRET_HEX.finditer(data, start, end):
        spend(_JUDGED)
        before = data[max(0, match.start() - _BEFORE) : match.start()]
        line = before[max(before.rfind(b"\n"), before.rfind(b"\r")) + 1 :]
        if (
            tokens.is_digest(data, match.start())
            or _NAMES_ID.search(line) is not None
            or _NO_KEY.search(line) is not None
        ):
            continue
        if _OPENS_ENTRY.search(before) and _ENDS_ENTRY.match(data, match.end()):
            continue
        if nothing.is_digest(match[0]) or words.counts(match[0]):
            continue
        if _SAYS_SECRET.search(line) is not None and heuristics.irregular(match[0]):
            yield Token(KEY, match[0], match.start())


def _sound_wif(value: bytes) -> bool:
    number = 0
    for letter in value:
        number = number * 58 + _ALPHABET.index(letter)
    raw = number.to_bytes((number.bit_length() + 7) // 8, "big")
    twice = hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()
    # A version, 32 bytes, perhaps the sign that the public key is compressed, a checksum.
    return twice[:4] == raw[-4:] and raw[33:-4] in {b"", b"\x01"}


def _sound_stellar(value: bytes) -> bool:
    raw = base64.b32decode(value)
    return binascii.crc_hqx(raw[:-2], 0).to_bytes(2, "little") == raw[-2:]


_CHECKED: tuple[tuple[re.Pattern[bytes], Callable[[bytes], bool]], ...] = (
    (_WIF, _sound_wif),
    (_STELLAR, _sound_stellar),
)
