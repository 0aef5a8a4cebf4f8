"""Checks an effects ledger (docs/format.md, 12a): E1, E3, and that gitcp can read it."""

from collections.abc import Container, Iterator
from typing import NamedTuple

from gitcp.errors import GitcpError, UsageError
from gitcp.format import jsontext
from gitcp.format.commit import Commit, purged
from gitcp.format.layout import LedgerKey
from gitcp.format.ledger import (
    ABOUT_STEPS,
    BACK,
    INTENT,
    JOINED,
    LINE,
    Record,
    encode_record,
    ledger_trailers,
    records_of,
    value_name,
)
from gitcp.format.oid import is_object
from gitcp.format.tree import FILE
from gitcp.git.objects import BLOB, COMMIT, TREE, Objects
from gitcp.git.repository import Repository
from gitcp.names import encode

# The largest ledger commit that one append has ever made has a hundredth of this size.
_PAGE_LIMIT = 32 * 1024 * 1024
_PARENTS = 2


class Fault(NamedTuple):
    """A fault in a ledger; `kind` and `oid` name the object at fault."""

    problem: str
    kind: str | None = None
    oid: bytes | None = None


def faults(
    repository: Repository,
    component: str,
    tip: str,
    new: Container[bytes] | None = None,
) -> Iterator[Fault]:
    """Yields the faults of a ledger, each commit after its parents.

    With `new`, reads from other commits only the data that later ones need.
    """
    return _Check(repository.objects, component, new).run(tip)


class _Check:
    def __init__(
        self, objects: Objects, component: str, new: Container[bytes] | None
    ) -> None:
        self._objects = objects
        self._component = component
        self._new = new
        self._ref = LedgerKey(component).ref
        self._commits: dict[bytes, Commit] = {}
        # The number of the last record of each commit, None if it is not known.
        self._last: dict[bytes, int | None] = {}
        self._known: set[str] = set()
        self._stands_for: set[str] = set()
        self._whole = True

    def run(self, tip: str) -> Iterator[Fault]:
        order: list[bytes] = []
        ahead = [(bytes.fromhex(tip), False)]
        while ahead:
            oid, below_done = ahead.pop()
            if below_done:
                order.append(oid)
                continue
            if oid in self._commits or oid in self._last:
                continue
            fault = self._load(oid)
            if fault is not None:
                yield fault
                self._last[oid] = None
                self._whole = False
                continue
            ahead.append((oid, True))
            ahead += [(parent, False) for parent in self._commits[oid].parents]
        for oid in order:
            yield from self._page(oid, self._commits[oid])

    def _load(self, oid: bytes) -> Fault | None:
        try:
            kind, size = self._objects.header(oid)
            if kind != COMMIT:
                return Fault(f"{oid.hex()} is a {kind}, not a commit", COMMIT, oid)
            if size > _PAGE_LIMIT:
                return Fault(f"the commit {oid.hex()} is too large")
            self._commits[oid] = self._objects.commit(oid)
        except GitcpError as exc:
            return Fault(exc.message, COMMIT, oid)
        return None

    def _page(self, oid: bytes, commit: Commit) -> Iterator[Fault]:
        self._last[oid] = None
        looked = self._new is None or oid in self._new
        if looked:
            raw = self._objects.read(oid, COMMIT)
            if not is_object(oid, COMMIT, raw):
                yield Fault("its content does not match its id", COMMIT, oid)
        try:
            records = records_of(commit, self._ref)
        except GitcpError as exc:
            yield Fault(exc.message)
            return
        said = ledger_trailers(commit)
        if said is not None and said.session != self._component:
            yield Fault(f"{oid.hex()} is of another session's ledger")
        if not records or said is None or said.last != records[-1].n:
            yield Fault(f"{oid.hex()} does not end where it says")
        joins = [one.kind for one in records].count(JOINED)
        if len(commit.parents) > _PARENTS or joins != max(0, len(commit.parents) - 1):
            yield Fault(f"{oid.hex()} has parents that it does not join (E1)")
        before = self._last.get(commit.parents[0]) if commit.parents else 0
        for record in records:
            # If the beginning is damaged, the numbers before are not known.
            if before is not None and record.n != before + 1:
                yield Fault(f"record {record.n} follows on {before} (E3)")
            before = record.n
            if looked:
                yield from self._record(record, commit)
            self._known.add(record.id)
        self._last[oid] = before
        if looked:
            yield from self._values(commit, records)

    def _record(self, record: Record, commit: Commit) -> Iterator[Fault]:
        if encode_record(record).rstrip(b"\n") not in commit.message:
            yield Fault(f"record {record.n} is not written as it should be")
        if record.kind != JOINED:
            try:
                encode(record.branch)
            except UsageError as exc:
                yield Fault(f"record {record.n}: {exc.message}")
        if (
            record.kind in ABOUT_STEPS - {INTENT}
            and record.id not in self._known
            and self._whole
        ):
            yield Fault(f"record {record.n} is about a step that never began (E3)")
        if record.kind in {BACK, LINE}:
            yield from self._state(record)

    def _state(self, record: Record) -> Iterator[Fault]:
        """Checks that the state to which a record goes back is before the record."""
        if not record.ledger:
            if not 0 <= record.upto < record.n:
                yield Fault(f"record {record.n} goes back to {record.upto} (E3)")
            return
        try:
            oid = bytes.fromhex(record.ledger)
        except ValueError:
            yield Fault(
                f"record {record.n} names {record.ledger!a}, which is not a commit"
            )
            return
        if (
            self._whole
            and oid not in self._last
            and not self._was_purged(record.ledger)
        ):
            yield Fault(f"record {record.n} goes back to what is not before it (E1)")

    def _was_purged(self, oid: str) -> bool:
        if not self._stands_for:
            self._stands_for = {
                old for one in self._commits.values() for old in purged(one)
            }
        return oid in self._stands_for

    def _values(self, commit: Commit, records: tuple[Record, ...]) -> Iterator[Fault]:
        objects = self._objects
        try:
            entries = objects.tree(commit.tree)
        except GitcpError as exc:
            yield Fault(exc.message, TREE, commit.tree)
            return
        wanted = {value_name(one.n): one.size for one in records if one.size}
        files = {name for name, entry in entries.items() if entry.mode == FILE}
        if files != set(wanted) or len(entries) != len(wanted):
            yield Fault(f"the values of record {records[0].n} are not those it names")
            return
        for name, entry in entries.items():
            try:
                data = objects.blob(entry.oid)
            except GitcpError as exc:
                yield Fault(exc.message, BLOB, entry.oid)
                continue
            if not is_object(entry.oid, BLOB, data):
                yield Fault("its content does not match its id", BLOB, entry.oid)
            elif len(data) != wanted[name]:
                yield Fault(f"{name.decode()} is not as long as its record says")
            elif not _is_json(data):
                yield Fault(f"{name.decode()} is not JSON")


def _is_json(data: bytes) -> bool:
    try:
        jsontext.decode(data)
    except ValueError:
        return False
    return True
