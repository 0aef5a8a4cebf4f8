"""The pages of a ledger that a process has read: all of them, or those after one."""

from collections.abc import Sequence

from gitcp.format.ledger import LedgerCommit
from gitcp.ledger.commits import record_key


class KnownPages:
    """Pages of a ledger up to `tip`, each after those that it follows on.

    `whole`: nothing comes before them. `keeps`: what comes before them, if anything, is
    kept beside the store. `last` is the number of the last record.
    """

    def __init__(self) -> None:
        self.tip: str | None = None
        self.last = 0
        self.whole = True
        self.keeps = True
        self.pages: list[LedgerCommit] = []
        # How many pages there are up to each, by its oid.
        self.places: dict[str, int] = {}
        self.trees: dict[tuple[str, int, str], bytes] = {}

    @classmethod
    def beginning_after(cls, page: str, last: int, *, keeps: bool) -> "KnownPages":
        """Returns those that follow on a page whose last record has the number `last`."""
        known = cls()
        known.tip, known.last, known.whole, known.keeps = page, last, False, keeps
        known.places[page] = 0
        return known

    def take(self, new: Sequence[LedgerCommit]) -> None:
        """Adds pages; which of them is the tip now is the caller's to say."""
        for count, page in enumerate(new, len(self.pages) + 1):
            self.places[page.oid] = count
            for record in page.records:
                if record.size:
                    self.trees[record_key(record)] = page.tree
            self.last = page.records[-1].n
        self.pages += new

    def after(self, page: str) -> list[LedgerCommit] | None:
        """Returns the pages after one; None if that one is not known."""
        found = self.places.get(page)
        return None if found is None else self.pages[found:]
