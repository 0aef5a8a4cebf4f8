"""An attempt of a step, from its intent to its result."""

import os
from typing import Any, NamedTuple

from gitcp.errors import UsageError
from gitcp.format.ledger import Record
from gitcp.ledger.call import Call
from gitcp.steps.lease import Lease
from gitcp.steps.model import Options


class Attempt(NamedTuple):
    """An attempt whose intent is recorded, or a recorded result to return instead."""

    call: Call | None
    options: Options
    intent: Record
    lease: Lease
    replay: bool = False
    value: Any = None

    @property
    def elsewhere(self) -> bool:
        """Whether the step's own function has forked this process."""
        return self.lease.process != os.getpid()

    @property
    def earlier(self) -> int:
        """The number of attempts in earlier runs: each run counts its own."""
        return self.call.attempts if self.call is not None else 0

    def refuse_elsewhere(self) -> None:
        """Raises in a forked process, because only its parent records the result.

        Raises:
            UsageError: this process is forked.
        """
        if self.elsewhere:
            raise UsageError(
                f"the step {self.options.name!a} was started by process"
                f" {self.lease.process}, which forked this one; only that process"
                " records the result",
                hint="end the forked process within the step: os._exit(0)",
            )

    def record(self, kind: str, **fields: Any) -> Record:
        """Returns a record about this attempt, for the ledger."""
        intent = self.intent
        return Record(
            0, "", kind, intent.branch, id=intent.id, attempt=intent.attempt, **fields
        )
