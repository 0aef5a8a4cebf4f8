"""Digests of empty input, such as an empty password or file: not secrets."""

import base64
import hashlib

_NAMES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b")
# Windows' digests of an empty password: MD4, and the older digest, once and twice.
_WINDOWS = (
    "31d6cfe0d16ae931b73c59d7e0c089c0",
    "aad3b435b51404ee",
    "aad3b435b51404eeaad3b435b51404ee",
)
_RAW = frozenset(
    {
        *(hashlib.new(name, usedforsecurity=False).digest() for name in _NAMES),
        *map(bytes.fromhex, _WINDOWS),
    }
)
_WRITTEN = frozenset(
    {
        *(raw.hex().encode() for raw in _RAW),
        *(base64.b64encode(raw).rstrip(b"=") for raw in _RAW),
    }
)


def is_digest(value: bytes) -> bool:
    """Whether a value is a digest of empty input, in hexadecimal digits or base64."""
    value = value.rstrip(b"=")
    return value in _WRITTEN or value.lower().removeprefix(b"0x") in _WRITTEN
