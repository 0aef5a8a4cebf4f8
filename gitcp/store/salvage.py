"""Finds what is left of a branch whose newest checkpoints are damaged.

Each commit names its branch, so no list is needed: gitcp reads every commit in the
repository. That takes seconds in a large repository, and happens only if something is
damaged.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import notices
from gitcp.at_fork import computed
from gitcp.errors import CorruptError, FormatTooNewError, GitFailedError
from gitcp.format import layout
from gitcp.format.commit import purged
from gitcp.git.repository import Repository
from gitcp.names import decode
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint

# Encoded session and branch.
Key = layout.BranchKey
Read = Callable[[bytes], Checkpoint | None]


class Standing(NamedTuple):
    """Where the ref of a branch is, and its newest sound checkpoint.

    `damage` says what is wrong with the commit that the ref names.
    """

    ref: str | None
    checkpoint: Checkpoint | None
    damage: CorruptError | None = None


def every_commit(repository: Repository) -> Iterator[bytes]:
    """Yields the oid of each commit that is here, whether or not a ref reaches it.

    Raises:
        GitFailedError: git cannot list the objects.
    """
    listed = repository.git(
        "cat-file",
        "--batch-all-objects",
        "--unordered",
        "--batch-check=%(objecttype) %(objectname)",
    )
    for line in listed.splitlines():
        kind, _, oid = line.partition(b" ")
        if kind == b"commit":
            yield bytes.fromhex(oid.decode("ascii"))


class Salvage:
    """The sound checkpoints of damaged branches of one repository; searched for once."""

    def __init__(self, repository: Repository, read: Read) -> None:
        self._repository = repository
        self._read = read

    @computed
    def _found(self) -> dict[Key, list[Checkpoint]]:
        """Every checkpoint that can be read, by branch, the newest first."""
        by_branch: dict[Key, list[Checkpoint]] = {}
        replaced: set[str] = set()
        for oid in every_commit(self._repository):
            try:
                checkpoint = self._read(oid)
            except CorruptError:
                continue
            if checkpoint is not None:
                replaced |= set(purged(checkpoint.raw))
                key = Key(checkpoint.trailers.session, checkpoint.trailers.branch)
                by_branch.setdefault(key, []).append(checkpoint)
        for key, ones in by_branch.items():
            left = [
                checkpoint for checkpoint in ones if checkpoint.commit not in replaced
            ]
            # If a checkpoint has two commits, the newer one has fewer commits before
            # it: a prune made it.
            left.sort(
                key=lambda each: (-each.seq, self._depth(each, ones), each.commit)
            )
            by_branch[key] = left
        return by_branch

    @staticmethod
    def _depth(checkpoint: Checkpoint, ones: list[Checkpoint]) -> int:
        known = {each.oid: each for each in ones}
        depth = 0
        current: Checkpoint | None = checkpoint
        while current is not None and depth <= len(ones):
            depth += 1
            current = known.get(current.raw.parents[0]) if current.raw.parents else None
        return depth

    def newest(self, key: Key, *, below: int | None = None) -> Checkpoint | None:
        """Returns the newest sound checkpoint of a branch, if there is one.

        Sound means that every object of its own is here. With `below`, only smaller
        numbers count.
        """
        try:
            candidates = self._found.get(key, [])
        except GitFailedError:
            return None
        for checkpoint in candidates:
            if (below is None or checkpoint.seq < below) and self._is_sound(checkpoint):
                return checkpoint
        return None

    def _is_sound(self, checkpoint: Checkpoint) -> bool:
        try:
            self.check_sound(checkpoint)
        except CorruptError:
            return False
        return True

    def check_sound(self, checkpoint: Checkpoint) -> None:
        """Reads every object of a checkpoint's own, except contents of files.

        Raises:
            CorruptError: some of it is missing or damaged.
        """
        # A checkpoint for a newer gitcp is not damaged.
        with suppress(FormatTooNewError):
            _ = checkpoint.manifest, checkpoint.empty_dirs
            checkpoint.skipped()
            root = checkpoint.log_tree
            for name in checkpoint.objects.tree(root) if root else ():
                for _, source in logs.sources(root, name.decode(), checkpoint.objects):
                    logs.meta_of(source, checkpoint.objects)
        try:
            self._repository.git(
                "rev-list", "--objects", "--no-walk", "--quiet", checkpoint.commit
            )
        except GitFailedError as exc:
            raise CorruptError(
                f"checkpoint {checkpoint.id} is not whole: {exc.message}",
                hint="run `gitcp verify`",
            ) from exc

    def instead_of(self, key: Key, oid: str, cause: CorruptError) -> Checkpoint | None:
        """Returns the checkpoint that replaces a damaged newest one, and gives a notice."""
        newest = self.newest(key)
        if newest is not None and newest.commit != oid:
            where = "/".join(decode(part) or part for part in key)
            notices.tell(
                f"the newest checkpoint of {where} is damaged ({cause.message});"
                f" the newest sound one is {newest.id}. `gitcp verify --repair`"
                " looks for a good copy, and otherwise moves the branch there"
            )
            return newest
        return None

    def is_certain(self, cause: CorruptError) -> bool:
        """Whether damage is more than a file that this process may not read."""
        if isinstance(cause.__cause__, OSError):
            return False
        objects = self._repository.common_dir / "objects"
        return all(
            os.access(file, os.R_OK)
            for directory in _places(objects)
            for file in (
                directory,
                directory / "pack",
                *(directory / "pack").glob("pack-*"),
            )
            if file.exists() or file == directory
        )


def _places(objects: Path) -> Iterator[Path]:
    """Yields the directories in which git looks for objects."""
    yield objects
    try:
        lines = (objects / "info" / "alternates").read_text("utf-8", "surrogateescape")
    except OSError:
        return
    for line in lines.splitlines():
        if line and not line.startswith("#"):
            yield objects / line
