"""Encryption for sharing: who it is for, what stands for what, where it is due.

Here checkpoints stay as they are. A remote has their encrypted forms; the forms that
were made for it, or opened from it, are kept below `refs/gitcp/e/<remote>/`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress

from gitcp.errors import (
    BranchMovedError,
    EncryptionError,
    GitcpError,
    PlaintextError,
    StorageError,
    TransferError,
)
from gitcp.format import layout
from gitcp.format.encrypted import encode_commit, encrypted_of
from gitcp.git.objects import COMMIT, TREE
from gitcp.git.remote import Update
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import encode
from gitcp.ops.workspace import Workspace
from gitcp.sharing.age import Identities, Recipients
from gitcp.sharing.decrypt import Decryptor
from gitcp.sharing.encrypt import Encryptor
from gitcp.sharing.quarantine import Bounds
from gitcp.sharing.validate import Fault, Judge, Key

OFF = "off"
PLAIN_THERE = "it is there unencrypted"
PLAIN_STEPS = "it has a ledger of steps, which cannot be encrypted"
_TRIES = 20
# These are about the pull, not about one branch of it.
_ABOUT_ALL = (TransferError, StorageError)


class Forms:
    """The encrypted forms that one remote has, or is to have, as far as known here."""

    def __init__(self, workspace: Workspace, remote: str) -> None:
        self._objects = workspace.repository.objects
        self._refs = workspace.repository.refs
        self.prefix = f"{layout.ENCRYPTED}{encode(remote)}/"
        self.tips: dict[Key, str] = {}
        self.read()

    def read(self) -> None:
        """Reads the refs."""
        self.tips = {}
        for ref, oid in self._refs.list(self.prefix).items():
            session, _, branch = ref.removeprefix(self.prefix).partition("/")
            self.tips[session, branch] = oid

    def ref(self, key: Key) -> str:
        """Returns the ref of a branch's form."""
        return f"{self.prefix}{key[0]}/{key[1]}"

    def line(self, key: Key) -> Iterator[tuple[str, str]]:
        """Yields each form of a branch and the commit it stands for, newest first."""
        oid = self.tips.get(key)
        while oid is not None:
            commit = self._objects.commit(bytes.fromhex(oid))
            said = encrypted_of(commit)
            if said is None:
                return
            yield said.form or oid, said.plain
            oid = commit.parents[0].hex() if commit.parents else None

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
        """Returns all forms of a session that are here, and what they stand for."""
        found: dict[str, str] = {}
        for key in self.tips:
            if key[0] == session and not self.noted(key):
                for form, plain in self.line(key):
                    if form in found:
                        break
                    found[form] = plain
        return found


def forget(workspace: Workspace, old: Collection[str]) -> None:
    """Lets go of forms of commits that are to go; a note of what stood for what stays.

    A form has the files as they were. What a remote has is known by the notes until it
    is replaced there.

    Raises:
        StorageError: the disk refused.
    """
    repository = workspace.repository
    with transaction(repository) as opened:
        empty = opened.add_object(TREE, b"")
        for ref, tip in repository.refs.list(layout.ENCRYPTED).items():
            line = []
            oid: bytes | None = bytes.fromhex(tip)
            while oid is not None:
                commit = repository.objects.commit(oid)
                said = encrypted_of(commit)
                if said is None:
                    break
                line.append((said._replace(form=said.form or oid.hex()), commit.epoch))
                oid = commit.parents[0] if commit.parents else None
            if not any(said.plain in old for said, _ in line):
                continue
            note: bytes | None = None
            for said, epoch in reversed(line):
                raw = encode_commit(empty, note, epoch, said)
                note = opened.add_object(COMMIT, raw)
            assert note is not None
            opened.publish(ref, expect=tip, new=note)


def _recipients(workspace: Workspace) -> tuple[str, ...]:
    given = workspace.settings.sharing.encrypt_to
    return () if given == (OFF,) else given


