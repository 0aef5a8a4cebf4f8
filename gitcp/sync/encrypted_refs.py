"""Tracks the encrypted commits that a remote has, and what they stand for.

Those that were made for it, or fetched and decrypted, are kept: those of branches below
`refs/gitcp/e/<remote>/`, those of ledgers below `refs/gitcp/efx/<remote>/`.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from gitcp.format import layout
from gitcp.format.commit import Commit
from gitcp.format.encrypted import Encrypted, encode_commit, encrypted_of
from gitcp.format.encrypted_ledger import (
    EncryptedPage,
    encode_page_commit,
    encrypted_page_of,
)
from gitcp.format.layout import BranchKey, LedgerKey, RefKey
from gitcp.git.objects import COMMIT, TREE, Objects
from gitcp.git.transaction import Transaction, transaction
from gitcp.project.workspace import Workspace
from gitcp.sync import tracking


def encrypted_header(commit: Commit) -> Encrypted | EncryptedPage | None:
    """Returns the header of an encrypted commit or tombstone, or None for any other commit."""
    return encrypted_of(commit) or encrypted_page_of(commit)


class _Form(NamedTuple):
    oid: str
    commit: Commit
    header: Encrypted | EncryptedPage


def _below(objects: Objects, tip: str) -> Iterator[_Form]:
    """Yields the encrypted commits, or tombstones, that a tip reaches, the tip first."""
    met: set[str] = set()
    ahead = [tip]
    while ahead:
        oid = ahead.pop()
        if oid in met:
            continue
        met.add(oid)
        commit = objects.commit(bytes.fromhex(oid))
        header = encrypted_header(commit)
        if header is not None:
            yield _Form(oid, commit, header)
            ahead += [parent.hex() for parent in reversed(commit.parents)]


class EncryptedRefs:
    """The encrypted commits that one remote has, or will be sent, as far as known here."""

    def __init__(self, workspace: Workspace, remote: str) -> None:
        self._objects = workspace.repository.objects
        self._refs = workspace.repository.refs
        self._remote = remote
        self.tips: dict[RefKey, str] = {}
        self.read()

    def read(self) -> None:
        """Reads the refs."""
        self.tips = tracking.encrypted(self._refs, self._remote)

    def line(self, key: RefKey) -> Iterator[tuple[str, str]]:
        """Yields each encrypted commit of a branch or ledger, the tip first.

        Yields its id and that of the commit it stands for.
        """
        tip = self.tips.get(key)
        for form in _below(self._objects, tip) if tip is not None else ():
            yield form.header.form or form.oid, form.header.plain

    def plain(self, key: RefKey, form: str) -> str | None:
        """Returns the commit that an encrypted commit of a branch stands for, if known here."""
        newest = next(self.line(key), None)
        if newest is None or newest[0] == form:
            return newest[1] if newest is not None else None
        # A commit that was never here is in no line. Behind tombstones, only the line tells.
        if not self.is_tombstone(key) and not self._objects.exists(bytes.fromhex(form)):
            return None
        return next((plain for oid, plain in self.line(key) if oid == form), None)

    def stand_for(self, there: Mapping[RefKey, str]) -> dict[RefKey, str]:
        """Returns the commits that a remote's tips stand for, or the tips if unknown."""
        return {key: self.plain(key, oid) or oid for key, oid in there.items()}

    def is_tombstone(self, key: RefKey) -> bool:
        """Whether tombstones replace the encrypted commits of a branch here."""
        newest = next(self.line(key), None)
        return newest is not None and newest[0] != self.tips[key]

    def of_session(self, session: str) -> dict[str, str]:
        """Returns the encrypted commits of a session's branches here, and what they stand for."""
        found: dict[str, str] = {}
        for key in self.tips:
            if (
                isinstance(key, BranchKey)
                and key.session == session
                and not self.is_tombstone(key)
            ):
                for form, plain in self.line(key):
                    if form in found:
                        break
                    found[form] = plain
        return found

    def of_ledger(self, session: str) -> dict[str, str]:
        """Returns the encrypted commits of a session's ledger here, and what they stand for."""
        key = LedgerKey(session)
        return {} if self.is_tombstone(key) else dict(self.line(key))


def forget(workspace: Workspace, old: Collection[str]) -> None:
    """Replaces the encrypted commits of purged commits by tombstones.

    An encrypted commit has the old files, and any recipient's key decrypts its records.
    The tombstones record what a remote has until it is replaced there.

    Raises:
        StorageError: the disk refused.
    """
    repository = workspace.repository
    refs = repository.refs.list(layout.ENCRYPTED)
    refs |= repository.refs.list(layout.ENCRYPTED_EFFECTS)
    with transaction(repository) as txn:
        empty = txn.add_object(TREE, b"")
        for ref, tip in refs.items():
            forms = {form.oid: form for form in _below(repository.objects, tip)}
            if any(form.header.plain in old for form in forms.values()):
                txn.publish(ref, expect=tip, new=_tombstone(txn, empty, tip, forms))


def _tombstone(
    txn: Transaction, empty: bytes, tip: str, forms: Mapping[str, _Form]
) -> bytes:
    """Returns the tombstone of an encrypted commit, above those of all that it reaches."""
    notes: dict[str, bytes] = {}
    ahead = [tip]
    while ahead:
        oid, commit, header = forms[ahead[-1]]
        below = [parent.hex() for parent in commit.parents if parent.hex() in forms]
        missing = [parent for parent in below if parent not in notes]
        ahead += missing
        if missing:
            continue
        parents = [notes[parent] for parent in below]
        if isinstance(header, EncryptedPage):
            page = header._replace(form=header.form or oid)
            raw = encode_page_commit(empty, parents, commit.epoch, page)
        else:
            tombstone = header._replace(form=header.form or oid)
            before = parents[0] if parents else None
            raw = encode_commit(empty, before, commit.epoch, tombstone)
        notes[oid] = txn.add_object(COMMIT, raw)
        ahead.pop()
    return notes[tip]
