"""The scanner's cache in the repository: objects without secrets, and the fingerprints' key."""

import os

from gitcp import durable
from gitcp.git.repository import Repository
from gitcp.git.secret import FINGERPRINTS, SIZE, DerivedKey
from gitcp.secrets.scanner import Fingerprints

DIRECTORY = "secrets"
_CLEAN = "clean"
_MOST = 2_000_000


def fingerprints(repository: Repository) -> Fingerprints:
    """Returns the fingerprints of this repository; makes their key on first use.

    The key never leaves the repository, so a fingerprint that is seen elsewhere reveals
    nothing about a short password. In a read-only repository the key only lives as long as
    the result.

    Raises:
        StorageError: the disk refused.
    """
    key = DerivedKey(repository, FINGERPRINTS)
    with durable.storage("keeping the scanner's key"):
        try:
            return Fingerprints(key.read() or key.make())
        except OSError as exc:
            if exc.errno not in durable.READ_ONLY:
                raise
            return Fingerprints(os.urandom(SIZE))


class Clean:
    """The objects in which a scanner of this identity found nothing.

    The cache is derived: if it is lost, the next push scans its objects again.
    """

    def __init__(self, repository: Repository, identity: str) -> None:
        self._repository = repository
        self._path = repository.store_dir / DIRECTORY / _CLEAN
        self._head = f"{identity}\n".encode()
        self._stands = False
        self._oids: set[bytes] = set()
        size = repository.form.size
        self._new: list[bytes] = []
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return
        if raw.startswith(self._head) and len(raw) < _MOST * size:
            self._stands = True
            body = raw[len(self._head) :]
            # An interrupted write leaves an incomplete id at the end.
            whole = len(body) - len(body) % size
            self._stands = whole == len(body)
            self._oids = {body[at : at + size] for at in range(0, whole, size)}

    def __contains__(self, oid: bytes) -> bool:
        return oid in self._oids

    def __len__(self) -> int:
        return len(self._oids)

    def add(self, oid: bytes) -> None:
        """Adds an object, which `keep` will store."""
        self._oids.add(oid)
        self._new.append(oid)

    def keep(self) -> None:
        """Stores the added objects.

        Raises:
            StorageError: the disk refused.
        """
        if not self._new:
            return
        with durable.storage("remembering what was scanned"):
            try:
                self._write()
            except OSError as exc:
                if exc.errno not in durable.READ_ONLY:
                    raise
                return
        self._stands = True
        self._new.clear()

    def _write(self) -> None:
        self._repository.make_directory(self._path.parent)
        if self._stands:
            durable.append(self._path, b"".join(self._new))
        else:
            durable.replace(
                self._path, self._head + b"".join(sorted(self._oids)), sync=False
            )
