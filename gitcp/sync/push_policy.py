"""Decides for each branch and ledger whether a push sends it, and why not."""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple

from gitcp.errors import (
    BranchMovedError,
    CorruptError,
    FormatTooNewError,
    GitcpError,
    PartialError,
)
from gitcp.format.layout import BranchKey, LedgerKey, RefKey
from gitcp.git.remote import REFUSED_THERE, Update
from gitcp.names import decode, quoted
from gitcp.project.workspace import Workspace
from gitcp.sync import ledgers
from gitcp.sync.encrypting import PLAIN_THERE, PushEncryption
from gitcp.sync.history import goes_back, is_pruned_form, was_pruned, was_purged
from gitcp.sync.outcome import (
    CREATED,
    FAST_FORWARD,
    FORKED,
    PRUNED,
    PRUNED_THERE,
    RE_ENCRYPTED,
    REJECTED,
    UP_TO_DATE,
    Outcome,
    of_ledger,
)
from gitcp.sync.pruned_there import pruned_there
from gitcp.sync.tracking import tracked

_MORE = "it has more checkpoints: pull"
_RAN = "its step ledger has diverged: steps were also run there"
_UNREADABLE = "it cannot be read here: "
HIDDEN = "the server shows this ref to a push and hides it from a fetch, or the reverse"
_GREW = "it has diverged from the branch there"
_NOT_PRUNED = "older checkpoints were pruned there, but not here"
# Why a branch is refused that can be sent as a fork.
DIVERGED = frozenset({_GREW, _NOT_PRUNED})
BEFORE = "skipped: its step ledger was not sent"
_PRUNED_HERE = "pruned or purged here, but not there"
GONE = "the remote had removed it"
TAKEN_BACK = "the remote had rewound it"


class RemoteTips(NamedTuple):
    """The tips that a remote has of the pushed sessions, at one moment.

    `advertised` are tips as the remote has them. In `plain`, the commit that an encrypted
    tip stands for replaces it, if known. `known` are commits that it has for certain.
    """

    advertised: Mapping[RefKey, str]
    plain: Mapping[RefKey, str]
    known: frozenset[str]

    def branches(self, session: str) -> dict[BranchKey, str]:
        """Returns the tips of the branches of a session, by its encoded name."""
        return {
            key: oid
            for key, oid in self.plain.items()
            if isinstance(key, BranchKey) and key.session == session
        }


class _Standing(Enum):
    """How a branch or ledger here compares with the same one on a remote."""

    AHEAD = auto()
    BEHIND = auto()
    PRUNED = auto()
    PRUNED_THERE = auto()
    # As before, but ours has grown since.
    NOT_PRUNED = auto()
    DIVERGED = auto()


def refuse_rejected(pushed: Sequence[Outcome], remote: str) -> None:
    """Raises if a branch could not be sent.

    Raises:
        BranchMovedError: no branch could be sent.
        CorruptError: no branch could be read.
        PartialError: some branches could not be sent.
    """
    rejected = [outcome for outcome in pushed if outcome.result == REJECTED]
    if not rejected:
        return
    names = [
        f"{outcome.shown}{f' at {outcome.address}' if outcome.address else ''}:"
        f" {outcome.reason}"
        for outcome in rejected
        if outcome.reason != BEFORE
    ]
    hint = _hint(rejected, remote)
    if len(rejected) == len(pushed):
        reason = CorruptError if _are_unreadable(rejected) else BranchMovedError
        raise reason(f"nothing was sent: {'; '.join(names)}", hint=hint)
    raise PartialError(
        f"{len(rejected)} of {len(pushed)} branches were not sent",
        left=names,
        hint=hint,
    )


def unreadable(exc: GitcpError) -> str:
    """Returns the reason for not sending a branch or ledger that cannot be read."""
    return f"{_UNREADABLE}{exc.message}"


def is_unreadable(outcome: Outcome) -> bool:
    """Whether a branch or ledger was not sent because it cannot be read."""
    return str(outcome.reason).startswith(_UNREADABLE)


def _are_unreadable(rejected: Sequence[Outcome]) -> bool:
    return all(is_unreadable(each) for each in rejected if each.reason != BEFORE)


