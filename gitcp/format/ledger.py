"""The effects ledger: records, and the commits that hold them (docs/format.md, 12a)."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format import jsontext
from gitcp.format.checkpoint import Time, check_time
from gitcp.format.commit import WHO, Commit, converted, pairs, purged, raw_commit

LEDGER_FORMAT = 1
# Larger values lie beside the message, in the commit's tree.
INLINE = 8 * 1024

NONE, LOCAL, REVERSIBLE, IRREVERSIBLE = "none", "local", "reversible", "irreversible"
EFFECTS = (NONE, LOCAL, REVERSIBLE, IRREVERSIBLE)
# What reaches beyond the project: a restore does not bring it back.
OUTSIDE = frozenset({REVERSIBLE, IRREVERSIBLE})

INTENT, RESULT, FAILED, UNKNOWN, ANSWER = (
    "intent",
    "result",
    "failed",
    "unknown",
    "answer",
)
UNDOING, UNDONE, UNDO_FAILED, KEPT = "undoing", "undone", "undo-failed", "kept"
BACK, LINE, JOINED = "back", "line", "joined"
ABOUT_STEPS = frozenset(
    {INTENT, RESULT, FAILED, UNKNOWN, ANSWER, UNDOING, UNDONE, UNDO_FAILED, KEPT}
)
KINDS = ABOUT_STEPS | {BACK, LINE, JOINED}

_TRAILER = rb"Gitcp-(Ledger|Last|Version|Encrypted): ([!-~]+)"
_SUBJECT = 72
_SEALED = "gitcp record 2"


class Undo(msgspec.Struct, frozen=True, omit_defaults=True):
    """The undo of a step: a `command` in a `directory`, or a Python `function`.

    `seal` shows that this repository wrote it: what came with a pull has another.
    """

    command: tuple[str, ...] = ()
    directory: str = ""
    function: str = ""
    seal: str = ""


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A ledger record, with its fields in the order on disk.

    `id` names the step, the same in all records about it. `call` tells the calls of
    one step name apart: a number, or the key that the caller gave.
    """

    n: int
    at: Time
    kind: str
    branch: str
    id: str = ""
    step: str = ""
    scope: str = ""
    call: str = ""
    attempt: int = 0
    key: str = ""
    effect: str = ""
    input: str = ""
    policy: str = ""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    undo: Undo | None = None
    command: tuple[str, ...] = ()
    directory: str = ""
    before: str = ""
    left: str = ""
    codec: str = ""
    by: str = ""
    value: Raw | UnsetType = UNSET
    size: int = 0
    error: str = ""
    answer: str = ""
    of: str = ""
    upto: int = 0
    checkpoint: str = ""
    restore: str = ""
    ledger: str = ""
    seal: str = ""


class LedgerCommit(NamedTuple):
    """A ledger commit: its records, and its parents.

    A page of two parents joins the two lines that grew from where they met. `purged` are
    commits that it stands for since a secret was taken out of them, `converted` those that
    it was in repositories of another hash.
    """

    oid: str
    parents: tuple[str, ...]
    records: tuple[Record, ...]
    tree: bytes = b""
    purged: tuple[str, ...] = ()
    converted: tuple[str, ...] = ()


class LedgerTrailers(NamedTuple):
    """The trailers of a ledger commit: the session's component, the last n."""

    session: str
    last: int
    version: int


def encode_record(record: Record) -> bytes:
    """Returns the canonical line of a record."""
    return msgspec.json.encode(record) + b"\n"


def decode_record(line: bytes, where: str) -> Record:
    """Returns the record in a line.

    Raises:
        CorruptError: the line is not a record.
    """
    try:
        try:
            record = msgspec.json.decode(line, type=Record)
        except msgspec.MsgspecError:
            # A value may hold what msgspec refuses: the escape of a lone surrogate.
            fields = {name: Raw(raw) for name, raw in jsontext.members(line).items()}
            value = fields.pop("value", UNSET)
            rest = msgspec.json.decode(msgspec.json.encode(fields), type=Record)
            record = msgspec.structs.replace(rest, value=value)
        check_time(record.at)
    except (msgspec.MsgspecError, RecursionError, ValueError) as exc:
        raise CorruptError(
            f"a record of {where} is damaged: {exc}", hint="run `gitcp verify`"
        ) from exc
    if record.kind not in KINDS:
        raise CorruptError(
            f"{where} has a record of the unknown kind {record.kind!a}",
            hint="run `gitcp verify`",
        )
    if record.effect and record.effect not in EFFECTS:
        raise CorruptError(
            f"{where} has a record of the unknown effect {record.effect!a}",
            hint="run `gitcp verify`",
        )
    return record


def value_name(number: int) -> bytes:
    """Returns the name of a large value in the commit's tree."""
    return b"%d.json" % number


