"""Decrypts encrypted checkpoints in quarantine (docs/format.md, 19).

The result is exactly the commit that was encrypted, or an error. The commit's id covers all
its files and its whole history, so nothing can be exchanged, moved or left out.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from gitcp.encryption import pairing
from gitcp.encryption.bounded_reader import Opening, refuse
from gitcp.encryption.pairing import Held, Pair, Trees
from gitcp.format import commit as commits
from gitcp.format import encrypted, layout, tree
from gitcp.format.checkpoint import show_path
from gitcp.format.encrypted import Encrypted, EncryptedContent, encrypted_of
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.objects import BLOB, COMMIT


class _Form(NamedTuple):
    """An encrypted commit."""

    oid: bytes
    commit: commits.Commit
    said: Encrypted


class Decryptor:
    """Decrypts encrypted commits in a quarantine, and writes the results beside them.

    `known` has the commits for encrypted commits that were decrypted, or made, here before.
    `at` names the current checkpoint, for errors.
    """

    def __init__(self, opening: Opening, known: Mapping[str, str]) -> None:
        self._objects = opening.objects
        self._opening = opening
        self._plain = {
            bytes.fromhex(form): bytes.fromhex(plain) for form, plain in known.items()
        }
        self.at = ""
        self._trees = Trees(self._objects, opening.add, opening.flush)

    def open(self, tip: str) -> str:
        """Returns the commit that an encrypted commit stands for.

        Raises:
            NoKeyError: no key fits.
            CorruptError: the encrypted commit was changed, or gitcp did not make it.
            TransferError: the plaintext exceeds a limit.
        """
        line: list[_Form] = []
        parent: bytes | None = None
        pair: Pair | None = None
        oid: bytes | None = bytes.fromhex(tip)
        while oid is not None:
            commit = self._objects.commit(oid)
            said = encrypted_of(commit)
            plain = self._plain.get(oid)
            if plain is not None and self._opening.there(plain):
                parent = plain
                if said is not None and line:
                    held = self._objects.commit(plain)
                    pair = Pair.of(said.session, held.tree, commit.tree, self._trees)
                break
            if said is None:
                if commits.trailers_of(commit) is not None:
                    raise refuse(f"{oid.hex()[:12]}, before it, is not encrypted")
                parent = oid
                break
            if len(commit.parents) > 1:
                raise refuse(f"the commit {oid.hex()} has more than one parent")
            line.append(_Form(oid, commit, said))
            oid = commit.parents[0] if commit.parents else None
        for form in reversed(line):
            if pair is None or pair.session != form.said.session:
                pair = Pair(form.said.session)
            self.at = f"checkpoint {form.said.id}"
            parent = self._plain[form.oid] = self._one(form, parent, pair)
        assert parent is not None
        return parent.hex()

    # --- one encrypted commit --------------------------------------------------------

    def _one(self, form: _Form, parent: bytes | None, pair: Pair) -> bytes:
        root = self._objects.tree(form.commit.tree)
        new = self._form_tree(root)
        head = self._opening.record(
            _entry(self._trees.read(new), encrypted.HEAD), form.said.session
        )
        if head.commit is None:
            raise refuse("its head holds no commit")
        changes = self._changes(form, pair, new, head)
        own = tree.edit(pair.own, changes, self._trees.read, self._trees.write)
        pair.own, pair.form = own, new
        whole = self._trees.write(pairing.with_own(root, own))
        return self._commit(form, head.commit, whole, parent)

    def _form_tree(self, root: tree.Tree) -> bytes:
        own = root.get(layout.RESERVED)
        if own is None or own.mode != DIRECTORY:
            raise refuse("holds no .gitcp")
        held = dict(self._objects.tree(own.oid))
        marker = _entry(held, layout.CHECKPOINT)
        below = held.pop(encrypted.DIRECTORY, None)
        if below is None or below.mode != DIRECTORY or len(held) != 1:
            raise refuse("holds something that is not encrypted in .gitcp")
        _, size = self._objects.header(marker.oid)
        if size != len(encrypted.MARKER) or (
            self._objects.blob(marker.oid) != encrypted.MARKER
        ):
            raise refuse("is of a kind that this version of gitcp does not know")
        return below.oid

    def _changes(
        self, form: _Form, pair: Pair, new: bytes, head: EncryptedContent
    ) -> dict[bytes, Entry | None]:
        """Returns the changes in `.gitcp` since the checkpoint before."""
        changes: dict[bytes, Entry | None] = {}
        for change in tree.diff(pair.form, new, self._trees.read):
            if change.path == encrypted.HEAD:
                continue
            gone = pair.records.pop(change.path, None)
            if gone is not None:
                changes.setdefault(gone.path, None)
            if change.new is None:
                continue
            record = self._opening.record(change.new, form.said.session)
            if record.commit is not None or len(record.files) != 1:
                raise refuse("a record in it is none of a single file")
            ((path, data),) = record.files.items()
            if encrypted.record_name(path) != change.path:
                raise refuse(f"the record of {show_path(path)} lies in another's place")
            blob = self._opening.add(BLOB, data)
            changes[path] = pairing.file(blob)
            pair.records[change.path] = Held(path, blob, change.new.oid)
        for path in pair.inline.keys() - head.files.keys():
            changes.setdefault(path, None)
            del pair.inline[path]
        for path, data in head.files.items():
            blob = self._opening.add(BLOB, data)
            if pair.inline.get(path) != blob:
                changes[path] = pairing.file(blob)
                pair.inline[path] = blob
        return changes

    def _commit(
        self, form: _Form, raw: bytes, root: bytes, parent: bytes | None
    ) -> bytes:
        """Checks that all parts belong together, and keeps the commit."""
        kind = self._objects.form
        if kind.oid(COMMIT, raw).hex() != form.said.plain:
            raise refuse("its head is of another checkpoint")
        plain: commits.Commit | None = None
        with suppress(ValueError):
            plain = commits.parse_commit(raw, kind.size)
        trailers = commits.trailers_of(plain) if plain is not None else None
        if plain is None or trailers is None:
            raise refuse("its head holds no checkpoint")
        said = form.said
        if (trailers.id, trailers.session, trailers.branch, trailers.seq) != (
            said.id,
            said.session,
            said.branch,
            said.seq,
        ) or trailers.pruned != said.pruned:
            raise refuse("its message does not match its content")
        if plain.tree != root:
            raise refuse("its files or records are not the encrypted ones")
        if plain.parents != ((parent,) if parent is not None else ()):
            raise refuse("its previous checkpoint is not the original one")
        return self._opening.add(COMMIT, raw)


def _entry(entries: tree.Tree, name: bytes) -> Entry:
    found = entries.get(name)
    if found is None or found.mode != FILE:
        raise refuse(f"holds no {show_path(name)}")
    return found