def _hint(rejected: Sequence[Outcome], remote: str) -> str:
    word = quoted(remote)
    reasons = {outcome.reason for outcome in rejected} - {BEFORE}
    if _are_unreadable(rejected):
        return "`gitcp verify --repair` repairs what it can, then push again"
    if reasons <= {_PRUNED_HERE}:
        return f"`gitcp push {word} --pruned` replaces the branch there"
    if reasons <= {_NOT_PRUNED}:
        return (
            f"`gitcp pull {word} --pruned` removes them here, too, then push again; `gitcp"
            f" push --fork {word}` keeps them and shares yours under a new name"
        )
    if any(outcome.address and outcome.reason != BEFORE for outcome in rejected):
        return (
            "add the address that is ahead as a remote (`git remote add NAME"
            f" URL`), pull from it, and push to {remote} again"
        )
    if reasons <= {_RAN}:
        return f"`gitcp pull {word}`, then push again"
    if reasons <= {PLAIN_THERE}:
        return f"`gitcp push {word} --re-encrypt` replaces it; existing clones keep it"
    if reasons <= {HIDDEN}:
        return (
            f"ask the administrator of {remote} to remove uploadpack.hideRefs and"
            " receive.hideRefs for refs/gitcp"
        )
    if all(str(reason).startswith(REFUSED_THERE) for reason in reasons):
        return f"ask the administrator of {remote}, which gave this reason"
    return (
        f"`gitcp push --fork {word}` shares yours under a new name; `gitcp pull"
        f" {word}` fetches theirs next to yours"
    )


