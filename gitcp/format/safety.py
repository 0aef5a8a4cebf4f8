"""Decides which paths gitcp may write to a work tree (docs/format.md, 11)."""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from gitcp.format.tree import DIRECTORY, EXECUTABLE, FILE, GITLINK, LINK

NAME_LIMIT = 255
PATH_LIMIT = 4_096
# Python's stack of 1,000 calls has room for one call for each directory, not for two.
DEPTH_LIMIT = 500
MODES = frozenset({FILE, EXECUTABLE, LINK, GITLINK, DIRECTORY})

# Code points that a disk may ignore when it compares names: Unicode's
# Default_Ignorable_Code_Point for ext4 and F2FS with casefold, a part of them for HFS+.
_IGNORED = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_NTFS_SHORT = r"git~[0-9]+"


class Reach(NamedTuple):
    """How far the paths in a tree go: the longest in bytes, and the directories in it."""

    longest: int = 0
    deepest: int = 0

    def around(self, name: bytes, inner: "Reach | None") -> "Reach":
        """Returns the reach with one more name; `inner` is that of a directory's tree."""
        if inner is None:
            return Reach(max(self.longest, len(name)), self.deepest)
        return Reach(
            max(self.longest, len(name) + 1 + inner.longest),
            max(self.deepest, inner.deepest + 1),
        )

    def fits(self, prefix: bytes, depth: int) -> bool:
        """Whether the tree may be the directory `prefix`, which is `depth` below the root."""
        return (
            len(prefix) + self.longest <= PATH_LIMIT
            and depth + self.deepest <= DEPTH_LIMIT
        )


def loosened(text: str) -> str:
    """Returns a key that is the same for all names that some disk takes for one.

    It combines the rules of all disks: no case, no ignored code points, and Unicode's
    compatibility form, which ZFS can be told to compare.
    """
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", re.sub(_IGNORED, "", text))
    return unicodedata.normalize("NFKC", plain.casefold())


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
    for trimmed in spellings(name):
        if trimmed == ".git" or re.fullmatch(_NTFS_SHORT, trimmed):
            return "is a spelling of .git"
    return None


def spellings(path: bytes) -> list[str]:
    """Returns the names in a path, loosened, as NTFS divides and trims them.

    It drops dots and spaces at the end, a colon starts a stream's name, and a backslash
    divides names.
    """
    whole = loosened(path.decode("utf-8", "surrogateescape"))
    return [
        name.partition(":")[0].rstrip(". ") or name
        for name in whole.replace("\\", "/").split("/")
    ]


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
