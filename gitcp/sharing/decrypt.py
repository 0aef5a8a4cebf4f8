"""Opening encrypted checkpoints in quarantine (docs/format.md, 19).

What comes out is the very commit that was encrypted, or nothing: its id covers every
file of it and all before it, so that nothing can be exchanged, moved or left out.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import CorruptError
from gitcp.format import commit as commits
from gitcp.format import encrypted, layout, tree
from gitcp.format.checkpoint import show_path
from gitcp.format.encrypted import Encrypted, Record, encrypted_of
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.objects import BLOB, COMMIT, Objects, object_id
from gitcp.git.pack import PackWriter
from gitcp.git.repository import Repository
from gitcp.sharing import lines
from gitcp.sharing.age import Identities
from gitcp.sharing.lines import Held, Pair, Trees
from gitcp.sharing.quarantine import Bounds, too_much

# Nothing that gitcp writes lies deeper in `.gitcp`.
_DEPTH = 16


class _Form(NamedTuple):
    """An encrypted commit."""

    oid: bytes
    commit: commits.Commit
    said: Encrypted


class Decryptor:
    """Opens forms that lie in a quarantine; what is opened is written beside them.

    `known` has what forms stand for that were opened, or made, here before. `at` names
    the checkpoint in hand, for errors.
    """

    def __init__(
        self,
        quarantine: Repository,
        identities: Identities,
        known: Mapping[str, str],
        bounds: Bounds,
    ) -> None:
        self._objects: Objects = quarantine.objects
        self._packs = quarantine.common_dir / "objects" / "pack"
        self._identities = identities
        self._plain = {
            bytes.fromhex(form): bytes.fromhex(plain) for form, plain in known.items()
        }
        self._bounds = bounds
        self._total = 0
        self.at = ""
        self._pack = self._new_pack()
        self._trees = Trees(self._objects, self._add, self.flush)

    def open(self, tip: str) -> str:
        """Returns the commit that a form stands for.

        Raises:
            NoKeyError: no key fits.
            CorruptError: it was changed, or put together by somebody else.
            TransferError: it holds more than may come.
        """
        line: list[_Form] = []
        parent: bytes | None = None
        pair: Pair | None = None
        oid: bytes | None = bytes.fromhex(tip)
        while oid is not None:
            commit = self._objects.commit(oid)
            said = encrypted_of(commit)
            plain = self._plain.get(oid)
            if plain is not None and self._there(plain):
                parent = plain
                if said is not None and line:
                    held = self._objects.commit(plain)
                    pair = Pair.of(said.session, held.tree, commit.tree, self._trees)
                break
            if said is None:
                if commits.trailers_of(commit) is not None:
                    raise _refuse(f"{oid.hex()[:12]}, before it, is not encrypted")
                parent = oid
                break
            if len(commit.parents) > 1:
                raise _refuse(f"the commit {oid.hex()} has more than one parent")
            line.append(_Form(oid, commit, said))
            oid = commit.parents[0] if commit.parents else None
        for form in reversed(line):
            if pair is None or pair.session != form.said.session:
                pair = Pair(form.said.session)
            self.at = f"checkpoint {form.said.id}"
            parent = self._plain[form.oid] = self._one(form, parent, pair)
        assert parent is not None
        return parent.hex()

    def flush(self) -> None:
        """Makes what was opened readable in the quarantine."""
        with durable.storage("opening what came"):
            written = self._pack.close()
            if written is None:
                return
            pack, index, name = written
            pack.rename(self._packs / f"{name}.pack")
            index.rename(self._packs / f"{name}.idx")
            self._pack = self._new_pack()

    def _new_pack(self) -> PackWriter:
        place = self._packs.parent.parent / "opened"
        place.mkdir(exist_ok=True)
        return PackWriter(place)

    def _there(self, plain: bytes) -> bool:
        if plain in self._pack:
            self.flush()
        return self._objects.exists(plain)

    def _add(self, kind: str, data: bytes) -> bytes:
        return self._pack.add(kind, data)

    # --- one form --------------------------------------------------------------------

    def _one(self, form: _Form, parent: bytes | None, pair: Pair) -> bytes:
        root = self._objects.tree(form.commit.tree)
        new = self._form_tree(root)
        head = self._record(form, _entry(self._trees.read(new), encrypted.HEAD))
        if head.commit is None:
            raise _refuse("its head holds no commit")
        changes = self._changes(form, pair, new, head)
        own = tree.edit(pair.own, changes, self._trees.read, self._trees.write)
        pair.own, pair.form = own, new
        whole = self._trees.write(lines.with_own(root, own))
        return self._commit(form, head.commit, whole, parent)

    def _form_tree(self, root: tree.Tree) -> bytes:
        own = root.get(layout.RESERVED)
        if own is None or own.mode != DIRECTORY:
            raise _refuse("holds no .gitcp")
        held = dict(self._objects.tree(own.oid))
        marker = _entry(held, layout.CHECKPOINT)
        below = held.pop(encrypted.DIRECTORY, None)
        if below is None or below.mode != DIRECTORY or len(held) != 1:
            raise _refuse("holds something that is not encrypted in .gitcp")
        _, size = self._objects.header(marker.oid)
        if size != len(encrypted.MARKER) or (
            self._objects.blob(marker.oid) != encrypted.MARKER
        ):
            raise _refuse("is of a kind that this gitcp does not know")
        return below.oid

    def _changes(
        self, form: _Form, pair: Pair, new: bytes, head: Record
    ) -> dict[bytes, Entry | None]:
        """Returns what is other in `.gitcp` than in that of the checkpoint before."""
        changes: dict[bytes, Entry | None] = {}
        for change in tree.diff(pair.form, new, self._trees.read):
            if change.path == encrypted.HEAD:
                continue
            gone = pair.records.pop(change.path, None)
            if gone is not None:
                changes.setdefault(gone.path, None)
            if change.new is None:
                continue
            record = self._record(form, change.new)
            if record.commit is not None or len(record.files) != 1:
                raise _refuse("a record in it is none of a single file")
            ((path, data),) = record.files.items()
            if encrypted.record_name(path) != change.path:
                raise _refuse(
                    f"the record of {show_path(path)} lies in another's place"
                )
            blob = self._add(BLOB, data)
            changes[path] = lines.file(blob)
            pair.records[change.path] = Held(path, blob, change.new.oid)
        for path in pair.inline.keys() - head.files.keys():
            changes.setdefault(path, None)
            del pair.inline[path]
        for path, data in head.files.items():
            blob = self._add(BLOB, data)
            if pair.inline.get(path) != blob:
                changes[path] = lines.file(blob)
                pair.inline[path] = blob
        return changes

    def _record(self, form: _Form, entry: Entry) -> Record:
        if entry.mode != FILE:
            raise _refuse("a record in it is no file")
        kind, size = self._objects.header(entry.oid)
        # Compressed text may not be smaller than what it is made of, and age adds little.
        if kind != BLOB or size > encrypted.RECORD_LIMIT + 1024 * 1024:
            raise _refuse("a record in it is too large")
        opened = self._identities.decrypt(self._objects.blob(entry.oid))
        left = min(self._bounds.file, self._bounds.size - self._total)
        try:
            record = encrypted.decode_record(opened, max(left, 0))
        except ValueError as exc:
            if left < encrypted.RECORD_LIMIT and "holds more than" in str(exc):
                setting = "pullMaxFile" if left == self._bounds.file else "pullMaxSize"
                raise too_much(
                    f"a record of more than {left:,} bytes", setting
                ) from exc
            raise _refuse(f"a record in it cannot be read: {exc}") from exc
        if any(path.count(b"/") > _DEPTH for path in record.files):
            raise _refuse("a path in it lies too deep")
        self._total += len(record.commit or b"") + sum(map(len, record.files.values()))
        if record.session != form.said.session:
            raise _refuse("a record in it is of another session")
        return record

    def _commit(
        self, form: _Form, raw: bytes, root: bytes, parent: bytes | None
    ) -> bytes:
        """Checks that all of it belongs together, and keeps the commit."""
        if object_id(COMMIT, raw).hex() != form.said.plain:
            raise _refuse("its head is of another checkpoint")
        plain: commits.Commit | None = None
        with suppress(ValueError):
            plain = commits.parse_commit(raw)
        trailers = commits.trailers_of(plain) if plain is not None else None
        if plain is None or trailers is None:
            raise _refuse("its head holds no checkpoint")
        said = form.said
        if (trailers.id, trailers.session, trailers.branch, trailers.seq) != (
            said.id,
            said.session,
            said.branch,
            said.seq,
        ) or trailers.pruned != said.pruned:
            raise _refuse("its message says other than what is in it")
        if plain.tree != root:
            raise _refuse("its files or records are not those that were encrypted")
        if plain.parents != ((parent,) if parent is not None else ()):
            raise _refuse("the checkpoint before it is not the one that was there")
        return self._add(COMMIT, raw)


def _entry(entries: tree.Tree, name: bytes) -> Entry:
    found = entries.get(name)
    if found is None or found.mode != FILE:
        raise _refuse(f"holds no {show_path(name)}")
    return found


def _refuse(why: str) -> CorruptError:
    return CorruptError(why, hint="nothing of it was adopted; do not use it")
