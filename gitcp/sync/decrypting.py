"""Decrypts fetched commits, and refuses plaintext if it should have been encrypted."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from gitcp.encryption.age import Identities
from gitcp.encryption.bounded_reader import Opening
from gitcp.encryption.decrypt import Decryptor
from gitcp.encryption.decrypt_ledger import PageDecryptor
from gitcp.encryption.quarantine import QuarantineLimits
from gitcp.errors import (
    EncryptionError,
    GitcpError,
    PlaintextError,
    StorageError,
    TransferError,
)
from gitcp.format.layout import LedgerKey, RefKey
from gitcp.git.objects import COMMIT, Objects
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.project.workspace import Workspace
from gitcp.sync.adopt import remember
from gitcp.sync.encrypted_refs import EncryptedRefs, encrypted_header
from gitcp.sync.encrypting import recipients_of
from gitcp.sync.validate import ObjectValidator, Rejection

# These are about the pull, not about one branch of it.
_ABOUT_ALL = (TransferError, StorageError)
# No encrypted commit is larger, so a larger object is ruled out without reading it.
_LARGEST = 4 * 1024 * 1024


class PullDecryption:
    """Decrypts the commits that a pull fetched."""

    def __init__(self, workspace: Workspace, remote: str) -> None:
        self._workspace = workspace
        self._remote = remote
        self._encrypted = EncryptedRefs(workspace, remote)
        self._due = bool(recipients_of(workspace))
        self._advertised: dict[RefKey, str] = {}

    def stand_for(self, there: Mapping[RefKey, str]) -> dict[RefKey, str]:
        """Notes a remote's tips; returns what they stand for, or the tips if unknown."""
        self._advertised |= there
        return self._encrypted.stand_for(there)

    def tips(self, sessions: set[str]) -> frozenset[str]:
        """Returns the tips of the encrypted commits that are here of some sessions."""
        return frozenset(
            oid for key, oid in self._encrypted.tips.items() if key.session in sessions
        )

    def open(
        self,
        quarantine: Repository,
        tips: Mapping[RefKey, str],
        validator: ObjectValidator,
        bounds: QuarantineLimits,
    ) -> tuple[dict[RefKey, str], dict[RefKey, Rejection]]:
        """Returns the commits that tips stand for, and what is wrong with the others.

        A tip that is not encrypted stands for itself, unless it should be encrypted.

        Raises:
            TransferError: the plaintext exceeds a limit.
        """
        plain: dict[RefKey, str] = {}
        bad: dict[RefKey, Rejection] = {}
        for key, oid in tips.items():
            if isinstance(key, LedgerKey):
                continue
            _, rejection = validator.line(oid)
            if rejection is not None:
                bad[key] = rejection
        left = {key: oid for key, oid in tips.items() if key not in bad}
        objects = quarantine.objects
        locked = {key for key, oid in left.items() if _is_form(objects, oid)}
        # If any part of a session is encrypted, all of it must be.
        due = {key.session for key in (*self._encrypted.tips, *locked)}
        opener = _Opener(self._workspace, self._encrypted, quarantine, locked, bounds)
        with closing(opener):
            for key, oid in left.items():
                result: str | Rejection = oid
                if key in locked:
                    result = opener.open(key, oid)
                elif self._due or key.session in due:
                    result = _unencrypted(key)
                if isinstance(result, Rejection):
                    bad[key] = result
                else:
                    plain[key] = result
            opener.flush()
        return plain, bad

    def note(self, txn: Transaction, key: RefKey, plain: str) -> None:
        """Notes the encrypted commit that a branch or ledger has there now."""
        form = self._advertised[key]
        if form != plain and self._encrypted.plain(key, form) is None:
            ref = key.encrypted_ref(self._remote)
            remember(txn, ref, self._encrypted.tips.get(key), form)


class _Opener:
    """Decrypts the commits of the `locked` branches and ledgers, with the keys here."""

    def __init__(
        self,
        workspace: Workspace,
        encrypted: EncryptedRefs,
        quarantine: Repository,
        locked: Iterable[RefKey],
        bounds: QuarantineLimits,
    ) -> None:
        self._workspace = workspace
        self._encrypted = encrypted
        self._quarantine = quarantine
        self._sessions = {key.session for key in locked}
        self._bounds = bounds
        self._opening: Opening | None = None
        self._branches: Decryptor | None = None
        self._pages: PageDecryptor | None = None

    def open(self, key: RefKey, form: str) -> str | Rejection:
        """Returns the commit that an encrypted commit stands for, or what is wrong with it.

        Raises:
            TransferError: the plaintext exceeds a limit.
        """
        at = ""
        try:
            opening = self._opened()
            if isinstance(key, LedgerKey):
                at = "the ledger of its steps: "
                if self._pages is None:
                    self._pages = PageDecryptor(
                        opening, self._known(EncryptedRefs.of_ledger)
                    )
                return self._pages.open(key.session, form)
            if self._branches is None:
                self._branches = Decryptor(
                    opening, self._known(EncryptedRefs.of_session)
                )
            return self._branches.open(form)
        except _ABOUT_ALL:
            raise
        except GitcpError as exc:
            if not at and self._branches is not None and self._branches.at:
                at = f"{self._branches.at}: "
            error = type(exc) if isinstance(exc, EncryptionError) else None
            return Rejection(f"{at}{exc.message}", error=error, hint=exc.hint)

    def _opened(self) -> Opening:
        if self._opening is None:
            settings = self._workspace.settings.sharing
            identities = Identities(settings.identity, top=self._workspace.top)
            self._opening = Opening(self._quarantine, identities, self._bounds)
        return self._opening

    def _known(
        self, of: Callable[[EncryptedRefs, str], dict[str, str]]
    ) -> dict[str, str]:
        known: dict[str, str] = {}
        for session in self._sessions:
            known |= of(self._encrypted, session)
        return known

    def flush(self) -> None:
        """Makes decrypted objects readable in the quarantine."""
        if self._opening is not None:
            self._opening.flush()

    def close(self) -> None:
        """Discards decrypted objects that were not flushed."""
        if self._opening is not None:
            self._opening.close()


def _is_form(objects: Objects, oid: str) -> bool:
    raw = bytes.fromhex(oid)
    kind, size = objects.header(raw)
    return (
        kind == COMMIT
        and size <= _LARGEST
        and encrypted_header(objects.commit(raw)) is not None
    )


def _unencrypted(key: RefKey) -> Rejection:
    what = "the ledger of its steps" if isinstance(key, LedgerKey) else "it"
    return Rejection(
        f"{what} came unencrypted, where it has to be encrypted",
        error=PlaintextError,
        hint="do not use it; ask its author: it was replaced, or pushed without"
        " gitcp.encryptTo",
    )
