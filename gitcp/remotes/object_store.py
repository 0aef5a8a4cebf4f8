"""An object store as a remote: packs that never change, and a document for each branch.

A push stores a pack and then replaces the branch's document, if that is still as it was
read. That is the commit point of the push (docs/format.md, 28).
"""

import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import GitcpError, GitFailedError, TransferError
from gitcp.format import layout
from gitcp.format import store_document as documents
from gitcp.format.store_document import Document, StoredPack
from gitcp.git import other_form, store_address
from gitcp.git.remote import Advertised, Answer, RefusedError, Update
from gitcp.git.repository import Repository
from gitcp.git.transaction import transaction
from gitcp.git.transport import Limits, Look, Told
from gitcp.remotes import packs
from gitcp.remotes.cloud import Cloud
from gitcp.remotes.directory import Directory
from gitcp.remotes.one_place import OnePlace
from gitcp.remotes.place import Entry, Place, Version
from gitcp.remotes.seen import Seen

# The most documents in one listing: as many as gitcp reads refs of a git remote.
_LISTED = 160_000
# The most bytes of all documents in one listing: they are read and kept at once.
_LISTED_BYTES = 128 << 20
_AT_ONCE = 16
# A pack that is so many times larger than all after it is not merged.
_RATIO = 2
# In seconds. The collector keeps every pack for a day: a push ends long before.
SLOWEST = 3600.0
_READS = 3
_STALE = "stale info"


def open_place(url: str, limits: Limits) -> Place:
    """Opens the object store at an address.

    Raises:
        TransferError: the library that it needs is not installed.
    """
    directory = store_address.directory_of(url)
    if directory is not None:
        return Directory(directory, patience=limits.silence)
    return Cloud(url, limits)


class _Held(NamedTuple):
    """A document as it was read, or why it cannot be used."""

    version: Version
    document: Document | None
    fault: str = ""


