"""Cleans up transactions of this process or of dead ones, wherever they stopped."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.git.ref_locks import DECIDED, settle
from gitcp.git.repository import Repository

OWNER = "owner"
STAGED_REF = "ref"
# Ends the names of a pack to remove and of its index, until it is known whether git uses
# it.
LEAVING, LEAVING_INDEX = ".leaving", ".leaving-idx"
TRANSACTIONS = "tmp"


def sweep(repository: Repository) -> int:
    """Removes what transactions of dead processes left; returns how many."""
    root = repository.store_dir / TRANSACTIONS
    swept = 0
    for directory in root.iterdir() if root.is_dir() else ():
        try:
            owner = durable.try_lock(directory / OWNER, create=False)
        except FileNotFoundError:
            # Its maker was killed before it locked it, or is about to lock it and will
            # then use another one.
            with suppress(OSError):
                directory.rmdir()
            continue
        except NotADirectoryError:
            continue
        if owner is None:
            continue
        try:
            _bury(repository, directory, os.fstat(owner).st_ino)
            swept += 1
        finally:
            durable.unlock(owner)
    return swept


def _bury(repository: Repository, directory: Path, owner: int) -> None:
    packs = repository.common_dir / "objects" / "pack"
    with suppress(OSError):
        let_go(repository, directory, owner, packs.glob("*.keep"))


def let_go(
    repository: Repository, directory: Path, owner: int, keeps: Iterable[Path]
) -> None:
    """Ends a transaction, of this process or of a dead one, at whatever point it stopped.

    `owner` is the inode of its owner file, by which its own among the `keeps` are known.
    """
    settle_refs(repository, directory)
    packs = repository.common_dir / "objects" / "pack"
    for keep in keeps:
        with suppress(FileNotFoundError):
            if keep.stat().st_ino == owner:
                _release(keep)
    # It was not known yet whether git uses these.
    for index in directory.glob(f"*{LEAVING_INDEX}"):
        put_back(packs, directory, index.stem)
    _put_back_what_an_older_gitcp_left(packs, directory)
    _remove(directory)


def put_back(packs: Path, scratch: Path, name: str) -> None:
    """Puts a pack back that was being removed; git finds it by its index, which comes last."""
    with suppress(FileNotFoundError):
        (scratch / f"{name}{LEAVING}").rename(packs / f"{name}.pack")
    # The user's own gc may have removed the pack before it was moved away.
    if (packs / f"{name}.pack").exists():
        (scratch / f"{name}{LEAVING_INDEX}").rename(packs / f"{name}.idx")


def _put_back_what_an_older_gitcp_left(packs: Path, directory: Path) -> None:
    """Puts packs back whose indexes were left in their place."""
    for leaving in directory.glob(f"*{LEAVING}"):
        pack = packs / leaving.with_suffix(".pack").name
        if pack.with_suffix(".idx").exists():
            leaving.rename(pack)


def settle_refs(repository: Repository, directory: Path) -> None:
    """Ends a transaction's ref locks: past its commit point the refs move, before it they stay."""
    inodes = set()
    for staged in directory.glob(f"{STAGED_REF}*"):
        with suppress(FileNotFoundError):
            status = staged.stat()
            if status.st_nlink > 1:
                inodes.add(status.st_ino)
    if not inodes:
        return
    decided = (directory / DECIDED).exists()
    for lock in repository.refs.locks():
        with suppress(FileNotFoundError):
            if lock.stat().st_ino in inodes:
                settle(lock, decided=decided)


def _remove(directory: Path) -> None:
    """Removes a transaction's directory, `owner` last: without it, it is empty."""
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            # The repository that an import fetches into, and nearly always absent.
            import shutil  # noqa: PLC0415

            shutil.rmtree(path)
        elif path.name != OWNER:
            path.unlink(missing_ok=True)
    (directory / OWNER).unlink(missing_ok=True)
    directory.rmdir()


def _release(keep: Path) -> None:
    """Removes a `.keep`; before it a pack without an index, which git would never."""
    if not keep.with_suffix(".idx").exists():
        keep.with_suffix(".pack").unlink(missing_ok=True)
    keep.unlink(missing_ok=True)
