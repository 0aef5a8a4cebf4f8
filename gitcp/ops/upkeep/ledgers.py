"""Checking an effects ledger (docs/format.md, 12a): E1, E3, and that it is readable."""

from collections.abc import Iterator
from typing import NamedTuple

from gitcp.errors import GitcpError
from gitcp.format import layout
from gitcp.format.commit import Commit
from gitcp.format.ledger import (
    ABOUT_STEPS,
    INTENT,
    Record,
    encode_record,
    ledger_trailers,
    records_of,
    value_name,
)
from gitcp.format.tree import FILE
from gitcp.git.objects import BLOB, COMMIT, TREE, Objects, object_id
from gitcp.git.repository import Repository


class Fault(NamedTuple):
    """Something wrong in a ledger; `kind` and `oid` name the object at fault."""

    problem: str
    kind: str | None = None
    oid: bytes | None = None


def faults(repository: Repository, component: str, tip: str) -> Iterator[Fault]:
    """Yields what is wrong with a ledger, its oldest commit first."""
    ref = f"{layout.EFFECTS}{component}"
    objects = repository.objects
    line: list[tuple[bytes, Commit]] = []
    oid: bytes | None = bytes.fromhex(tip)
    while oid is not None:
        try:
            commit = objects.commit(oid)
            raw = objects.read(oid, COMMIT)
        except GitcpError as exc:
            yield Fault(exc.message, COMMIT, oid)
            break
        if object_id(COMMIT, raw) != oid:
            yield Fault("its content does not match its id", COMMIT, oid)
        if len(commit.parents) > 1:
            yield Fault(f"{oid.hex()} has more than one parent (E1)")
        line.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    last = 0
    known: set[str] = set()
    for oid, commit in reversed(line):
        try:
            records = records_of(commit, ref)
        except GitcpError as exc:
            yield Fault(exc.message)
            return
        said = ledger_trailers(commit)
        if said is not None and said.session != component:
            yield Fault(f"{oid.hex()} is of another session's ledger")
        if not records or said is None or said.last != records[-1].n:
            yield Fault(f"{oid.hex()} does not end where it says")
        for record in records:
            # Where the beginning is damaged the numbers before are not known.
            if last and record.n != last + 1:
                yield Fault(f"record {record.n} follows on {last} (E3)")
            elif not last and not line[-1][1].parents and record.n != 1:
                yield Fault(f"the first record is {record.n} (E3)")
            last = record.n
            if encode_record(record).rstrip(b"\n") not in commit.message:
                yield Fault(f"record {record.n} is not written as it should be")
            yield from _about(record, known, complete=not line[-1][1].parents)
        yield from _values(objects, commit, records)


def _about(record: Record, known: set[str], *, complete: bool) -> Iterator[Fault]:
    if record.kind not in ABOUT_STEPS:
        return
    if record.kind == INTENT:
        known.add(record.id)
    elif record.id not in known and complete:
        yield Fault(f"record {record.n} is about a step that never began (E3)")


def _values(
    objects: Objects, commit: Commit, records: tuple[Record, ...]
) -> Iterator[Fault]:
    try:
        entries = objects.tree(commit.tree)
    except GitcpError as exc:
        yield Fault(exc.message, TREE, commit.tree)
        return
    wanted = {value_name(one.n): one.size for one in records if one.size}
    if {name for name, entry in entries.items() if entry.mode == FILE} != set(wanted):
        yield Fault(f"the values of record {records[0].n} are not those it names")
        return
    for name, entry in entries.items():
        try:
            data = objects.blob(entry.oid)
        except GitcpError as exc:
            yield Fault(exc.message, BLOB, entry.oid)
            continue
        if object_id(BLOB, data) != entry.oid:
            yield Fault("its content does not match its id", BLOB, entry.oid)
        elif len(data) != wanted[name]:
            yield Fault(f"{name.decode()} is not as long as its record says")
