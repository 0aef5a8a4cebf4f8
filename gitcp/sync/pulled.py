"""The result of a pull: what it adopted, what it left alone, and the errors."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gitcp.errors import PartialError
from gitcp.format.layout import BranchKey, RefKey
from gitcp.names import decode
from gitcp.sync.import_objects import refusal
from gitcp.sync.outcome import REJECTED, UP_TO_DATE, Outcome
from gitcp.sync.validate import Rejection


class Pulled(NamedTuple):
    """The result of a pull.

    `ignored` are refs that belong to no branch or ledger; `rewound` are the outcomes of
    branches whose tip there was rewound; `gone` names branches that the remote no longer
    has; `refused` says why some were not adopted. `ledgers` has the outcomes of the
    ledgers of steps. For a session in `short`, the remote's ledger lacks steps that the
    session's checkpoints name. `silent` says which repositories of a pattern did not
    answer; `sharded` is true if the remote is a pattern.
    """

    branches: list[Outcome]
    ignored: tuple[str, ...]
    rewound: tuple[Outcome, ...]
    refused: Mapping[RefKey, Rejection]
    gone: tuple[str, ...] = ()
    ledgers: tuple[Outcome, ...] = ()
    short: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    sharded: bool = False

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of branches and ledgers."""
        return [*self.branches, *self.ledgers]


def missing_there(
    seen: Iterable[RefKey], theirs: Mapping[RefKey, str]
) -> tuple[str, ...]:
    """Returns the branches that a remote had when it was last seen and no longer has."""
    return tuple(
        "/".join(decode(part) or part for part in key)
        for key in seen
        if isinstance(key, BranchKey) and key not in theirs
    )


def refuse_rejected(pulled: Pulled, remote: str) -> None:
    """Raises if something was refused.

    Raises:
        CorruptError, UnsafePathError: everything was refused.
        PartialError: something was refused, and the rest was adopted.
    """
    if not pulled.refused:
        refuse_silent(pulled.silent)
        return
    outcomes = pulled.outcomes
    rejected = [outcome for outcome in outcomes if outcome.result == REJECTED]
    if len(rejected) == len(outcomes):
        raise refusal(remote, pulled.refused)
    raise PartialError(
        f"{len(pulled.refused)} of {len(outcomes)} branches and ledgers of {remote}"
        " were refused",
        left=[f"{outcome.shown}: {outcome.reason}" for outcome in rejected]
        + list(pulled.silent),
        hint="do not use these; ask their author",
    )


def refuse_silent(silent: Sequence[str]) -> None:
    """Raises if some repositories of a pattern did not answer.

    Raises:
        PartialError: some did not answer; what the others have was adopted, or listed.
    """
    if silent:
        raise PartialError(
            f"{len(silent)} repositories did not answer",
            left=silent,
            hint="try again when they can be reached",
        )


def news(pulled: Pulled) -> bool:
    """Whether anything changed here."""
    return any(
        outcome.result not in {UP_TO_DATE, REJECTED} for outcome in pulled.outcomes
    )
