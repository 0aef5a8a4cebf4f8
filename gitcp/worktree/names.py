"""Classifies names: those that matter to a scan, and those that a snapshot excludes."""

import re
from collections.abc import Iterator
from typing import Literal

from gitcp.format.layout import RESERVED
from gitcp.format.safety import NAME_LIMIT, path_problem

TEMPORARY = b".gitcp-tmp-"
# The end of the name of a SQLite database's log.
WAL = b"-wal"
IGNORE_FILE = b".gitignore"
# Such a name is always allowed, unless it is a spelling of .git.
_ORDINARY = re.compile(rb"[A-Za-z0-9_][A-Za-z0-9_.+-]*").fullmatch
_DIGITS = 12
_HEX = b"0123456789abcdef"


def is_temporary(name: bytes) -> bool:
    """Whether a name is a temporary one that a restore gives to files.

    The token of the journal, and a number or a digest, follow the prefix.
    """
    if not name.startswith(TEMPORARY):
        return False
    marks = name.removeprefix(TEMPORARY).removesuffix(b".old")
    token, _, rest = marks.partition(b"-")
    return (
        len(token) == _DIGITS
        and 0 < len(rest) <= _DIGITS
        and not (token + rest).strip(_HEX)
    )


def no_place(path: bytes) -> str | None:
    """Returns why a path may not be in a snapshot; None if it may."""
    if path.partition(b"/")[0] == RESERVED or is_temporary(path.rpartition(b"/")[2]):
        return "reserved-name"
    return "unsafe-path" if path_problem(path) else None


def no_place_below(path: bytes, name: bytes) -> str | None:
    """Returns the same for a path and its last name, if its directory may be in a snapshot."""
    if len(path) <= NAME_LIMIT and _ORDINARY(name) and b"git" not in name.lower():
        return None
    return no_place(path)


def parents(path: bytes) -> Iterator[bytes]:
    """Yields the directories above a path, from the top."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)


def folded(name: bytes) -> str:
    """Returns a key that is the same for names that a disk may treat as one."""
    return _form(
        "NFD", _form("NFD", name.decode("utf-8", "surrogateescape")).casefold()
    )


def composed(path: bytes) -> bytes:
    """Returns a path in Unicode's composed form."""
    text = _form("NFC", path.decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape")


def _form(form: Literal["NFC", "NFD"], text: str) -> str:
    # Seldom needed, and slow to load.
    import unicodedata  # noqa: PLC0415

    return unicodedata.normalize(form, text)