def encode_ledger_commit(
    tree: bytes,
    parent: bytes | None,
    epoch: int,
    session: str,
    records: Sequence[Record],
    joins: bytes | None = None,
) -> bytes:
    """Returns the raw commit of records; `session` is the ref component.

    `joins` is the end of another line that this one takes in.
    """
    message = b"".join(
        [
            _subject(records),
            b"\n\n",
            *map(encode_record, records),
            f"\nGitcp-Ledger: {session}\nGitcp-Last: {records[-1].n}\n"
            f"Gitcp-Version: {LEDGER_FORMAT}\n".encode(),
        ]
    )
    parents = [one for one in (parent, joins) if one is not None]
    return raw_commit(tree, parents, epoch, message)


def _subject(records: Sequence[Record]) -> bytes:
    """Returns what `git log --oneline` shows; nothing reads it."""
    first = records[0]
    name = first.step or first.id or first.branch
    text = f"#{first.n} {first.kind} {name}"
    if len(records) > 1:
        text += f" and {len(records) - 1} more"
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown[:_SUBJECT].encode("utf-8", "replace")


def ledger_trailers(commit: Commit) -> LedgerTrailers | None:
    """Returns the trailers of a ledger's commit, or None for any other commit."""
    if not commit.committer.startswith(WHO + b" "):
        return None
    last = commit.message.rstrip(b"\n").rpartition(b"\n\n")[2]
    found = {
        match[1]: match[2].decode()
        for match in (re.fullmatch(_TRAILER, line) for line in last.split(b"\n"))
        if match
    }
    if b"Encrypted" in found:
        # It only stands for a page, and cannot be read as one (docs/format.md, 19).
        return None
    try:
        return LedgerTrailers(
            found[b"Ledger"], int(found[b"Last"]), int(found.get(b"Version", "1"))
        )
    except (KeyError, ValueError):
        return None


def records_of(commit: Commit, where: str) -> tuple[Record, ...]:
    """Returns the records that a ledger's commit holds.

    Raises:
        CorruptError: the commit is not a ledger's, or a record is damaged.
        FormatTooNewError: a newer gitcp wrote it.
    """
    trailers = ledger_trailers(commit)
    if trailers is None:
        if {"Ledger", "Encrypted"} <= pairs(commit).keys():
            raise CorruptError(
                f"{where} holds a page that is encrypted: only `gitcp pull`"
                " decrypts it",
                hint="pull the session from the remote that has it",
            )
        raise CorruptError(
            f"{where} holds a commit that is not the ledger's",
            hint="run `gitcp verify`",
        )
    if trailers.version > LEDGER_FORMAT:
        raise FormatTooNewError(
            f"{where} has format {trailers.version};"
            f" this gitcp knows up to {LEDGER_FORMAT}",
            hint="upgrade gitcp",
        )
    body = commit.message.partition(b"\n\n")[2].rpartition(b"\n\n")[0]
    return tuple(decode_record(line, where) for line in body.split(b"\n") if line)


def commit_of(oid: str, commit: Commit, where: str) -> LedgerCommit:
    """Returns what a ledger's commit holds.

    Raises:
        CorruptError, FormatTooNewError: as `records_of` does.
    """
    return LedgerCommit(
        oid,
        tuple(parent.hex() for parent in commit.parents),
        records_of(commit, where),
        commit.tree,
        tuple(sorted(purged(commit))),
        converted(commit),
    )


def sealed_text(record: Record, session: str, large: bytes | None = None) -> bytes:
    """Returns the bytes that a record's seal covers: its ledger, its place, what it says.

    `session` is the ref component. `large` is the value of a record that has a `size`: it
    lies in the commit's tree.
    """
    value = large if record.size else record.value
    digest = "" if value is None or value is UNSET else sha256(value).hexdigest()
    head = f"{_SEALED}\n{session}\n{digest}\n"
    return head.encode() + encode_record(_without_value(record))


def old_sealed_text(record: Record) -> bytes:
    """Returns what gitcp 0.1.0 sealed: neither value nor place."""
    return encode_record(msgspec.structs.replace(_without_value(record), n=0, at=""))


def _without_value(record: Record) -> Record:
    return msgspec.structs.replace(record, value=UNSET, size=0, seal="")


def undo_text(record: Record) -> bytes:
    """Returns what an undo's seal is made over: all that decides what would be run."""
    undo = record.undo or Undo()
    return msgspec.json.encode(
        [
            record.id,
            record.step,
            record.key,
            undo.command,
            undo.directory,
            undo.function,
        ]
    )


def document(record: Record) -> Mapping[str, Any]:
    """Returns a record as plain data, for output."""
    fields: Mapping[str, Any] = jsontext.decode(encode_record(record))
    return fields
