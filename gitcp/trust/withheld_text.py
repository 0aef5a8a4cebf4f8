"""A withheld change as text: the present lines, and the lines it would bring."""

import difflib
import os
from collections.abc import Iterator

from gitcp.errors import GitcpError
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import EXECUTABLE, LINK, Entry
from gitcp.git.objects import Objects, size_of
from gitcp.worktree.files import Root

# The most bytes that a user can read here; `gitcp diff` shows more.
_LARGEST = 64 * 1024


def change_of(
    root: Root, objects: Objects, path: bytes, entry: Entry | None
) -> tuple[str, Iterator[str] | None]:
    """Returns a headline for a change of a path, and the lines of a diff.

    `entry` is the new entry at the path. The lines are None if the content is not text, or
    larger than 64 KiB.
    """
    name = show_path(path)
    if entry is None:
        return f"--- {name}: would be deleted", iter(())
    kind = {LINK: "a link", EXECUTABLE: "executable"}.get(entry.mode, "a file")
    headline = f"+++ {name} ({kind})"
    before, after = _present(root, path), _stored(objects, entry.oid)
    if before is None or after is None:
        return headline, None
    lines = difflib.unified_diff(before, after, lineterm="", n=2)
    return headline, (line for number, line in enumerate(lines) if number > 1)


def _stored(objects: Objects, oid: bytes) -> list[str] | None:
    try:
        size = size_of(objects, oid)
        return None if size > _LARGEST else _text(b"".join(objects.content(oid)))
    except GitcpError:
        return None


def _present(root: Root, path: bytes) -> list[str] | None:
    """Returns the lines of the present file; no lines if there is no file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        parent, name = root.parent(path)
        with os.fdopen(os.open(name, flags, dir_fd=parent), "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return []
    return None if len(data) > _LARGEST else _text(data)


def _text(data: bytes) -> list[str] | None:
    if b"\0" in data:
        return None
    return data.decode("utf-8", "backslashreplace").splitlines()
