"""Decides which paths gitcp may write to a work tree (docs/format.md, 11)."""

import re
import unicodedata
from functools import lru_cache

from gitcp.format.tree import DIRECTORY, EXECUTABLE, FILE, GITLINK, LINK

NAME_LIMIT = 255
PATH_LIMIT = 4_096
DEPTH_LIMIT = 500
MODES = frozenset({FILE, EXECUTABLE, LINK, GITLINK, DIRECTORY})

# Code points that HFS+ ignores when it compares names (git's utf8.c).
_HFS_IGNORED = "[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]"
_NTFS_SHORT = r"git~[0-9]+"


@lru_cache(maxsize=10_000)
def name_problem(name: bytes) -> str | None:
    """Returns why a name in a tree must not be written, or None if it may."""
    if name in {b"", b".", b".."} or b"/" in name or b"\0" in name:
        return "is not a file name"
    if len(name) > NAME_LIMIT:
        return f"is longer than {NAME_LIMIT} bytes"
    if name.isascii() and b"git" not in name.lower():
        # In ASCII every spelling below holds these three letters.
        return None
    text = name.decode("utf-8", "surrogateescape")
    folded = unicodedata.normalize("NFC", re.sub(_HFS_IGNORED, "", text)).casefold()
    # NTFS drops trailing dots and spaces, and a colon starts a stream's name.
    for part in re.split(r"\\", folded):
        trimmed = part.partition(":")[0].rstrip(". ")
        if trimmed == ".git" or re.fullmatch(_NTFS_SHORT, trimmed):
            return "is a spelling of .git"
    return None


def path_problem(path: bytes) -> str | None:
    """Returns why a path must not be written, or None if it may."""
    if _is_plain(path):
        return None
    if len(path) > PATH_LIMIT or path.count(b"/") >= DEPTH_LIMIT:
        return f"is longer than {PATH_LIMIT} bytes or deeper than {DEPTH_LIMIT}"
    for name in path.split(b"/"):
        problem = name_problem(name)
        if problem:
            return problem
    return None


def _is_plain(path: bytes) -> bool:
    """Whether a path is one of the many in which nothing below can be wrong."""
    return (
        0 < len(path) <= NAME_LIMIT
        and path.isascii()
        and b"git" not in path.lower()
        and b"/." not in path
        and b"//" not in path
        and b"\0" not in path
        and path[:1] not in {b".", b"/"}
        and path[-1:] != b"/"
    )
