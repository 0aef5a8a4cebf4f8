"""Segments of logs and their totals (docs/format.md, 6), and decision entries."""

import hashlib
import re
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from gitcp.errors import CorruptError
from gitcp.format.layout import FORMAT
from gitcp.format.oid import PATTERN

EMPTY_DIGEST = hashlib.sha256(b"").hexdigest()


class Meta(msgspec.Struct, frozen=True):
    """`meta.json` of a source; `messages` counts its records."""

    format: int
    name: str
    kind: str
    messages: int
    bytes: int
    segments: int
    digest: str
    agent_session: str | None = None


def empty_meta(name: str, kind: str) -> Meta:
    """Returns the totals of a source that holds nothing yet."""
    return Meta(FORMAT, name, kind, 0, 0, 0, EMPTY_DIGEST)


def chain(digest: str, segment: bytes) -> str:
    """Returns the digest of a log after one more segment."""
    return hashlib.sha256(bytes.fromhex(digest) + segment).hexdigest()


class Link:
    """The digest of a log after one more segment, taken in by pieces; as `chain`."""

    def __init__(self, digest: str) -> None:
        self._hashed = hashlib.sha256(bytes.fromhex(digest))
        self.size = 0
        self.lines = 0

    def add(self, piece: bytes) -> None:
        """Takes the next piece of the segment."""
        self._hashed.update(piece)
        self.size += len(piece)
        self.lines += piece.count(b"\n")

    @property
    def digest(self) -> str:
        """The digest with all that was taken."""
        return self._hashed.hexdigest()


def encode_meta(meta: Meta) -> bytes:
    """Returns the canonical bytes of `meta.json`."""
    return msgspec.json.encode(meta) + b"\n"


def decode_meta(raw: bytes, where: str) -> Meta:
    """Returns the totals in `meta.json`.

    Raises:
        CorruptError: `raw` is not such a file.
    """
    try:
        return msgspec.json.decode(raw, type=Meta)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise CorruptError(
            f"the meta.json of {where} is damaged: {exc}", hint="run `gitcp verify`"
        ) from exc


KINDS = ("decision", "tried", "fact", "task", "next", "note", "bug", "active")


class Decision(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the decision log.

    `kind` is one of `decision`, `tried` (and failed), `fact`, `task`, `next`, `note`,
    `bug` and `active` (the files in work, in `paths`); `at` is RFC 3339 in UTC and is
    filled in by the save.
    """

    text: str
    why: str | None = None
    kind: str = "decision"
    at: str | None = None
    paths: tuple[str, ...] = ()


class _StoredDecision(msgspec.Struct, omit_defaults=True):
    """Field order on disk; `kind` is always written."""

    kind: str
    text: str
    why: str | None = None
    at: str | None = None
    paths: tuple[str, ...] = ()


def encode_decision(entry: Decision) -> bytes:
    """Returns one line of the decision log."""
    return (
        msgspec.json.encode(
            _StoredDecision(entry.kind, entry.text, entry.why, entry.at, entry.paths)
        )
        + b"\n"
    )


def decode_decisions(raw: bytes, where: str) -> Iterator[Decision]:
    """Yields the entries in a decision log; unknown kinds come through as they are.

    Raises:
        CorruptError: a line is not an entry.
    """
    for entry in _entries(raw, _StoredDecision, where):
        yield Decision(entry.text, entry.why, entry.kind, entry.at, entry.paths)


# Lines of either file, as they are stored.
_Stored = TypeVar("_Stored", bound=msgspec.Struct)


def _entries(raw: bytes, kind: type[_Stored], where: str) -> Iterator[_Stored]:
    decoder = msgspec.json.Decoder(kind)
    for line in raw.splitlines():
        try:
            yield decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
            raise CorruptError(
                f"the decision log of {where} is damaged: {exc}",
                hint="run `gitcp verify`",
            ) from exc


class AgentSession(msgspec.Struct, frozen=True):
    """A conversation in a client: the client's name, and its own id of the conversation."""

    agent: str
    ident: str


class Waiting(msgspec.Struct, frozen=True):
    """An entry that waits for a checkpoint: of the session that recorded it, if known."""

    entry: Decision
    by: AgentSession | None = None


class _StoredWaiting(_StoredDecision, omit_defaults=True):
    """What waits is a line of a decision log, and whose it is."""

    agent: str | None = None
    agent_session: str | None = None


def encode_waiting(waiting: Waiting) -> bytes:
    """Returns one line of `pending.jsonl`."""
    entry, by = waiting.entry, waiting.by
    stored = _StoredWaiting(
        *(entry.kind, entry.text, entry.why, entry.at, entry.paths),
        agent=by.agent if by else None,
        agent_session=by.ident if by else None,
    )
    return msgspec.json.encode(stored) + b"\n"


def decode_waiting(raw: bytes) -> Iterator[Waiting]:
    """Yields the entries in `pending.jsonl`.

    Raises:
        CorruptError: a line is not an entry.
    """
    for one in _entries(raw, _StoredWaiting, "the next save (pending.jsonl)"):
        by = None
        if one.agent is not None and one.agent_session is not None:
            by = AgentSession(one.agent, one.agent_session)
        yield Waiting(Decision(one.text, one.why, one.kind, one.at, one.paths), by)


class Rewrite(msgspec.Struct, frozen=True):
    """A commit that has taken another one's place; both by id, 40 hex digits."""

    old: str
    new: str


_OID = re.compile(PATTERN)


def encode_rewrite(entry: Rewrite) -> bytes:
    """Returns one line of the log of rewritten commits."""
    return msgspec.json.encode(entry) + b"\n"


def decode_rewrites(raw: bytes) -> Iterator[Rewrite]:
    """Yields the entries in a log of rewritten commits; what is none is left out.

    They only help to find something: what they cannot say is not worth an error.
    """
    decoder = msgspec.json.Decoder(Rewrite)
    for line in raw.splitlines():
        try:
            entry = decoder.decode(line)
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            continue
        if _OID.fullmatch(entry.old) and _OID.fullmatch(entry.new):
            yield entry
