"""Pushes to one address of a remote; retries if another push was faster."""

import random
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gitcp.errors import CorruptError, GitFailedError
from gitcp.format import layout
from gitcp.format.layout import LedgerKey, RefKey
from gitcp.git.remote import Answer, Update
from gitcp.git.transport import Told
from gitcp.project.workspace import Workspace
from gitcp.remotes import by_address as remotes
from gitcp.remotes.by_address import Patience
from gitcp.secrets.policy import Gate
from gitcp.sync.encrypting import PushEncryption
from gitcp.sync.import_objects import limits_of
from gitcp.sync.outcome import REJECTED, Outcome
from gitcp.sync.proven import proven, published
from gitcp.sync.push_policy import BEFORE, HIDDEN, Decider, RemoteTips, unreadable
from gitcp.trust.trusted_remotes import spelled

Outcomes = dict[RefKey, Outcome]

_TRIES = 30
_LONGEST_PAUSE = 1.0
# If another push was faster, the ref has moved. If a lease fails so many times and the ref
# has not moved, the server shows a fetch and a push different refs.
_TRIES_UNMOVED = 5
_HEADS = "refs/heads/"
_UNREADABLE = (CorruptError, GitFailedError)
# The reasons that servers give if another push was faster, or holds the lock right now.
_STALE = ("stale info", "fetch first", "non-fast-forward")
_BUSY = (
    "failed to update ref",
    "failed to lock",
    "cannot lock ref",
    "reference already exists",
    "incorrect old value provided",
    "remote ref changed",
    "unable to migrate objects",
)


class Relay(Protocol):
    """Takes a push in place of its remote, and sends it on later."""

    def refs(self, prefixes: Sequence[str]) -> Mapping[str, str]:
        """Returns the refs that the remote has, or will have when all is sent on.

        Only refs below the prefixes, because there may be thousands of others.
        """

    def take(
        self,
        updates: Mapping[RefKey, Update],
        plain: Mapping[RefKey, str],
        known: Collection[str],
    ) -> dict[str, Answer]:
        """Accepts each update whose ref has the expected value; returns answers by ref.

        `plain` are the commits that the new ones stand for, `known` are commits that the
        remote has.
        """


@dataclass(frozen=True)
class PushTarget:
    """The data that the pushes to all addresses of a remote share."""

    workspace: Workspace
    remote: str
    gate: Gate
    encryption: PushEncryption
    pruned: bool
    progress: Told | None
    interactive: bool
    relay: Relay | None = None


