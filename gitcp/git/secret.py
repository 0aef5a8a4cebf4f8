"""The secret key of one user in a repository: made once, never sent, readable by that user only.

In a repository that a group shares each member has a key of their own: the owner of `key`
keeps it, every other member has `key-<uid>`. The directory belongs to the group, so a key is
believed only where its owner alone can have written it. Keys for other purposes are derived
from it (docs/format.md, 8).
"""

import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.git.repository import Repository

SIZE = 32
# Follows the name in the names of keys that came with a private store.
_ADOPTED = ".adopted-"


class Purpose(NamedTuple):
    """What a derived key is for, and the file that held a key for it up to 0.1.0."""

    label: bytes
    earlier: tuple[str, ...]


LEDGER = Purpose(b"gitcp ledger 1", ("fx", "seal"))
FINGERPRINTS = Purpose(b"gitcp fingerprints 1", ("secrets", "key"))


class KeyFile:
    """A key of 32 random bytes below `.git/gitcp`, by default the repository's own."""

    def __init__(self, repository: Repository, *where: str) -> None:
        self._repository = repository
        self._first = repository.store_dir.joinpath(*(where or ("key",)))

    @property
    def path(self) -> Path:
        """The path of this user's key."""
        own = self._first.with_name(f"{self._first.name}-{os.geteuid()}")
        if self._repository.access.shared:
            return self._first if _is_mine(self._first) else own
        # The repository may have been shared once.
        return own if not self._first.exists() and own.exists() else self._first

    def read(self) -> bytes | None:
        """Returns the key; None if there is none, or none that can be believed.

        Raises:
            OSError: the key file cannot be read.
        """
        return self._read(self.path)

    def adopted(self) -> list[bytes]:
        """Returns the keys of private stores that were moved here: theirs are believed too.

        Raises:
            OSError: a key file cannot be read.
        """
        found = sorted(self._first.parent.glob(f"{self._first.name}{_ADOPTED}*"))
        keys = [self._read(path) for path in found]
        return [key for key in keys if key is not None]

    def adopt(self, key: bytes, *, known: bytes | None) -> None:
        """Takes the key of a private store: as our own if none is known, else beside it.

        Raises:
            OSError: the disk refused.
        """
        if key == known or (known is not None and key in self.adopted()):
            return
        path = self.path
        self._repository.make_directory(path.parent)
        beside = self._first.with_name(
            f"{self._first.name}{_ADOPTED}{hashlib.sha256(key).hexdigest()[:12]}"
        )
        durable.replace(beside, key, mode=0o600)
        if known is not None:
            return
        # Another process may make one at this moment: then both are believed.
        with suppress(FileExistsError):
            durable.link(beside, path)
            durable.remove(beside)

    def _read(self, path: Path) -> bytes | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                return None
            if self._repository.access.shared and not _only_mine(status):
                return None
            raw = os.read(fd, SIZE + 1)
        finally:
            os.close(fd)
        return raw if len(raw) == SIZE else None

    def make(self, scratch: Path | None = None) -> bytes:
        """Returns the key, and makes it first if there is none.

        It is written to `scratch` first, or beside its place. Of two that make one at
        once, the first wins.

        Raises:
            OSError: the disk refused.
        """
        path = self.path
        self._repository.make_directory(path.parent)
        staged = (scratch or path.parent) / f"{path.name}.{os.urandom(4).hex()}"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with open(os.open(staged, flags, 0o600), "wb") as file:
                file.write(os.urandom(SIZE))
                file.flush()
                os.fsync(file.fileno())
            try:
                durable.link(staged, path)
            except FileExistsError:
                if self.read() is None:
                    # It is truncated: what it sealed cannot be verified any longer.
                    staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
        durable.sync_directory(path.parent)
        key = self.read()
        if key is None:
            raise FileNotFoundError(f"the key {path} was removed meanwhile")
        return key


class DerivedKey:
    """The key for one purpose: derived from `key`, where no file of its own is there.

    Such a file, which gitcp 0.1.0 made, stays in use, so that what it sealed and the
    fingerprints that it gave stay as they are.
    """

    def __init__(self, repository: Repository, purpose: Purpose) -> None:
        self._label = purpose.label
        self._earlier = KeyFile(repository, *purpose.earlier)
        self._key = KeyFile(repository)

    def read(self) -> bytes | None:
        """Returns the key; None if there is none, or none that can be believed.

        Raises:
            OSError: the key file cannot be read.
        """
        return self._earlier.read() or self._derived(self._key.read())

    def make(self) -> bytes:
        """Returns the key, and makes the repository's first if there is none.

        Raises:
            OSError: the disk refused.
        """
        return self._earlier.read() or derive(self._key.make(), self._label)

    def others(self) -> list[bytes]:
        """Returns what is believed beside the key that `read` returns.

        These are the keys of private stores that were moved here, and the derived one where
        a file of its own came later: an older gitcp was used here meanwhile.

        Raises:
            OSError: a key file cannot be read.
        """
        bases = [self._key.read(), *self._key.adopted()]
        derived = [derive(key, self._label) for key in bases if key is not None]
        return self._earlier.adopted() + derived

    def adopt(self, theirs: "DerivedKey") -> None:
        """Takes over the file that a private store has for this purpose, if it has one.

        Raises:
            OSError: the disk refused.
        """
        key = theirs._earlier.read()  # noqa: SLF001  of the same class
        if key is not None:
            self._earlier.adopt(key, known=self.read())

    def _derived(self, key: bytes | None) -> bytes | None:
        return None if key is None else derive(key, self._label)


def derive(key: bytes, label: bytes) -> bytes:
    """Returns the key for the purpose that `label` names (docs/format.md, 8)."""
    return hashlib.blake2b(label, key=key, digest_size=SIZE).digest()


def _is_mine(path: Path) -> bool:
    with suppress(OSError):
        return os.lstat(path).st_uid == os.geteuid()
    return False


def _only_mine(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077
