"""Encodes a checkpoint's encrypted commit, before encryption (docs/format.md, 19)."""

import hashlib
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from gitcp.format.commit import WHO, Commit, pairs, raw_commit
from gitcp.format.oid import PATTERN

# In `.gitcp/checkpoint.json`: a gitcp that knows nothing of this refuses it as too new.
MARKER = b'{"format":2,"encrypted":"age"}\n'
DIRECTORY = b"encrypted"
HEAD = b"head"

FORMAT = 1
# A file of `.gitcp` that is not a segment and not larger is in the head.
INLINE = 4096
# Bytes of one record, before and after decompression.
RECORD_LIMIT = 128 * 1024 * 1024

_SEGMENT = re.compile(rb"log/[^/]+/[^/]+/[0-9a-f]{4}/[0-9a-f]{2}\.jsonl")
_OID = re.compile(PATTERN)
_ID = re.compile(r"[0-9a-f]{12}")
_HEADER_LIMIT = 4 * 1024 * 1024
_SUBJECT = "encrypted checkpoint"


class Encrypted(NamedTuple):
    """The trailers of an encrypted commit, in plaintext.

    `plain` is the commit it stands for; the rest is as in that one's trailers. What has
    a `form` is only a note of that one, which is not here any more.
    """

    id: str
    session: str
    branch: str
    seq: int
    plain: str
    pruned: str | None = None
    form: str | None = None


def encrypted_of(commit: Commit) -> Encrypted | None:
    """Returns what an encrypted commit says of itself, or None for any other."""
    if not commit.committer.startswith(WHO + b" "):
        return None
    trailers = pairs(commit)
    try:
        encrypted = Encrypted(
            trailers["Checkpoint"],
            trailers["Session"],
            trailers["Branch"],
            int(trailers["Seq"]),
            trailers["Encrypted"],
            trailers.get("Pruned"),
            trailers.get("Form"),
        )
    except (KeyError, ValueError):
        return None
    if (
        not _ID.fullmatch(encrypted.id)
        or not _OID.fullmatch(encrypted.plain)
        or encrypted.seq < 1
    ):
        return None
    return encrypted


def encode_commit(
    tree: bytes, parent: bytes | None, epoch: int, trailers: Encrypted
) -> bytes:
    """Returns the raw commit object."""
    lines = [
        f"Gitcp-Checkpoint: {trailers.id}",
        f"Gitcp-Session: {trailers.session}",
        f"Gitcp-Branch: {trailers.branch}",
        f"Gitcp-Seq: {trailers.seq}",
        f"Gitcp-Encrypted: {trailers.plain}",
    ]
    if trailers.form is not None:
        lines.append(f"Gitcp-Form: {trailers.form}")
    if trailers.pruned is not None:
        lines.append(f"Gitcp-Pruned: {trailers.pruned}")
    message = f"{_SUBJECT}\n\n" + "\n".join(lines) + "\n"
    parents = () if parent is None else (parent,)
    return raw_commit(tree, parents, epoch, message.encode("ascii"))


def record_name(path: bytes) -> bytes:
    """Returns where below `encrypted/` the record of a file of `.gitcp` lies."""
    digest = hashlib.sha256(path).hexdigest()[:40]
    return f"{digest[:2]}/{digest[2:]}".encode()


def is_record(path: bytes, size: int) -> bool:
    """Whether a file of `.gitcp` is a record of its own, and not in the head."""
    return size > INLINE or _SEGMENT.fullmatch(path) is not None


class EncryptedContent(NamedTuple):
    """The content of one ciphertext: files of `.gitcp` by path; the head also has the commit."""

    session: str
    files: Mapping[bytes, bytes]
    commit: bytes | None = None


class _Header(msgspec.Struct, omit_defaults=True):
    format: int
    session: str
    files: list[tuple[str, int]]
    commit: int | None = None


def encode_record(
    session: str, files: Iterable[tuple[bytes, bytes]], commit: bytes | None = None
) -> bytes:
    """Returns the bytes to encrypt.

    Raises:
        ValueError: a path is not UTF-8, or it is too much.
    """
    held = sorted(files)
    header = msgspec.json.encode(
        _Header(
            FORMAT,
            session,
            [(path.decode("utf-8"), len(data)) for path, data in held],
            len(commit) if commit is not None else None,
        )
    )
    if len(header) > _HEADER_LIMIT:
        raise ValueError("it holds too many files")
    body = b"".join([header, b"\n", commit or b"", *(data for _, data in held)])
    if len(body) > RECORD_LIMIT:
        raise ValueError(f"it holds {len(body):,} bytes, more than {RECORD_LIMIT:,}")
    return zlib.compress(body)


def decode_record(raw: bytes, limit: int = RECORD_LIMIT) -> EncryptedContent:
    """Returns what was encrypted.

    Raises:
        ValueError: `raw` is not such content, or holds more than `limit` bytes.
    """
    body = _inflate(raw, min(limit, RECORD_LIMIT))
    at = body.find(b"\n", 0, _HEADER_LIMIT + 1)
    if at < 0:
        raise ValueError("it has no header")
    try:
        header = msgspec.json.decode(body[:at], type=_Header)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise ValueError(f"its header is damaged: {exc}") from exc
    if header.format != FORMAT:
        raise ValueError(f"it has format {header.format}; upgrade gitcp")
    at += 1

    def take(size: int) -> bytes:
        nonlocal at
        if size < 0 or at + size > len(body):
            raise ValueError("it is shorter than its header says")
        at += size
        return body[at - size : at]

    commit = None if header.commit is None else take(header.commit)
    files: dict[bytes, bytes] = {}
    for text, size in header.files:
        try:
            path = text.encode("utf-8")
        except UnicodeEncodeError as exc:
            raise ValueError("a path in it is not text") from exc
        if path in files:
            raise ValueError("it names a path twice")
        files[path] = take(size)
    if at != len(body):
        raise ValueError("it is longer than its header says")
    return EncryptedContent(header.session, files, commit)


def _inflate(raw: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        body = inflater.decompress(raw, limit + 1)
    except zlib.error as exc:
        raise ValueError(f"it is damaged: {exc}") from exc
    if len(body) > limit:
        raise ValueError(f"it holds more than {limit:,} bytes")
    if not inflater.eof or inflater.unused_data:
        raise ValueError("it is truncated, or something follows it")
    return body
