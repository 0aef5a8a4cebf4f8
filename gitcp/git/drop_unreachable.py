"""Garbage collection: removes unreachable objects from gitcp's packs, safely.

git itself waits two weeks before it does this. gitcp does it at once, except for objects
that git may have begun to rely on. gitcp waits for every process that could rely on an
object to be removed, or notices it:

* A save or restore relies on the objects that refs reached when it began. gitcp waits
  for all that are running; later ones see the present refs, and the store's lock keeps
  gitcp from making anything unreachable meanwhile. * A reader walks from the refs as
  they were when it began: gitcp waits for it, too. * git may use an object that it
  finds in a pack instead of writing it again. Then it updates the pack's time, and it
  holds `index.lock` while it fills an index. A pack whose time changes during the
  collection is put back. If it changed before, its unreachable objects keep git's grace
  period (`gitcp.git.grace`), in a pack of their own with that time.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import BusyError, GitFailedError
from gitcp.git import delta_order, grace
from gitcp.git.consolidate import WANTED, discard, standing
from gitcp.git.ended import (
    LEAVING,
    LEAVING_INDEX,
    OWNER,
    TRANSACTIONS,
    put_back,
    sweep,
)
from gitcp.git.reachable import Reachable
from gitcp.git.read_lock import Readers
from gitcp.git.registry import KEPT, PACKS, Registry
from gitcp.git.repository import Repository
from gitcp.git.stock import Stock
from gitcp.git.transaction import Transaction, transaction

_LOOK = 0.002
# Git's message if the pack that it was writing is gone.
_UNFINISHED = "unable to rename temporary file"


class Reclaimed(NamedTuple):
    """The result of a collection: unreachable objects removed, and packs before it.

    `kept` counts unreachable objects that stay because git may rely on them; `taken`
    those removed nevertheless: a purge does not wait.
    """

    objects: int
    packs: int
    kept: int = 0
    taken: int = 0


@contextmanager
def store_locked(repository: Repository, *, timeout: float) -> Iterator[None]:
    """Holds the lock that keeps rewriting, merging and reclaiming apart.

    A merge in the background makes way for a waiting process.

    Raises:
        BusyError: another process kept it.
    """
    with durable.storage("preparing"):
        repository.make_directory(repository.store_dir)
    with durable.locked(
        repository.store_dir / "store.lock",
        what="the store",
        timeout=timeout,
        asking=repository.store_dir / WANTED,
    ):
        yield


def drop_unreachable(
    repository: Repository,
    *,
    roots: Callable[[], Iterable[str]] = tuple,
    purged: Iterable[str] | None = (),
    timeout: float = 10.0,
) -> Reclaimed:
    """Merges gitcp's packs into one that holds only reachable objects.

    Everything that git reaches stays: from refs, HEADs, reflogs, indexes of all worktrees,
    and loose objects; likewise from `roots`, commits that are computed once no other process
    is at work. Unreachable objects of a pack that git has used go to a pack of their own
    until git's grace period is over. But objects that only the commits `purged` reach are
    removed at once, and with None every unreachable object. The caller holds the store's
    lock, and no work tree's.

    Raises:
        BusyError: other processes were at work until the timeout, or git used a pack.
        GitFailedError: a commit or tree is missing; nothing was removed.
        StorageError: the disk refused.
    """
    with durable.storage("freeing space"):
        _wait_for_all(repository, timeout)
        # The index of a pack that lacks one may be there.
        sweep(repository)
        directory = repository.common_dir / "objects" / "pack"
        registry, aside = Registry(repository), Registry(repository, KEPT)
        own = sorted(standing(directory, registry.names()))
        others = sorted(standing(directory, aside.names()).keys() - set(own))
        with _unless_taken(directory, [*own, *others]):
            stock = Stock(
                directory, repository.form, own, others, grace.expiry(repository)
            )
            reach = Reachable(repository, stock.all)
            reach.from_roots(roots())
            secret = reach.unreached() if purged is None else reach.only_from(purged)
            split = stock.split(reach.keep, secret | reach.own_commits())
        if split is None:
            return Reclaimed(0, 0, stock.waiting)
        with _unless_taken(directory, split.names), transaction(repository) as opened:
            lines = b"".join(delta_order.named(repository.objects, reach.lines))
            rest = "".join(f"{oid.hex()}\n" for oid in sorted(split.held)).encode()
            made = {
                _pack(opened, split.names, lines, PACKS, split.used),
                _pack(opened, split.names, rest, KEPT, split.held_used),
            }
            leaving = [name for name in split.names if name not in made]
            _let_go(opened, leaving, stock.times)
            durable.sync_directory(directory)
            registry.forget(set(leaving))
            aside.forget(set(leaving))
        return Reclaimed(split.gone, len(leaving), len(split.held), stock.used(secret))


def _pack(
    opened: Transaction, present: list[str], lines: bytes, listed: str, used: int | None
) -> str | None:
    """Makes one pack of the objects in `lines`, and returns its name; None without any."""
    if not lines:
        return None
    base = opened.scratch / f"reclaimed-{listed}"
    out = opened.repository.plumbing(
        "-c",
        "pack.threads=1",
        "pack-objects",
        "--quiet",
        "--delta-base-offset",
        str(base),
        data=lines,
    )
    word = out.decode("ascii").strip()
    name = f"pack-{word}"
    if name not in present:
        pack, index = (Path(f"{base}-{word}.{suffix}") for suffix in ("pack", "idx"))
        opened.adopt(pack, index, name, listed=listed, used=used)
    return name


@contextmanager
def _unless_taken(directory: Path, names: list[str]) -> Iterator[None]:
    """Translates a failure that was caused by git's own gc removing something.

    git's gc may remove gitcp's packs. It may also remove loose objects and packs that a
    git started by gitcp is about to read. If nothing was removed, the failure stands.

    Raises:
        BusyError: git's gc removed something; none of gitcp's packs was removed.
    """
    before = _standing_objects(directory)
    try:
        yield
    except (FileNotFoundError, GitFailedError) as exc:
        there = all((directory / f"{name}.pack").exists() for name in names)
        # `git gc --prune=now` removes unfinished packs as well, those of living processes.
        if (
            there
            and _UNFINISHED not in str(exc)
            and before.items() <= _standing_objects(directory).items()
        ):
            raise
        raise BusyError(
            "git removed objects or packs meanwhile",
            hint="run `gitcp gc` again; nothing was lost",
        ) from exc


def _standing_objects(packs: Path) -> dict[str, int]:
    """Returns the packs, and the directories of loose objects with their times.

    A new pack does not change the result; a removed loose object changes a time.
    """
    found = {path.name: 0 for path in packs.glob("*.pack")}
    for directory in packs.parent.glob("[0-9a-f][0-9a-f]"):
        with suppress(FileNotFoundError):
            found[directory.name] = directory.stat().st_mtime_ns
    return found


def _wait_for_all(repository: Repository, timeout: float) -> None:
    """Waits until every process that is at work now has ended; later ones do not matter."""
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

    # Processes that want the same lock wait longer and longer between attempts.
    deadline = time.monotonic() + timeout
    while not free():
        if time.monotonic() < deadline:
            time.sleep(_LOOK)
            continue
        at_work = [
            str(one) for one in (*locks, *readers.waited, *indexes) if one.exists()
        ]
        raise BusyError(
            f"timed out after {timeout:g} s waiting for other git or gitcp processes"
            f"{f' ({at_work[-1]})' if at_work else ''}",
            hint="run `gitcp gc` again later; nothing was removed",
        )


def packed_objects(repository: Repository) -> int:
    """Returns the number of objects in packs, of git's as well as gitcp's."""
    told = repository.plumbing("count-objects", "-v")
    fields = dict(line.split(b": ") for line in told.splitlines())
    return int(fields[b"in-pack"])


def git_directories(repository: Repository) -> list[Path]:
    """Returns the git directories of all work trees, even of those that are gone."""
    linked = repository.common_dir / "worktrees"
    return [repository.common_dir, *(linked.iterdir() if linked.is_dir() else ())]


def _let_go(opened: Transaction, names: list[str], times: dict[str, int]) -> None:
    """Removes packs, unless git has begun to rely on one meanwhile.

    Once a pack is moved away, git can no longer update its time, and writes the objects
    itself; so no later use can be missed. The index is moved first, because `git gc`
    removes an index whose pack is missing. After a kill here, the next transaction puts
    both back.
    """
    directory = opened.repository.common_dir / "objects" / "pack"
    for name in names:
        pack = directory / f"{name}.pack"
        aside = opened.scratch / f"{name}{LEAVING}"
        index = opened.scratch / f"{name}{LEAVING_INDEX}"
        # The user's own gc may have removed it.
        with suppress(FileNotFoundError):
            pack.with_suffix(".idx").rename(index)
            pack.rename(aside)
            if aside.stat().st_mtime_ns != times[name]:
                put_back(directory, opened.scratch, name)
                raise BusyError(
                    "git used one of gitcp's packs meanwhile",
                    hint="run `gitcp gc` again; nothing was lost",
                )
            # Without it nothing puts the pack back.
            index.unlink()
            discard(directory, name)
            aside.unlink()
