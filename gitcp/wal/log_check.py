"""Checks that a write-ahead log belongs to this repository: all that it needs is here.

A log that was copied from another repository stands on objects of that one. Its commits
would make refs that lead to nothing, at which git's own `gc` gives up.
"""

from collections.abc import Collection, Iterable, Iterator

from gitcp.format import tree as trees
from gitcp.format.commit import parse_commit
from gitcp.format.tree import GITLINK
from gitcp.git.objects import COMMIT, TREE, Objects
from gitcp.git.pack import read_entry
from gitcp.wal.log_file import LogRecord


def fault(
    records: Iterable[LogRecord], logged: Collection[bytes], objects: Objects
) -> str | None:
    """Returns why records were not written in this repository; None if they may be.

    `logged` are the objects that come into git together, theirs and those of other logs.
    """
    form = objects.form
    needed: set[bytes] = set()
    for record in records:
        needed.update(bytes.fromhex(move.new) for move in record.moves)
        for oid, body in record.objects:
            try:
                kind, data = read_entry(body)
                needed.update(_needs(kind, data, form.size))
            except (ValueError, IndexError) as exc:
                return f"its object {oid.hex()} cannot be read: {exc}"
            if form.oid(kind, data) != oid:
                return f"its object {oid.hex()} is another one"
    for oid in sorted(needed.difference(logged)):
        if not objects.exists(oid):
            return f"it needs the object {oid.hex()}, which is not here"
    return None


def _needs(kind: str, data: bytes, size: int) -> Iterator[bytes]:
    if kind == COMMIT:
        commit = parse_commit(data, size)
        yield commit.tree
        yield from commit.parents
    elif kind == TREE:
        for entry in trees.parse(data, size).values():
            if entry.mode != GITLINK:
                yield entry.oid
