"""Reads keys and certificates between lines of dashes, as OpenSSL writes them (RFC 7468)."""

import re

from gitcp.secrets import heuristics, words

_BASE64 = re.compile(rb"[A-Za-z0-9+/=]")
_KEY_RUN = re.compile(rb"[A-Za-z0-9+/]+")
_MARKER = re.compile(rb"-{4,5} ?(?:BEGIN|END) [A-Z0-9 ]{1,80}-{4,5}")
_KEY_CHARACTERS = 48
_KEY_SHARE = 0.7
_KEY_LINE = 20
_KEY_HEAD = 200
_PROGRAM = re.compile(rb"[{};]")
# The entropy of base64, in bits a letter.
_VARIED = 3.6
# A certificate or another public value, as OpenSSL writes it.
_PUBLIC_BLOCK = re.compile(
    rb"-----BEGIN (?:(?:TRUSTED |X509 |NEW )?CERTIFICATE(?: REQUEST)?|PUBLIC KEY|X509 CRL"
    rb"|PKCS7)-----([A-Za-z0-9+/= \t\r\n]{64,40000}+)(?=-----END )"
)
_BLANKED = bytes(byte if byte in b"\t\r\n" else 32 for byte in range(256))
_DER_HEAD = 80


def key_body(body: bytes) -> bool:
    """Whether the text between the lines of a key is a key, and not an ellipsis."""
    letters = len(_BASE64.findall(body))
    blank = sum(body.count(space) for space in (b" ", b"\n", b"\r", b"\t"))
    return (
        letters >= _KEY_CHARACTERS
        and _PROGRAM.search(body, 0, _KEY_HEAD) is None
        and _in_lines(body, letters)
        and letters >= _KEY_SHARE * (len(body) - blank)
        and heuristics.entropy(body) > _VARIED
    )


def _in_lines(body: bytes, letters: int) -> bool:
    """Whether most of the text between the lines of a key is long runs, not words."""
    runs = [len(run) for run in _KEY_RUN.findall(body)]
    return sum(run for run in runs if run >= _KEY_LINE) >= letters // 2


def key_letters(key: bytes) -> bytes:
    """Returns the letters of a key, which are the same in every notation.

    Without the lines around it, its padding, and the text before and after each of its lines:
    an indent, quotes, comment signs. Plus signs are left out, because those of a diff or of
    joined strings cannot be told from the key's own.
    """
    runs = _MARKER.sub(b" ", key).split()
    letters = (max(_KEY_RUN.findall(run), key=len, default=b"") for run in runs)
    return b"".join(letters).replace(b"+", b"")


def without_certificates(data: bytes) -> bytes:
    """Returns a text of the same size and lines with blanks for the letters of certificates.

    Most of what a certificate costs is to look for the end of a token in each of its lines.
    """
    if b"-----BEGIN " not in data:
        return data
    return _PUBLIC_BLOCK.sub(_blanked, data)


def _blanked(block: re.Match[bytes]) -> bytes:
    start = block.start(1) - block.start()
    head = block[1][:_DER_HEAD].translate(None, b" \t\r\n")
    if not words.public(head):
        return block[0]
    return block[0][:start] + block[1].translate(_BLANKED)
