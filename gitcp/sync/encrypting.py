"""Decides which commits a push encrypts, and to which recipients; encrypts them.

Checkpoints and ledgers stay as they are here. A remote has their encrypted commits.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from gitcp.encryption.age import Recipients
from gitcp.encryption.encrypt import Encryptor
from gitcp.encryption.encrypt_ledger import PageEncryptor
from gitcp.errors import BranchMovedError, EncryptionError, PlaintextError
from gitcp.format.layout import BranchKey, LedgerKey, RefKey
from gitcp.git.remote import Update
from gitcp.git.transaction import Transaction, transaction
from gitcp.project.workspace import Workspace
from gitcp.sync.encrypted_refs import EncryptedRefs, encrypted_header

OFF = "off"
PLAIN_THERE = "it is there unencrypted"
_TRIES = 20


class Outgoing(NamedTuple):
    """An update as it is sent; `replaces` if it is not a fast-forward of the commit there."""

    update: Update
    replaces: bool = False


class _Encryptors(NamedTuple):
    """The encryptors of checkpoints and ledger commits, within one transaction."""

    txn: Transaction
    checkpoints: Encryptor
    pages: PageEncryptor


def recipients_of(workspace: Workspace) -> tuple[str, ...]:
    """Returns the recipients that the settings name."""
    given = workspace.settings.sharing.encrypt_to
    return () if given == (OFF,) else given


@contextmanager
def encryption_for(
    workspace: Workspace, remote: str, *, reencrypt: bool
) -> "Iterator[PushEncryption]":
    """Opens the encryption of a push to a remote; encrypted objects are held until it ends.

    Raises:
        EncryptionError: a key is invalid, the library is missing, or there are no
            recipients to `reencrypt` to.
    """
    encrypted = EncryptedRefs(workspace, remote)
    given = recipients_of(workspace)
    if not given:
        if reencrypt:
            raise EncryptionError(
                "gitcp.encryptTo names no recipients",
                hint="`git config --add gitcp.encryptTo KEY`",
            )
        yield PushEncryption(workspace, remote, encrypted, None, reencrypt=False)
        return
    recipients = Recipients(given, top=workspace.top)
    with transaction(workspace.repository) as txn:
        encryptors = _Encryptors(
            txn,
            Encryptor(workspace.store, txn, recipients),
            PageEncryptor(txn, recipients),
        )
        yield PushEncryption(
            workspace, remote, encrypted, encryptors, reencrypt=reencrypt
        )


class PushEncryption:
    """The encryption of a push to one remote; encrypts nothing if there are no recipients."""

    def __init__(
        self,
        workspace: Workspace,
        remote: str,
        encrypted: EncryptedRefs,
        encryptors: _Encryptors | None,
        *,
        reencrypt: bool,
    ) -> None:
        """Use `encryption_for`."""
        self._workspace = workspace
        self._objects = workspace.repository.objects
        self._remote = remote
        self._encrypted = encrypted
        self._encryptors = encryptors
        self.reencrypt = reencrypt
        # Commits encrypted in this push: all addresses of a remote get the same.
        self._again: dict[tuple[RefKey, str], str] = {}

    def stand_for(self, advertised: Mapping[RefKey, str]) -> dict[RefKey, str]:
        """Returns the commits that a remote's tips stand for, or the tips if unknown."""
        self._encrypted.read()
        return self._encrypted.stand_for(advertised)

    def refuse_plaintext(self, keys: Iterable[RefKey]) -> None:
        """Raises if plaintext would be sent where encryption is required.

        Raises:
            PlaintextError: plaintext would be sent.
        """
        tips = self._encrypted.tips
        if self._encryptors is not None or not tips:
            return
        off = self._workspace.settings.sharing.encrypt_to == (OFF,)
        sessions = {key.session for key in tips}
        if any(not off or key.session in sessions for key in keys):
            raise PlaintextError(
                f"{self._remote} has encrypted sessions, and gitcp.encryptTo names no"
                " recipients: nothing was sent",
                hint="`git config --add gitcp.encryptTo KEY`, once for each who is to"
                f" read it; `gitcp config encryptTo {OFF}` sends sessions that are not"
                " encrypted there as they are",
            )

    def is_plaintext(self, advertised: str | None) -> bool:
        """Whether a tip of the remote is unencrypted although it should be encrypted."""
        if self._encryptors is None or advertised is None:
            return False
        oid = bytes.fromhex(advertised)
        return (
            self._objects.exists(oid)
            and encrypted_header(self._objects.commit(oid)) is None
        )

    def encrypt(
        self, updates: Mapping[RefKey, Update], advertised: Mapping[RefKey, str]
    ) -> dict[RefKey, Outgoing]:
        """Returns what to send in place of updates; `advertised` are the remote's tips.

        An encrypted commit is made once, and noted before it is sent. So another push,
        after an interruption for example, sends the same one. `sent` notes those that
        replace a commit there.

        Raises:
            EncryptionError: something cannot be encrypted.
        """
        encryptors = self._encryptors
        if encryptors is None:
            return {key: Outgoing(update) for key, update in updates.items()}
        outgoing: dict[RefKey, Outgoing] = {}
        for key, update in updates.items():
            form, replaces = self._form(encryptors, key, update)
            sent = Update(update.ref, advertised.get(key), form)
            outgoing[key] = Outgoing(sent, replaces)
        return outgoing

    def sent(self, key: RefKey, outgoing: Outgoing) -> None:
        """Notes that the remote has the encrypted commit that a push sent."""
        if self._encryptors is None or not outgoing.replaces:
            return
        with suppress(BranchMovedError):
            self._encryptors.txn.publish(
                key.encrypted_ref(self._remote),
                expect=self._encrypted.tips.get(key),
                new=bytes.fromhex(outgoing.update.new),
            )

    def _form(
        self, encryptors: _Encryptors, key: RefKey, update: Update
    ) -> tuple[str, bool]:
        """Returns the encrypted commit for an update, and whether `sent` has to note it."""
        ref = key.encrypted_ref(self._remote)
        for _ in range(_TRIES):
            standing = self._encrypted.tips.get(key)
            form = self._made(encryptors, key, update)
            if form == standing:
                return form, False
            encryptors.txn.store()
            if standing is not None and not self._continues(form, standing):
                # Keep the old ref until the push succeeds: it records what the remote has.
                return form, True
            try:
                encryptors.txn.publish(ref, expect=standing, new=bytes.fromhex(form))
            except BranchMovedError:
                # Another push of this repository was faster: use the commit that it made.
                self._encrypted.read()
                continue
            self._encrypted.tips[key] = form
            return form, False
        raise BranchMovedError(f"{ref} kept moving", hint="run the command again")

    def _made(self, encryptors: _Encryptors, key: RefKey, update: Update) -> str:
        if self.reencrypt and (form := self._again.get((key, update.new))):
            return form
        if isinstance(key, LedgerKey):
            known = self._known_pages(key, update)
            form = encryptors.pages.encrypt(key.session, update.new, known)
        else:
            known = self._known(encryptors.checkpoints, key, update)
            form = encryptors.checkpoints.encrypt(update.new, known)
        self._again[key, update.new] = form
        return form

    def _continues(self, form: str, standing: str) -> bool:
        """Whether an encrypted commit descends from the one that the ref points to."""
        met = {form}
        ahead = deque(met)
        while ahead:
            oid = ahead.popleft()
            if oid == standing:
                return True
            commit = self._objects.commit(bytes.fromhex(oid))
            if encrypted_header(commit) is not None:
                parents = map(bytes.hex, commit.parents)
                new = [parent for parent in parents if parent not in met]
                met.update(new)
                ahead += new
        return False

    def _known(
        self, encryptor: Encryptor, key: BranchKey, update: Update
    ) -> dict[str, str]:
        """Returns possible parents of the new encrypted commit, by what they stand for."""
        if self.reencrypt:
            return {}
        encrypted = self._encrypted
        newest = next(encrypted.line(key), None)
        if encrypted.is_tombstone(key):
            newest = None
        if newest is not None and update.old is not None:
            if not self._follows(update.old, update.new):
                # It replaces the branch there, and shares most records with it.
                return encryptor.reuse(reversed(list(encrypted.line(key))))
            if newest[1] == update.old:
                # By far the most frequent case: the branch has grown.
                return {newest[1]: newest[0]}
        known: dict[str, str] = {}
        for form, plain in encrypted.of_session(key.session).items():
            known.setdefault(plain, form)
        if newest is not None:
            # Prefer those of this very branch: the remote's tip is one of them.
            known |= {plain: form for form, plain in encrypted.line(key)}
            encryptor.recall(newest[0])
        return known

    def _follows(self, old: str, new: str) -> bool:
        """Whether the line that ends in `new` holds `old`."""
        store = self._workspace.store
        tip = store.checkpoint(new)
        return tip is not None and any(
            checkpoint.commit == old for checkpoint in store.line(tip)
        )

    def _known_pages(self, key: LedgerKey, update: Update) -> dict[str, str]:
        """Returns possible parents of a new encrypted ledger commit, as `_known` does."""
        if self.reencrypt or self._encrypted.is_tombstone(key):
            return {}
        newest = next(self._encrypted.line(key), None)
        if newest is None:
            return {}
        if self._grew_alone(update.new, newest[1]):
            return {newest[1]: newest[0]}
        return {plain: form for form, plain in self._encrypted.line(key)}

    def _grew_alone(self, new: str, old: str) -> bool:
        """Whether there was no join since a ledger commit, so every path leads through it."""
        oid = new
        while oid != old:
            parents = self._objects.commit(bytes.fromhex(oid)).parents
            if len(parents) != 1:
                return False
            oid = parents[0].hex()
        return True
