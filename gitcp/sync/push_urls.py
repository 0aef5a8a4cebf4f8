"""Pushes to a remote with several addresses: each address is a remote of its own."""

from collections.abc import Mapping, Sequence

from gitcp.errors import TransferError
from gitcp.format.layout import RefKey
from gitcp.sync.outcome import REJECTED
from gitcp.sync.push_address import AddressPush, Outcomes


def to_each(
    pushes: Sequence[AddressPush], tips: Mapping[RefKey, str], *, dry_run: bool
) -> list[Outcomes]:
    """Pushes to one address after the other; returns the outcome of each branch there.

    The scan for secrets covers all addresses before anything is sent. If an address cannot
    be reached, the others still get what they lack.

    Raises:
        TransferError: no address can be reached.
        SecretsFoundError, PlaintextError, EncryptionError: nothing was sent.
    """
    failed: dict[str, TransferError] = {}
    outcomes: list[Outcomes] = []
    for looks in (True, False):
        outcomes.clear()
        for push in pushes:
            if push.shown not in failed:
                try:
                    outcomes.append(push.run(tips, dry_run=looks))
                    continue
                except TransferError as exc:
                    failed[push.shown] = exc
            outcomes.append(push.none(tips, failed[push.shown].message))
        if len(failed) == len(pushes):
            raise failed[pushes[0].shown]
        if dry_run:
            break
    return [
        {key: outcome._replace(address=push.shown) for key, outcome in each.items()}
        for push, each in zip(pushes, outcomes, strict=True)
    ]


def everywhere(outcomes: Sequence[Outcomes]) -> Outcomes:
    """Returns the outcomes of the branches that every address has now."""
    first, *others = outcomes
    return {
        key: outcome
        for key, outcome in first.items()
        if all(key in each and each[key].result != REJECTED for each in others)
        and len({each[key].commit for each in outcomes}) == 1
    }
