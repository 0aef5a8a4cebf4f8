"""Decrypts what a pull fetched, and refuses plaintext where it must be encrypted."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from gitcp.encryption.age import Identities
from gitcp.encryption.bounded_reader import Opening
from gitcp.encryption.decrypt import Decryptor
from gitcp.encryption.decrypt_ledger import PageDecryptor
from gitcp.encryption.quarantine import Bounds
from gitcp.errors import (
    EncryptionError,
    GitcpError,
    PlaintextError,
    StorageError,
    TransferError,
)
from gitcp.git.objects import COMMIT, Objects
from gitcp.git.repository import Repository
from gitcp.project.workspace import Workspace
from gitcp.sync.encrypted_refs import Forms, said_by
from gitcp.sync.encrypting import recipients_of
from gitcp.sync.ledgers import NO_BRANCH
from gitcp.sync.validate import Fault, Judge, Key

# These are about the pull, not about one branch of it.
_ABOUT_ALL = (TransferError, StorageError)
# No form is as large: nothing larger has to be read to know that it is none.
_LARGEST = 4 * 1024 * 1024


class Receiving:
    """Decrypts what a pull fetched."""

    def __init__(self, workspace: Workspace, remote: str) -> None:
        self._workspace = workspace
        self._forms = Forms(workspace, remote)
        self._due = bool(recipients_of(workspace))
        self._there: dict[Key, str] = {}

    def seen(self, there: Mapping[Key, str]) -> dict[Key, str]:
        """Takes what a remote has; returns what that stands for, where that is known."""
        self._there |= there
        return self._forms.stand_for(there)

    def tips(self, sessions: set[str]) -> frozenset[str]:
        """Returns the forms that are here of some sessions."""
        return frozenset(
            oid for key, oid in self._forms.tips.items() if key[0] in sessions
        )

    def open(
        self,
        quarantine: Repository,
        tips: Mapping[Key, str],
        court: Judge,
        bounds: Bounds,
    ) -> tuple[dict[Key, str], dict[Key, Fault]]:
        """Returns the commits that tips stand for, and what is wrong with the others.

        Ledgers go by their keys. A tip that is not encrypted stands for itself, unless it
        should be.

        Raises:
            TransferError: the plaintext exceeds a limit.
        """
        plain: dict[Key, str] = {}
        bad: dict[Key, Fault] = {}
        for key, oid in tips.items():
            _, fault = court.line(oid) if key[1] != NO_BRANCH else ([], None)
            if fault is not None:
                bad[key] = fault
        left = {key: oid for key, oid in tips.items() if key not in bad}
        objects = quarantine.objects
        locked = {key for key, oid in left.items() if _is_form(objects, oid)}
        # If any part of a session is encrypted, all of it must be.
        due = {key[0] for key in (*self._forms.tips, *locked)}
        opener = _Opener(self._workspace, self._forms, quarantine, locked, bounds)
        with closing(opener):
            for key, oid in left.items():
                found: str | Fault = oid
                if key in locked:
                    found = opener.open(key, oid)
                elif self._due or key[0] in due:
                    found = _unencrypted(key)
                if isinstance(found, Fault):
                    bad[key] = found
                else:
                    plain[key] = found
            opener.flush()
        return plain, bad

    def note(
        self, key: Key, plain: str, remember: Callable[[str, str | None, str], None]
    ) -> None:
        """Notes, by `remember`, the form that a branch has there now."""
        form = self._there[key]
        if form != plain and self._forms.plain(key, form) is None:
            remember(self._forms.ref(key), self._forms.tips.get(key), form)


class _Opener:
    """Opens what is `locked`, with the keys that are here."""

    def __init__(
        self,
        workspace: Workspace,
        forms: Forms,
        quarantine: Repository,
        locked: Iterable[Key],
        bounds: Bounds,
    ) -> None:
        self._workspace = workspace
        self._forms = forms
        self._quarantine = quarantine
        self._sessions = {key[0] for key in locked}
        self._bounds = bounds
        self._opening: Opening | None = None
        self._branches: Decryptor | None = None
        self._pages: PageDecryptor | None = None

    def open(self, key: Key, form: str) -> str | Fault:
        """Returns the commit that a form stands for, or what is wrong with it.

        Raises:
            TransferError: the plaintext exceeds a limit.
        """
        at = ""
        try:
            opening = self._opened()
            if key[1] == NO_BRANCH:
                at = "the ledger of its steps: "
                if self._pages is None:
                    self._pages = PageDecryptor(opening, self._known(Forms.of_ledger))
                return self._pages.open(key[0], form)
            if self._branches is None:
                self._branches = Decryptor(opening, self._known(Forms.of_session))
            return self._branches.open(form)
        except _ABOUT_ALL:
            raise
        except GitcpError as exc:
            if key[1] != NO_BRANCH and self._branches is not None and self._branches.at:
                at = f"{self._branches.at}: "
            error = type(exc) if isinstance(exc, EncryptionError) else None
            return Fault(f"{at}{exc.message}", error=error, hint=exc.hint)

    def _opened(self) -> Opening:
        if self._opening is None:
            settings = self._workspace.settings.sharing
            identities = Identities(settings.identity, top=self._workspace.top)
            self._opening = Opening(self._quarantine, identities, self._bounds)
        return self._opening

    def _known(self, of: Callable[[Forms, str], dict[str, str]]) -> dict[str, str]:
        known: dict[str, str] = {}
        for session in self._sessions:
            known |= of(self._forms, session)
        return known

    def flush(self) -> None:
        """Makes what was opened readable in the quarantine."""
        if self._opening is not None:
            self._opening.flush()

    def close(self) -> None:
        """Discards what was not."""
        if self._opening is not None:
            self._opening.close()


def _is_form(objects: Objects, oid: str) -> bool:
    raw = bytes.fromhex(oid)
    kind, size = objects.header(raw)
    return (
        kind == COMMIT and size <= _LARGEST and said_by(objects.commit(raw)) is not None
    )


def _unencrypted(key: Key) -> Fault:
    what = "the ledger of its steps" if key[1] == NO_BRANCH else "it"
    return Fault(
        f"{what} came unencrypted, where it has to be encrypted",
        error=PlaintextError,
        hint="do not use it; ask its author: it was replaced, or pushed without"
        " gitcp.encryptTo",
    )
