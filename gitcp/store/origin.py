"""Provenance: seals checkpoints, and tells those made here from those made elsewhere.

Each repository has a secret key, and seals with it the checkpoints made there. A
checkpoint without such a seal was made elsewhere (docs/format.md, 5).
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.at_fork import computed
from gitcp.errors import UsageError
from gitcp.format import layout
from gitcp.format import tree as trees
from gitcp.format.checkpoint import Manifest, Sealed, encode_manifest
from gitcp.format.commit import Trailers
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import Entry
from gitcp.git.objects import TREE
from gitcp.git.repository import Repository
from gitcp.git.secret import SIZE, KeyFile
from gitcp.names import decode, encode
from gitcp.store.contents import Contents

ELSEWHERE = "elsewhere"
_DOMAIN = "gitcp origin 2"
# In 0.1.0 a seal covered the trees of files and of logs only.
_OLD_DOMAIN = "gitcp origin 1"
# The seal in a record, as `encode_manifest` writes it.
_IN_RECORD = b'"seal": "%b"'


class Origin(NamedTuple):
    """The provenance of a checkpoint's files and logs: None stands for here.

    A text is the remote they were pulled from, or `elsewhere`. A checkpoint that was
    made here may continue with a conversation, or fork files, that were not. `here` says
    that the checkpoint itself was made in this repository: then so was its author's name.
    `whole` is false if its seal, of 0.1.0, covers no more than files and logs.
    """

    files: str | None
    logs: str | None
    here: bool = True
    whole: bool = True

    @property
    def foreign(self) -> bool:
        """Whether anything in it comes from elsewhere."""
        return self.files is not None or self.logs is not None

    @property
    def where(self) -> str | None:
        """Its origin as one name; None if all of it was made here."""
        return self.files or self.logs

    @property
    def unknown(self) -> bool:
        """Whether it was made elsewhere, and nothing says where."""
        return self.where == ELSEWHERE


HERE = Origin(None, None)


class Seals:
    """Seals the checkpoints made in a repository, and tells them from others."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._key_file = KeyFile(repository)
        self._key: bytes | None = None
        self._others: list[bytes] | None = None

    @property
    def has_key(self) -> bool:
        """Whether this repository has a key: without one no seal can be valid."""
        return self._read() is not None

    def make(
        self,
        manifest: Manifest,
        inner: Mapping[bytes, Entry],
        origin: Origin,
        scratch: Path | None,
    ) -> Sealed:
        """Returns the seal for a checkpoint made here; `inner` is `.gitcp` without its record.

        The first one makes the key; it is written to `scratch` first, or to a place that
        the next transaction sweeps.

        Raises:
            StorageError: the key cannot be written.
        """
        key = self._read() or self._new(scratch)
        sealed = Sealed("", origin.files, origin.logs)
        record = encode_manifest(msgspec.structs.replace(manifest, origin=sealed))
        tree = manifest.files.tree
        files = bytes.fromhex(tree) if tree is not None else None
        form = self._repository.form
        seal = _seal(key, manifest.id, files, _oid(form, inner), record)
        return msgspec.structs.replace(sealed, seal=seal)

    def of(self, contents: Contents, manifest: Manifest) -> Origin:
        """Returns where a checkpoint comes from, by the seal in its checkpoint.json."""
        verified = self._verified(contents, manifest.origin)
        if (
            verified is not None
            and verified.whole
            and not is_said(contents.trailers, manifest)
        ):
            # A copy: the seal does not cover the commit's message.
            verified = None
        if verified is not None:
            return verified
        trailers = contents.trailers
        where = self._remotes.get((trailers.session, trailers.branch), ELSEWHERE)
        logs = where if contents.log_tree is not None else None
        return Origin(where, logs, here=False)

    def _verified(self, contents: Contents, sealed: Sealed | None) -> Origin | None:
        """Returns what a seal vouches for; None if it is missing or not ours."""
        key = self._read()
        if sealed is None or key is None or not sealed.seal:
            return None
        claimed = Origin(sealed.files, sealed.logs)
        # From the trees themselves: what checkpoint.json says of them proves nothing.
        objects = contents.objects
        entries = dict(objects.tree(contents.raw.tree))
        inner = dict(objects.tree(entries.pop(layout.RESERVED).oid))
        form = objects.form
        files = _oid(form, entries) if entries else None
        record = objects.blob(inner.pop(layout.CHECKPOINT).oid)
        head, found, tail = record.partition(_IN_RECORD % sealed.seal.encode())
        blank = head + _IN_RECORD % b"" + tail if found else b""
        rest = _oid(form, inner)
        ident, logs = contents.trailers.id, contents.log_tree
        # Private stores' keys are tried only if our own does not fit.
        for candidate in chain((key,), self._adopted()):
            if _same(sealed.seal, _seal(candidate, ident, files, rest, blank)):
                return claimed
            try:
                old = _old_seal(candidate, ident, files, logs, claimed)
            except UsageError:
                # No remote has such a name.
                continue
            if _same(sealed.seal, old):
                return claimed._replace(whole=False)
        return None

    def _adopted(self) -> Iterator[bytes]:
        if self._others is None:
            with suppress(OSError):
                self._others = self._key_file.adopted()
        yield from self._others or ()

    @computed
    def _remotes(self) -> dict[tuple[str, str], str]:
        """The remote that a branch of another repository was pulled from."""
        remotes: dict[tuple[str, str], str] = {}
        for ref in self._repository.refs.list(layout.REMOTES):
            parts = ref.removeprefix(layout.REMOTES).split("/")
            if len(parts) == 3:  # noqa: PLR2004  remote, session and branch
                name = decode(parts[0]) or parts[0]
                remotes.setdefault((parts[1], parts[2]), name)
        return remotes

    def _read(self) -> bytes | None:
        if self._key is None:
            with suppress(OSError):
                self._key = self._key_file.read()
        return self._key

    def _new(self, scratch: Path | None) -> bytes:
        if scratch is None:
            from gitcp.git.transaction import transaction  # noqa: PLC0415  once

            with transaction(self._repository) as txn:
                return self._new(txn.scratch)
        with durable.storage("making this repository's key"):
            self._key = self._key_file.make(scratch)
        return self._key


