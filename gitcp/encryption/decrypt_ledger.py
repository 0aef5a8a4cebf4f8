"""Decrypts encrypted ledger commits in quarantine (docs/format.md, 19).

The result is exactly the commits that were encrypted, or an error.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from gitcp.encryption.bounded_reader import Opening, refuse
from gitcp.format import commit as commits
from gitcp.format import tree
from gitcp.format.encrypted_ledger import (
    RECORD,
    EncryptedPage,
    HeldPage,
    encrypted_page_of,
    pages_in,
)
from gitcp.format.ledger import ledger_trailers
from gitcp.format.tree import FILE, Entry
from gitcp.git.objects import BLOB, COMMIT, TREE

# An encrypted commit and its tree have a few hundred bytes.
_SMALL = 64 * 1024
# Decrypted records up to this size are cached: the ledger commits of one record follow each
# other, and those of two lines alternate.
_KEPT = 32 * 1024 * 1024


class _Form(NamedTuple):
    commit: commits.Commit
    said: EncryptedPage


class PageDecryptor:
    """Decrypts encrypted commits in a quarantine, and writes the results beside them.

    `known` has the ledger commits for encrypted commits that were decrypted, or made, here
    before.
    """

    def __init__(self, opening: Opening, known: Mapping[str, str]) -> None:
        self._opening = opening
        self._objects = opening.objects
        self._plain = {
            bytes.fromhex(form): bytes.fromhex(plain) for form, plain in known.items()
        }
        self._records: OrderedDict[bytes, tuple[int, dict[str, HeldPage]]] = (
            OrderedDict()
        )

    def open(self, component: str, tip: str) -> str:
        """Returns the ledger commit of an encrypted commit; decrypts its history, too.

        Raises:
            NoKeyError: no key fits.
            CorruptError: the encrypted commit was changed, or gitcp did not make it.
            TransferError: the plaintext exceeds a limit.
        """
        forms: dict[bytes, _Form] = {}
        ahead = [(bytes.fromhex(tip), False)]
        while ahead:
            oid, below_done = ahead.pop()
            if below_done:
                self._plain[oid] = self._one(component, forms[oid])
                continue
            plain = self._plain.get(oid)
            if oid in forms or (plain is not None and self._opening.there(plain)):
                continue
            forms[oid] = self._form(oid)
            ahead.append((oid, True))
            parents = forms[oid].commit.parents
            ahead += [(parent, False) for parent in reversed(parents)]
        return self._plain[bytes.fromhex(tip)].hex()

    def _form(self, oid: bytes) -> _Form:
        if self._is_small(oid, COMMIT):
            commit = self._objects.commit(oid)
            said = encrypted_page_of(commit)
            if said is not None:
                return _Form(commit, said)
        raise refuse(f"{oid.hex()[:12]}, before it, is not encrypted")

    def _is_small(self, oid: bytes, kind: str) -> bool:
        found, size = self._objects.header(oid)
        return found == kind and size <= _SMALL

    def _one(self, component: str, form: _Form) -> bytes:
        """Checks that all parts belong together, and keeps the ledger commit."""
        commit, said = form
        if said.session != component:
            raise refuse("a page of it is of another session")
        held = self._record(component, commit.tree).get(said.plain)
        kind = self._objects.form
        if held is None or kind.oid(COMMIT, held.raw).hex() != said.plain:
            raise refuse("a record in it does not hold the page that it stands for")
        try:
            page = commits.parse_commit(held.raw, kind.size)
        except ValueError as exc:
            raise refuse("a record in it holds no page") from exc
        trailers = ledger_trailers(page)
        if trailers is None or (trailers.session, trailers.last) != (
            said.session,
            said.last,
        ):
            raise refuse("its message does not match its content")
        if page.parents != tuple(self._plain[parent] for parent in commit.parents):
            raise refuse("the page before it is not the one that was there")
        entries = {
            name: Entry(FILE, self._opening.add(BLOB, data))
            for name, data in held.values.items()
        }
        if self._opening.add(TREE, tree.encode(entries)) != page.tree:
            raise refuse("its values are not those that were encrypted")
        return self._opening.add(COMMIT, held.raw)

    def _record(self, component: str, root: bytes) -> dict[str, HeldPage]:
        kept = self._records.get(root)
        if kept is not None:
            self._records.move_to_end(root)
            return kept[1]
        entries = self._objects.tree(root) if self._is_small(root, TREE) else {}
        entry = entries.get(RECORD)
        if entry is None or len(entries) != 1:
            raise refuse("holds something that is not encrypted")
        files = self._opening.record(entry, component).files
        try:
            pages = pages_in(files)
        except ValueError as exc:
            raise refuse(f"a record in it cannot be read: {exc}") from exc
        self._records[root] = sum(map(len, files.values())), pages
        while len(self._records) > 1 and self._held() > _KEPT:
            self._records.popitem(last=False)
        return pages

    def _held(self) -> int:
        return sum(size for size, _ in self._records.values())
