"""Notices when `git refs migrate` moves the refs of a repository to another storage.

git has no lock against it. A ref written while it runs may be lost, and a new file in a
directory that it removes stops it halfway. So gitcp waits before it writes, and checks
afterwards whether its write may have been left behind.
"""

import functools
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from gitcp import durable
from gitcp.errors import BusyError, GitFailedError
from gitcp.git import process
from gitcp.git.migrating import PREFIX, has_ended, migration

FILES, TABLES = "files", "reftable"
_TABLES_NAMED = re.compile(
    rb"^(?:\s*\[extensions\])?\s*refstorage\s*=\s*\"?reftable\b",
    re.IGNORECASE | re.MULTILINE,
)
# How often one read follows refs that move.
_MIGRATIONS = 20

_Asked = ParamSpec("_Asked")
_Answer = TypeVar("_Answer")


class RefsMovedError(BusyError):
    """The refs are in another storage than they were when the repository was opened."""


class RefStorage:
    """Where the refs of an open repository are: in files or tables, in these directories."""

    def __init__(self, common_dir: Path, kind: str, timeout: float) -> None:
        """Takes the storage that the configuration names, and how many seconds to wait."""
        self._common = common_dir
        self._kind = kind
        self._timeout = timeout
        # Opens the storage in which the refs are now, for readers.
        self.follow: Callable[[object], Stored | None] | None = None
        self._refs = common_dir / "refs"
        # A migration makes another directory.
        self._place = _inode(self._refs)

    def _moved(self) -> bool:
        if (TABLES if _inode(self._common / TABLES) else FILES) != self._kind:
            return True
        # git writes the configuration last. Until then its commands look for refs where none
        # are, and report that there are none.
        if not self._is_named():
            return True
        now = _inode(self._refs)
        # On some disks each look finds another number.
        return now != self._place and now == _inode(self._refs)

    def _is_named(self) -> bool:
        with suppress(OSError):
            text = (self._common / "config").read_bytes()
            if (TABLES if _TABLES_NAMED.search(text) else FILES) == self._kind:
                return True
        # The text may be of a form that only git understands.
        return _named(self._common) == self._kind

    def leave(self, directory: Path) -> None:
        """Removes a directory below `refs` and those above it, if they are empty."""
        with suppress(OSError):
            while directory.is_relative_to(self._refs) and directory != self._refs:
                directory.rmdir()
                directory = directory.parent

    def check(self) -> None:
        """Waits for a migration, and raises unless the refs are where they were.

        If this returns, earlier reads and writes were valid. Called before a change, it
        keeps the change from disturbing git.

        Raises:
            RefsMovedError: the refs are in another storage now.
            BusyError: a migration did not end in time.
        """
        if not has_ended(self._common, self._timeout):
            raise busy(self._common)
        if self._moved():
            raise RefsMovedError(
                f"`git refs migrate` has moved the refs of {self._common}",
                hint="run the command again",
            )


class Stored(Protocol):
    """Refs that know which storage they are in."""

    storage: RefStorage


_Refs = TypeVar("_Refs", bound=Stored)


def followed(
    ask: Callable[Concatenate[_Refs, _Asked], _Answer],
) -> Callable[Concatenate[_Refs, _Asked], _Answer]:
    """Makes a method repeat its read or change of refs in the storage that they have moved to.

    A change checks beforehand as well, and checks the storage again afterwards.
    """
    name = ask.__name__

    @functools.wraps(ask)
    def question(
        refs: _Refs, /, *args: _Asked.args, **kwargs: _Asked.kwargs
    ) -> _Answer:
        asked: Stored = refs
        for _ in range(_MIGRATIONS):
            again: Callable[..., _Answer] = getattr(type(asked), name).__wrapped__
            try:
                return again(asked, *args, **kwargs)
            except RefsMovedError:
                now = asked.storage.follow and asked.storage.follow(asked)
                if not now:
                    raise
                asked = now
        raise BusyError(
            "`git refs migrate` keeps moving the refs", hint="run the command again"
        )

    return question


def settled(common_dir: Path, timeout: float) -> str:
    """Waits until the configuration names the storage that is there, and returns it.

    Raises:
        BusyError: the migration did not end in time.
    """

    def look() -> str | None:
        if migration(common_dir) is not None:
            return None
        there = TABLES if (common_dir / TABLES).is_dir() else FILES
        return there if _named(common_dir) == there else None

    found = durable.until(look, timeout=timeout)
    if found is None:
        raise busy(common_dir)
    return found


def _named(common_dir: Path) -> str:
    """Returns the storage that the configuration names; nothing if git cannot read it."""
    with suppress(GitFailedError):
        out = process.run(
            ["config", "--get", "extensions.refStorage"],
            cwd=common_dir,
            env={"GIT_DIR": str(common_dir)},
            accept=(0, 1),
        )
        return out.decode().strip() or FILES
    return ""


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def busy(common_dir: Path) -> BusyError:
    """Returns the error for a migration that did not end in time."""
    return BusyError(
        f"`git refs migrate` is moving the refs of {common_dir}, or was interrupted",
        hint="run the command again once it has ended; if it was interrupted, move the"
        f" content of {common_dir / PREFIX}* to {common_dir}, and set"
        " extensions.refStorage",
    )
