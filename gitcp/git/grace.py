"""git's grace period: how long packs that git may use stay (docs/decisions/0058).

If git finds an object in a pack, it does not write it again. It sets the pack's time to
now, and its own gc keeps the pack's objects until `gc.pruneExpire` is over. So gitcp
gives its packs a time a little in the past, the same as their indexes: a later time
shows that git has used a pack, and when. That holds for clones that borrow, too.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from gitcp.git.repository import Repository

SECOND = 1_000_000_000
# The coarsest step in which a file system keeps times, as FAT does.
_STEP = 2 * SECOND
_DEFAULT = "2.weeks.ago"


def mark(pack: Path, index: Path, used: int | None) -> None:
    """Sets the times of a new pack, in nanoseconds: `used` is when git used its objects."""
    at = pack.stat().st_mtime_ns - _STEP if used is None else used
    before = at if used is None else at - _STEP
    os.utime(pack, ns=(at, at))
    os.utime(index, ns=(before, before))


def used_at(pack: Path) -> int | None:
    """Returns when git last used a pack; None if it has not since gitcp wrote it.

    Raises:
        FileNotFoundError: the pack or its index is gone.
    """
    at = pack.stat().st_mtime_ns
    return at if at > pack.with_suffix(".idx").stat().st_mtime_ns else None


def latest(times: Iterable[int | None]) -> int | None:
    """Returns the latest of some times; None if there is none."""
    return max((at for at in times if at is not None), default=None)


def expiry(repository: Repository) -> int:
    """Returns the time, in nanoseconds, up to which git's grace is over.

    Raises:
        GitFailedError: `gc.pruneExpire` is set to something that git does not know.
    """
    told = repository.plumbing(
        "config", "--type=expiry-date", "--default", _DEFAULT, "--get", "gc.pruneExpire"
    )
    return int(told) * SECOND
