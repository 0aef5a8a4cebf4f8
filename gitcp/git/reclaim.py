"""Giving disk space back: what nothing reaches goes out of gitcp's packs, safely.

git's own rule for this is to wait two weeks. Here it is done at once, so whoever could
rely on an object that is about to go is waited for, or noticed:

* A save or restore relies on what refs reached when it began. All that are under way
  are waited for; those that begin later see the refs as they are, and the store's lock
  keeps gitcp from taking anything out of reach meanwhile.
* A reader walks from what refs reached when it began: it is waited for likewise.
* git may take an object that it finds in a pack for its own instead of writing it. It
  touches the pack's time then, and holds `index.lock` while it fills an index. A pack
  whose time changed is put back.
"""

import struct
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import BusyError, GitFailedError
from gitcp.git import process
from gitcp.git.consolidate import discard, forget, named, standing
from gitcp.git.readers import Readers
from gitcp.git.repository import Repository
from gitcp.git.transaction import (
    LEAVING,
    OWNER,
    PACKS,
    TRANSACTIONS,
    Transaction,
    transaction,
)

_OID = 20
_LOOK = 0.002
_FANOUT = 8 + 256 * 4
# What git says where the pack that it was writing is gone.
_UNFINISHED = "unable to rename temporary file"


class Reclaimed(NamedTuple):
    """What went: objects that nothing reached, and packs that stood before."""

    objects: int
    packs: int


@contextmanager
def store_locked(repository: Repository, *, timeout: float) -> Iterator[None]:
    """Holds the lock that keeps rewriting, merging and reclaiming apart.

    Raises:
        BusyError: another process kept it.
    """
    with durable.storage("preparing"):
        repository.make_directory(repository.store_dir)
    with durable.locked(
        repository.store_dir / "store.lock", what="the store", timeout=timeout
    ):
        yield


def drop_unreachable(
    repository: Repository,
    *,
    roots: Callable[[], Iterable[str]] = tuple,
    timeout: float = 10.0,
) -> Reclaimed:
    """Merges gitcp's packs into one that holds only what something reaches.

    What git reaches in any way stays: refs, HEADs, reflogs, indexes of all worktrees,
    and what loose objects name; likewise `roots`, commits that are read once nobody is
    at work any more. The caller holds the store's lock, and no work tree's.

    Raises:
        BusyError: somebody was at work all the time, or git used a pack meanwhile.
        GitFailedError: an object is missing; nothing went.
        StorageError: the disk refused.
    """
    with durable.storage("giving space back"):
        _wait_for_all(repository, timeout)
        directory = repository.common_dir / "objects" / "pack"
        registry = repository.store_dir / PACKS
        if not registry.exists():
            return Reclaimed(0, 0)
        names = sorted(standing(directory, named(registry)))
        with _unless_taken(directory, names):
            times = {name: _touched(directory, name) for name in names}
            mine = set().union(*(_oids(directory / f"{name}.idx") for name in names))
            keep, lines = _reached(repository, mine, roots())
        gone = len(mine) - len(keep)
        if not names or (not gone and len(names) == 1):
            return Reclaimed(0, 0)
        with _unless_taken(directory, names), transaction(repository) as opened:
            merged = None
            if lines:
                base = opened.scratch / "reclaimed"
                out = process.run(
                    [
                        "-c",
                        "pack.threads=1",
                        "pack-objects",
                        "--quiet",
                        "--delta-base-offset",
                        str(base),
                    ],
                    cwd=repository.common_dir,
                    data=b"".join(lines),
                )
                word = out.decode("ascii").strip()
                merged = f"pack-{word}"
                if merged not in names:
                    opened.adopt(
                        base.with_name(f"reclaimed-{word}.pack"),
                        base.with_name(f"reclaimed-{word}.idx"),
                        merged,
                    )
            leaving = [name for name in names if name != merged]
            _let_go(opened, leaving, times)
            durable.sync_directory(directory)
            forget(registry, set(leaving))
        return Reclaimed(gone, len(leaving))


@contextmanager
def _unless_taken(directory: Path, names: list[str]) -> Iterator[None]:
    """Says so where something failed because the user's own gc took one of the packs.

    Raises:
        BusyError: it did; nothing of gitcp's was removed.
    """
    try:
        yield
    except (FileNotFoundError, GitFailedError) as exc:
        there = all((directory / f"{name}.pack").exists() for name in names)
        # `git gc --prune=now` removes unfinished packs as well, those of living processes.
        if there and _UNFINISHED not in str(exc):
            raise
        raise BusyError(
            "git has taken a pack of gitcp's meanwhile",
            hint="run `gitcp gc` again; nothing was lost",
        ) from exc


