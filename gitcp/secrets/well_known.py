"""Values that everybody knows: common passwords, and the examples in standards."""

import re
from urllib.parse import unquote_to_bytes

from gitcp.secrets import words

_COMMON = frozenset(
    b"admin changeit changeme dev development guest letmein local localhost mysql none"
    b" null pass passwd password postgres production qwerty redis root secret string test"
    b" testing token true user username your-password undefined hunter2 foobar foo bar"
    b" password1 password123 pwd pw".split()
)
# If a word of a password is one of these, spelt with digits, the password is made up.
_MADE_UP = frozenset(b"passwd password passphrase secret security token".split())
# Signs that people add to such a word, so that it has digits and signs.
_BEHIND = b"0123456789!@#$%&*_-."
_SAYS_PASSWORD = re.compile(rb"[a-z]{2,8}[-_]?passw(?:or)?d")
_LOOKS_LIKE = bytes.maketrans(b"@$", b"as")
_SIGNS = re.compile(rb"[^a-z0-9]")
# RFC 6455, 6749, 6750, 7009, 7515, 7636 and 7662; the key of the emulator of Azure's storage.
_PUBLISHED = frozenset(
    b"2YotnFZFEjr1zCsicMWpAA tGzv3JOkF0XG5Qx2TlKWIA SplxlOBeZQQYbYS6WxSbIA gX1fBat3bV"
    b" 7Fjfp0ZBr1KtDRbnfVdmIw czZCaGRSa3F0MzpnWDFmQmF0M2JW"
    b" czZCaGRSa3F0Mzo3RmpmcDBaQnIxS3REUmJuZlZkbUl3 mF_9.B5f-4.1JqM vF9dft4qmT"
    b" 45ghiukldjahdnhzdauz 23410913-abewfq.123483"
    b" dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    b" E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    b" AyM1SysPpbyfDfZld3umj1qzKObwVMkoqQ-EstJQLr_T"
    b"-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
    b" x3JJHMbDL1EzLkh9GBhXDw== dGhlIHNhbXBsZSBub25jZQ=="
    b" Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr"
    b"/KBHBeksoGMGw==".split()
)


def common(value: bytes) -> bool:
    """Whether a value is a common password, with digits in place of letters or after them."""
    lower = value.lower().translate(_LOOKS_LIKE)
    if lower in _COMMON or words.spelt(lower).startswith(b"foobar"):
        return True
    word = words.spelt(lower.rstrip(_BEHIND))
    letters = _SIGNS.sub(b"", unquote_to_bytes(lower))
    if word in _COMMON or letters in _COMMON or _SAYS_PASSWORD.fullmatch(word):
        return True
    parts = re.split(rb"[-_.]", lower)
    return any(
        not part.isalpha() and words.spelt(part) in _MADE_UP for part in parts
    ) and all(words.spelt(part).isalpha() for part in parts)


def published(value: bytes) -> bool:
    """Whether a value is an example that a standard prints."""
    return value in _PUBLISHED
