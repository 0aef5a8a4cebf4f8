"""The entries of a spool: refs to send, clones to ask, and the remote they are for.

A spool is a directory of the user's state directory, for one address of a remote. Every
file in it is replaced in one step, so that a kill leaves the old or the new one.
"""

import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from gitcp import durable
from gitcp.errors import UnsupportedRepositoryError
from gitcp.format.oid import FORMS
from gitcp.git.gathering import Gathering
from gitcp.spool.known_files import KnownFiles
from gitcp.user_state import state_directory

T = TypeVar("T")

_IDENT = re.compile("[0-9a-f]{16}")
_LOCK_TIMEOUT = 120.0


class Route(msgspec.Struct, frozen=True):
    """Where a spool's sessions go: an `address`, and its text without secrets.

    `form` is the object format. `interval` are the seconds between two pushes; `silence` and
    `total` are the seconds that a push may be silent, and may take in all.
    """

    address: str
    shown: str
    form: str
    interval: float
    silence: float = 60.0
    total: float = 3600.0


class Pending(msgspec.Struct, frozen=True):
    """A ref to move at the remote from `base` (None: it is new) to `new`.

    `plain` is the commit that `new` stands for. The ref has waited since `at`. The remote
    refused it `tries` times, the last time for `reason`, and it is tried again from `due`
    on. Times are in seconds since 1970. `elsewhere` are ancestors of the commit in the
    project's history that an object store need not hold, because a git remote has them.
    `policy` stands for the settings by which the clone encrypted and scanned it.
    """

    ref: str
    base: str | None
    new: str
    plain: str
    clone: str
    at: float
    tries: int = 0
    due: float = 0.0
    reason: str = ""
    elsewhere: tuple[str, ...] = ()
    policy: str = ""


class CloneNote(msgspec.Struct, frozen=True):
    """A clone that has sessions for a remote; `wanted`: it must still be asked for them.

    `sessions` names the sessions; it is empty if all are meant. `reason` says why some
    cannot be moved into the spool; `asked` is when that was last tried.
    """

    directory: str
    remote: str
    at: float
    wanted: bool = False
    sessions: tuple[str, ...] = ()
    reason: str = ""
    asked: float = 0.0


class Progress(msgspec.Struct, frozen=True):
    """The state of the pushes: when the last one began, failures since the last success."""

    last: float = 0.0
    failures: int = 0
    due: float = 0.0
    reason: str = ""
    batch: int = 0


def root() -> Path:
    """Returns the directory of all spools."""
    return state_directory() / "spool"


