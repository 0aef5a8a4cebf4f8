"""Tracks the encrypted commits that a remote has, and what they stand for.

Those that were made for it, or opened from it, are kept below `refs/gitcp/e/<remote>/`,
those of ledgers below `refs/gitcp/efx/<remote>/`.
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
from gitcp.git.objects import COMMIT, TREE, Objects
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import encode
from gitcp.project.workspace import Workspace
from gitcp.sync.ledgers import NO_BRANCH, key_of
from gitcp.sync.validate import Key


def said_by(commit: Commit) -> Encrypted | EncryptedPage | None:
    """Returns what a form says it stands for, or None for any other commit."""
    return encrypted_of(commit) or encrypted_page_of(commit)


class _Form(NamedTuple):
    oid: str
    commit: Commit
    said: Encrypted | EncryptedPage


def _below(objects: Objects, tip: str) -> Iterator[_Form]:
    """Yields the forms, or notes of forms, that a tip reaches, the tip first."""
    met: set[str] = set()
    ahead = [tip]
    while ahead:
        oid = ahead.pop()
        if oid in met:
            continue
        met.add(oid)
        commit = objects.commit(bytes.fromhex(oid))
        said = said_by(commit)
        if said is not None:
            yield _Form(oid, commit, said)
            ahead += [parent.hex() for parent in reversed(commit.parents)]


class Forms:
    """The encrypted forms that one remote has, or is to have, as far as known here.

    Those of a ledger go by its key (`ledgers.key_of`).
    """

    def __init__(self, workspace: Workspace, remote: str) -> None:
        self._objects = workspace.repository.objects
        self._refs = workspace.repository.refs
        self._branches = f"{layout.ENCRYPTED}{encode(remote)}/"
        self._ledgers = f"{layout.ENCRYPTED_EFFECTS}{encode(remote)}/"
        self.tips: dict[Key, str] = {}
        self.read()

    def read(self) -> None:
        """Reads the refs."""
        self.tips = {}
        for ref, oid in self._refs.list(self._branches).items():
            session, _, branch = ref.removeprefix(self._branches).partition("/")
            self.tips[Key(session, branch)] = oid
        for ref, oid in self._refs.list(self._ledgers).items():
            self.tips[key_of(ref.removeprefix(self._ledgers))] = oid

    def ref(self, key: Key) -> str:
        """Returns the ref of the form of a branch or ledger."""
        if key[1] == NO_BRANCH:
            return f"{self._ledgers}{key[0]}"
        return f"{self._branches}{key[0]}/{key[1]}"

    def line(self, key: Key) -> Iterator[tuple[str, str]]:
        """Yields each form of a branch or ledger and what it stands for, the tip first."""
        tip = self.tips.get(key)
        for one in _below(self._objects, tip) if tip is not None else ():
            yield one.said.form or one.oid, one.said.plain

    def plain(self, key: Key, form: str) -> str | None:
        """Returns the commit that a form of a branch stands for, if it is known here."""
        newest = next(self.line(key), None)
        if newest is None or newest[0] == form:
            return newest[1] if newest is not None else None
        # One that was never here is in no line; of notes only the line can tell.
        if not self.noted(key) and not self._objects.exists(bytes.fromhex(form)):
            return None
        return next((plain for oid, plain in self.line(key) if oid == form), None)

    def stand_for(self, there: Mapping[Key, str]) -> dict[Key, str]:
        """Returns what a remote's tips stand for; themselves where that is not known."""
        return {key: self.plain(key, oid) or oid for key, oid in there.items()}

    def noted(self, key: Key) -> bool:
        """Whether the forms of a branch are not here, but notes of them."""
        newest = next(self.line(key), None)
        return newest is not None and newest[0] != self.tips[key]

    def of_session(self, session: str) -> dict[str, str]:
        """Returns all forms of a session's branches that are here; what they stand for."""
        found: dict[str, str] = {}
        for key in self.tips:
            if key[0] == session and key[1] != NO_BRANCH and not self.noted(key):
                for form, plain in self.line(key):
                    if form in found:
                        break
                    found[form] = plain
        return found

    def of_ledger(self, session: str) -> dict[str, str]:
        """Returns all forms of a session's ledger that are here; what they stand for."""
        key = key_of(session)
        return {} if self.noted(key) else dict(self.line(key))


def forget(workspace: Workspace, old: Collection[str]) -> None:
    """Replaces the encrypted commits of purged commits by notes of what stood for what.

    A form has the files as they were, and a ciphertext can be read with any recipient's
    key. The notes record what a remote has until it is replaced there.

    Raises:
        StorageError: the disk refused.
    """
    repository = workspace.repository
    refs = repository.refs.list(layout.ENCRYPTED)
    refs |= repository.refs.list(layout.ENCRYPTED_EFFECTS)
    with transaction(repository) as opened:
        empty = opened.add_object(TREE, b"")
        for ref, tip in refs.items():
            forms = {one.oid: one for one in _below(repository.objects, tip)}
            if any(one.said.plain in old for one in forms.values()):
                opened.publish(ref, expect=tip, new=_notes(opened, empty, tip, forms))


def _notes(
    opened: Transaction, empty: bytes, tip: str, forms: Mapping[str, _Form]
) -> bytes:
    """Returns the note of a form; before it come those of all that it reaches."""
    notes: dict[str, bytes] = {}
    ahead = [tip]
    while ahead:
        oid, commit, said = forms[ahead[-1]]
        below = [one.hex() for one in commit.parents if one.hex() in forms]
        missing = [one for one in below if one not in notes]
        ahead += missing
        if missing:
            continue
        parents = [notes[one] for one in below]
        if isinstance(said, EncryptedPage):
            page = said._replace(form=said.form or oid)
            raw = encode_page_commit(empty, parents, commit.epoch, page)
        else:
            noted = said._replace(form=said.form or oid)
            before = parents[0] if parents else None
            raw = encode_commit(empty, before, commit.epoch, noted)
        notes[oid] = opened.add_object(COMMIT, raw)
        ahead.pop()
    return notes[tip]
