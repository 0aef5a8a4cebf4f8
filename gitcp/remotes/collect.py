"""Removes from an object store the packs that no document names (docs/format.md, 28)."""

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from gitcp.errors import CorruptError, GitcpError
from gitcp.format import store_document as documents
from gitcp.remotes.place import Place

# In seconds. A push takes at most an hour from its pack to its document, and listings lag.
GRACE = 24 * 3600.0
_AT_ONCE = 16
_BEING_WRITTEN = ".tmp"


class Collected(NamedTuple):
    """How many packs and bytes were removed, or would be, and how many packs were not.

    Documents name the `kept` packs. No document names the `waiting` packs, but they are
    too young to remove.
    """

    removed: int
    size: int
    kept: int
    waiting: int


def collect(place: Place, shown: str, *, dry_run: bool = False) -> Collected:
    """Removes packs that no document names and that have been there for a day.

    A document names only packs that were stored for it, and no name is used twice. So a
    pack that no document names stays unused, unless a push has stored the pack and not
    yet its document. The packs are listed before the documents are read, and their age is
    by the store's own clock.

    Raises:
        CorruptError, FormatTooNewError: a document cannot be used; nothing was removed.
        TransferError: the store cannot be reached.
    """
    now = place.now()
    there = list(place.list(documents.PACKS_BELOW))
    needed = _needed(place, shown)
    removed = size = kept = waiting = 0
    for entry in there:
        if entry.path in needed:
            kept += 1
        elif entry.modified > now - GRACE:
            waiting += 1
        else:
            if not dry_run:
                place.remove(entry.path)
            removed += 1
            size += entry.size
    return Collected(removed, size, kept, waiting)


def _needed(place: Place, shown: str) -> set[str]:
    """Returns the paths of the packs that documents name."""
    paths = [
        entry.path
        for entry in place.list(documents.SESSIONS_BELOW)
        if not entry.path.endswith(_BEING_WRITTEN)
    ]
    unknown = [path for path in paths if documents.key_of(path) is None]
    if unknown:
        raise CorruptError(
            f"{shown} has {unknown[0]!a}, which gitcp does not know",
            hint="nothing was removed; remove it if it is not gitcp's, or update gitcp",
        )

    def packs(path: str) -> list[str]:
        there = place.read(path, documents.MOST_BYTES)
        if there is None:
            return []
        try:
            return [pack.path for pack in documents.decode(there[0]).packs]
        except GitcpError as exc:
            raise type(exc)(
                f"{shown}: {path!a} cannot be used: {exc.message}",
                hint=f"nothing was removed; {exc.hint or 'push the branch again'}",
            ) from exc

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return {path for each in pool.map(packs, paths) for path in each}
