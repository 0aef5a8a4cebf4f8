"""Pulls sessions: fetch, validate, adopt; never merges, never overwrites."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gitcp.at_fork import computed
from gitcp.encryption.quarantine import Quarantine
from gitcp.errors import BranchMovedError, CorruptError
from gitcp.format import layout
from gitcp.format.layout import BranchKey, LedgerKey, RefKey
from gitcp.format.numbers import ELSEWHERE
from gitcp.git import remote as remotes
from gitcp.git import shard_pattern
from gitcp.git.remote import RefusedError
from gitcp.git.transaction import Transaction, transaction
from gitcp.git.transport import Limits, Told
from gitcp.git.unreachable import NoRepositoryError
from gitcp.names import decode
from gitcp.project.workspace import Workspace
from gitcp.remotes import by_address as sources
from gitcp.remotes.by_address import Patience
from gitcp.remotes.remote import Remote
from gitcp.store.numbering import number_all
from gitcp.sync import ledgers
from gitcp.sync.adopt import adopt, copy, fork, remember, suffix_of
from gitcp.sync.decrypting import PullDecryption
from gitcp.sync.history import goes_back, is_pruned_form, was_pruned, was_purged
from gitcp.sync.import_objects import (
    limits_of,
    our_tips,
    validate,
)
from gitcp.sync.offered import offered
from gitcp.sync.outcome import (
    PRUNED,
    PRUNED_THERE,
    REJECTED,
    UP_TO_DATE,
    Outcome,
    of_ledger,
)
from gitcp.sync.pruned_there import PrunedThere, prune_here, pruned_there
from gitcp.sync.pulled import Pulled, missing_there
from gitcp.sync.tracking import tracked
from gitcp.sync.validate import Rejection
from gitcp.trust import trusted_remotes

# At most so many commits are named to a remote, so that it need not send what is here.
_TOLD = 200


class _Fetched(NamedTuple):
    """The decrypted commits that may be adopted, and why the others are rejected.

    `had` are those that were here before.
    """

    good: dict[RefKey, str]
    bad: dict[RefKey, Rejection]
    had: set[str]


def pull(
    workspace: Workspace,
    remote: str | None = None,
    sessions: Sequence[str] = (),
    *,
    pruned: bool = False,
    progress: Told | None = None,
    interactive: bool = False,
) -> Pulled:
    """Pulls sessions of a remote; all if none is named.

    Everything is validated before anything is adopted. A branch of ours is made or
    fast-forwarded; if the two diverged, theirs becomes a fork. What was pruned there is
    removed here only with `pruned`, or if the user trusts the remote. Ledgers of steps come
    first: after a crash in between, they have steps whose checkpoints are not here yet.

    Raises:
        UsageError, NotFoundError: there is no such remote, or it has no such session.
        TransferError: the remote does not answer, git refuses its objects, or they exceed a limit.
    """
    workspace.refresh()
    name = remotes.find(
        workspace.repository, remote or workspace.settings.sharing.remote
    )
    patience = Patience(limits_of(workspace.settings.sharing), progress, interactive)
    there_at = sources.at(workspace.repository, name, patience)
    there = offered(there_at, name, sessions)
    decryption = PullDecryption(workspace, name)
    # From here on, the commit that an encrypted tip stands for replaces it, if known.
    theirs = decryption.stand_for(there.tips)
    refs = workspace.repository.refs
    seen = tracked(refs, name)
    ours = workspace.store.refs()
    before = {*ours.values(), *refs.list(layout.REMOTES).values()}
    to_fetch = _to_fetch(workspace, name, theirs, there.tips, seen)
    with transaction(workspace.repository) as txn:
        source = _Source(workspace, txn, there_at, decryption)
        fetched = source.fetch(to_fetch)
        theirs |= fetched.good
        adoption = _Adoption(workspace, txn, name, decryption, fetched, prunes=pruned)
        steps = adoption.ledgers(theirs)
        branches = [
            adoption.branch(key, oid, ours.get(key), seen.get(key))
            for key, oid in theirs.items()
            if isinstance(key, BranchKey)
        ]
    tips = _branches(fetched.good)
    number_all(workspace.store, place=ELSEWHERE)
    trusted_remotes.note_pulled(workspace.store, name, tips.values(), before)
    return Pulled(
        branches,
        there.ignored,
        tuple(adoption.rewound),
        fetched.bad,
        () if sessions else missing_there(_answered(there_at, seen), theirs),
        tuple(steps),
        _short(workspace, tips),
        tuple(there_at.silent()),
        shard_pattern.parse(name) is not None,
    )


def _to_fetch(
    workspace: Workspace,
    remote: str,
    theirs: Mapping[RefKey, str],
    tips: Mapping[RefKey, str],
    seen: Mapping[RefKey, str],
) -> dict[RefKey, str]:
    """Returns the tips that are new here, as the remote has them."""
    lacking = set(ledgers.news(workspace, remote, ledgers.among(theirs)))
    return {
        key: tips[key]
        for key, oid in theirs.items()
        if key in lacking
        or (
            isinstance(key, BranchKey)
            and seen.get(key) != oid
            and not _purged_here(workspace, key, oid)
        )
    }


def _branches(tips: Mapping[RefKey, str]) -> dict[BranchKey, str]:
    return {key: oid for key, oid in tips.items() if isinstance(key, BranchKey)}


class _Source:
    """A remote that objects are fetched from."""

    def __init__(
        self,
        workspace: Workspace,
        txn: Transaction,
        remote: Remote,
        decryption: PullDecryption,
    ) -> None:
        self._workspace = workspace
        self._txn = txn
        self._remote = remote
        self._decryption = decryption

    def fetch(self, tips: Mapping[RefKey, str]) -> _Fetched:
        """Fetches, validates and copies; also returns what is wrong with the rest.

        Raises:
            TransferError: the remote cannot be reached, or sends too much.
        """
        if not tips:
            return _Fetched({}, {}, set())
        try:
            return self._some(tips, "quarantine")
        except RefusedError:
            sessions = sorted({key.ledger for key in tips})
            if len(sessions) == 1:
                raise
        # One bad session must not block the others.
        fetched = _Fetched({}, {}, set())
        for number, session in enumerate(sessions):
            part = {key: oid for key, oid in tips.items() if key.ledger == session}
            try:
                some = self._some(part, f"quarantine-{number}")
            except RefusedError as exc:
                why = Rejection(exc.message)
                some = _Fetched({}, dict.fromkeys(part, why), set())
            fetched.good.update(some.good)
            fetched.bad.update(some.bad)
            fetched.had.update(some.had)
        return fetched

    def _near(self, tips: Mapping[RefKey, str], ours: frozenset[str]) -> list[str]:
        """Returns the commits to name to the remote; limited, as they become arguments."""
        repository = self._workspace.repository
        head, _ = repository.head()
        branches = list(_branches(tips))[:_TOLD]
        first = [head, *(repository.refs.read(key.ref) for key in branches)]
        known = [oid for oid in first if oid is not None]
        return list(dict.fromkeys([*known, *sorted(ours)]))[:_TOLD]

    def _some(self, tips: Mapping[RefKey, str], name: str) -> _Fetched:
        ours = our_tips(self._workspace, tips)
        ours |= self._decryption.tips({key.session for key in tips})

        def fetch(quarantine: Quarantine, limits: Limits) -> None:
            self._remote.fetch_into(
                quarantine.objects,
                sorted(set(tips.values())),
                near=self._near(tips, ours),
                limits=limits,
                look=quarantine.growth,
            )

        validated = validate(
            self._workspace,
            self._txn,
            tips,
            ours,
            fetch,
            name=name,
            decrypt=self._decryption.open,
        )
        exists = self._workspace.repository.objects.exists
        had = {oid for oid in validated.good.values() if exists(bytes.fromhex(oid))}
        # Encrypted commits are kept beside the commits that they stand for.
        both = {*validated.good.values(), *(tips[key] for key in validated.good)}
        if both:
            copy(self._txn, validated.theirs.repository, both, ours)
        return _Fetched(validated.good, validated.bad, had)


class _Adoption:
    """Adopts fetched branches and ledgers, and notes the remote's tips."""

    def __init__(
        self,
        workspace: Workspace,
        txn: Transaction,
        remote: str,
        decryption: PullDecryption,
        fetched: _Fetched,
        *,
        prunes: bool,
    ) -> None:
        self._prunes = prunes
        self._workspace = workspace
        self._store = workspace.store
        self._txn = txn
        self._remote = remote
        self._decryption = decryption
        self._fetched = fetched
        # The outcomes of branches whose tip there was rewound.
        self.rewound: list[Outcome] = []

    def ledgers(self, theirs: Mapping[RefKey, str]) -> list[Outcome]:
        """Adopts the fetched ledgers; `theirs` are all that the remote has."""
        good, bad, _ = self._fetched
        new = ledgers.among(good)
        outcomes = ledgers.take_over(self._workspace, new, _branches(good))
        fit = {key: oid for key, oid in ledgers.among(theirs).items() if key not in bad}
        outcomes += ledgers.note(self._workspace, self._txn, self._remote, fit, new)
        for key, oid in new.items():
            self._decryption.note(self._txn, key, oid)
        return outcomes + [
            of_ledger(
                decode(key.session) or key.session, REJECTED, None, rejection.text
            )
            for key, rejection in bad.items()
            if isinstance(key, LedgerKey)
        ]

    def branch(
        self, key: BranchKey, oid: str, ours: str | None, seen: str | None
    ) -> Outcome:
        """Adopts a branch; `ours` is its tip here, `seen` its tip there when last seen."""
        rejection = self._fetched.bad.get(key)
        if rejection is not None:
            session, branch = (decode(part) or part for part in key)
            return Outcome(session, branch, REJECTED, branch, None, rejection.text)
        fetched = key in self._fetched.good
        if fetched:
            self._decryption.note(self._txn, key, oid)
        if seen == oid == ours:
            session, branch = self._store.names(key, oid)
            return Outcome(session, branch, UP_TO_DATE, branch, oid)
        rewound = seen is not None and goes_back(self._store, seen, oid)
        outcome = self._pruned(key, oid, seen)
        if outcome is None:
            outcome = self._adopt(key, oid, rewound=rewound)
        if fetched and not self._is_mere_claim(oid, seen):
            remember(self._txn, key.tracking_ref(self._remote), seen, oid)
        if rewound:
            self.rewound.append(outcome)
        return outcome

    def _is_mere_claim(self, oid: str, seen: str | None) -> bool:
        """Whether only the remote says that it has a checkpoint of ours (`sync.proven`)."""
        theirs = self._store.checkpoint(oid) if oid in self._fetched.had else None
        return (
            theirs is not None
            and theirs.origin.here
            and not (seen is not None and self._store.holds(seen, theirs))
        )

    def _pruned(self, key: BranchKey, oid: str, seen: str | None) -> Outcome | None:
        """Handles a branch that was pruned on one side; None if it was pruned on neither.

        Raises:
            BusyError: `gc` or a pruning is at work here.
        """
        store = self._store
        ours = store.repository.refs.read(key.ref)
        tip = None if ours is None else store.checkpoint(ours)
        if ours is None or tip is None or ours == oid:
            return None
        session, branch = tip.session, tip.branch
        purged = was_purged(store, oid, ours)
        if (
            purged
            or is_pruned_form(store, of=oid, line=ours)
            or (seen == oid and was_pruned(store, oid, ours))
        ):
            what = "purged" if purged else "pruned"
            why = f"{what} here but not there; run `gitcp push --pruned`"
            return Outcome(session, branch, UP_TO_DATE, branch, ours, why)
        there = pruned_there(store, tip, oid)
        return None if there is None else self._pruned_there(key, there, seen)

    def _pruned_there(
        self, key: BranchKey, there: PrunedThere, seen: str | None
    ) -> Outcome | None:
        """Handles a branch that was pruned there; None if it moved here meanwhile.

        Everyone who may push can prune a branch there. So ours is pruned only if the user
        asks for it or, if the remote had it when it was last seen, trusts the remote.
        """
        store = self._store
        had_it = seen is not None and store.holds(seen, there.common)
        if not (self._prunes or (had_it and self._is_trusted)):
            tip = there.ours
            kept = Outcome(tip.session, tip.branch, UP_TO_DATE, tip.branch, tip.commit)
            if there.has_more:
                kept = self._adopt(key, there.theirs.commit, rewound=False)
            return kept._replace(reason=PRUNED_THERE)
        try:
            new = prune_here(store, self._txn, key, there)
        except BranchMovedError:
            return None
        session, branch = there.ours.session, there.ours.branch
        return Outcome(session, branch, PRUNED, branch, new, PRUNED_THERE)

    @computed
    def _is_trusted(self) -> bool:
        repository = self._workspace.repository
        address = trusted_remotes.address(repository, self._remote)
        return address in trusted_remotes.trusted(repository)

    def _adopt(self, key: BranchKey, oid: str, *, rewound: bool) -> Outcome:
        suffix = suffix_of(self._remote)
        if rewound and (theirs := self._store.checkpoint(oid)) is not None:
            return fork(self._store, self._txn, theirs, suffix)
        return adopt(self._store, self._txn, key, oid, suffix=suffix)


def _answered(source: Remote, seen: Iterable[RefKey]) -> list[RefKey]:
    """Returns the branches about which the remote gave an answer."""
    return [
        key
        for key in seen
        if (why_not := source.why_not(key.ref)) is None
        or isinstance(why_not, NoRepositoryError)
    ]


def _short(workspace: Workspace, tips: Mapping[BranchKey, str]) -> tuple[str, ...]:
    """Returns the sessions whose checkpoints name steps that their ledger lacks."""
    short = []
    for key, oid in tips.items():
        tip = workspace.store.checkpoint(oid)
        if tip is not None and not ledgers.holds(
            workspace, key.ledger, tip.manifest.ledger
        ):
            short.append(tip.session)
    return tuple(dict.fromkeys(short))


def _purged_here(workspace: Workspace, key: BranchKey, oid: str) -> bool:
    """Whether a remote's tip was purged here, so that it must not come back."""
    refs = workspace.repository.refs
    while (ours := refs.read(key.ref)) is not None and ours != oid:
        try:
            return was_purged(workspace.store, oid, ours)
        except CorruptError:
            # A purge or prune may have rewritten the branch and removed its old commits.
            if refs.read(key.ref) == ours:
                raise
    return False
