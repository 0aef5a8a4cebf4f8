"""Caches ledger commits ("pages") in files beside the store: derived data (ADR 0120).

They save reading a commit for each record. The reader checks that the present ledger
continues from the last cached one.
"""

import hmac
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.format.ledger import ABOUT_STEPS, INTENT, LedgerCommit, Record, Undo
from gitcp.git.repository import Repository
from gitcp.ledger.signing import RecordSigner
from gitcp.names import encode

DIRECTORY = "pages"
# Ledger commits in a file, or a few more; at most so many are read one by one.
_PAGES = 1024
# Bytes of all files of a ledger.
_MOST = 256 << 20
_MAC = sha256().digest_size
# A gitcp that knows more fields must read them from the ledger, not from these files.
_FIELDS = (LedgerCommit._fields, Record.__struct_fields__, Undo.__struct_fields__)
_HEAD = b"gitcp-pages 2 %s\n" % sha256(repr(_FIELDS).encode()).hexdigest().encode()


class Index(msgspec.Struct, array_like=True, frozen=True):
    """The index of a file's ledger commits, to read only some of them.

    `page` is the oid of the last one, and `last` the number of its last record. `scopes`
    has one entry for each: a scope if it is only about steps in that scope that began in
    this file, else None. `scopes` is empty if the commits are not one line.
    """

    page: str
    last: int
    branches: tuple[str, ...]
    scopes: tuple[str | None, ...]


class Kept(NamedTuple):
    """Some cached ledger commits; the cache ends with `page` and the record `last`."""

    pages: list[LedgerCommit]
    branches: set[str]
    page: str
    last: int


class PageCache:
    """Files of consecutive ledger commits, each sealed over the seal before it.

    The key is this user's. For use while the ledger's log is held. A file that is damaged,
    or that another user wrote, is not read, nor are those after it.
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
        """Resets the state in memory, because the ledger is another now."""
        self._kept: list[bytes] = []
        self._count = self._size = 0
        self._page = ""

    def read(self) -> list[LedgerCommit]:
        """Returns the first ledger commits, as far as they are cached."""
        pages: list[LedgerCommit] = []
        for _, text in self._files():
            pages += _PAGE.decode_lines(text)
            self._count = len(pages)
        return pages

    def select(self, wanted: Callable[[str], bool]) -> Kept | None:
        """Returns the cached ledger commits about steps in scopes that are wanted.

        Also those without one scope. None if the cached ones are not one line, or there
        are none. After this, `keep` takes only those that follow.
        """
        pages: list[LedgerCommit] = []
        branches = set[str]()
        index = None
        for index, text in self._files():
            if not index.scopes:
                return None
            branches.update(index.branches)
            lines = text.split(b"\n")
            for scope, line in zip(index.scopes, lines, strict=False):
                if scope is None or wanted(scope):
                    pages.append(_PAGE.decode(line))
        if index is None:
            return None
        return Kept(pages, branches, index.page, index.last)

    def _files(self) -> Iterator[tuple[Index, bytes]]:
        """Yields the index and the lines of each file, as long as the seals are valid."""
        self.forget()
        for number in count():
            try:
                raw = self._path(number).read_bytes()
            except OSError:
                # The file is missing or not readable: read the ledger from git instead.
                return
            seal, text = raw[:_MAC], raw[_MAC:]
            ours = self._seal(text) if text.startswith(_HEAD) else None
            if ours is None or not hmac.compare_digest(seal, ours):
                return
            head, _, lines = text[len(_HEAD) :].partition(b"\n")
            index = _INDEX.decode(head)
            self._note(seal, index.page, len(raw))
            yield index, lines

    def is_due(self, pages: Sequence[LedgerCommit]) -> bool:
        """Whether there are enough commits for one more file; `pages` as in `keep`."""
        return self._end(pages) is not None

    def keep(self, pages: Sequence[LedgerCommit]) -> None:
        """Writes ledger commits that are not cached yet, at most one file.

        `pages` are all of them, or after `select` all that follow the cached ones.
        """
        end = self._end(pages)
        if end is None:
            return
        new = pages[self._count : end]
        lines = _ENCODER.encode_lines(new)
        text = _HEAD + _ENCODER.encode(_index(self._page, new)) + b"\n" + lines
        try:
            _PAGE.decode_lines(lines)
        except msgspec.MsgspecError:
            # A value holds something that msgspec refuses, such as an escaped lone surrogate.
            self._size = _MOST + 1
            return
        seal = self._seal(text, create=True)
        assert seal is not None
        path = self._path(len(self._kept))
        try:
            self._repository.make_directory(path.parent)
            # All processes write the same content.
            if not _holds(path, seal + text):
                durable.replace(path, seal + text, sync=False)
        except OSError:
            # The step's record matters more: without the cache, only reading takes longer.
            self._size = _MOST + 1
            return
        self._note(seal, new[-1].oid, len(text))
        self._count = end

    def remove(self) -> None:
        """Removes the files.

        Raises:
            StorageError: the disk refused.
        """
        self.forget()
        with durable.storage("removing the kept pages of a ledger"):
            _remove(self._directory)

    def _end(self, pages: Sequence[LedgerCommit]) -> int | None:
        """Returns the end of the next file: a ledger commit that reaches all before it."""
        if len(pages) - self._count < _PAGES or self._size > _MOST:
            return None
        heads = {self._page} if self._page else set[str]()
        for number, page in enumerate(pages[self._count :], 1):
            heads.difference_update(page.parents)
            heads.add(page.oid)
            if number >= _PAGES and len(heads) == 1:
                return self._count + number
        return None

    def _note(self, seal: bytes, page: str, size: int) -> None:
        self._kept.append(seal)
        self._page = page
        self._size += size

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:06}"

    def _seal(self, text: bytes, *, create: bool = False) -> bytes | None:
        before = self._kept[-1] if self._kept else b""
        whole = self._session.encode() + b"\n" + before + text
        return self._signer.seal_file(whole, create=create)


_ENCODER = msgspec.json.Encoder()
_PAGE = msgspec.json.Decoder(LedgerCommit)
_INDEX = msgspec.json.Decoder(Index)


def _index(before: str, pages: Sequence[LedgerCommit]) -> Index:
    """Returns the index of a file of ledger commits; `before` is the one before them."""
    began: dict[str, str] = {}
    scopes: list[str | None] = []
    branches: dict[str, None] = {}
    for page in pages:
        if "".join(page.parents) != before:
            scopes = []
            break
        before = page.oid
        found = set[str | None]()
        for record in page.records:
            branches[record.branch] = None
            if record.kind == INTENT:
                began.setdefault(record.id, record.scope)
            about = record.kind in ABOUT_STEPS
            found.add(began.get(record.id) if about else None)
        scopes.append(found.pop() if len(found) == 1 else None)
    last = pages[-1]
    return Index(last.oid, last.records[-1].n, tuple(branches), tuple(scopes))


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
