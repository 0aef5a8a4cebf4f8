"""`checkpoint.json` and the other files of `.gitcp` (docs/format.md, 4 and 5)."""

import base64
import datetime
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.jsontext import compact
from gitcp.format.layout import FORMAT, FORMAT_WITH_CHUNKS
from gitcp.format.oid import SHA1, SHA256

_MILLISECOND = 1_000
# The trigger of what took place before gitcp was there to see it: it holds no files.
IMPORT = "import"

# What a field of a record may hold, of any origin: such text is printed, compared
# and given to git as an argument.
Time = Annotated[
    str, msgspec.Meta(pattern=r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z\Z")
]
ObjectId = Annotated[
    str, msgspec.Meta(pattern=rf"\A({SHA1.pattern}|{SHA256.pattern})\Z")
]
CheckpointId = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{12}\Z")]
Operation = Annotated[str, msgspec.Meta(pattern=r"\A[a-z-]{1,20}\Z")]


# git's own times begin with the first; a zone may show the last as the year behind it.
_FIRST_YEAR, _LAST_YEAR = 1970, 9998


def check_time(text: str) -> None:
    """Checks a time that has the form of one.

    Raises:
        ValueError: no calendar has it, as the 30th of February, or it is out of bounds.
    """
    year = datetime.datetime.fromisoformat(text).year
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        raise ValueError(f"the year {year} is not between 1970 and 9998")


def storable(epoch: float) -> float:
    """Returns the nearest time that a checkpoint can have, in seconds since 1970."""
    last = datetime.datetime(_LAST_YEAR, 12, 31, 23, 59, 59, tzinfo=datetime.UTC)
    return min(max(epoch, 0.0), last.timestamp())


def timestamp(epoch: float) -> str:
    """Returns a time as RFC 3339 in UTC with milliseconds."""
    moment = datetime.datetime.fromtimestamp(
        round(epoch * _MILLISECOND) / _MILLISECOND, datetime.UTC
    )
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Base(msgspec.Struct, frozen=True):
    """The state of the user's own history at a save."""

    commit: ObjectId | None
    branch: str | None
    operation: Operation | None = None


class Files(msgspec.Struct, frozen=True, omit_defaults=True):
    """The root tree without `.gitcp`, and counts against the previous checkpoint.

    If no files were looked at, `captured` is false, and the tree means nothing.
    """

    tree: ObjectId | None
    added: int
    modified: int
    deleted: int
    captured: bool = True


class Conversation(msgspec.Struct, frozen=True):
    """The source last written; `messages` are records, `bytes` its size."""

    source: str
    kind: str
    messages: int
    bytes: int
    segments: int
    digest: str
    agent_session: str | None = None


class LogTotals(msgspec.Struct, frozen=True):
    """Totals of the decision log or the steps."""

    entries: int
    bytes: int
    segments: int
    digest: str


class Sealed(msgspec.Struct, frozen=True):
    """Provenance: the seal of the repository, and what it knew to be made elsewhere.

    `files` and `logs` name where these came from, None for where it was made.
    """

    seal: str
    files: str | None = None
    logs: str | None = None


class Converted(msgspec.Struct, frozen=True, rename={"hash": "from"}):
    """A way from a repository of another hash: git's name of it, and the base there."""

    hash: str
    base: ObjectId | None


NULL = msgspec.Raw(b"null")


class Manifest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The content of `checkpoint.json`; its size does not grow with history.

    `position` and `metadata` are JSON text, `null` for none. `effects` is the number of
    the last record of the session's ledger then, `ledger` the commit that has it; they
    are left out if there is none. `converted` has an entry for each time that it came
    from a repository of another hash.
    """

    format: int
    id: CheckpointId
    session: str
    branch: str
    seq: int
    created: Time
    trigger: str
    note: str | None
    label: str | None
    author: str | None
    base: Base | None
    position: msgspec.Raw
    metadata: msgspec.Raw
    files: Files
    conversation: Conversation | None
    decisions: LogTotals | None
    steps: LogTotals | None
    task: str | None
    skipped: int
    restored_from: CheckpointId | None
    replaced: CheckpointId | None
    forked_from: CheckpointId | None
    origin: Sealed | None = None
    effects: int = 0
    ledger: str = ""
    converted: tuple[Converted, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a time that no calendar has."""
        check_time(self.created)


class _Version(msgspec.Struct):
    format: int


def encode_manifest(manifest: Manifest) -> bytes:
    """Returns the canonical bytes."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def decode_manifest(raw: bytes, where: str) -> Manifest:
    """Returns the manifest in `raw`; `where` names it in errors.

    Raises:
        FormatTooNewError: a newer version of gitcp wrote the manifest.
        CorruptError: `raw` is not a manifest.
    """
    try:
        version = msgspec.json.decode(raw, type=_Version).format
        if version > FORMAT and version != FORMAT_WITH_CHUNKS:
            raise FormatTooNewError(
                f"{where} has format {version}, which this gitcp does not know",
                hint="upgrade gitcp",
            )
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as exc:
        raise CorruptError(
            f"the checkpoint.json of {where} is damaged: {exc}",
            hint="run `gitcp verify`",
        ) from exc
    # The indent of the file is not part of what was given.
    return msgspec.structs.replace(
        manifest,
        position=_compact(manifest.position),
        metadata=_compact(manifest.metadata),
    )


def _compact(raw: msgspec.Raw) -> msgspec.Raw:
    return NULL if bytes(raw) == b"null" else msgspec.Raw(compact(bytes(raw)))


# Parts of a path that no file has for a name.
_NO_NAMES = frozenset({b"", b".", b".."})


# The reason of a path that was captured: as what a database and its log hold together.
BACKUP = "sqlite-backup"


class Skipped(NamedTuple):
    """A path that was not captured as the file that it is, or not for sure, and why."""

    path: bytes
    reason: str


class _SkippedLine(msgspec.Struct, omit_defaults=True):
    path: str
    reason: str
    path_b64: str | None = None

    def path_bytes(self) -> bytes:
        """Returns the path.

        Raises:
            ValueError: no file can have it.
        """
        path = self.path.encode()
        if self.path_b64 is not None:
            path = base64.b64decode(self.path_b64, validate=True)
        if b"\0" in path or not _NO_NAMES.isdisjoint(path.split(b"/")):
            raise ValueError(f"{show_path(path)!a} is not a path")
        return path


def show_path(path: bytes) -> str:
    """Returns a path as text; bytes that are not UTF-8 are escaped in hex."""
    return path.decode("utf-8", "backslashreplace")


def is_text(path: bytes) -> bool:
    """Whether a path is valid UTF-8."""
    try:
        path.decode()
    except UnicodeDecodeError:
        return False
    return True


def left_out_of(skipped: Iterable[Skipped]) -> list[Skipped]:
    """Returns what was not captured, without what was captured in another way."""
    return [one for one in skipped if one.reason != BACKUP]


def encode_skipped(skipped: Iterable[Skipped]) -> bytes:
    """Returns `skipped.jsonl`: one object a line, sorted by path."""
    return b"".join(
        msgspec.json.encode(
            _SkippedLine(
                show_path(path),
                reason,
                None if is_text(path) else base64.b64encode(path).decode(),
            )
        )
        + b"\n"
        for path, reason in sorted(set(skipped))
    )


def decode_skipped(raw: bytes, where: str) -> Iterator[Skipped]:
    """Yields the entries of `skipped.jsonl`.

    Raises:
        CorruptError: a line is none.
    """
    decoder = msgspec.json.Decoder(_SkippedLine)
    for line in raw.splitlines():
        try:
            entry = decoder.decode(line)
            path = entry.path_bytes()
        except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
            raise CorruptError(
                f"the skipped.jsonl of {where} is damaged: {exc}",
                hint="run `gitcp verify`",
            ) from exc
        yield Skipped(path, entry.reason)


def encode_empty_dirs(paths: Iterable[bytes]) -> bytes:
    """Returns `empty-dirs.txt`."""
    return b"".join(path + b"\0" for path in sorted(paths))


def decode_empty_dirs(raw: bytes) -> list[bytes]:
    """Returns the paths in `empty-dirs.txt`."""
    return raw.split(b"\0")[:-1]
