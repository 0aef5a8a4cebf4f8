"""Pages of a ledger as they were read once, beside the store: derived (ADR 0120).

They save reading a commit for each record. What reads them sees to it that the ledger, as
it is now, goes on from the last of them.
"""

import hmac
from collections.abc import Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.format.ledger import LedgerCommit, Record, Undo
from gitcp.git.repository import Repository
from gitcp.ledger.signing import RecordSigner
from gitcp.names import encode

DIRECTORY = "pages"
# Pages of a file, or a few more; so many are read one by one at most.
_PAGES = 1024
# Bytes of all files of a ledger.
_MOST = 256 << 20
_MAC = sha256().digest_size
# A version that knows more fields finds them in the ledger, and not in these files.
_FIELDS = (LedgerCommit._fields, Record.__struct_fields__, Undo.__struct_fields__)
_HEAD = b"gitcp-pages 1 %s\n" % sha256(repr(_FIELDS).encode()).hexdigest().encode()


class PageCache:
    """Files of consecutive pages, each sealed with this user's key and the seal before it.

    For use while the ledger's log is held. One that is damaged, or that another user
    wrote, is not read, nor are those after it.
    """

    def __init__(
        self, repository: Repository, session: str, signer: RecordSigner
    ) -> None:
        self._repository = repository
        self._session = encode(session)
        self._signer = signer
        self._directory = repository.store_dir / DIRECTORY / self._session
        self.forget()

    def forget(self) -> None:
        """Begins again: the pages are others now."""
        self._kept: list[bytes] = []
        self._count = self._size = 0

    def read(self) -> list[LedgerCommit]:
        """Returns the first pages of the ledger, as far as they are kept."""
        self.forget()
        pages: list[LedgerCommit] = []
        for number in count():
            try:
                raw = self._path(number).read_bytes()
            except OSError:
                # Not there, or not for this user: git has the pages.
                break
            seal, text = raw[:_MAC], raw[_MAC:]
            ours = self._seal(text) if text.startswith(_HEAD) else None
            if ours is None or not hmac.compare_digest(seal, ours):
                break
            pages += _DECODER.decode(memoryview(text)[len(_HEAD) :])
            self._note(seal, len(pages), len(raw))
        return pages

    def keep(self, pages: Sequence[LedgerCommit]) -> None:
        """Writes down pages that are not kept yet, one file at most; `pages` are all."""
        end = self._end(pages)
        if end is None or self._size > _MOST:
            return
        text = _HEAD + _ENCODER.encode(pages[self._count : end])
        try:
            _DECODER.decode(memoryview(text)[len(_HEAD) :])
        except msgspec.MsgspecError:
            # A value holds what msgspec refuses, as the escape of a lone surrogate.
            self._size = _MOST + 1
            return
        seal = self._seal(text, create=True)
        assert seal is not None
        path = self._path(len(self._kept))
        try:
            self._repository.make_directory(path.parent)
            # Each process comes to write the same.
            if not _holds(path, seal + text):
                durable.replace(path, seal + text, sync=False)
        except OSError:
            # What the step records comes first: nothing is lost, and reading takes longer.
            self._size = _MOST + 1
            return
        self._note(seal, end, len(text))

    def remove(self) -> None:
        """Removes the files.

        Raises:
            StorageError: the disk refused.
        """
        self.forget()
        with durable.storage("removing the kept pages of a ledger"):
            _remove(self._directory)

    def _end(self, pages: Sequence[LedgerCommit]) -> int | None:
        """Returns up to where to keep pages next: to one that all before it lead to."""
        if len(pages) - self._count < _PAGES:
            return None
        heads = {pages[self._count - 1].oid} if self._count else set[str]()
        for number, page in enumerate(pages[self._count :], 1):
            heads.difference_update(page.parents)
            heads.add(page.oid)
            if number >= _PAGES and len(heads) == 1:
                return self._count + number
        return None

    def _note(self, seal: bytes, end: int, size: int) -> None:
        self._kept.append(seal)
        self._count = end
        self._size += size

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:06}"

    def _seal(self, text: bytes, *, create: bool = False) -> bytes | None:
        before = self._kept[-1] if self._kept else b""
        whole = self._session.encode() + b"\n" + before + text
        return self._signer.seal_file(whole, create=create)


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(list[LedgerCommit])


def remove_all(repository: Repository) -> None:
    """Removes the files of all ledgers.

    Raises:
        StorageError: the disk refused.
    """
    with durable.storage("removing the kept pages of ledgers"):
        for directory in (repository.store_dir / DIRECTORY).glob("*"):
            _remove(directory)


def _remove(directory: Path) -> None:
    for path in directory.glob("*"):
        path.unlink(missing_ok=True)


def _holds(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except FileNotFoundError:
        return False
