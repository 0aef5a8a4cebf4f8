"""Decides for each branch and ledger whether a push sends it, and why not."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gitcp.errors import BranchMovedError, PartialError
from gitcp.format import layout
from gitcp.git.remote import REFUSED_THERE, Update
from gitcp.names import encode
from gitcp.project.workspace import Workspace
from gitcp.sync import ledgers
from gitcp.sync.adopt import (
    CREATED,
    FAST_FORWARD,
    FORKED,
    PRUNED,
    RE_ENCRYPTED,
    REJECTED,
    UP_TO_DATE,
)
from gitcp.sync.encrypting import PLAIN_THERE, Sending
from gitcp.sync.history import goes_back, is_pruned_form, was_pruned, was_purged
from gitcp.sync.validate import Key

_MORE = "there is more there: pull"
_GREW = "it has diverged from the branch there"
_RAN = "its ledger has diverged: steps were run there, too"
BEFORE = "skipped: its step ledger was not sent"
_PRUNED_HERE = "pruned or purged here, but not there"
GONE = "the remote had removed it"
TAKEN_BACK = "the remote had rewound it"


class Pushed(NamedTuple):
    """The result for one branch; `name` is its name on the remote.

    Both are empty where it is about the ledger of the session's steps. `address` tells the
    addresses of one remote apart; it is empty where that has only one.
    """

    session: str
    branch: str
    result: str
    name: str
    commit: str
    reason: str | None = None
    address: str = ""


def refuse_rejected(pushed: Sequence[Pushed], remote: str) -> None:
    """Raises if a branch could not be sent.

    Raises:
        BranchMovedError: no branch could be sent.
        PartialError: some branches could not be sent.
    """
    rejected = [one for one in pushed if one.result == REJECTED]
    if not rejected:
        return
    names = [
        f"{one.session}{f'/{one.branch}' if one.branch else ''}"
        f"{f' at {one.address}' if one.address else ''}: {one.reason}"
        for one in rejected
        if one.reason != BEFORE
    ]
    reasons = {one.reason for one in rejected}
    pruned = reasons <= {_PRUNED_HERE, BEFORE}
    hint = (
        "make a remote of an address that is ahead (`git remote add NAME URL`), pull from"
        f" it, and push to {remote} again"
        if any(one.address and one.reason != BEFORE for one in rejected) and not pruned
        else f"`gitcp push {remote} --pruned` replaces the branch there"
        if pruned
        else f"`gitcp pull {remote}`, then push again"
        if reasons <= {_RAN, BEFORE}
        else f"`gitcp push {remote} --re-encrypt` replaces it; existing clones keep it"
        if reasons <= {PLAIN_THERE, BEFORE}
        else f"{remote} gave this reason: ask its administrator"
        if all(one == BEFORE or str(one).startswith(REFUSED_THERE) for one in reasons)
        else f"`gitcp pull {remote}` keeps their branch as a fork beside yours;"
        f" `gitcp fork NAME`, then `gitcp push {remote}`, shares yours under a new name"
    )
    if len(rejected) == len(pushed):
        raise BranchMovedError(f"nothing was sent: {'; '.join(names)}", hint=hint)
    raise PartialError(
        f"{len(rejected)} of {len(pushed)} branches were not sent",
        left=names,
        hint=hint,
    )


def is_ledger(key: Key) -> bool:
    """Whether a key stands for the ledger of a session's steps."""
    return key[1] == ledgers.NO_BRANCH


