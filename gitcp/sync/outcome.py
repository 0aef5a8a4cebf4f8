"""The outcome of a push, a pull or an import, for one branch or ledger."""

from typing import NamedTuple

CREATED, FAST_FORWARD = "created", "fast-forward"
UP_TO_DATE, FORKED, REJECTED = "up-to-date", "forked", "rejected"
# Replaced by the same line without its oldest checkpoints.
PRUNED = "pruned"
# Why a branch was pruned here, too, or, if it was kept, became a fork or stayed as it was.
PRUNED_THERE = "older checkpoints were pruned there"
# The same as before, encrypted to other recipients.
RE_ENCRYPTED = "re-encrypted"


class Outcome(NamedTuple):
    """The result for one branch, or for the ledger of a session's steps.

    `result` is one of the words above. `name` is the branch that it became: there, after a
    push; here, after a pull. `branch` and `name` are empty for a ledger. `commit` is its
    tip, None if nothing could be adopted. `reason` explains the result if that is needed.
    `address` tells the addresses of one remote apart, and is empty if it has only one.
    """

    session: str
    branch: str
    result: str
    name: str
    commit: str | None
    reason: str | None = None
    address: str = ""

    @property
    def shown(self) -> str:
        """The session and the branch, as they are shown to the user."""
        return f"{self.session}/{self.branch}" if self.branch else self.session


def of_ledger(
    session: str, result: str, commit: str | None, reason: str | None = None
) -> Outcome:
    """Returns the outcome for the ledger of a session's steps."""
    return Outcome(session, "", result, "", commit, reason)
