"""Scans objects for secrets; a finding has places, never the value."""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import CorruptError, GitcpError
from gitcp.format import layout, tree
from gitcp.git.repository import Repository
from gitcp.names import decode
from gitcp.secrets import dotenv
from gitcp.secrets.cache import Clean
from gitcp.secrets.outgoing import MESSAGE, NAMES, FirstSeen, Piece, content
from gitcp.secrets.scanner import Hit, Scanner

Progress = Callable[[int], None]
# Called with the id of a commit, and the reason why a part of it cannot be read.
Unreadable = Callable[[str, GitcpError], None]
_NUMBER = re.compile(rb'\{"n":(\d{1,18}),')


class Place(NamedTuple):
    """The place of a secret.

    `kind` is `file`, `conversation`, `decisions`, `steps`, `checkpoint` (gitcp's own
    fields), `message` (of the commit), `name` (of a path, session or branch) or `ledger`
    (the records of steps). `number` counts lines of a file, records of a log, from 1.
    """

    kind: str
    path: bytes
    number: int | None
    commit: str
    checkpoint: str | None
    session: str | None
    branch: str | None
    seq: int | None


class Finding(NamedTuple):
    """A secret: its rule, its fingerprint, and its places; never its value."""

    rule: str
    fingerprint: str
    places: tuple[Place, ...]


class ScanReport(NamedTuple):
    """The findings of a scan, and the number of objects that it scanned."""

    findings: tuple[Finding, ...]
    scanned: int


def look(
    repository: Repository,
    scanner: Callable[[], Scanner],
    clean: Callable[[Scanner], Clean],
    pieces: Iterable[Piece],
    progress: Progress | None = None,
    unreadable: Unreadable | None = None,
) -> ScanReport:
    """Scans pieces, every blob once, by a scanner that is made on first use.

    Calls `unreadable` for a blob that cannot be read; without it, raises CorruptError.
    """
    scan: Scanner | None = None
    known: Clean | None = None
    hits: dict[tuple[bytes, bool], list[Hit]] = {}
    found: dict[str, tuple[str, list[Place]]] = {}
    named: dict[bytes, str] = {}
    count = 0
    for piece in pieces:
        if scan is None or known is None:
            scan = scanner()
            known = clean(scan)
        # A blob that is clean at another path may have secrets as an `.env` file.
        strict = dotenv.is_dotenv(piece.path)
        if piece.oid is None:
            new = scan.scan([piece.text])
        elif piece.oid in known and not strict:
            continue
        elif (piece.oid, strict) in hits:
            new = hits[piece.oid, strict]
        else:
            read = _scanned(repository, scan, piece, unreadable)
            if read is None:
                continue
            new = read
            count += 1
            if progress is not None:
                progress(count)
            if new:
                hits[piece.oid, strict] = new
            elif not strict:
                known.add(piece.oid)
        for hit in new:
            _, places = found.setdefault(hit.fingerprint, (hit.rule, []))
            places.append(_place(repository, piece, hit))
            if piece.oid is None:
                named[hit.value] = hit.fingerprint
    if known is not None:
        known.keep()
    return ScanReport(
        tuple(
            Finding(
                rule,
                fingerprint,
                tuple(dict.fromkeys(_masked(place, named) for place in places)),
            )
            for fingerprint, (rule, places) in found.items()
        ),
        count,
    )


def _scanned(
    repository: Repository, scan: Scanner, piece: Piece, unreadable: Unreadable | None
) -> list[Hit] | None:
    """Returns the secrets in a blob; None if it cannot be read."""
    assert piece.oid is not None
    try:
        return scan.scan(content(repository.objects, piece.oid), piece.path)
    except CorruptError as exc:
        if unreadable is None:
            raise
        unreadable(piece.origin.commit, exc)
        return None


def _place(repository: Repository, piece: Piece, hit: Hit) -> Place:
    said, steps = piece.origin.trailers, piece.origin.ledger
    kind, number = _where(repository, piece, hit.line)
    path = b"" if piece.oid is None else piece.path
    if kind == "name":
        path = piece.text.split(b"\n")[hit.line - 1]
    return Place(
        kind,
        path,
        number,
        piece.origin.commit,
        said.id if said else None,
        _name(said.session if said else steps),
        _name(said.branch if said else None),
        said.seq if said else None,
    )


def _name(component: str | None) -> str | None:
    return None if component is None else decode(component) or component


def _masked(place: Place, named: dict[bytes, str]) -> Place:
    """Returns a place whose names do not show a secret that is part of them."""
    path, session, branch = place.path, place.session, place.branch
    for value, fingerprint in named.items():
        mark = f"[{fingerprint}]"
        text = value.decode("utf-8", "replace")
        path = path.replace(value, mark.encode())
        session = session.replace(text, mark) if session is not None else None
        branch = branch.replace(text, mark) if branch is not None else None
    return place._replace(path=path, session=session, branch=branch)


def _where(repository: Repository, piece: Piece, line: int) -> tuple[str, int | None]:
    steps = piece.origin.ledger is not None
    if piece.path == MESSAGE and piece.oid is None:
        return ("ledger", _record_in(piece.text, line)) if steps else ("message", line)
    if piece.path == NAMES and piece.oid is None:
        return "name", None
    if steps:
        return "ledger", int(piece.path.removesuffix(b".json"))
    own = layout.RESERVED + b"/"
    if not piece.path.startswith(own) or piece.origin.trailers is None:
        return "file", line
    log = own + layout.LOG + b"/"
    if not piece.path.startswith(log) or not piece.path.endswith(b".jsonl"):
        return "checkpoint", line
    kind = piece.path.removeprefix(log).split(b"/")[0].decode("ascii", "replace")
    return kind, _records_before(repository, piece.origin, piece.path) + line


def _record_in(message: bytes, line: int) -> int | None:
    """Returns the number of the record in a line of a ledger commit."""
    lines = message.split(b"\n")
    # The first line, which is not parsed, repeats the first record.
    found = _NUMBER.match(lines[line - 1]) or _NUMBER.match(b"\n".join(lines[2:3]))
    return int(found[1]) if found else None


def _records_before(repository: Repository, origin: FirstSeen, path: bytes) -> int:
    """Returns the number of records in the segments before a segment."""
    objects = repository.objects
    source, high, low = path.rsplit(b"/", 2)
    before = 0
    with suppress(CorruptError):
        root = objects.commit(bytes.fromhex(origin.commit)).tree
        entry = tree.lookup(root, source, objects.tree)
        if entry is not None:
            for inner, one in tree.walk(entry.oid, objects.tree):
                if inner != layout.META and inner < high + b"/" + low:
                    before += objects.blob(one.oid).count(b"\n")
    return before