def _wait_for_all(repository: Repository, timeout: float) -> None:
    """Waits until everybody who is at work now has ended; later ones do not matter."""
    transactions = repository.store_dir / TRANSACTIONS
    locks = list(transactions.glob(f"*/{OWNER}"))
    indexes = []
    for git_dir in git_directories(repository):
        locks.append(git_dir / "gitcp" / "worktree.lock")
        indexes.append(git_dir / "index.lock")
    readers = Readers(repository)

    def free() -> bool:
        while locks:
            try:
                held = durable.try_lock(locks[-1], create=False)
            except (FileNotFoundError, NotADirectoryError):
                locks.pop()
                continue
            if held is None and locks[-1].exists():
                return False
            if held is not None:
                durable.unlock(held)
            locks.pop()
        return readers.gone() and not any(lock.exists() for lock in indexes)

    # Those who want the same lock wait longer and longer between two looks.
    deadline = time.monotonic() + timeout
    while not free():
        if time.monotonic() < deadline:
            time.sleep(_LOOK)
            continue
        at_work = [
            str(one) for one in (*locks, *readers.waited, *indexes) if one.exists()
        ]
        raise BusyError(
            f"somebody has been at work here for more than {timeout:g} s"
            f"{f' ({at_work[-1]})' if at_work else ''}",
            hint="run `gitcp gc` again later; nothing was removed",
        )


def packed_objects(repository: Repository) -> int:
    """Returns the number of objects in packs, of git's as well as gitcp's."""
    told = process.run(["count-objects", "-v"], cwd=repository.common_dir)
    fields = dict(line.split(b": ") for line in told.splitlines())
    return int(fields[b"in-pack"])


def git_directories(repository: Repository) -> list[Path]:
    """Returns the git directories of all work trees, those that are away included."""
    linked = repository.common_dir / "worktrees"
    return [repository.common_dir, *(linked.iterdir() if linked.is_dir() else ())]


def _oids(index: Path) -> set[bytes]:
    """Returns the objects in a pack, from its index."""
    raw = index.read_bytes()
    (total,) = struct.unpack_from(">I", raw, _FANOUT - 4)
    return {raw[at : at + _OID] for at in range(_FANOUT, _FANOUT + total * _OID, _OID)}


def _reached(
    repository: Repository, mine: set[bytes], roots: Iterable[str]
) -> tuple[set[bytes], list[bytes]]:
    """Returns which of the objects are reached, and a line for each for pack-objects."""
    every = ["--all", "--reflog", "--indexed-objects"]
    keep: set[bytes] = set()
    lines: list[bytes] = []

    def walk(options: list[str], given: Iterable[str]) -> None:
        listed = process.run(
            ["rev-list", "--objects", *options, "--stdin"],
            cwd=repository.common_dir,
            data="".join(f"{oid}\n" for oid in given).encode(),
        )
        for line in listed.splitlines(keepends=True):
            oid = bytes.fromhex(line[: 2 * _OID].decode("ascii"))
            if oid in mine and oid not in keep:
                keep.add(oid)
                lines.append(line)

    walk(every, roots)
    loose = _loose(repository)
    if loose:
        # Nothing says that what lies about is complete.
        walk(["--missing=allow-any", "--ignore-missing"], loose)
    return keep, lines


def _loose(repository: Repository) -> list[str]:
    """Returns the loose commits and trees: what they name may lie in our packs only."""
    objects = repository.common_dir / "objects"
    found = [
        directory.name + path.name
        for directory in objects.glob("[0-9a-f][0-9a-f]")
        for path in directory.iterdir()
        if len(path.name) == 2 * _OID - 2
    ]
    if not found:
        return []
    said = process.run(
        ["cat-file", "--batch-check=%(objecttype) %(objectname)", "--buffer"],
        cwd=repository.common_dir,
        data="".join(f"{oid}\n" for oid in found).encode(),
    )
    pairs = (line.split() for line in said.decode("ascii", "replace").splitlines())
    return [oid for kind, oid in pairs if kind in {"commit", "tree"}]


def _touched(directory: Path, name: str) -> int:
    return (directory / f"{name}.pack").stat().st_mtime_ns


def _let_go(opened: Transaction, names: list[str], times: dict[str, int]) -> None:
    """Removes packs, unless git has begun to rely on one meanwhile.

    Once one is moved away no git can touch its time, and writes objects itself; so what
    was touched by then is all there is. Killed here, the next transaction puts it back.
    """
    directory = opened.repository.common_dir / "objects" / "pack"
    for name in names:
        pack = directory / f"{name}.pack"
        aside = opened.scratch / f"{name}{LEAVING}"
        # The user's own gc may have been here.
        with suppress(FileNotFoundError):
            pack.rename(aside)
            if aside.stat().st_mtime_ns != times[name]:
                aside.rename(pack)
                raise BusyError(
                    "git has used a pack of gitcp's meanwhile",
                    hint="run `gitcp gc` again; nothing was lost",
                )
            discard(directory, name)
            aside.unlink()
