"""A writer that pushes to an object store which fails, run as a process of its own.

`python -m tests.support.faulty_store REPO URL SESSION ROUNDS SEED`; a session named `shared` is
grown by several. Prints the ids of the checkpoints whose push was acknowledged, as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from gitcp.errors import TransferError
from gitcp.git.transport import Limits
from gitcp.remotes import object_store
from gitcp.remotes.place import Entry, Place, Version
from tests.support.inprocess import invoke, ok

_ODDS = 0.15
# A push reads each branch of its session.
_READING = 0.004
_TRIES = 60


class FaultyStore:
    """A store of which any request may fail, before it was carried out or after."""

    def __init__(self, place: Place, chance: random.Random) -> None:
        self._place = place
        self._chance = chance
        self.faults = 0

    def _meets(self, odds: float = _ODDS) -> bool:
        met = self._chance.random() < odds
        self.faults += met
        return met

    def _fail(self, odds: float = _ODDS) -> None:
        """A server that answers 500, or none that does."""
        if self._meets(odds):
            raise TransferError("500 Internal Server Error")

    def list(self, below: str) -> Iterator[Entry]:
        self._fail()
        stale = self._meets()
        for entry in self._place.list(below):
            if not (stale and self._chance.random() < 0.5):
                yield entry

    def read(self, path: str, at_most: int) -> tuple[bytes, Version] | None:
        self._fail(_READING)
        return self._place.read(path, at_most)

    def download(self, path: str, size: int, file: Path) -> bool:
        self._fail()
        done = self._place.download(path, size, file)
        if done and self._meets():
            raw = file.read_bytes()
            file.write_bytes(raw[: self._chance.randrange(len(raw))])
        return done

    def upload(self, path: str, file: Path) -> None:
        self._fail()
        if self._meets():
            torn = file.with_name("torn")
            raw = file.read_bytes()
            torn.write_bytes(raw[: self._chance.randrange(len(raw))])
            self._place.upload(path, torn)
            torn.unlink()
            raise TransferError("the connection was reset")
        self._place.upload(path, file)
        if self._meets():
            raise TransferError("timeout")

    def swap(self, path: str, data: bytes, expect: Version | None) -> Version | None:
        self._fail()
        if self._meets():
            # 412, though nothing has changed: the store's own retry met its own write.
            if self._chance.random() < 0.5:
                self._place.swap(path, data, expect)
            return None
        version = self._place.swap(path, data, expect)
        if self._meets():
            raise TransferError("timeout")
        return version

    def remove(self, path: str) -> None:
        self._fail()
        self._place.remove(path)

    def now(self) -> float:
        self._fail()
        return self._place.now()


def until_done(repo: Path, *args: str) -> None:
    """Runs a command until the store lets it end well."""
    done = None
    for _ in range(_TRIES):
        done = invoke(repo, *args)
        if done.returncode == 0:
            return
        # A stale listing may lack the session.
        assert done.returncode in {3, 12, 13, 21}, (args, done)
    raise AssertionError((args, done))


def main() -> None:
    repo, url, session = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    rounds, seed = int(sys.argv[4]), int(sys.argv[5])
    chance = random.Random(seed)
    acknowledged = []
    faults = 0
    open_place = object_store.open_place

    def opened(address: str, limits: Limits) -> Place:
        made.append(FaultyStore(open_place(address, limits), chance))
        return made[-1]

    made: list[FaultyStore] = []
    with mock.patch("gitcp.remotes.by_address.open_place", opened):
        for number in range(rounds):
            if session == "shared":
                # All of them go on from what is there: one will be first.
                until_done(repo, "pull", url, f"{session}/main")
                until_done(repo, "switch", f"{session}/main", "--restore", "--yes")
            (repo / "work").write_text(f"{seed} {number}\n")
            saved = ok(repo, "save", "-s", session)["checkpoint"]
            until_done(repo, "push", "--fork", url, session)
            acknowledged.append(saved["id"])
    faults = sum(place.faults for place in made)
    print(json.dumps({"acknowledged": acknowledged, "faults": faults}))


if __name__ == "__main__":
    main()