class ObjectStore(OnePlace):
    """A remote that is an object store."""

    lists_all = False

    def __init__(
        self, repository: Repository, place: Place, shown: str, progress: Told | None
    ) -> None:
        """`shown` is the name of the store in errors."""
        self._repository = repository
        self._place = place
        self._shown = shown
        self._progress = progress
        self._seen = Seen(repository, shown)
        self._stored: dict[str, tuple[bytes, Version]] = {}
        self._held: dict[str, _Held] = {}
        self._project: frozenset[str] = frozenset()

    def advertised(self, prefixes: Sequence[str]) -> Advertised:
        """Lists the documents and reads them; one that cannot be used counts as symbolic."""
        found = {below for each in prefixes if (below := documents.below(each))}
        refs = {}
        for below in sorted(found):
            for entry in self._listed(below):
                key = documents.key_of(entry.path)
                if key is not None and key.ref.startswith(tuple(prefixes)):
                    refs[key.ref] = entry
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            raws = dict(zip(refs, pool.map(self._raw, refs.items()), strict=True))
        there = {ref: one for ref, one in raws.items() if one is not None}
        self._seen.note(there)
        self._held = {ref: _held(ref, *one) for ref, one in there.items()}
        tips = {
            ref: one.document.tip
            for ref, one in self._held.items()
            if one.document is not None
        }
        if any(len(oid) != self._repository.form.digits for oid in tips.values()):
            raise other_form.of(self._repository.form, self._shown)
        return Advertised(tips, frozenset(self._held.keys() - tips.keys()))

    def _listed(self, below: str) -> Iterator[Entry]:
        total = 0
        for number, entry in enumerate(self._place.list(below)):
            total += entry.size
            if number >= _LISTED or total > _LISTED_BYTES:
                raise TransferError(
                    f"{self._shown} has more than {_LISTED:,} documents, or more than"
                    f" {_LISTED_BYTES:,} bytes of them",
                    hint="nothing was changed; name the sessions",
                )
            yield entry

    def _raw(self, listed: tuple[str, Entry]) -> tuple[bytes, Version] | None:
        """Returns a listed document, or None if it is gone."""
        ref, entry = listed
        return self._seen.get(ref, entry.e_tag) or self._read(ref)

    def _read(self, ref: str) -> tuple[bytes, Version] | None:
        path = documents.path_of(ref)
        return self._place.read(path, documents.MOST_BYTES) if path else None

    def project(self, tips: Iterable[str]) -> frozenset[str]:
        """Returns the commits that new packs will be based on: a git remote has them."""
        self._project = packs.anchors(self._repository, tips)
        return self._project

    # --- sending ----------------------------------------------------------------------

    def send(
        self,
        updates: Sequence[Update],
        *,
        replaces: bool = False,
        elsewhere: Collection[str] = (),
    ) -> Mapping[str, Answer]:
        """Stores a pack and a document for each branch."""
        del replaces
        self._project |= frozenset(elsewhere)
        failed: list[TransferError] = []
        answers = {}
        for number, update in enumerate(updates, 1):
            if self._progress is not None:
                self._progress(f"Sending branches: {number}/{len(updates)}")
            try:
                answers[update.ref] = self._send(update)
            except TransferError as exc:
                failed.append(exc)
                answers[update.ref] = Answer("!", exc.message)
        self._seen.note(self._stored)
        if failed and len(failed) == len(updates):
            raise failed[0]
        return answers

    def _send(self, update: Update) -> Answer:
        path = documents.path_of(update.ref)
        assert path is not None
        held = self._held.get(update.ref)
        if held is not None and held.document is None:
            return Answer("!", held.fault)
        before = held.document if held is not None else None
        if (before.tip if before is not None else None) != update.old:
            return Answer("!", _STALE)
        kept = self._stays(update, before)
        started = time.monotonic()
        try:
            document = self._store_pack(update.new, kept)
        except GitFailedError as exc:
            return Answer("!", exc.message)
        if time.monotonic() - started > SLOWEST:
            raise TransferError(
                f"sending to {self._shown} took more than {SLOWEST:,.0f} s",
                hint="push again over a faster connection; nothing was changed there",
            )
        version = self._swap(path, document, held)
        if version is None:
            return Answer("!", _STALE)
        self._held[update.ref] = _Held(version, document)
        self._stored[update.ref] = (documents.encode(document), version)
        if before is not None and not kept:
            # The branch may have been purged. The collector removes merged packs.
            self._remove(before.packs)
        return Answer(" ", "")

    def _stays(self, update: Update, before: Document | None) -> Sequence[StoredPack]:
        """Returns the packs that a new one can be based on; none if the line is replaced."""
        if before is None or not packs.is_ancestor(
            self._repository, before.tip, update.new
        ):
            return ()
        return before.packs

    def _store_pack(self, tip: str, kept: Sequence[StoredPack]) -> Document:
        """Stores new objects in a pack; returns the document that names it."""
        with transaction(self._repository) as txn:
            made = self._make(tip, kept, txn.scratch / "sent-0")
            merged = _to_merge(kept, made.size)
            if merged:
                kept = kept[:-merged]
                made = self._make(tip, kept, txn.scratch / "sent-1")
            number = 1 if merged else 0
            self._place.upload(made.path, txn.scratch / f"sent-{number}")
        return Document(
            documents.VERSION,
            self._repository.form.name,
            tip,
            (*kept, made),
        )

    def _make(self, tip: str, kept: Sequence[StoredPack], file: Path) -> StoredPack:
        anchors: tuple[str, ...] = ()
        if kept:
            without: tuple[str, ...] = (kept[-1].tip,)
        else:
            anchors = without = packs.below(self._repository, tip, self._project)
        packs.make(self._repository, tip, without, file)
        with durable.storage("making a pack"):
            size = file.stat().st_size
            digest = packs.checksum(file)
        # The name is never used twice, because the collector removes packs by their names.
        return StoredPack(secrets.token_hex(16), size, digest, tip, anchors)

    def _swap(
        self, path: str, document: Document, held: _Held | None
    ) -> Version | None:
        """Replaces a document; if the answer is lost, recognises the document it stored."""
        raw = documents.encode(document)
        lost: TransferError | None = None
        version = None
        try:
            version = self._place.swap(path, raw, held.version if held else None)
        except TransferError as exc:
            lost = exc
        if version is None:
            there = self._place.read(path, documents.MOST_BYTES)
            if there is not None and there[0] == raw:
                return there[1]
            if lost is not None:
                raise lost
        return version

    def _remove(self, gone: Iterable[StoredPack]) -> None:
        """Removes the packs of a replaced line; the collector removes any that stay."""
        for pack in gone:
            with suppress(TransferError):
                self._place.remove(pack.path)

    # --- fetching ---------------------------------------------------------------------

    def fetch_into(
        self,
        objects: Path,
        wanted: Sequence[str],
        *,
        near: Sequence[str],
        limits: Limits,
        look: Look | None,
    ) -> None:
        """Fetches the packs that are not here yet, each after those that it is based on."""
        del near
        tips = set(wanted)
        refs = [
            ref
            for ref, held in self._held.items()
            if held.document is not None and held.document.tip in tips
        ]
        done: set[str] = set()
        for reads in range(_READS):
            needed = {ref: self._needed(ref) for ref in refs}
            self._check(needed, limits)
            missing = [
                ref
                for ref, listed in needed.items()
                if not self._bring(objects, listed, done, limits, look)
            ]
            if not missing:
                return
            refs = missing
            if reads < _READS - 1:
                # Another push has merged packs, or replaced the branch.
                there = ((ref, self._read(ref)) for ref in refs)
                self._held |= {ref: _held(ref, *one) for ref, one in there if one}
        raise RefusedError(
            f"{self._shown} lacks packs of {len(refs)} branches",
            hint="nothing was adopted; pull again, because they may just have been"
            " replaced",
        )

    def _needed(self, ref: str) -> list[StoredPack]:
        """Returns the packs after the last one whose tip is here."""
        document = self._held[ref].document
        if document is None:
            raise RefusedError(self._held[ref].fault, hint="nothing was adopted")
        here = self._repository.objects.exists
        first = len(document.packs)
        while first and not here(bytes.fromhex(document.packs[first - 1].tip)):
            first -= 1
        return list(document.packs[first:])

    def _check(
        self, needed: Mapping[str, Sequence[StoredPack]], limits: Limits
    ) -> None:
        """Refuses packs that are too large, or based on commits that are not here."""
        here = self._repository.objects.exists
        for ref, listed in needed.items():
            anchors = dict.fromkeys(oid for pack in listed for oid in pack.anchors)
            lacking = [oid for oid in anchors if not here(bytes.fromhex(oid))]
            if lacking:
                key = layout.ref_key(ref)
                name = "/".join(key) if key else ref
                raise RefusedError(
                    f"{name} is based on the project's commit {lacking[0]}, which"
                    " is missing here",
                    hint="nothing was written; run `git fetch` from the project's"
                    " remote, then pull again",
                )
        size = sum(pack.size for listed in needed.values() for pack in listed)
        if limits.file is not None and size > limits.file:
            raise TransferError(
                f"{self._shown} has {size:,} bytes of it, more than gitcp.pullMaxSize"
                " allows",
                hint="nothing was adopted; if you trust it, set"
                " `gitcp config pullMaxSize VALUE` and pull again",
            )

    def _bring(
        self,
        objects: Path,
        listed: Sequence[StoredPack],
        done: set[str],
        limits: Limits,
        look: Look | None,
    ) -> bool:
        """Downloads and indexes packs; False if one is gone."""
        for pack in listed:
            if pack.id in done:
                continue
            file = objects / f"{pack.id}.incoming"
            try:
                if not self._place.download(pack.path, pack.size, file):
                    return False
                if file.stat().st_size != pack.size or (
                    packs.checksum(file) != pack.sha256
                ):
                    raise RefusedError(
                        f"{pack.path} there does not match its document",
                        hint="nothing was adopted; ask its author to push it again with"
                        " --pruned",
                    )
                packs.index(
                    self._repository,
                    objects,
                    file,
                    limits=limits,
                    progress=self._progress,
                    look=look,
                )
            finally:
                file.unlink(missing_ok=True)
            done.add(pack.id)
        return True


def _held(ref: str, raw: bytes, version: Version) -> _Held:
    try:
        return _Held(version, documents.decode(raw))
    except GitcpError as exc:
        path = documents.path_of(ref)
        return _Held(version, None, f"{path} there cannot be used: {exc.message}")


def _to_merge(kept: Sequence[StoredPack], size: int) -> int:
    """Returns how many of the last packs to merge into a new one of this size.

    So each pack is larger than all after it, and there are few packs.
    """
    number = 0
    for pack in reversed(kept):
        if pack.size > _RATIO * size:
            break
        size += pack.size
        number += 1
    return number
