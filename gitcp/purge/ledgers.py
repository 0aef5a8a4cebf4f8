"""Purges a ledger: rewrites its commits, with numbers and ids as they were."""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import UNSET, Raw
from msgspec.structs import replace

from gitcp.errors import CorruptError
from gitcp.format import tree
from gitcp.format.commit import with_purged
from gitcp.format.ledger import (
    INLINE,
    LedgerCommit,
    Record,
    encode_ledger_commit,
    value_name,
)
from gitcp.format.tree import FILE, Entry
from gitcp.git.objects import TREE
from gitcp.git.transaction import Transaction
from gitcp.ledger.signing import RecordSigner
from gitcp.purge.redact import Eraser


class PurgedLedger(NamedTuple):
    """The new id of each rewritten ledger commit, and the number of changed records.

    `named` are steps whose names or keys hold the value: these stay.
    """

    pages: dict[str, str]
    records: int
    named: tuple[str, ...]


def clean(
    opened: Transaction,
    signet: RecordSigner,
    component: str,
    pages: Iterable[LedgerCommit],
    eraser: Eraser,
) -> PurgedLedger:
    """Rewrites the ledger commits that hold a purged value, and all after them.

    Raises:
        CorruptError: a ledger commit or a value is missing.
    """
    new: dict[str, str] = {}
    named: list[str] = []
    count = 0
    for page in pages:
        parents = [new.get(parent, parent) for parent in page.parents]
        values = {one.n: _value(opened, page, one) for one in page.records if one.size}
        made = [_erased(signet, eraser, one, values) for one in page.records]
        named += [one.step or one.id for one in page.records if _known_by(eraser, one)]
        changed = sum(
            one != other for one, other in zip(made, page.records, strict=True)
        )
        if not changed and parents == list(page.parents):
            continue
        count += changed
        root, records = _stored(opened, page, made)
        raw = encode_ledger_commit(
            root,
            bytes.fromhex(parents[0]) if parents else None,
            opened.objects.commit(bytes.fromhex(page.oid)).epoch,
            component,
            records,
            joins=bytes.fromhex(parents[1]) if parents[1:] else None,
        )
        for old in (*page.purged, page.oid):
            raw = with_purged(raw, old)
        new[page.oid] = opened.add_commit(raw).hex()
    return PurgedLedger(new, count, tuple(dict.fromkeys(named)))


def _value(opened: Transaction, page: LedgerCommit, record: Record) -> bytes:
    entry = tree.lookup(page.tree, value_name(record.n), opened.objects.tree)
    if entry is None:
        raise CorruptError(
            f"the value of record {record.n} is missing", hint="run `gitcp verify`"
        )
    return opened.objects.blob(entry.oid)


def _known_by(eraser: Eraser, record: Record) -> bool:
    names = (record.step, record.scope, record.call, record.key, record.branch)
    return any(eraser.holds(name.encode()) for name in names)


def _erased(
    signet: RecordSigner, eraser: Eraser, record: Record, values: dict[int, bytes]
) -> Record:
    """Returns a record without the purged values; its identity stays."""

    def text(given: str) -> str:
        return eraser.erased(given.encode()).decode("utf-8", "replace")

    def texts(given: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(text, given))

    undo = record.undo
    if undo is not None:
        undo = replace(
            undo,
            command=texts(undo.command),
            directory=text(undo.directory),
            function=text(undo.function),
        )
    value, size, large = record.value, record.size, values.get(record.n)
    if large is not None:
        value, size = Raw(eraser.records(large)), 0
        if bytes(value) == large:
            value, size = UNSET, record.size
    elif value is not UNSET:
        value = Raw(eraser.records(bytes(value)))
    made = replace(
        record,
        reads=texts(record.reads),
        writes=texts(record.writes),
        command=texts(record.command),
        directory=text(record.directory),
        codec=text(record.codec),
        error=text(record.error),
        undo=undo,
        value=value,
        size=size,
    )
    if made == record:
        return record
    if (
        made.undo is not None
        and made.undo != record.undo
        and signet.is_our_undo(record)
    ):
        made = replace(made, undo=replace(made.undo, seal=signet.seal_undo(made)))
    if signet.is_ours(record, large):
        made = replace(made, seal=signet.seal(made, large))
    return made


def _stored(
    opened: Transaction, page: LedgerCommit, records: list[Record]
) -> tuple[bytes, list[Record]]:
    """Returns the tree of the large values, and the records without them."""
    before = opened.objects.tree(page.tree)
    entries: dict[bytes, Entry] = {}
    found = []
    for record in records:
        name = value_name(record.n)
        if record.value is UNSET or len(bytes(record.value)) <= INLINE:
            if record.value is UNSET and record.size:
                entries[name] = before[name]
            else:
                record = replace(record, size=0)  # noqa: PLW2901  it is told in the line
            found.append(record)
            continue
        data = bytes(record.value)
        entries[name] = Entry(FILE, opened.add_blob(data))
        found.append(replace(record, value=UNSET, size=len(data)))
    return opened.add_object(TREE, tree.encode(entries)), found