class Decider:
    """Decides for one push to one remote."""

    def __init__(
        self, workspace: Workspace, remote: str, sending: Sending, *, pruned: bool
    ) -> None:
        self._workspace = workspace
        self._store = workspace.store
        self._remote = remote
        self._sending = sending
        self._pruned = pruned
        # What the remote had when it was last seen, by its own names for branches.
        prefix = f"{layout.REMOTES}{encode(remote)}/"
        noted = workspace.repository.refs.list(prefix)
        self._seen = {
            layout.SESSIONS + ref.removeprefix(prefix): oid
            for ref, oid in noted.items()
        }

    def decide(self, key: Key, oid: str, there: Mapping[str, str]) -> Pushed | Update:
        """Returns the update to send, or what becomes of it without one.

        `there` are the remote's refs.
        """
        ref = ledgers.ref_of(key)
        old = there.get(ref)
        if is_ledger(key):
            return self._decide_steps(key, oid, old)
        session, branch = self._store.names(key, oid)
        if old is None:
            same = self._only_names(oid, there)
            if same is not None:
                return Pushed(session, branch, UP_TO_DATE, same, oid)
            return Update(ref, None, oid)
        reencrypt = self._sending.reencrypt
        plain = self._sending.stands_plain(key)
        if old == oid and not reencrypt:
            reason = PLAIN_THERE if plain else None
            return Pushed(session, branch, UP_TO_DATE, branch, oid, reason)
        if plain and not reencrypt:
            return self.rejected(key, oid, PLAIN_THERE)
        if self._follows(old, oid):
            return Update(ref, old, oid)
        if self._follows(oid, old) or is_pruned_form(self._store, of=oid, line=old):
            return Pushed(session, branch, UP_TO_DATE, branch, old, _MORE)
        if (
            is_pruned_form(self._store, of=old, line=oid)
            or was_purged(self._store, old, oid)
            or (self._seen.get(ref) == old and was_pruned(self._store, old, oid))
        ):
            if self._pruned:
                return Update(ref, old, oid)
            return self.rejected(key, oid, _PRUNED_HERE)
        return self.rejected(key, oid, _GREW)

    def _decide_steps(self, key: Key, oid: str, old: str | None) -> Pushed | Update:
        """Decides on the ledger of a session."""
        session = self._name(key, oid)
        reencrypt = self._sending.reencrypt
        plain = self._sending.stands_plain(key)
        if old == oid and not reencrypt:
            reason = PLAIN_THERE if plain else None
            return Pushed(session, "", UP_TO_DATE, "", oid, reason)
        if plain and not reencrypt:
            return self.rejected(key, oid, PLAIN_THERE)
        known, purged = ledgers.commits_of(self._workspace, key[0], oid)
        if old is None or old in known:
            return Update(ledgers.ref_of(key), old, oid)
        if old in purged:
            if self._pruned:
                return Update(ledgers.ref_of(key), old, oid)
            return self.rejected(key, oid, _PRUNED_HERE)
        noted = ledgers.noted_ref(self._remote, key)
        if self._workspace.repository.refs.read(noted) == oid:
            # All of ours is there, and it only grows.
            return Pushed(session, "", UP_TO_DATE, "", old, _MORE)
        return self.rejected(key, oid, _RAN)

    def _name(self, key: Key, oid: str) -> str:
        if is_ledger(key):
            return ledgers.name_of(self._workspace, key[0], self._store.refs())
        return self._store.names(key, oid)[0]

    def _follows(self, old: str, new: str) -> bool:
        """Whether a line that ends in `new` holds `old`."""
        exists = self._store.repository.objects.exists
        if not exists(bytes.fromhex(old)) or not exists(bytes.fromhex(new)):
            return False
        start = self._store.checkpoint(new)
        return start is not None and any(
            one.commit == old for one in self._store.line(start)
        )

    def find_kept(self, done: dict[Key, Pushed], there: Mapping[str, str]) -> None:
        """Finds the branch there that holds a line which cannot go by its own name."""
        for key, one in done.items():
            if one.reason != _GREW:
                continue
            prefix = f"{layout.SESSIONS}{key[0]}/"
            tips = {ref: oid for ref, oid in there.items() if ref.startswith(prefix)}
            tips |= {
                f"{prefix}{other[1]}": two.commit
                for other, two in done.items()
                if other[0] == key[0] and two.result in {CREATED, FAST_FORWARD}
            }
            for ref, tip in tips.items():
                if self._follows(one.commit, tip):
                    component = Key(key[0], ref.removeprefix(prefix))
                    name = self._store.names(component, tip)[1]
                    done[key] = one._replace(result=FORKED, name=name, reason=None)
                    break

    def _only_names(self, oid: str, there: Mapping[str, str]) -> str | None:
        """Returns the branch there that a fork made by `pull` only gives a name."""
        tip = self._store.checkpoint(oid)
        if tip is None or tip.seq > 1 or tip.trailers.trigger != "fork":
            return None
        said = tip.manifest
        if not said.branch.rpartition("~")[0] or said.forked_from is None:
            return None
        parent = tip.raw.parents[0].hex()
        prefix = f"{layout.SESSIONS}{tip.trailers.session}/"
        for ref, other in there.items():
            if ref.startswith(prefix) and self._follows(parent, other):
                found = self._store.checkpoint(other)
                return found.branch if found is not None else None
        return None

    def result(self, key: Key, update: Update) -> Pushed:
        """Returns what became of an update that was done."""
        result = CREATED if update.old is None else FAST_FORWARD
        if is_ledger(key):
            known, _ = ledgers.commits_of(self._workspace, key[0], update.new)
            if update.old == update.new:
                result = RE_ENCRYPTED
            if update.old is not None and update.old not in known:
                result = PRUNED
            return Pushed(self._name(key, update.new), "", result, "", update.new)
        session, branch = self._store.names(key, update.new)
        if update.old == update.new:
            result = RE_ENCRYPTED
        if update.old is not None and not self._follows(update.old, update.new):
            result = PRUNED
        reason = self._taken_back(update)
        return Pushed(session, branch, result, branch, update.new, reason)

    def _taken_back(self, update: Update) -> str | None:
        """Notes if the remote no longer has what it had when it was last seen."""
        seen = self._seen.get(update.ref)
        if seen is None or seen == update.old:
            return None
        if update.old is None:
            return GONE
        if goes_back(self._store, seen, update.old):
            return TAKEN_BACK
        return None

    def rejected(self, key: Key, oid: str, reason: str) -> Pushed:
        """Returns what became of what cannot be sent."""
        if is_ledger(key):
            return Pushed(self._name(key, oid), "", REJECTED, "", oid, reason)
        session, branch = self._store.names(key, oid)
        return Pushed(session, branch, REJECTED, branch, oid, reason)