class AddressPush:
    """A push to one address."""

    def __init__(self, target: PushTarget, address: str, *, alone: bool) -> None:
        """Takes the address, and whether the remote has no other (`alone`)."""
        self._target = target
        self._address = address
        self._remote = remotes.at(
            target.workspace.repository,
            target.remote,
            Patience(
                limits_of(target.workspace.settings.sharing),
                target.progress,
                target.interactive,
            ),
            address=address,
            # The name of the remote would stand for all its addresses.
            alone=alone,
        )
        self._scanned: set[str] = set()
        self._there: RemoteTips | None = None
        # The refs whose lease failed in the last try, and how often they had not moved.
        self._stale: set[RefKey] = set()
        self._unmoved: Counter[RefKey] = Counter()
        self._decider = Decider(
            target.workspace, target.remote, target.encryption, pruned=target.pruned
        )

    @property
    def shown(self) -> str:
        """The address, without secrets in it."""
        return spelled(self._target.workspace.repository, self._address)

    @property
    def there(self) -> frozenset[RefKey]:
        """The branches and ledgers of the pushed sessions that the remote had when last asked."""
        return frozenset(self._there.advertised if self._there is not None else ())

    def none(self, tips: Mapping[RefKey, str], reason: str) -> Outcomes:
        """Returns the outcomes if nothing could be sent: rejected, for one reason."""
        return {
            key: self._decider.rejected(key, oid, reason) for key, oid in tips.items()
        }

    def run(self, tips: Mapping[RefKey, str], *, dry_run: bool) -> Outcomes:
        """Sends what the remote lacks; returns the outcome of each branch."""
        outcomes: Outcomes = {}
        waiting = dict(tips)
        pause = 0.05
        self._target.encryption.refuse_plaintext(tips)
        self._decider.look_up(tips)
        there = self._ask(tips)
        self._refuse_all_failed(tips)
        for attempt in range(_TRIES):
            updates = self._decide(waiting, there, outcomes)
            if not updates:
                break
            self._look_through(updates, there, outcomes)
            if not updates:
                break
            if dry_run:
                for key, update in updates.items():
                    outcomes[key] = self._decider.result(key, update)
                break
            waiting = self._attempt(
                updates, there, outcomes, last=attempt == _TRIES - 1
            )
            if not waiting:
                break
            time.sleep(random.uniform(0, pause))  # noqa: S311  no secret
            pause = min(2 * pause, _LONGEST_PAUSE)
            before, there = there, self._ask(tips)
            for key in self._find_hidden(before, there):
                oid = waiting.pop(key)
                outcomes[key] = self._decider.rejected(key, oid, HIDDEN)
        self._decider.find_kept(outcomes, there)
        return outcomes

    def _decide(
        self, waiting: Mapping[RefKey, str], there: RemoteTips, outcomes: Outcomes
    ) -> dict[RefKey, Update]:
        """Returns the updates to send, and notes the outcome of every other branch."""
        updates: dict[RefKey, Update] = {}
        # A ledger sorts before its branches.
        for key, oid in sorted(waiting.items()):
            try:
                decision = self._decider.decide(key, oid, there)
            except CorruptError as exc:
                decision = self._decider.rejected(key, oid, unreadable(exc))
            ledger = outcomes.get(key.ledger)
            if (failed := self._remote.why_not(key.ref)) is not None:
                decision = self._decider.rejected(key, oid, failed.message)
            if not isinstance(decision, Update):
                outcomes[key] = decision
            elif ledger is not None and ledger.result == REJECTED:
                outcomes[key] = self._decider.rejected(key, oid, BEFORE)
            else:
                updates[key] = decision
        return updates

    def _look_through(
        self, updates: dict[RefKey, Update], there: RemoteTips, outcomes: Outcomes
    ) -> None:
        """Scans the updates for secrets before anything is sent.

        Removes the updates that cannot be read: they are not sent.
        """
        try:
            self._look([update.new for update in updates.values()], there)
        except _UNREADABLE:
            for key, update in list(updates.items()):
                try:
                    self._look([update.new], there)
                except _UNREADABLE as exc:
                    reason = unreadable(exc)
                    outcomes[key] = self._decider.rejected(key, update.new, reason)
            for key, update in list(updates.items()):
                ledger = outcomes.get(key.ledger)
                if key not in outcomes and ledger and ledger.result == REJECTED:
                    outcomes[key] = self._decider.rejected(key, update.new, BEFORE)
                if key in outcomes:
                    del updates[key]

    def _look(self, tips: list[str], there: RemoteTips) -> None:
        leaving = [tip for tip in tips if tip not in self._scanned]
        self._target.gate.look(
            self._target.workspace,
            leaving,
            f"the push to {self._target.remote}",
            known=sorted(there.known),
        )
        self._scanned.update(leaving)

    def _attempt(
        self,
        updates: Mapping[RefKey, Update],
        there: RemoteTips,
        outcomes: Outcomes,
        *,
        last: bool,
    ) -> dict[RefKey, str]:
        """Sends once; returns the tips to decide again, because the remote's refs moved."""
        encryption = self._target.encryption
        outgoing = encryption.encrypt(updates, there.advertised)
        sent = {key: each.update for key, each in outgoing.items()}
        relay = self._target.relay
        if relay is None:
            answers = self._send(sent)
        else:
            plain = {key: update.new for key, update in updates.items()}
            taken = relay.take(sent, plain, there.known)
            answers = {key: taken[update.ref] for key, update in sent.items()}
        again: set[RefKey] = set()
        self._stale = set()
        for key, update in updates.items():
            answer = answers[key]
            if answer.done:
                encryption.sent(key, outgoing[key])
                outcomes[key] = self._decider.result(key, update)
            elif not last and any(word in answer.reason for word in (*_STALE, *_BUSY)):
                again.add(key)
                if any(word in answer.reason for word in _STALE):
                    self._stale.add(key)
            else:
                outcomes[key] = self._decider.rejected(key, update.new, answer.reason)
        # A branch waits for its ledger.
        waiting = {
            key: update.new
            for key, update in updates.items()
            if key in again or key.ledger in again
        }
        for key in waiting:
            outcomes.pop(key, None)
        return waiting

    def _refuse_all_failed(self, tips: Mapping[RefKey, str]) -> None:
        """Raises if no repository of a pattern can be pushed to.

        Raises:
            TransferError: none can; it is the error of the first.
        """
        failed = [self._remote.why_not(key.ref) for key in sorted(tips)]
        if failed and failed[0] is not None and None not in failed:
            raise failed[0]

    def _find_hidden(self, before: RemoteTips, there: RemoteTips) -> list[RefKey]:
        """Returns the refs that a fetch and a push see differently (`hideRefs`)."""
        for key in self._stale:
            if before.advertised.get(key) == there.advertised.get(key):
                self._unmoved[key] += 1
        return [key for key in self._stale if self._unmoved[key] >= _TRIES_UNMOVED]

    def _send(self, updates: Mapping[RefKey, Update]) -> dict[RefKey, Answer]:
        """Sends ledgers, then the branches of those sessions whose ledger is there."""
        answers = self._send_some(
            {key: each for key, each in updates.items() if isinstance(key, LedgerKey)}
        )
        missed = {key for key, answer in answers.items() if not answer.done}
        held = {
            key: Answer("!", BEFORE)
            for key in updates
            if key not in answers and key.ledger in missed
        }
        others = {
            key: each
            for key, each in updates.items()
            if key not in answers and key not in held
        }
        return answers | held | self._send_some(others)

    def _send_some(self, updates: Mapping[RefKey, Update]) -> dict[RefKey, Answer]:
        if not updates:
            return {}
        target = self._target
        answers = self._remote.send(
            list(updates.values()),
            replaces=target.pruned or target.encryption.reencrypt,
        )
        return {
            key: answers.get(update.ref, Answer("!", "no answer"))
            for key, update in updates.items()
        }

    def _ask(self, tips: Mapping[RefKey, str]) -> RemoteTips:
        """Returns the tips that the remote has of the pushed sessions.

        There may be thousands of other sessions, and this push does not depend on them.
        """
        ledgers = {key.ledger for key in tips}
        named = layout.prefixes_of(ledgers, self._remote.named)
        refs = self._refs([*named, _HEADS])
        advertised = {
            key: oid
            for ref, oid in refs.items()
            if (key := layout.ref_key(ref)) is not None and key.ledger in ledgers
        }
        # From here on, the commit that an encrypted tip stands for replaces it, if known.
        plain = self._target.encryption.stand_for(advertised)
        known = self._history(refs) | self._remote.project(tips.values())
        known |= proven(self._target.workspace, self._target.remote, plain)
        self._there = RemoteTips(advertised, plain, known)
        return self._there

    def _refs(self, prefixes: Sequence[str]) -> Mapping[str, str]:
        relay = self._target.relay
        if relay is not None:
            return relay.refs(prefixes)
        return self._remote.advertised(prefixes).refs

    def _history(self, advertised: Mapping[str, str]) -> frozenset[str]:
        """Returns commits of the project that a remote has, judging by its branches.

        A remote-tracking branch alone proves nothing: the address may have changed since. Nor
        does a claim of what no remote-tracking branch has.
        """
        repository = self._target.workspace.repository
        tracked = f"refs/remotes/{self._target.remote}/"
        seen = repository.refs.list(tracked)
        commits: set[str] = set()
        claimed: set[str] = set()
        for ref, oid in advertised.items():
            if not ref.startswith(_HEADS):
                continue
            if repository.objects.exists(bytes.fromhex(oid)):
                claimed.add(oid)
            elif before := seen.get(tracked + ref.removeprefix(_HEADS)):
                # The branch has grown there; its tracked tip is an ancestor of the new tip.
                commits.add(before)
        return frozenset(commits | published(repository, claimed))