def is_said(trailers: Trailers, manifest: Manifest) -> bool:
    """Whether the trailers of a commit say what its checkpoint.json says."""
    base = manifest.base
    try:
        return trailers[:7] == (
            manifest.id,
            _component(manifest.session),
            _component(manifest.branch),
            manifest.seq,
            _component(manifest.trigger),
            base.commit if base is not None else None,
            _component(manifest.label) if manifest.label is not None else None,
        )
    except UsageError:
        # No commit that gitcp made has such a name.
        return False


# Most of these are the same in thousands of checkpoints.
_component = lru_cache(maxsize=1_000)(encode)


def _oid(form: ObjectFormat, entries: Mapping[bytes, Entry]) -> bytes:
    return form.oid(TREE, trees.encode(entries))


def _seal(
    key: bytes, ident: str, files: bytes | None, rest: bytes, record: bytes
) -> str:
    parts = [_DOMAIN, ident, files.hex() if files else "", rest.hex()]
    data = "\n".join(parts).encode() + b"\n" + record
    return hashlib.blake2b(data, key=key, digest_size=SIZE).hexdigest()


def _old_seal(
    key: bytes, ident: str, files: bytes | None, logs: bytes | None, origin: Origin
) -> str:
    parts = [
        _OLD_DOMAIN,
        ident,
        files.hex() if files else "",
        logs.hex() if logs else "",
        encode(origin.files) if origin.files else "",
        encode(origin.logs) if origin.logs else "",
    ]
    data = "\n".join(parts).encode()
    return hashlib.blake2b(data, key=key, digest_size=SIZE).hexdigest()


def _same(given: str, made: str) -> bool:
    return hmac.compare_digest(given.encode(), made.encode())
