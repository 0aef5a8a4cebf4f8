"""Decrypts data in quarantine, within limits on size."""

from gitcp import durable
from gitcp.encryption.age import Identities
from gitcp.encryption.quarantine import QuarantineLimits, too_much
from gitcp.errors import CorruptError
from gitcp.format import encrypted
from gitcp.format.encrypted import EncryptedContent
from gitcp.format.tree import FILE, Entry
from gitcp.git.objects import BLOB, Objects
from gitcp.git.pack import PackWriter
from gitcp.git.repository import Repository

# gitcp writes nothing deeper in `.gitcp`.
_DEPTH = 16


class Opening:
    """The decryption of one pull; branches and ledgers count towards the same limits."""

    def __init__(
        self, quarantine: Repository, identities: Identities, bounds: QuarantineLimits
    ) -> None:
        self.objects: Objects = quarantine.objects
        self._packs = quarantine.common_dir / "objects" / "pack"
        self._identities = identities
        self._bounds = bounds
        self._total = 0
        self._form = quarantine.form
        self._pack = self._new_pack()

    def _new_pack(self) -> PackWriter:
        place = self._packs.parent.parent / "opened"
        place.mkdir(exist_ok=True)
        return PackWriter(place, self._form)

    def add(self, kind: str, data: bytes) -> bytes:
        """Adds an object and returns its oid; it can be read after `flush`."""
        return self._pack.add(kind, data)

    def flush(self) -> None:
        """Makes the added objects readable in the quarantine."""
        with durable.storage("decrypting fetched data"):
            written = self._pack.close()
            if written is None:
                return
            pack, index, name = written
            pack.rename(self._packs / f"{name}.pack")
            index.rename(self._packs / f"{name}.idx")
            self._pack = self._new_pack()

    def close(self) -> None:
        """Discards objects that were not flushed; the quarantine ends with the transaction."""
        self._pack.abandon()

    def there(self, oid: bytes) -> bool:
        """Whether an object was fetched, is ours, or was decrypted."""
        if oid in self._pack:
            self.flush()
        return self.objects.exists(oid)

    def record(self, entry: Entry, session: str) -> EncryptedContent:
        """Returns the content of a ciphertext.

        Raises:
            NoKeyError: no key fits.
            CorruptError: the blob is not a ciphertext, was changed, or belongs to another session.
            TransferError: the plaintext exceeds a limit.
        """
        if entry.mode != FILE:
            raise refuse("a record in it is not a file")
        kind, size = self.objects.header(entry.oid)
        # Compressed text may be as large as its source, and age adds little.
        if kind != BLOB or size > encrypted.RECORD_LIMIT + 1024 * 1024:
            raise refuse("a record in it is too large")
        opened = self._identities.decrypt(self.objects.blob(entry.oid))
        left = min(self._bounds.file, self._bounds.size - self._total)
        try:
            record = encrypted.decode_record(opened, max(left, 0))
        except ValueError as exc:
            if left < encrypted.RECORD_LIMIT and "holds more than" in str(exc):
                setting = "pullMaxFile" if left == self._bounds.file else "pullMaxSize"
                raise too_much(
                    f"a record of more than {left:,} bytes", setting
                ) from exc
            raise refuse(f"a record in it cannot be read: {exc}") from exc
        if any(path.count(b"/") > _DEPTH for path in record.files):
            raise refuse("a path in it is too deep")
        self._total += len(record.commit or b"") + sum(map(len, record.files.values()))
        if record.session != session:
            raise refuse("a record in it is of another session")
        return record


def refuse(why: str) -> CorruptError:
    """Returns the error for data that was changed, or that gitcp did not make."""
    return CorruptError(why, hint="nothing of it was adopted; do not use it")
