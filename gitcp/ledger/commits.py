"""Encodes ledger commits (pages), and reads those that a commit reaches."""

from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import UNSET
from msgspec.structs import replace

from gitcp.format import layout, tree
from gitcp.format.checkpoint import timestamp
from gitcp.format.commit import Commit
from gitcp.format.ledger import (
    INLINE,
    LedgerCommit,
    Record,
    commit_of,
    encode_ledger_commit,
    value_name,
)
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import FILE, Entry
from gitcp.git.objects import BLOB, COMMIT, TREE
from gitcp.git.pack import entry
from gitcp.git.repository import Repository
from gitcp.names import encode

# Ledger commits, each after its parents; and the known ones that were met.
PagesRead = tuple[list[LedgerCommit], set[str]]


def new_page(
    session: str,
    records: Sequence[Record],
    parents: Sequence[str],
    last: int,
    now: float,
    form: ObjectFormat,
    seal: Callable[[Record], str],
) -> tuple[LedgerCommit, dict[bytes, bytes]]:
    """Returns a ledger commit with records, and the entries of its pack, by oid.

    `parents` are its parents, our own line first; `last` is the number of the record
    before, `now` is in seconds since 1970, `form` is the form of ids. `seal` returns the
    seal of a record.
    """
    at = timestamp(now)
    placed = (
        replace(record, n=last + number, at=at)
        for number, record in enumerate(records, 1)
    )
    numbered = [replace(record, seal=seal(record)) for record in placed]
    objects = _Objects(form)
    root, numbered = _store_values(objects, numbered)
    above = [bytes.fromhex(parent) for parent in parents]
    raw = encode_ledger_commit(
        root,
        above[0] if above else None,
        int(now),
        encode(session),
        numbered,
        joins=above[1] if len(above) > 1 else None,
    )
    oid = objects.add(COMMIT, raw).hex()
    return LedgerCommit(oid, tuple(parents), tuple(numbered), root), objects


def _store_values(
    objects: "_Objects", records: Sequence[Record]
) -> tuple[bytes, list[Record]]:
    """Moves large values into a tree; returns its oid and the records without them."""
    entries: dict[bytes, Entry] = {}
    stored = []
    for record in records:
        value = record.value
        if value is not UNSET and len(bytes(value)) > INLINE:
            data = bytes(value)
            oid = objects.add(BLOB, data)
            entries[value_name(record.n)] = Entry(FILE, oid)
            stored.append(replace(record, value=UNSET, size=len(data)))
        else:
            stored.append(record)
    return objects.add(TREE, tree.encode(entries)), stored


class _Objects(dict[bytes, bytes]):
    """The entries of a pack, by oid."""

    def __init__(self, form: ObjectFormat) -> None:
        super().__init__()
        self._form = form

    def add(self, kind: str, data: bytes) -> bytes:
        """Adds an object and returns its oid."""
        oid = self._form.oid(kind, data)
        self[oid] = entry(kind, data)
        return oid


def read_pages(
    read: Callable[[str], Commit], tip: str, where: str, known: Collection[str] = ()
) -> PagesRead:
    """Returns the ledger commits that a tip reaches, each after its parents.

    Commits in `known` are left out, with all that they reach. The second part of the
    result are the known commits that were met.

    Raises:
        CorruptError, FormatTooNewError: a ledger commit cannot be read.
    """
    pages: dict[str, LedgerCommit] = {}
    ordered: list[LedgerCommit] = []
    met: set[str] = set()
    ahead: list[tuple[str, bool]] = [(tip, False)]
    while ahead:
        oid, below_done = ahead.pop()
        if below_done:
            ordered.append(pages[oid])
        elif oid in known:
            met.add(oid)
        elif oid not in pages:
            page = commit_of(oid, read(oid), where)
            pages[oid] = page
            ahead.append((oid, True))
            ahead += [(parent, False) for parent in reversed(page.parents)]
    return ordered, met


def record_key(record: Record) -> tuple[str, int, str]:
    """Returns a key that differs for records of the same number on joined lines."""
    return record.id, record.n, record.at


def ledgers(repository: Repository) -> Iterator[tuple[str, str]]:
    """Yields the encoded session and the tip of each ledger."""
    for ref, oid in repository.refs.list(layout.EFFECTS).items():
        component = ref.removeprefix(layout.EFFECTS)
        if "/" not in component:
            yield component, oid