class Sending:
    """What a push encrypts; nothing, where nobody is named to encrypt to."""

    def __init__(self, workspace: Workspace, remote: str, *, anew: bool) -> None:
        """Refuses what could not be encrypted.

        Raises:
            EncryptionError: a key is none, or there is no library; nothing to encrypt
                `anew` to.
        """
        self._workspace = workspace
        self._remote = remote
        self._forms = Forms(workspace, remote)
        given = _recipients(workspace)
        self.on = bool(given)
        self.anew = anew
        if anew and not given:
            raise EncryptionError(
                "gitcp.encryptTo names nobody to encrypt to",
                hint="`git config --add gitcp.encryptTo KEY`",
            )
        self._recipients = Recipients(given, top=workspace.top) if given else None
        self._opened: Transaction | None = None
        self._encryptor: Encryptor | None = None
        self._there: dict[Key, str] = {}
        self._replacing: dict[Key, str] = {}

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Holds what is encrypted until it is sent."""
        if self._recipients is None:
            yield
            return
        with transaction(self._workspace.repository) as opened:
            self._opened = opened
            self._encryptor = Encryptor(self._workspace.store, opened, self._recipients)
            yield

    def seen(self, there: Mapping[Key, str]) -> dict[Key, str]:
        """Takes what a remote has of the sessions that are pushed.

        Returns what that stands for, where that is known.
        """
        self._there = dict(there)
        self._forms.read()
        return self._forms.stand_for(there)

    def refuse_plaintext(self, keys: Mapping[Key, str]) -> None:
        """Raises where plaintext would go where ciphertext is due.

        Raises:
            PlaintextError: it would.
        """
        tips = self._forms.tips
        if self.on or not tips:
            return
        off = self._workspace.settings.sharing.encrypt_to == (OFF,)
        sessions = {key[0] for key in tips}
        due = sorted({key[0] for key in keys if not off or key[0] in sessions})
        if due:
            raise PlaintextError(
                f"{self._remote} has encrypted sessions, and nothing says here whom to"
                " encrypt to: nothing was sent",
                hint="`git config --add gitcp.encryptTo KEY`, once for each who is to"
                f" read it; `gitcp config encryptTo {OFF}` sends sessions that are not"
                " encrypted there as they are",
            )

    def stands_plain(self, key: Key) -> bool:
        """Whether a remote has a branch unencrypted that is to be encrypted."""
        oid = self._there.get(key)
        if not self.on or oid is None:
            return False
        objects = self._workspace.repository.objects
        raw = bytes.fromhex(oid)
        return objects.exists(raw) and encrypted_of(objects.commit(raw)) is None

    def forms(self, updates: Mapping[Key, Update]) -> dict[Key, Update]:
        """Returns what to send in place of updates.

        A form is made once, and noted before it is sent: a push that was cut off, or
        comes again, sends the same. One that replaces what is there is noted by `sent`.

        Raises:
            EncryptionError: something cannot be encrypted.
        """
        if self._encryptor is None or self._opened is None:
            return dict(updates)
        sent: dict[Key, Update] = {}
        for key, update in updates.items():
            form = self._form(self._opened, self._encryptor, key, update)
            sent[key] = Update(update.ref, self._there.get(key), form)
        return sent

    def _form(
        self, opened: Transaction, encryptor: Encryptor, key: Key, update: Update
    ) -> str:
        for _ in range(_TRIES):
            standing = self._forms.tips.get(key)
            made = encryptor.encrypt(update.new, self._known(encryptor, key, update))
            if made == standing:
                return made
            opened.store()
            if standing is not None and not self._goes_on(made, standing):
                # Until it is there, what stands tells what is.
                self._replacing[key] = made
                return made
            try:
                opened.publish(
                    self._forms.ref(key), expect=standing, new=bytes.fromhex(made)
                )
            except BranchMovedError:
                # Another push of this repository was faster: what it made is used.
                self._forms.read()
                continue
            self._forms.tips[key] = made
            return made
        raise BranchMovedError(
            f"{self._forms.ref(key)} kept moving", hint="run the command again"
        )

    def _goes_on(self, made: str, standing: str) -> bool:
        objects = self._workspace.repository.objects
        oid: str | None = made
        while oid is not None and oid != standing:
            commit = objects.commit(bytes.fromhex(oid))
            more = commit.parents and encrypted_of(commit) is not None
            oid = commit.parents[0].hex() if more else None
        return oid is not None

    def sent(self, key: Key) -> None:
        """Notes that what was to be sent of a branch is there."""
        made = self._replacing.pop(key, None)
        if made is None or self._opened is None:
            return
        with suppress(BranchMovedError):
            self._opened.publish(
                self._forms.ref(key),
                expect=self._forms.tips.get(key),
                new=bytes.fromhex(made),
            )

    def _known(self, encryptor: Encryptor, key: Key, update: Update) -> dict[str, str]:
        """Returns forms that the new one may stand on, by what they stand for."""
        if self.anew:
            return {}
        newest = next(self._forms.line(key), None)
        if self._forms.noted(key):
            newest = None
        if newest is not None and newest[1] == update.old:
            # By far the most frequent: the branch has grown.
            return {newest[1]: newest[0]}
        found: dict[str, str] = {}
        for form, plain in self._forms.of_session(key[0]).items():
            found.setdefault(plain, form)
        if newest is not None:
            # Above all those of this very branch: the remote's is one of them.
            found.update({plain: form for form, plain in self._forms.line(key)})
            encryptor.recall(newest[0])
        return found


class Receiving:
    """What a pull opens."""

    def __init__(self, workspace: Workspace, remote: str) -> None:
        self._workspace = workspace
        self._remote = remote
        self._forms = Forms(workspace, remote)
        self._due = bool(_recipients(workspace))
        self._there: dict[Key, str] = {}

    def seen(self, there: Mapping[Key, str]) -> dict[Key, str]:
        """Takes what a remote has; returns what that stands for, where that is known."""
        self._there = dict(there)
        return self._forms.stand_for(there)

    def refuse_ledgers(self, ledgers: Mapping[str, str]) -> dict[str, Fault]:
        """Returns what is wrong with ledgers, which are never encrypted."""
        sessions = {key[0] for key in self._forms.tips}
        return {
            component: _unencrypted("the ledger of its steps")
            for component in ledgers
            if self._due or component in sessions
        }

    def tips(self, keys: Mapping[Key, str]) -> frozenset[str]:
        """Returns the forms that are here of the sessions of some branches."""
        sessions = {key[0] for key in keys}
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

        A tip that is not encrypted stands for itself, unless it should be.

        Raises:
            TransferError: it is more than may come.
        """
        plain: dict[Key, str] = {}
        bad: dict[Key, Fault] = {}
        decryptor: Decryptor | None = None
        sessions = {key[0] for key in self._forms.tips}
        for key, oid in tips.items():
            _, fault = court.line(oid)
            if fault is not None:
                bad[key] = fault
                continue
            said = encrypted_of(quarantine.objects.commit(bytes.fromhex(oid)))
            if said is None and (self._due or key[0] in sessions):
                bad[key] = _unencrypted("it")
            elif said is None:
                plain[key] = oid
            else:
                try:
                    if decryptor is None:
                        decryptor = self._decryptor(quarantine, tips, bounds)
                    plain[key] = decryptor.open(oid)
                except _ABOUT_ALL:
                    raise
                except GitcpError as exc:
                    bad[key] = _fault(exc, decryptor)
        if decryptor is not None:
            decryptor.flush()
        return plain, bad

    def _decryptor(
        self, quarantine: Repository, tips: Mapping[Key, str], bounds: Bounds
    ) -> Decryptor:
        identities = Identities(
            self._workspace.settings.sharing.identity, top=self._workspace.top
        )
        known: dict[str, str] = {}
        for session in {key[0] for key in tips}:
            known |= self._forms.of_session(session)
        return Decryptor(quarantine, identities, known, bounds)

    def note(
        self, key: Key, plain: str, remember: Callable[[str, str | None, str], None]
    ) -> None:
        """Notes, by `remember`, the form that a branch has there now."""
        form = self._there[key]
        if form != plain and self._forms.plain(key, form) is None:
            remember(self._forms.ref(key), self._forms.tips.get(key), form)


def _fault(exc: GitcpError, decryptor: Decryptor | None) -> Fault:
    at = f"{decryptor.at}: " if decryptor is not None and decryptor.at else ""
    error = type(exc) if isinstance(exc, EncryptionError) else None
    return Fault(f"{at}{exc.message}", error=error, hint=exc.hint)


def _unencrypted(what: str) -> Fault:
    return Fault(
        f"{what} came unencrypted, where it has to be encrypted",
        error=PlaintextError,
        hint="somebody replaced it, or pushed without gitcp.encryptTo: ask; do not use it",
    )
