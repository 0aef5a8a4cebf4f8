"""Merges gitcp's packs when there are more than 20 (docs/format.md, 10)."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from gitcp import durable
from gitcp.errors import CorruptError, GitFailedError, GitStoppedError, GitTimeoutError
from gitcp.git import delta_order, grace
from gitcp.git.ended import sweep
from gitcp.git.objects import COMMIT
from gitcp.git.registry import AT_MOST, Registry
from gitcp.git.repository import Repository
from gitcp.git.stock import oids_in
from gitcp.git.transaction import Transaction, transaction

# A process that waits for the store's lock holds this one meanwhile.
WANTED = "store.wanted"
Stop = Callable[[], bool]


class MergeTooLongError(GitTimeoutError):
    """Merging packs of `size` bytes together took more time than it was given."""

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self.size = size


def consolidate(
    repository: Repository,
    *,
    force: bool = False,
    new_deltas: bool = False,
    deadline: float | None = None,
    largest: int | None = None,
) -> int:
    """Merges packs if there are too many; returns how many were removed.

    With `new_deltas`, git also searches for deltas within each pack, which pays if one pack
    holds many checkpoints that were written without deltas. It gives up at the `deadline` (of
    `time.monotonic`), or earlier if another process asks for the store. It does not merge
    packs of more than `largest` bytes together.

    It is housekeeping: if another process is merging, or if git fails, everything stays
    as it is.

    Raises:
        MergeTooLongError: the deadline came; the packs are as they were.
        StorageError: the disk refused.
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
            # A pack without an index may be about to be removed.
            sweep(repository)
            names = registry.names()
            there = standing(directory, names)
            merge = _to_merge(there, everything=force, largest=largest)
            if len(merge) < (
                1 if new_deltas and force else 2
            ):  # one alone is merged already
                if len(there) != len(names):
                    registry.forget(set(names) - there.keys())
                return 0
            try:
                with transaction(repository) as opened:
                    return _merge(
                        opened, merge, new_deltas=new_deltas, deadline=deadline
                    )
            except GitStoppedError:
                return 0
            except GitTimeoutError as exc:
                total = sum(there[name] for name in merge)
                raise MergeTooLongError(exc.message, total) from exc
            except (GitFailedError, FileNotFoundError):
                # The user's own gc may have removed a pack meanwhile.
                return 0
        finally:
            durable.unlock(lock)


def standing(directory: Path, names: list[str]) -> dict[str, int]:
    """Returns the size of each existing pack that is not in use."""
    found = {}
    for name in names:
        path = directory / f"{name}.pack"
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            continue
        # In this order: a pack appears together with its .keep, and the .keep is
        # removed only after a ref holds the pack's objects.
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


def _to_merge(
    sizes: dict[str, int], *, everything: bool, largest: int | None
) -> list[str]:
    """Returns the smallest packs, up to one that is twice as large as all of them."""
    ordered = sorted(sizes, key=lambda name: sizes[name])
    if everything:
        return ordered
    total = 0
    for count, name in enumerate(ordered):
        if count >= AT_MOST // 2 and sizes[name] > 2 * total:
            return ordered[:count]
        total += sizes[name]
        if largest is not None and total > largest:
            return ordered[:count]
    return ordered


def _merge(
    opened: Transaction,
    names: list[str],
    *,
    new_deltas: bool,
    deadline: float | None,
) -> int:
    repository = opened.repository
    # Housekeeping that may take minutes makes way for a command that a user waits for.
    wanted = repository.store_dir / WANTED
    stop = None if deadline is None else partial(durable.is_locked, wanted)
    directory = repository.common_dir / "objects" / "pack"
    base = opened.scratch / "merged"
    packs = [directory / f"{name}.pack" for name in names]
    lines = _ordered(repository, packs, deadline, stop)
    given = b"".join(lines or (f"{path.name}\n".encode() for path in packs))
    out = repository.plumbing(
        "-c",
        "pack.threads=1",
        "pack-objects",
        "--quiet",
        *([] if lines else ["--stdin-packs"]),
        "--delta-base-offset",
        *(["--no-reuse-delta"] if new_deltas else []),
        str(base),
        data=given,
        timeout=_left(deadline),
        stop=stop,
    )
    made = out.decode("ascii").strip()
    merged = f"pack-{made}"
    if merged in names:
        return 0
    opened.adopt(
        base.with_name(f"merged-{made}.pack"),
        base.with_name(f"merged-{made}.idx"),
        merged,
        # The merged pack keeps the time at which git began to rely on an object in it.
        used=grace.latest(map(grace.used_at, packs)),
    )
    for name in names:
        discard(directory, name)
    durable.sync_directory(directory)
    Registry(repository).forget(set(names))
    return len(names) - 1


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def _ordered(
    repository: Repository,
    packs: Sequence[Path],
    deadline: float | None,
    stop: Stop | None,
) -> list[bytes]:
    """Returns all objects in packs that hold chunked files, as `delta_order` names them.

    Without such files, or if git cannot walk, it returns nothing: then git finds the
    paths itself, and all deltas.
    """
    size = repository.form.size
    oids = set().union(*(oids_in(path.with_suffix(".idx"), size) for path in packs))
    asked = "".join(f"{oid.hex()}\n" for oid in sorted(oids)).encode()
    kinds = repository.plumbing(
        "cat-file",
        "--batch-check=%(objecttype) %(objectname)",
        "--buffer",
        data=asked,
        timeout=_left(deadline),
        stop=stop,
    )
    commits = [
        word.split()[1].decode("ascii")
        for word in kinds.splitlines()
        if word.startswith(f"{COMMIT} ".encode())
    ]
    try:
        parents = {
            parent.hex()
            for commit in commits
            for parent in repository.objects.commit(bytes.fromhex(commit)).parents
        }
    except CorruptError:
        return []
    limits = sorted(f"^{one}" for one in parents.difference(commits))
    try:
        walked = repository.plumbing(
            "rev-list",
            "--objects",
            "--missing=allow-any",
            "--ignore-missing",
            "--stdin",
            data="\n".join([*commits, *limits, ""]).encode(),
            timeout=_left(deadline),
            stop=stop,
        ).splitlines(keepends=True)
    except GitTimeoutError:
        raise
    except GitFailedError:
        return []
    lines = delta_order.named(repository.objects, walked)
    if lines == walked:
        return []
    found = [line for line in lines if _oid(line) in oids]
    rest = oids.difference(map(_oid, found))
    return [*found, *(f"{oid.hex()}\n".encode() for oid in sorted(rest))]


def _oid(line: bytes) -> bytes:
    return bytes.fromhex(line.split(maxsplit=1)[0].decode("ascii"))
