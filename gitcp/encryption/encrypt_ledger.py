"""Encrypts ledger commits, oldest first (docs/format.md, 19).

Each ledger commit has an encrypted commit of its own, so that lines grow and join there as
they do here. Ledger commits that are encrypted together share a ciphertext, because there are
two for each step.
"""

from collections.abc import Iterator, Mapping, Sequence

from gitcp.encryption.age import Recipients
from gitcp.errors import CorruptError, EncryptionError
from gitcp.format import encrypted, tree
from gitcp.format.encrypted_ledger import (
    RECORD,
    SHARED,
    EncryptedPage,
    HeldPage,
    encode_page_commit,
    page_files,
)
from gitcp.format.ledger import ledger_trailers
from gitcp.format.tree import FILE, Entry
from gitcp.git.objects import BLOB, COMMIT, TREE
from gitcp.git.transaction import Transaction


class PageEncryptor:
    """Makes encrypted commits within a transaction; one for each ledger commit."""

    def __init__(self, opened: Transaction, recipients: Recipients) -> None:
        self._opened = opened
        self._objects = opened.objects
        self._recipients = recipients
        self._made: dict[bytes, bytes] = {}

    def encrypt(self, component: str, tip: str, known: Mapping[str, str]) -> str:
        """Returns the encrypted commit of a ledger commit; `known` has those before it.

        Raises:
            CorruptError: a ledger commit cannot be read.
            EncryptionError: a ledger commit cannot be encrypted.
        """
        given = {bytes.fromhex(one): bytes.fromhex(form) for one, form in known.items()}
        # An encrypted commit that another push has noted meanwhile takes precedence.
        forms = self._made | given
        for batch in self._batches(self._new(tip, forms)):
            files = [file for oid in batch for file in self._files(oid)]
            record = self._cipher(component, files)
            root = self._opened.add_object(
                TREE, tree.encode({RECORD: Entry(FILE, record)})
            )
            for oid in batch:
                self._made[oid] = forms[oid] = self._form(component, root, oid, forms)
        return forms[bytes.fromhex(tip)].hex()

    def _new(self, tip: str, forms: Mapping[bytes, bytes]) -> list[bytes]:
        """Returns the ledger commits that are not encrypted yet, each after its parents."""
        order: list[bytes] = []
        met: set[bytes] = set()
        ahead = [(bytes.fromhex(tip), False)]
        while ahead:
            oid, below_done = ahead.pop()
            if below_done:
                order.append(oid)
            elif oid not in forms and oid not in met:
                met.add(oid)
                ahead.append((oid, True))
                parents = self._objects.commit(oid).parents
                ahead += [(parent, False) for parent in reversed(parents)]
        return order

    def _batches(self, order: Sequence[bytes]) -> Iterator[list[bytes]]:
        """Yields the ledger commits that will share a ciphertext."""
        batch: list[bytes] = []
        size = 0
        for oid in order:
            more = self._size(oid)
            if batch and size + more > SHARED:
                yield batch
                batch, size = [], 0
            batch.append(oid)
            size += more
        if batch:
            yield batch

    def _size(self, oid: bytes) -> int:
        entries = self._objects.tree(self._objects.commit(oid).tree)
        sizes = [self._objects.header(one.oid)[1] for one in entries.values()]
        size = self._objects.header(oid)[1] + sum(sizes)
        if size > encrypted.RECORD_LIMIT:
            raise _large(f"a page of it has {size:,} bytes")
        return size

    def _files(self, oid: bytes) -> list[tuple[bytes, bytes]]:
        raw = self._objects.read(oid, COMMIT)
        entries = self._objects.tree(self._objects.commit(oid).tree)
        values = {name: self._objects.blob(one.oid) for name, one in entries.items()}
        return page_files(oid.hex(), HeldPage(raw, values))

    def _cipher(self, component: str, files: list[tuple[bytes, bytes]]) -> bytes:
        try:
            plain = encrypted.encode_record(component, files)
        except ValueError as exc:
            raise _large(str(exc)) from exc
        return self._opened.add_object(BLOB, self._recipients.encrypt(plain))

    def _form(
        self, component: str, root: bytes, oid: bytes, forms: Mapping[bytes, bytes]
    ) -> bytes:
        page = self._objects.commit(oid)
        said = ledger_trailers(page)
        if said is None or said.session != component:
            raise CorruptError(
                f"{oid.hex()} is not a page of this ledger", hint="run `gitcp verify`"
            )
        raw = encode_page_commit(
            root,
            [forms[parent] for parent in page.parents],
            page.epoch,
            EncryptedPage(component, said.last, oid.hex()),
        )
        return self._opened.add_object(COMMIT, raw)


def _large(why: str) -> EncryptionError:
    return EncryptionError(
        f"the ledger of steps cannot be encrypted: {why}",
        hint="a record may hold 128 MiB; push other sessions by name",
    )
