"""Reads HEAD's reflog through git, if git keeps it in a table."""

from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import GitFailedError
from gitcp.git.repository import Repository


class HeadMove(NamedTuple):
    """A move of HEAD: from where (None: git does not know), to where, and by what."""

    old: str | None
    new: str
    what: str


def moves(repository: Repository, most: int) -> list[HeadMove]:
    """Returns the last moves of HEAD, newest first; none if there is no reflog."""
    said = b""
    with suppress(GitFailedError):
        said = repository.git(
            "log", "--walk-reflogs", f"-{most + 1}", "--format=%H %gs", "HEAD", "--"
        )
    pairs = [
        line.partition(" ")[::2]
        for line in said.decode("utf-8", "replace").splitlines()
    ]
    olds = [new for new, _ in pairs[1:]] + [None]
    found = zip(pairs, olds, strict=True) if pairs else ()
    return [HeadMove(old, new, what) for (new, what), old in found][:most]
