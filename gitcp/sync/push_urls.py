"""A push to a remote that has several addresses: each is a place of its own."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gitcp.errors import TransferError
from gitcp.sync.adopt import REJECTED
from gitcp.sync.push_policy import Pushed
from gitcp.sync.validate import Key

Done = dict[Key, Pushed]


class Push(Protocol):
    """A push to one address; see `push`."""

    @property
    def shown(self) -> str:
        """Where it goes, without what is secret in the address."""

    def run(self, tips: Mapping[Key, str], *, dry_run: bool) -> Done:
        """Looks through what leaves, and sends it unless `dry_run`."""

    def none(self, tips: Mapping[Key, str], reason: str) -> Done:
        """Returns that nothing could be sent, and why."""


def to_each(
    pushes: Sequence[Push], tips: Mapping[Key, str], *, dry_run: bool
) -> list[Done]:
    """Pushes to one address after the other; returns what became of each branch there.

    What is about to leave is looked through for all of them before anything is sent. An
    address that cannot be reached does not keep the others from getting what they lack.

    Raises:
        TransferError: none of them can be reached.
        SecretsFoundError, PlaintextError, EncryptionError: nothing was sent.
    """
    failed: dict[str, TransferError] = {}
    done: list[Done] = []
    for looks in (True, False):
        done.clear()
        for one in pushes:
            if one.shown not in failed:
                try:
                    done.append(one.run(tips, dry_run=looks))
                    continue
                except TransferError as exc:
                    failed[one.shown] = exc
            done.append(one.none(tips, failed[one.shown].message))
        if len(failed) == len(pushes):
            raise failed[pushes[0].shown]
        if dry_run:
            break
    return [
        {key: result._replace(address=one.shown) for key, result in each.items()}
        for one, each in zip(pushes, done, strict=True)
    ]


def everywhere(done: Sequence[Done]) -> Done:
    """Returns what became of the branches that every address has now."""
    first, *others = done
    return {
        key: one
        for key, one in first.items()
        if all(key in each and each[key].result != REJECTED for each in others)
        and len({each[key].commit for each in done}) == 1
    }
