"""Encrypts what a push sends: for which recipients, and what has to be encrypted.

Here checkpoints and ledgers stay as they are. A remote has their encrypted forms.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from gitcp.encryption.age import Recipients
from gitcp.encryption.encrypt import Encryptor
from gitcp.encryption.encrypt_ledger import PageEncryptor
from gitcp.errors import BranchMovedError, EncryptionError, PlaintextError
from gitcp.git.remote import Update
from gitcp.git.transaction import Transaction, transaction
from gitcp.project.workspace import Workspace
from gitcp.sync.encrypted_refs import Forms, said_by
from gitcp.sync.ledgers import NO_BRANCH
from gitcp.sync.validate import Key

OFF = "off"
PLAIN_THERE = "it is there unencrypted"
_TRIES = 20


def recipients_of(workspace: Workspace) -> tuple[str, ...]:
    """Returns whom the settings name to encrypt to."""
    given = workspace.settings.sharing.encrypt_to
    return () if given == (OFF,) else given


class Sending:
    """What a push encrypts; nothing if there are no recipients."""

    def __init__(self, workspace: Workspace, remote: str, *, reencrypt: bool) -> None:
        """Refuses what could not be encrypted.

        Raises:
            EncryptionError: a key is invalid, or the library is missing; or there are
                no recipients to `reencrypt` to.
        """
        self._workspace = workspace
        self._remote = remote
        self._forms = Forms(workspace, remote)
        given = recipients_of(workspace)
        self.on = bool(given)
        self.reencrypt = reencrypt
        if reencrypt and not given:
            raise EncryptionError(
                "gitcp.encryptTo names no recipients",
                hint="`git config --add gitcp.encryptTo KEY`",
            )
        self._recipients = Recipients(given, top=workspace.top) if given else None
        self._opened: Transaction | None = None
        self._encryptor: Encryptor | None = None
        self._pages: PageEncryptor | None = None
        self._there: dict[Key, str] = {}
        self._replacing: dict[Key, str] = {}
        # What was encrypted again: all addresses of a remote get the same.
        self._again: dict[tuple[Key, str], str] = {}

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Holds what is encrypted until it is sent."""
        if self._recipients is None:
            yield
            return
        with transaction(self._workspace.repository) as opened:
            self._opened = opened
            self._encryptor = Encryptor(self._workspace.store, opened, self._recipients)
            self._pages = PageEncryptor(opened, self._recipients)
            yield

    def seen(self, there: Mapping[Key, str]) -> dict[Key, str]:
        """Takes what a remote has of the sessions that are pushed.

        Returns what that stands for, where that is known.
        """
        self._there = dict(there)
        self._forms.read()
        return self._forms.stand_for(there)

    def refuse_plaintext(self, keys: Mapping[Key, str]) -> None:
        """Raises if plaintext would be sent where encryption is required.

        Raises:
            PlaintextError: plaintext would be sent.
        """
        tips = self._forms.tips
        if self.on or not tips:
            return
        off = self._workspace.settings.sharing.encrypt_to == (OFF,)
        sessions = {key[0] for key in tips}
        due = sorted({key[0] for key in keys if not off or key[0] in sessions})
        if due:
            raise PlaintextError(
                f"{self._remote} has encrypted sessions, and gitcp.encryptTo names no"
                " recipients: nothing was sent",
                hint="`git config --add gitcp.encryptTo KEY`, once for each who is to"
                f" read it; `gitcp config encryptTo {OFF}` sends sessions that are not"
                " encrypted there as they are",
            )

    def stands_plain(self, key: Key) -> bool:
        """Whether a remote has something unencrypted that is to be encrypted."""
        oid = self._there.get(key)
        if not self.on or oid is None:
            return False
        objects = self._workspace.repository.objects
        raw = bytes.fromhex(oid)
        return objects.exists(raw) and said_by(objects.commit(raw)) is None

    def forms(self, updates: Mapping[Key, Update]) -> dict[Key, Update]:
        """Returns what to send in place of updates.

        A form is made once, and noted before it is sent: a push that was interrupted, or
        comes again, sends the same. One that replaces what is there is noted by `sent`.

        Raises:
            EncryptionError: something cannot be encrypted.
        """
        if self._opened is None:
            return dict(updates)
        sent: dict[Key, Update] = {}
        for key, update in updates.items():
            form = self._form(self._opened, key, update)
            sent[key] = Update(update.ref, self._there.get(key), form)
        return sent

    def _made(self, key: Key, update: Update) -> str:
        if self.reencrypt and (made := self._again.get((key, update.new))):
            return made
        made = self._again[key, update.new] = self._make(key, update)
        return made

    def _make(self, key: Key, update: Update) -> str:
        assert self._encryptor is not None
        assert self._pages is not None
        if key[1] == NO_BRANCH:
            known = self._known_pages(key, update)
            return self._pages.encrypt(key[0], update.new, known)
        known = self._known(self._encryptor, key, update)
        return self._encryptor.encrypt(update.new, known)

    def _form(self, opened: Transaction, key: Key, update: Update) -> str:
        for _ in range(_TRIES):
            standing = self._forms.tips.get(key)
            made = self._made(key, update)
            if made == standing:
                return made
            opened.store()
            if standing is not None and not self._goes_on(made, standing):
                # Keep the old ref until the push succeeds: it records what the remote has.
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
        met = {made}
        ahead = deque(met)
        while ahead:
            oid = ahead.popleft()
            if oid == standing:
                return True
            commit = objects.commit(bytes.fromhex(oid))
            if said_by(commit) is not None:
                new = [one.hex() for one in commit.parents if one.hex() not in met]
                met.update(new)
                ahead += new
        return False

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
        if self.reencrypt:
            return {}
        newest = next(self._forms.line(key), None)
        if self._forms.noted(key):
            newest = None
        if newest is not None and update.old is not None:
            if not self._follows(update.old, update.new):
                # It takes the place of what is there, and shares most records with it.
                return encryptor.reuse(reversed(list(self._forms.line(key))))
            if newest[1] == update.old:
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

    def _follows(self, old: str, new: str) -> bool:
        """Whether the line that ends in `new` holds `old`."""
        store = self._workspace.store
        tip = store.checkpoint(new)
        return tip is not None and any(one.commit == old for one in store.line(tip))

    def _known_pages(self, key: Key, update: Update) -> dict[str, str]:
        """Returns forms of a ledger that the new one may stand on, likewise."""
        if self.reencrypt or self._forms.noted(key):
            return {}
        newest = next(self._forms.line(key), None)
        if newest is None:
            return {}
        if self._grew_alone(update.new, newest[1]):
            return {newest[1]: newest[0]}
        return {plain: form for form, plain in self._forms.line(key)}

    def _grew_alone(self, new: str, old: str) -> bool:
        """Whether no line was joined since a page: then nothing leads around it."""
        objects = self._workspace.repository.objects
        oid = new
        while oid != old:
            parents = objects.commit(bytes.fromhex(oid)).parents
            if len(parents) != 1:
                return False
            oid = parents[0].hex()
        return True