class Decider:
    """Decides for one push to one remote."""

    def __init__(
        self,
        workspace: Workspace,
        remote: str,
        encryption: PushEncryption,
        *,
        pruned: bool,
    ) -> None:
        self._workspace = workspace
        self._store = workspace.store
        self._encryption = encryption
        self._pruned = pruned
        self._remote = remote
        # What the remote had when it was last seen, by its own names for branches.
        self._seen: dict[RefKey, str] = {}

    def look_up(self, keys: Collection[RefKey]) -> None:
        """Reads the tips that the remote had when it was last seen, at least those of `keys`."""
        self._seen = tracked(self._workspace.repository.refs, self._remote, keys)

    def decide(self, key: RefKey, oid: str, there: RemoteTips) -> Outcome | Update:
        """Returns the update to send, or the outcome if there is nothing to send."""
        old = there.plain.get(key)
        if old is None and isinstance(key, BranchKey):
            name = self._only_names(key, oid, there)
            if name is not None:
                return self._outcome(key, oid, UP_TO_DATE)._replace(name=name)
        if not self._encryption.reencrypt:
            plain = self._encryption.is_plaintext(there.advertised.get(key))
            if old == oid:
                reason = PLAIN_THERE if plain else None
                return self._outcome(key, oid, UP_TO_DATE, reason)
            if plain:
                return self.rejected(key, oid, PLAIN_THERE)
        standing = self._standing(key, old, oid)
        if standing in {_Standing.BEHIND, _Standing.PRUNED_THERE}:
            why = _MORE if standing is _Standing.BEHIND else PRUNED_THERE
            return self._outcome(key, oid, UP_TO_DATE, why)._replace(commit=old)
        if standing is _Standing.AHEAD or (
            standing is _Standing.PRUNED and self._pruned
        ):
            return Update(key.ref, old, oid)
        if standing is _Standing.PRUNED:
            return self.rejected(key, oid, _PRUNED_HERE)
        if standing is _Standing.NOT_PRUNED:
            return self.rejected(key, oid, _NOT_PRUNED)
        return self.rejected(key, oid, _RAN if isinstance(key, LedgerKey) else _GREW)

    def _standing(self, key: RefKey, old: str | None, oid: str) -> _Standing:
        """Returns how our commit compares with the one that the remote has, if any."""
        if isinstance(key, LedgerKey):
            known, purged = ledgers.commits_of(self._workspace, key, oid)
            if old is None or old in known:
                return _Standing.AHEAD
            if old in purged:
                return _Standing.PRUNED
            # If the remote ever had all of ours, it still has it: a ledger only grows.
            had_all = self._seen.get(key) == oid
            return _Standing.BEHIND if had_all else _Standing.DIVERGED
        if old is None or self._follows(old, oid):
            return _Standing.AHEAD
        seen = self._seen.get(key)
        if seen is not None and not self._exists(old) and self._follows(oid, seen):
            # It had all of ours when it was last seen; a pull will fetch what is new.
            return _Standing.BEHIND
        if self._follows(oid, old):
            return _Standing.BEHIND
        tip = self._store.checkpoint(oid) if self._exists(old) else None
        there = None if tip is None else pruned_there(self._store, tip, old)
        if there is not None:
            grew = there.common != tip
            return _Standing.NOT_PRUNED if grew else _Standing.PRUNED_THERE
        if (
            is_pruned_form(self._store, of=old, line=oid)
            or was_purged(self._store, old, oid)
            or (self._seen.get(key) == old and was_pruned(self._store, old, oid))
        ):
            return _Standing.PRUNED
        return _Standing.DIVERGED

    def _follows(self, old: str, new: str) -> bool:
        """Whether a line that ends in `new` holds `old`."""
        if not self._exists(old) or not self._exists(new):
            return False
        tip = self._store.checkpoint(new)
        return tip is not None and any(
            checkpoint.commit == old for checkpoint in self._store.line(tip)
        )

    def _exists(self, oid: str) -> bool:
        return self._store.repository.objects.exists(bytes.fromhex(oid))

    def find_kept(self, outcomes: dict[RefKey, Outcome], there: RemoteTips) -> None:
        """Finds the branches there that hold a diverged branch under another name."""
        for key, outcome in outcomes.items():
            if outcome.reason not in DIVERGED or outcome.commit is None:
                continue
            tips = there.branches(key.session)
            tips |= {
                other: sent.commit
                for other, sent in outcomes.items()
                if isinstance(other, BranchKey)
                and other.session == key.session
                and sent.result in {CREATED, FAST_FORWARD}
                and sent.commit is not None
            }
            for other, tip in tips.items():
                if self._follows(outcome.commit, tip):
                    name = self._store.names(other, tip)[1]
                    outcomes[key] = outcome._replace(
                        result=FORKED, name=name, reason=None
                    )
                    break

    def _only_names(self, key: BranchKey, oid: str, there: RemoteTips) -> str | None:
        """Returns the branch there that already holds a fork made by `pull`, if it is unchanged.

        Such a fork only gives that branch a name here.
        """
        tip = self._store.checkpoint(oid)
        if tip is None or tip.seq > 1 or tip.trailers.trigger != "fork":
            return None
        manifest = tip.manifest
        if not manifest.branch.rpartition("~")[0] or manifest.forked_from is None:
            return None
        parent = tip.raw.parents[0].hex()
        for theirs in there.branches(key.session).values():
            if self._follows(parent, theirs):
                branch = self._store.checkpoint(theirs)
                return branch.branch if branch is not None else None
        return None

    def result(self, key: RefKey, update: Update) -> Outcome:
        """Returns the outcome of an update that was done."""
        old, new = update.old, update.new
        if isinstance(key, LedgerKey):
            known, _ = ledgers.commits_of(self._workspace, key, new)
            forward = old is None or old in known
            reason = None
        else:
            forward = old is None or self._follows(old, new)
            reason = self._taken_back(key, update)
        result = FAST_FORWARD if forward else PRUNED
        if old is None:
            result = CREATED
        elif old == new and forward:
            result = RE_ENCRYPTED
        return self._outcome(key, new, result, reason)

    def _taken_back(self, key: RefKey, update: Update) -> str | None:
        """Returns a note if the remote no longer has what it had when it was last seen."""
        seen = self._seen.get(key)
        if seen is None or seen == update.old:
            return None
        if update.old is None:
            return GONE
        if goes_back(self._store, seen, update.old):
            return TAKEN_BACK
        return None

    def rejected(self, key: RefKey, oid: str, reason: str) -> Outcome:
        """Returns the outcome for a branch or ledger that cannot be sent."""
        return self._outcome(key, oid, REJECTED, reason)

    def _outcome(
        self, key: RefKey, oid: str, result: str, reason: str | None = None
    ) -> Outcome:
        if isinstance(key, LedgerKey):
            tips = self._store.refs()
            session = ledgers.name_of(self._workspace, key, tips)
            return of_ledger(session, result, oid, reason)
        try:
            session, branch = self._store.names(key, oid)
        except (CorruptError, FormatTooNewError):
            session, branch = (decode(part) or part for part in key)
        return Outcome(session, branch, result, branch, oid, reason)
