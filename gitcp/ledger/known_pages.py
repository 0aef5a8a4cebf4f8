"""The commits of a ledger that a process has read: all of them, or those after one."""

from collections.abc import Sequence

from gitcp.format.ledger import LedgerCommit
from gitcp.ledger.commits import record_key


class KnownPages:
    """Ledger commits up to `tip`, each after its parents.

    `whole`: there are none before them. `keeps`: if there are earlier ones, the page cache
    has them. `last` is the number of the last record.
    """

    def __init__(self) -> None:
        self.tip: str | None = None
        self.last = 0
        self.whole = True
        self.keeps = True
        self.pages: list[LedgerCommit] = []
        # How many ledger commits there are up to each, by its oid.
        self.places: dict[str, int] = {}
        self.trees: dict[tuple[str, int, str], bytes] = {}

    @classmethod
    def beginning_after(cls, page: str, last: int, *, keeps: bool) -> "KnownPages":
        """Returns an empty list of commits after one whose last record is number `last`."""
        known = cls()
        known.tip, known.last, known.whole, known.keeps = page, last, False, keeps
        known.places[page] = 0
        return known

    def take(self, new: Sequence[LedgerCommit]) -> None:
        """Adds ledger commits; the caller sets the new tip."""
        for count, page in enumerate(new, len(self.pages) + 1):
            self.places[page.oid] = count
            for record in page.records:
                if record.size:
                    self.trees[record_key(record)] = page.tree
            self.last = page.records[-1].n
        self.pages += new

    def after(self, page: str) -> list[LedgerCommit] | None:
        """Returns the ledger commits after one; None if that one is not known."""
        found = self.places.get(page)
        return None if found is None else self.pages[found:]
