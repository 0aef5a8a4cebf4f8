"""The ledgers of a repository, one object for each session."""

import time
from collections.abc import Callable
from weakref import WeakValueDictionary

from gitcp.git.repository import Repository
from gitcp.ledger.log import Ledger
from gitcp.wal.background import BackgroundDrainer


class Ledgers:
    """All ledgers of one repository; their write-ahead logs are drained in the background."""

    def __init__(
        self, repository: Repository, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.drainer = BackgroundDrainer(repository)
        self._repository = repository
        self._clock = clock
        self._ledgers: WeakValueDictionary[str, Ledger] = WeakValueDictionary()

    def of(self, session: str) -> Ledger:
        """Returns the ledger of a session; there need not be one yet."""
        ledger = self._ledgers.get(session)
        if ledger is None:
            ledger = Ledger(self._repository, session, self.drainer, clock=self._clock)
            self._ledgers[session] = ledger
        return ledger

    def position(self, session: str) -> tuple[int, str]:
        """Returns how far a ledger has come; see `Ledger.position`."""
        return self.of(session).position()
