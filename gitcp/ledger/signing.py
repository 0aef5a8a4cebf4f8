"""Seals ledger records, and recognises the ones that this repository wrote.

Records travel with a pull. Records made elsewhere only report what happened; gitcp does not
carry out a command or write in them without asking (docs/format.md, 12a).
"""

import hashlib
import hmac

from gitcp import durable
from gitcp.format.ledger import Record, old_sealed_text, sealed_text, undo_text
from gitcp.git.repository import Repository
from gitcp.git.secret import LEDGER, DerivedKey

_DIGITS = 32


class RecordSigner:
    """Seals the records of one ledger that are written here, and recognises its own seals.

    `session` is the ref component.
    """

    def __init__(self, repository: Repository, session: str) -> None:
        self._session = session
        self._key = DerivedKey(repository, LEDGER)
        self._secret: bytes | None = None
        self._others: list[bytes] | None = None

    def seal(self, record: Record, large: bytes | None = None) -> str:
        """Returns the seal of a record with number and time; the first one makes the key.

        `large` is its value, if that lies in the commit's tree.

        Raises:
            StorageError: the key cannot be read or made.
        """
        text = sealed_text(record, self._session, large)
        return self._of(text, create=True)[:_DIGITS]

    def is_ours(self, record: Record, large: bytes | None = None) -> bool:
        """Whether a record was written in this place of this ledger here, and not changed.

        `large` is its value, if that lies in the commit's tree; without it, such a record
        is not ours.
        """
        if record.size and large is None:
            return False
        texts = sealed_text(record, self._session, large), old_sealed_text(record)
        return any(self._fits(record.seal, text, _DIGITS) for text in texts)

    def seal_undo(self, record: Record) -> str:
        """Returns the seal of a step's undo; the first one makes the key."""
        return self._of(undo_text(record), create=True)

    def is_our_undo(self, record: Record) -> bool:
        """Whether an undo was recorded in this repository, and not changed since."""
        given = record.undo.seal if record.undo is not None else ""
        return self._fits(given, undo_text(record))

    def seal_file(self, text: bytes, *, create: bool = False) -> bytes | None:
        """Returns the seal of a file beside the store; None if there is no key.

        Raises:
            StorageError: the key cannot be read or made.
        """
        if self._secret is None:
            self._secret = self._read(create=create)
        if self._secret is None:
            return None
        # The prefix sets it apart: no record or undo begins like this.
        return hmac.digest(self._secret, b"file\n" + text, hashlib.sha256)

    def _fits(self, given: str, text: bytes, digits: int | None = None) -> bool:
        """Whether a seal is ours, or that of a private store that was moved here."""
        if _same(given, self._of(text)[:digits]):
            return True
        if not given:
            return False
        if self._others is None:
            with durable.storage("reading the seal"):
                self._others = self._key.others()
        return any(_same(given, _seal(key, text)[:digits]) for key in self._others)

    def _of(self, text: bytes, *, create: bool = False) -> str:
        """Returns a seal; empty if this repository has no key."""
        if self._secret is None:
            self._secret = self._read(create=create)
        if self._secret is None:
            return ""
        return _seal(self._secret, text)

    def _read(self, *, create: bool) -> bytes | None:
        with durable.storage("reading the seal"):
            return self._key.read() or (self._key.make() if create else None)


def _seal(key: bytes, text: bytes) -> str:
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def _same(given: str, expected: str) -> bool:
    return bool(expected) and hmac.compare_digest(expected.encode(), given.encode())
