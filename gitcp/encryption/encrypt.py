"""Encrypts checkpoints, oldest first (docs/format.md, 19).

An encrypted commit reuses the parts that it shares with the one before: age encrypts
differently each time, so gitcp never encrypts an existing part again.
"""

from collections.abc import Iterable, Mapping

from gitcp.encryption import pairing
from gitcp.encryption.age import Recipients
from gitcp.encryption.pairing import Held, Pair, Trees
from gitcp.errors import CorruptError, EncryptionError
from gitcp.format import encrypted, layout, tree
from gitcp.format.encrypted import Encrypted
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.objects import BLOB, COMMIT
from gitcp.git.transaction import Transaction
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class Encryptor:
    """Makes encrypted commits within a transaction; each commit and each record once."""

    def __init__(
        self, store: Store, opened: Transaction, recipients: Recipients
    ) -> None:
        self._store = store
        self._objects = store.repository.objects
        self._opened = opened
        self._recipients = recipients
        self._trees = Trees(self._objects, opened.add_object, opened.store)
        self._made: dict[bytes, bytes] = {}
        self._records: dict[tuple[str, bytes, bytes], bytes] = {}
        self._marker: bytes | None = None

    def recall(self, form: str) -> None:
        """Remembers the records of an existing encrypted commit, to use them again.

        Raises:
            CorruptError: the encrypted commit cannot be read.
        """
        if not self._objects.exists(bytes.fromhex(form)):
            return
        commit = self._objects.commit(bytes.fromhex(form))
        said = encrypted.encrypted_of(commit)
        if said is None or not self._objects.exists(bytes.fromhex(said.plain)):
            return
        plain = self._objects.commit(bytes.fromhex(said.plain))
        self._keep(Pair.of(said.session, plain.tree, commit.tree, self._trees))

    def reuse(self, line: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Remembers records of a line that will be replaced, to use them again.

        `line` are its encrypted commits with their commits, oldest first. Only uses records
        to the same recipients, so that an added recipient can read the whole new line.
        Returns encrypted commits that may stay, with all before them, by their commits.

        Raises:
            CorruptError: a checkpoint cannot be read.
        """
        stay: dict[str, str] = {}
        whole = True
        pair = Pair("")
        for form, plain in line:
            commit = self._objects.commit(bytes.fromhex(form))
            said = encrypted.encrypted_of(commit)
            if said is None or not self._objects.exists(bytes.fromhex(plain)):
                whole = False
                pair = Pair("")
                continue
            if said.session != pair.session:
                pair = Pair(said.session)
            held = self._objects.commit(bytes.fromhex(plain))
            whole = self._reuse(pair, held.tree, commit.tree) and whole
            if whole:
                stay[plain] = form
        return stay

    def _reuse(self, pair: Pair, plain: bytes, form: bytes) -> bool:
        """Remembers new records of two trees; whether all are to the same recipients."""
        own = pairing.below(plain, b"", self._trees.read)
        there = pairing.below(form, encrypted.DIRECTORY, self._trees.read)
        new = {}
        same = True
        for change in tree.diff(pair.form, there, self._trees.read):
            if change.new is not None:
                start = next(self._objects.stream(change.new.oid), b"")
                if self._recipients.are_those_of(start):
                    new[change.path] = change.new.oid
                else:
                    same = False
        for change in tree.diff(pair.own, own, self._trees.read):
            record = new.get(encrypted.record_name(change.path))
            if change.new is not None and record is not None:
                self._records[pair.session, change.path, change.new.oid] = record
        pair.own, pair.form = own, there
        return same

    def encrypt(self, tip: str, known: Mapping[str, str]) -> str:
        """Returns the encrypted commit of a commit; `known` has those of commits before it.

        Raises:
            CorruptError: a checkpoint cannot be read.
            EncryptionError: a checkpoint cannot be encrypted.
        """
        line: list[Checkpoint] = []
        parent: bytes | None = None
        pair: Pair | None = None
        oid: bytes | None = bytes.fromhex(tip)
        while oid is not None:
            # An encrypted commit that another push has noted meanwhile takes precedence.
            form = bytes.fromhex(known.get(oid.hex(), "")) or self._made.get(oid)
            found = self._store.checkpoint(oid)
            if form or found is None:
                # Without an encrypted commit it is the anchor, the user's own commit.
                parent = form or oid
                if form and found is not None and line:
                    pair = self._pair(found, form)
                break
            line.append(found)
            oid = found.raw.parents[0] if found.raw.parents else None
        for one in reversed(line):
            if pair is None or pair.session != one.trailers.session:
                pair = Pair(one.trailers.session)
            parent = self._made[one.oid] = self._one(one, parent, pair)
        assert parent is not None
        return parent.hex()

    def _pair(self, found: Checkpoint, form: bytes) -> Pair:
        self._opened.store()
        commit = self._objects.commit(form)
        pair = Pair.of(found.trailers.session, found.raw.tree, commit.tree, self._trees)
        self._keep(pair)
        return pair

    def _keep(self, pair: Pair) -> None:
        for held in pair.records.values():
            self._records[pair.session, held.path, held.blob] = held.record

    def _one(self, found: Checkpoint, parent: bytes | None, pair: Pair) -> bytes:
        own = pairing.below(found.raw.tree, b"", self._trees.read)
        own_changes: dict[bytes, Entry | None] = {}
        changes: dict[bytes, Entry | None] = {}
        for change in tree.diff(pair.own, own, self._trees.read):
            own_changes[change.path] = change.new
            name = encrypted.record_name(change.path)
            pair.inline.pop(change.path, None)
            if pair.records.pop(name, None) is not None:
                changes[name] = None
            if change.new is None:
                continue
            if change.new.mode != FILE:
                raise self._odd(found, change.path)
            _, size = self._objects.header(change.new.oid)
            if encrypted.is_record(change.path, size):
                record = self._record(found, change.path, change.new.oid, size)
                pair.records[name] = Held(change.path, change.new.oid, record)
                changes[name] = pairing.file(record)
            else:
                pair.inline[change.path] = change.new.oid
        # For instance, no list of files holds an empty directory.
        same = pairing.would_be(
            pair.own, own_changes, self._trees.read, self._objects.form
        )
        if same != own:
            raise self._odd(found, b"a directory")
        changes[encrypted.HEAD] = pairing.file(self._head(found, pair))
        form = tree.edit(pair.form, changes, self._trees.read, self._trees.write)
        assert form is not None
        pair.own, pair.form = own, form
        marked = self._trees.write(
            {
                layout.CHECKPOINT: pairing.file(self._mark()),
                encrypted.DIRECTORY: Entry(DIRECTORY, form),
            }
        )
        root = self._trees.write(
            pairing.with_own(self._objects.tree(found.raw.tree), marked)
        )
        said = found.trailers
        raw = encrypted.encode_commit(
            root,
            parent,
            found.raw.epoch,
            Encrypted(
                said.id, said.session, said.branch, said.seq, found.commit, said.pruned
            ),
        )
        return self._opened.add_object(COMMIT, raw)

    def _mark(self) -> bytes:
        if self._marker is None:
            self._marker = self._opened.add_object(BLOB, encrypted.MARKER)
        return self._marker

    def _record(self, found: Checkpoint, path: bytes, blob: bytes, size: int) -> bytes:
        session = found.trailers.session
        made = self._records.get((session, path, blob))
        if made is None:
            if size > encrypted.RECORD_LIMIT:
                raise self._large(found, f"{path.decode()} has {size:,} bytes")
            data = [(path, self._objects.blob(blob))]
            made = self._cipher(found, session, data)
            self._records[session, path, blob] = made
        return made

    def _head(self, found: Checkpoint, pair: Pair) -> bytes:
        held = [(path, self._objects.blob(oid)) for path, oid in pair.inline.items()]
        raw = self._objects.read(found.oid, COMMIT)
        return self._cipher(found, found.trailers.session, held, raw)

    def _cipher(
        self,
        found: Checkpoint,
        session: str,
        files: list[tuple[bytes, bytes]],
        commit: bytes | None = None,
    ) -> bytes:
        try:
            plain = encrypted.encode_record(session, files, commit)
        except ValueError as exc:
            raise self._large(found, str(exc)) from exc
        return self._opened.add_object(BLOB, self._recipients.encrypt(plain))

    def _large(self, found: Checkpoint, why: str) -> EncryptionError:
        return EncryptionError(
            f"checkpoint {found.id} cannot be encrypted: {why}",
            hint="a record may hold 128 MiB; push other sessions by name",
        )

    def _odd(self, found: Checkpoint, path: bytes) -> CorruptError:
        return CorruptError(
            f"checkpoint {found.id} has a file that gitcp does not write:"
            f" .gitcp/{path.decode('utf-8', 'backslashreplace')}",
            hint="run `gitcp verify`",
        )
