"""Merges gitcp's packs when there are more than 20 (docs/format.md, 10)."""

from pathlib import Path

from gitcp import durable
from gitcp.errors import GitFailedError
from gitcp.git import grace
from gitcp.git.ended import sweep
from gitcp.git.registry import Registry
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction

AT_MOST = 20


def consolidate(
    repository: Repository, *, force: bool = False, new_deltas: bool = False
) -> int:
    """Merges packs where there are too many; returns how many went.

    With `new_deltas` git looks for deltas within each pack too: worth it where one pack
    holds many checkpoints, which were written without deltas.

    It is housekeeping: another process at it, or a failing git, leaves things as they
    are.
    """
    registry = Registry(repository)
    directory = repository.common_dir / "objects" / "pack"
    names = registry.names()
    if not names or (len(names) <= AT_MOST and not force):
        return 0
    with durable.storage("merging packs"):
        lock = durable.try_lock(repository.store_dir / "store.lock")
        if lock is None:
            return 0
        try:
            # A pack that lacks its index may be on its way out.
            sweep(repository)
            names = registry.names()
            there = standing(directory, names)
            merge = _to_merge(there, everything=force)
            if len(merge) < (
                1 if new_deltas and force else 2
            ):  # one alone is merged already
                if len(there) != len(names):
                    registry.forget(set(names) - there.keys())
                return 0
            try:
                with transaction(repository) as opened:
                    return _merge(repository, opened, merge, new_deltas=new_deltas)
            except (GitFailedError, FileNotFoundError):
                # A pack may have gone under our hands: the user's own gc.
                return 0
        finally:
            durable.unlock(lock)


def standing(directory: Path, names: list[str]) -> dict[str, int]:
    """Returns the size of each pack that is there and not in use."""
    found = {}
    for name in names:
        path = directory / f"{name}.pack"
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            continue
        # In this order: a pack comes under its .keep, and the .keep goes only once
        # a ref holds what is in it.
        if (directory / f"{name}.keep").exists():
            continue
        if (directory / f"{name}.idx").exists():
            found[name] = size
        else:
            # A merge was killed while it removed what it had merged.
            discard(directory, name)
    return found


def discard(directory: Path, name: str) -> None:
    """Removes a pack whose objects are in another, or that nothing needs."""
    # The index first: without it git does not look for the pack.
    for suffix in ("idx", "rev", "pack"):
        (directory / f"{name}.{suffix}").unlink(missing_ok=True)


def _to_merge(sizes: dict[str, int], *, everything: bool) -> list[str]:
    """Returns the smallest packs, up to one that is twice as large as all of them."""
    ordered = sorted(sizes, key=lambda name: sizes[name])
    if everything:
        return ordered
    total = 0
    for count, name in enumerate(ordered):
        if count >= AT_MOST // 2 and sizes[name] > 2 * total:
            return ordered[:count]
        total += sizes[name]
    return ordered


def _merge(
    repository: Repository, opened: Transaction, names: list[str], *, new_deltas: bool
) -> int:
    directory = repository.common_dir / "objects" / "pack"
    base = opened.scratch / "merged"
    packs = [directory / f"{name}.pack" for name in names]
    out = repository.plumbing(
        "-c",
        "pack.threads=1",
        "pack-objects",
        "--quiet",
        "--stdin-packs",
        "--delta-base-offset",
        *(["--no-reuse-delta"] if new_deltas else []),
        str(base),
        data="".join(f"{name}.pack\n" for name in names).encode(),
    )
    made = out.decode("ascii").strip()
    merged = f"pack-{made}"
    if merged in names:
        return 0
    opened.adopt(
        base.with_name(f"merged-{made}.pack"),
        base.with_name(f"merged-{made}.idx"),
        merged,
        # What git has begun to rely on stays known, whatever it is merged with.
        used=grace.latest(map(grace.used_at, packs)),
    )
    for name in names:
        discard(directory, name)
    durable.sync_directory(directory)
    Registry(repository).forget(set(names))
    return len(names) - 1
