"""The quarantine: a repository beside ours for fetched objects, until they are validated."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import TransferError
from gitcp.format.oid import ObjectFormat
from gitcp.git.aside import borrow, make_bare
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction

_HEAD = struct.Struct(">4sII")
# The limit of a file's size counts whole blocks.
_NEARLY = 0.98


class QuarantineLimits(NamedTuple):
    """Limits of a pull: bytes in total and in one file, objects, commits."""

    size: int
    file: int
    objects: int
    commits: int


class Quarantine:
    """A bare repository in a transaction's directory that borrows our objects.

    Nothing in it is part of the user's repository, and it is removed with the transaction. A
    quarantine for objects of another form than ours borrows nothing.
    """

    def __init__(
        self,
        opened: Transaction,
        name: str,
        bounds: QuarantineLimits,
        form: ObjectFormat | None = None,
    ) -> None:
        self.directory: Path = opened.scratch / name
        self.objects = self.directory / "objects"
        self._bounds = bounds
        self._form = form or opened.repository.form
        shared = opened.repository.common_dir / "objects"
        with durable.storage("preparing the quarantine"):
            make_bare(self.directory, self._form)
            if self._form is opened.repository.form:
                borrow(self.directory, shared)

    def growth(self) -> int:
        """Returns the bytes received so far.

        Raises:
            TransferError: the announced objects, or the received bytes, exceed a limit.
        """
        total = 0
        for path in (self.objects / "pack").iterdir():
            try:
                total += path.stat().st_size
                if path.suffix not in {".idx", ".rev", ".keep"}:
                    self._count(path)
            except FileNotFoundError:
                continue
        if total > self._bounds.size:
            raise too_much(f"more than {self._bounds.size:,} bytes", "pullMaxSize")
        return total

    def refuse_if_full(self) -> None:
        """Raises if a fetch ended because a file reached its limit.

        Raises:
            TransferError: a file reached its limit.
        """
        if self.growth() >= self._bounds.size * _NEARLY:
            raise too_much(f"more than {self._bounds.size:,} bytes", "pullMaxSize")

    def _count(self, path: Path) -> None:
        with path.open("rb") as file:
            head = file.read(_HEAD.size)
        if len(head) == _HEAD.size:
            magic, _, count = _HEAD.unpack(head)
            if magic == b"PACK" and count > self._bounds.objects:
                raise too_much(f"{count:,} objects", "pullMaxObjects")

    def repository(self, refs: Mapping[str, str]) -> Repository:
        """Returns the repository with these refs, to read from."""
        lines = [f"{oid} {name}\n" for name, oid in sorted(refs.items())]
        with durable.storage("preparing the quarantine"):
            (self.directory / "packed-refs").write_text("".join(lines))
        return Repository(
            git_dir=self.directory, common_dir=self.directory, form=self._form
        )


def too_much(what: str, setting: str) -> TransferError:
    """Returns the error for data that is larger than a setting allows."""
    return TransferError(
        f"the remote sends {what}, more than gitcp.{setting} allows",
        hint="nothing was adopted; if you trust it, set"
        f" `gitcp config {setting} VALUE` and pull again",
    )