class Spool:
    """The spool of one address."""

    def __init__(self, ident: str) -> None:
        self.ident = ident
        self.directory = root() / ident
        self._known_pending = KnownFiles(self.directory / "pending", Pending)
        self._known_clones = KnownFiles(self.directory / "clones", CloneNote)
        self._known_list = KnownFiles(self.directory, dict[str, str])

    def make(self, route: Route) -> None:
        """Makes the directory, for its owner alone, and notes the route.

        Raises:
            UnsupportedRepositoryError: another user owns the directory.
            StorageError: the disk refused.
        """
        with durable.storage("making the spool"):
            durable.make_directories(self.directory, private=True)
            owner = root().stat().st_uid
            if owner != os.geteuid():
                raise UnsupportedRepositoryError(
                    f"{root()} belongs to another user (uid {owner})",
                    hint="set HOME or XDG_STATE_HOME to a directory of your own",
                )
            for name in ("pending", "clones"):
                durable.make_directories(self.directory / name, private=True)
            if self.route() != route:
                self._write(self.directory / "route.json", route)

    def route(self) -> Route | None:
        """Returns where the spool sends to; None if that cannot be read."""
        return _read(self.directory / "route.json", Route)

    def gathering(self) -> Gathering:
        """Returns the repository with the spool's objects."""
        route = self.route()
        form = FORMS[route.form if route is not None else "sha1"]
        return Gathering(self.directory / "git", form)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lets one process at a time change the pending refs.

        Raises:
            BusyError: another process kept the lock.
        """
        with durable.locked(
            self.directory / "lock", what="the spool", timeout=_LOCK_TIMEOUT
        ):
            yield

    # --- what the remote had --------------------------------------------------------

    def listed(self) -> Mapping[str, str] | None:
        """Returns the refs that the remote had when last asked; None if never asked."""
        return self._known_list.one("list")

    def note_listed(self, refs: dict[str, str]) -> None:
        """Notes the refs that the remote has."""
        self._write(self.directory / "list.json", refs, sync=False)

    # --- what waits -----------------------------------------------------------------

    def pending(self) -> dict[str, Pending]:
        """Returns the pending refs by name, the longest waiting first."""
        found = self._known_pending.all().values()
        return {one.ref: one for one in sorted(found, key=lambda one: one.at)}

    def put(self, *all_of_them: Pending) -> None:
        """Notes pending refs, durably."""
        with durable.storage("writing the spool"):
            durable.replace_all(
                {
                    self._pending(one.ref): msgspec.json.encode(one)
                    for one in all_of_them
                }
            )

    def remove(self, *refs: str) -> None:
        """Removes pending refs: nothing is left to send of them."""
        with durable.storage("writing the spool"):
            durable.remove(*map(self._pending, refs))

    def _pending(self, ref: str) -> Path:
        name = hashlib.sha256(ref.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self.directory / "pending" / f"{name}.json"

    # --- clones ---------------------------------------------------------------------

    def clones(self) -> dict[str, CloneNote]:
        """Returns the clones that have sent something, by their ids."""
        return self._known_clones.all()

    def clone(self, ident: str) -> CloneNote | None:
        """Returns one clone."""
        return self._known_clones.one(ident)

    def note_clone(
        self, ident: str, note: CloneNote | None, *, sync: bool = True
    ) -> None:
        """Notes a clone, or forgets one that is gone (None)."""
        path = self.directory / "clones" / f"{ident}.json"
        if note is None:
            durable.remove(path)
        else:
            self._write(path, note, sync=sync)

    # --- how it goes ----------------------------------------------------------------

    def progress(self) -> Progress:
        """Returns how the last pushes went."""
        return _read(self.directory / "progress.json", Progress) or Progress()

    def note_progress(self, progress: Progress) -> None:
        """Notes how the last push went."""
        self._write(self.directory / "progress.json", progress, sync=False)

    def pusher_lock(self, *, asleep: bool = False) -> int | None:
        """Takes the lock of the one process that pushes; None if another process has it.

        With `asleep`, the lock is for the one process that waits for the next try after a
        failure.

        Raises:
            StorageError: the disk refused.
        """
        name = "retry.lock" if asleep else "pusher.lock"
        with durable.storage("locking the spool"):
            return durable.try_lock(self.directory / name)

    def _write(self, path: Path, value: object, *, sync: bool = True) -> None:
        with durable.storage("writing the spool"):
            durable.replace(path, msgspec.json.encode(value), sync=sync, mode=0o600)


def spool_of(route: Route) -> Spool:
    """Returns the spool of a route."""
    name = f"{route.form}\0{route.address}".encode("utf-8", "surrogateescape")
    return Spool(hashlib.sha256(name).hexdigest()[:16])


def every_spool() -> list[Spool]:
    """Returns every spool of this user on this machine."""
    with suppress(OSError):
        names = sorted(path.name for path in root().iterdir())
        return [Spool(name) for name in names if _IDENT.fullmatch(name)]
    return []


def clone_ident(common_dir: Path) -> str:
    """Returns the id of a clone; all its work trees share it."""
    return hashlib.sha256(os.fsencode(os.path.realpath(common_dir))).hexdigest()[:16]


def now() -> float:
    """Returns the seconds since 1970."""
    return time.time()


def _read(path: Path, kind: type[T]) -> T | None:
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=kind)
    return None
