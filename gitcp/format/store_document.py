"""The content of an object store: paths, and a document per branch (docs/format.md, 28)."""

import re

import msgspec

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.layout import (
    EFFECTS,
    SESSIONS,
    BranchKey,
    RefKey,
    branch_key,
    ledger_key,
    ref_key,
)
from gitcp.format.oid import FORMS, PATTERN

VERSION = 1
SESSIONS_BELOW = "sessions/"
PACKS_BELOW = "packs/"
# A document of this many packs has at most some 400 bytes for each.
MOST_PACKS = 1000
MOST_BYTES = 1024 * 1024

_OID = re.compile(PATTERN)
_ID = re.compile(r"[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BRANCH = re.compile(r"sessions/([^/]+)/branches/([^/]+)\.json")
_LEDGER = re.compile(r"sessions/([^/]+)/ledger\.json")


class StoredPack(msgspec.Struct, frozen=True):
    """A pack: with those before it, and its anchors, it has all that `tip` reaches.

    `anchors` are commits of the project that the pack stands on: neither they nor what they
    reach is in it. `size` is in bytes, `sha256` that of its content.
    """

    id: str
    size: int
    sha256: str
    tip: str
    anchors: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where it lies in the store."""
        return f"{PACKS_BELOW}{self.id}.pack"


class Document(msgspec.Struct, frozen=True):
    """The document of a branch or ledger: its tip, and its packs, the oldest first."""

    format: int
    hash: str
    tip: str
    packs: tuple[StoredPack, ...]


class _Version(msgspec.Struct):
    format: int


_DECODER = msgspec.json.Decoder(Document)


def encode(document: Document) -> bytes:
    """Returns the document as it is stored."""
    return msgspec.json.encode(document) + b"\n"


def decode(raw: bytes) -> Document:
    """Returns the document that these bytes are.

    Raises:
        FormatTooNewError: a newer gitcp wrote it.
        CorruptError: the bytes are not a document.
    """
    try:
        version = msgspec.json.decode(raw, type=_Version).format
        if version > VERSION:
            raise FormatTooNewError(
                f"it has version {version} of an object store's format, and this gitcp"
                f" knows version {VERSION}",
                hint="update gitcp",
            )
        document = _DECODER.decode(raw)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise CorruptError(f"it is not a document: {exc}") from exc
    fault = _fault(document)
    if fault is not None:
        raise CorruptError(f"it is not a document: {fault}")
    return document


def _fault(document: Document) -> str | None:
    """Returns what is wrong with a document, if anything is."""
    if document.format != VERSION or document.hash not in FORMS:
        return "its format or its hash is unknown"
    digits = FORMS[document.hash].digits
    if not 0 < len(document.packs) <= MOST_PACKS:
        return f"it names {len(document.packs)} packs"
    oids = [document.tip]
    for pack in document.packs:
        oids += [pack.tip, *pack.anchors]
        if not (_ID.fullmatch(pack.id) and _SHA256.fullmatch(pack.sha256)):
            return "the name or checksum of a pack is not one"
        if pack.size <= 0:
            return f"the size of a pack is {pack.size}"
    if any(len(oid) != digits or not _OID.fullmatch(oid) for oid in oids):
        return "a commit in it is not an id"
    if document.packs[-1].tip != document.tip:
        return "its last pack has another tip"
    return None


def path_of(ref: str) -> str | None:
    """Returns where the document of a branch's or ledger's ref lies; None for any other."""
    key = ref_key(ref)
    if key is None:
        return None
    if isinstance(key, BranchKey):
        return f"{SESSIONS_BELOW}{key.session}/branches/{key.branch}.json"
    return f"{SESSIONS_BELOW}{key.session}/ledger.json"


def key_of(path: str) -> RefKey | None:
    """Returns which branch or ledger a document at a path is of; None if of neither."""
    if found := _BRANCH.fullmatch(path):
        return branch_key(f"{SESSIONS}{found[1]}/{found[2]}")
    if found := _LEDGER.fullmatch(path):
        return ledger_key(f"{EFFECTS}{found[1]}")
    return None


def below(prefix: str) -> str | None:
    """Returns where the documents of refs below a prefix lie; None if there are none."""
    if prefix in {SESSIONS, EFFECTS}:
        return SESSIONS_BELOW
    ledger = prefix.replace(SESSIONS, EFFECTS, 1).removesuffix("/")
    key = ledger_key(ledger)
    return None if key is None else f"{SESSIONS_BELOW}{key.session}/"
