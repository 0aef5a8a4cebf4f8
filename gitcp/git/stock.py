"""Sorts the objects in gitcp's packs: kept, waiting for git's grace period, or garbage."""

import struct
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from gitcp.format.oid import ObjectFormat
from gitcp.git import grace

_FANOUT = 8 + 256 * 4
_DAY = 24 * 60 * 60 * grace.SECOND


class Split(NamedTuple):
    """Packs to be replaced by two others.

    One holds what is reached. The other one holds `held`, which nothing reaches but git
    may rely on. `used` and `held_used` are when git last used what is in each, in
    nanoseconds. `gone` counts the objects that go.
    """

    names: list[str]
    held: set[bytes]
    used: int | None
    held_used: int | None
    gone: int


class Stock:
    """The packs of gitcp that stand.

    `own` are those that hold checkpoints, `kept` those of what nothing reaches. Times up to
    `expiry` are not within git's grace any more.

    Raises:
        FileNotFoundError: a pack was removed meanwhile.
    """

    def __init__(
        self,
        directory: Path,
        form: ObjectFormat,
        own: list[str],
        kept: list[str],
        expiry: int,
    ) -> None:
        self._own = own
        self._kept = kept
        paths = {name: directory / f"{name}.pack" for name in (*own, *kept)}
        self._oids = {
            name: oids_in(path.with_suffix(".idx"), form.size)
            for name, path in paths.items()
        }
        self.times = {name: path.stat().st_mtime_ns for name, path in paths.items()}
        self._used = {
            name: at
            for name, path in paths.items()
            if (at := grace.used_at(path)) is not None and at > expiry
        }
        self.all = set().union(*self._oids.values())

    @property
    def waiting(self) -> int:
        """The number of objects that wait for git's grace period to end."""
        return len(set().union(*(self._oids[name] for name in self._kept)))

    def split(self, keep: set[bytes], unwanted: set[bytes]) -> Split | None:
        """Returns what to replace; None if all is as it should be.

        `keep` is what is reached, `unwanted` what goes without any grace.
        """
        alone = {
            name
            for name in self._kept
            if name in self._used and unwanted.isdisjoint(self._oids[name])
        }
        stays = keep | unwanted
        held = self._used_in(set(self._own) | set(self._kept) - alone) - stays
        held -= self._in(alone)
        if held:
            # One pack for a day, so that there are never many.
            newest = max(self._used[name] for name in self._holding(held))
            alone = {name for name in alone if newest - self._used[name] >= _DAY}
            held = self._used_in(self._used.keys() - alone) - stays - self._in(alone)
        names = [*self._own, *(name for name in self._kept if name not in alone)]
        gone = self._in(names) - keep - held - self._in(alone)
        if not names or (not gone and not held and len(names) == 1):
            return None
        return Split(
            names,
            held,
            self._latest(keep & self._in(names), names),
            self._latest(held, names),
            len(gone),
        )

    def used(self, oids: set[bytes]) -> int:
        """Returns how many of some objects git may have begun to rely on."""
        return len(oids & self._used_in(self._used))

    def _in(self, names: Collection[str]) -> set[bytes]:
        return set().union(*(self._oids[name] for name in names))

    def _used_in(self, names: Collection[str]) -> set[bytes]:
        return self._in([name for name in names if name in self._used])

    def _holding(self, oids: set[bytes]) -> list[str]:
        return [name for name in self._used if not oids.isdisjoint(self._oids[name])]

    def _latest(self, oids: set[bytes], names: Collection[str]) -> int | None:
        holding = set(self._holding(oids)).intersection(names)
        return grace.latest(self._used[name] for name in holding)


def oids_in(index: Path, size: int) -> set[bytes]:
    """Returns the objects in a pack, from its index."""
    raw = index.read_bytes()
    (total,) = struct.unpack_from(">I", raw, _FANOUT - 4)
    return {raw[at : at + size] for at in range(_FANOUT, _FANOUT + total * size, size)}
