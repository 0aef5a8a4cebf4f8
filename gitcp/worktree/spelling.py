"""Detects disks that fold names: by case, or by Unicode normalisation."""

import os
from collections import defaultdict
from collections.abc import Iterable

from gitcp.worktree.files import Root
from gitcp.worktree.names import folded

_ANY = "surrogateescape"
_GIT, _OTHER_GIT = b".git", b".GIT"


def key(path: bytes) -> bytes:
    """Returns a key that all spellings of a path share."""
    return path.lower() if path.isascii() else folded(path).encode(errors=_ANY)


def twins(paths: Iterable[bytes]) -> dict[bytes, set[bytes]]:
    """Returns the paths that have another spelling among them, with all spellings."""
    paths = set(paths)
    joined = b"\0".join(paths)
    if joined.isascii() and len(set(joined.lower().split(b"\0"))) >= len(paths):
        # This is the usual case, and the loop below is slow for many paths.
        return {}
    groups: dict[bytes, set[bytes]] = defaultdict(set)
    for path in paths:
        groups[key(path)].add(path)
    return {
        path: group for group in groups.values() if len(group) > 1 for path in group
    }


def is_listed(root: Root, path: bytes) -> bool:
    """Whether directory listings have a path in exactly this spelling."""
    above, _, name = path.rpartition(b"/")
    try:
        if name not in map(os.fsencode, os.listdir(root.directory(above))):
            return False
    except (FileNotFoundError, NotADirectoryError):
        return False
    return not above or is_listed(root, above)


def folds(root: Root) -> bool:
    """Whether the disk of a work tree treats names that differ only in case as one."""
    one, two = root.lstat(_GIT), root.lstat(_OTHER_GIT)
    if one is None or two is None:
        return False
    # Inode numbers are not steady on every disk; two listed names are two files.
    return not is_listed(root, _OTHER_GIT)
