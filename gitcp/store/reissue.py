"""Recreates a checkpoint elsewhere: the same tree, another parent."""

import secrets
from typing import NamedTuple

import msgspec

from gitcp.format import checkpoint as manifests
from gitcp.format import layout, tree
from gitcp.format.commit import Trailers, encode_commit
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.objects import BLOB, COMMIT, TREE
from gitcp.git.transaction import Transaction
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.origin import Seals


class Place(NamedTuple):
    """The place of the new commit; with `fork` it is another checkpoint (a new id)."""

    session: str
    branch: str
    seq: int
    parent: bytes | None
    fork: bool = False


def reissue(
    sink: Transaction,
    seals: Seals,
    source: Checkpoint,
    place: Place,
    *,
    metadata: msgspec.Raw | None = None,
    extra: tuple[tuple[str, str], ...] = (),
) -> bytes:
    """Returns the commit of a checkpoint made again at `place`.

    `metadata` replaces the checkpoint's; `extra` are trailers beside the usual ones.
    """
    read = source.objects.tree
    said = source.manifest
    ident = secrets.token_hex(6) if place.fork else said.id
    sealed = said.origin
    if place.fork:
        # Another id; what it holds comes from where it came from.
        sealed = seals.make(
            ident, source.files_oid, source.log_tree, source.origin, sink.scratch
        )
    manifest = msgspec.structs.replace(
        said,
        id=ident,
        session=place.session,
        branch=place.branch,
        seq=place.seq,
        trigger="fork" if place.fork else said.trigger,
        note=f"forked from {said.branch} #{said.seq}" if place.fork else said.note,
        label=None if place.fork else said.label,
        forked_from=said.id if place.fork else said.forked_from,
        metadata=said.metadata if metadata is None else metadata,
        origin=sealed,
    )
    blob = sink.add_object(BLOB, manifests.encode_manifest(manifest))
    root = dict(read(source.raw.tree))
    inner = dict(read(root[layout.RESERVED].oid))
    inner[layout.CHECKPOINT] = Entry(FILE, blob)
    held = sink.add_object(TREE, tree.encode(inner))
    root[layout.RESERVED] = Entry(DIRECTORY, held)
    top = sink.add_object(TREE, tree.encode(root))
    raw = encode_commit(
        top,
        place.parent,
        source.raw.epoch,
        Trailers(
            manifest.id,
            encode(place.session),
            encode(place.branch),
            place.seq,
            manifest.trigger,
            source.trailers.base,
            manifest.label,
        ),
        extra,
    )
    return sink.add_object(COMMIT, raw)
