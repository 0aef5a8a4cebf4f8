"""The ledgers of a repository, one object for each session."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from gitcp.at_fork import computed
from gitcp.errors import CorruptError
from gitcp.format import layout
from gitcp.git.repository import Repository
from gitcp.wal.log_file import LogFile

if TYPE_CHECKING:
    from gitcp.ledger.log import Ledger
    from gitcp.wal.background import BackgroundDrainer


class Ledgers:
    """All ledgers of one repository; their write-ahead logs are drained in the background.

    Most commands ask for none, so the code of ledgers is loaded on first use.
    """

    def __init__(
        self, repository: Repository, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._ledgers: WeakValueDictionary[str, Ledger] = WeakValueDictionary()

    @computed
    def drainer(self) -> "BackgroundDrainer":
        """The background drainer of their write-ahead logs."""
        from gitcp.wal.background import BackgroundDrainer  # noqa: PLC0415

        return BackgroundDrainer(self._repository)

    def of(self, session: str) -> "Ledger":
        """Returns the ledger of a session; it need not exist yet."""
        from gitcp.ledger.log import Ledger  # noqa: PLC0415

        ledger = self._ledgers.get(session)
        if ledger is None:
            ledger = Ledger(self._repository, session, self.drainer, clock=self._clock)
            self._ledgers[session] = ledger
        return ledger

    def position(self, session: str) -> tuple[int, str]:
        """Returns the position of a ledger; see `Ledger.position`."""
        return self.of(session).position() if self.started(session) else (0, "")

    def started(self, session: str) -> bool:
        """Whether a ledger holds anything, in git or in its write-ahead log."""
        if LogFile(self._repository, layout.ledger_log(session)).exists():
            return True
        # A damaged ledger counts as started; reading it reports the damage.
        with suppress(CorruptError):
            return self._repository.refs.read(layout.ledger_ref(session)) is not None
        return True
