"""Pushing sessions: only forward, only exact commits, each ref by lease."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gitcp.errors import BranchMovedError, NotFoundError, PartialError
from gitcp.format import layout
from gitcp.git import remote as remotes
from gitcp.git.remote import Answer, Update
from gitcp.git.transaction import transaction
from gitcp.git.transport import Told
from gitcp.names import check_typed, encode
from gitcp.ops.sharing import ledgers
from gitcp.ops.sharing.encryption import PLAIN_STEPS, PLAIN_THERE, Sending
from gitcp.ops.sharing.intake import limits_of
from gitcp.ops.sharing.scan import Gate
from gitcp.ops.workspace import Workspace
from gitcp.sharing.adopt import (
    CREATED,
    FAST_FORWARD,
    FORKED,
    PRUNED,
    RE_ENCRYPTED,
    REJECTED,
    UP_TO_DATE,
    remember,
)
from gitcp.sharing.validate import Key, branch_key
from gitcp.store.lineage import goes_back, is_pruned_form, was_purged

_TRIES = 30
_MORE = "there is more there: pull"
_GREW = "it went on there, too"
_RAN = "steps were run there, too: a pull joins the two"
_BEFORE = "what its steps did is to be there before it"
_PRUNED_HERE = "it was pruned or purged here, not there: --pruned does it there"
_LONGEST_PAUSE = 1.0
GONE = "it had gone there"
TAKEN_BACK = "it had been taken back there"
# What a server says when somebody else was faster, or holds the lock right now.
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


class Outgoing(NamedTuple):
    """What a push would send: `updates` of refs; `known` is what the remote has."""

    remote: str
    updates: tuple[Update, ...]
    known: tuple[str, ...]


# Looks at what is about to leave; raises where it must not.
Scan = Callable[[Workspace, Outgoing], None]


class Pushed(NamedTuple):
    """What became of one branch; `name` is the branch it is there.

    Both are empty where it is about the ledger of the session's steps.
    """

    session: str
    branch: str
    result: str
    name: str
    commit: str
    reason: str | None = None


def push(
    workspace: Workspace,
    remote: str | None = None,
    sessions: Sequence[str] = (),
    *,
    pruned: bool = False,
    re_encrypt: bool = False,
    dry_run: bool = False,
    scan: Scan | None = None,
    progress: Told | None = None,
    interactive: bool = False,
) -> list[Pushed]:
    """Sends sessions (`SESSION` or `SESSION/BRANCH`; all where none is named).

    A branch only moves forward there. What cannot is `rejected`, and the rest is sent;
    see `refuse_rejected`. With `pruned` a branch whose old checkpoints were pruned here is
    replaced there, too, if it holds nothing else there; by lease. What leaves is looked
    through first, by `scan`: the default refuses secrets as the settings say. The ledger
    of a session's steps goes before its branches, and where it cannot, they do not. Where
    `gitcp.encryptTo` is set all is encrypted after that; with `re_encrypt` all of it anew,
    to whom the setting names now.

    Raises:
        PlaintextError: it would be sent as it is where there is ciphertext.
        EncryptionError: it cannot be encrypted.
        SecretsFoundError: it holds secrets; nothing was sent.
        UsageError: there is no such remote.
        NotFoundError: there is no such session.
        TransferError: the remote cannot be reached, or broke off.
    """
    place = remotes.find(
        workspace.repository, remote or workspace.settings.sharing.remote
    )
    gate = scan or Gate()
    sending = Sending(workspace, place, anew=re_encrypt)
    with sending.ready():
        return _Push(
            workspace,
            place,
            gate,
            sending,
            progress,
            pruned=pruned,
            interactive=interactive,
        ).run(chosen(workspace, sessions), dry_run=dry_run)


def chosen(workspace: Workspace, sessions: Sequence[str]) -> dict[Key, str]:
    """Returns the tips of the branches that are meant, and of their ledgers.

    Raises:
        NotFoundError: there is no such session or branch.
    """
    store = workspace.store
    # Ledgers after branches: what a checkpoint says was done is in its ledger by then.
    if not sessions:
        tips = store.refs()
        return tips | ledgers.here(workspace)
    found: dict[Key, str] = {}
    for spec in sessions:
        session, branch = parts(spec)
        tips = store.refs_of(session)
        if branch is not None:
            tips = {key: oid for key, oid in tips.items() if key[1] == encode(branch)}
        if tips or branch is None:
            tips |= ledgers.of(workspace, session)
        if not tips:
            raise NotFoundError(
                f"there is no session {spec!a}", hint="`gitcp sessions` lists them"
            )
        found.update(tips)
    return found


def parts(spec: str) -> tuple[str, str | None]:
    """Returns session and branch of `SESSION[/BRANCH]`.

    Raises:
        UsageError: a name is not usable.
    """
    session, slash, branch = spec.partition("/")
    check_typed(session, "session")
    return session, check_typed(branch, "branch") if slash else None


def refuse_rejected(pushed: Sequence[Pushed], remote: str) -> None:
    """Raises if a branch could not be sent.

    Raises:
        BranchMovedError: none could.
        PartialError: some could.
    """
    rejected = [one for one in pushed if one.result == REJECTED]
    if not rejected:
        return
    names = [
        f"{one.session}{f'/{one.branch}' if one.branch else ''}: {one.reason}"
        for one in rejected
        if one.reason != _BEFORE
    ]
    reasons = {one.reason for one in rejected}
    pruned = reasons <= {_PRUNED_HERE, _BEFORE}
    hint = (
        f"`gitcp push {remote} --pruned` puts what is here in its place"
        if pruned
        else f"`gitcp pull {remote}`, then push again"
        if reasons <= {_RAN, _BEFORE}
        else f"`gitcp push {remote} --re-encrypt` replaces it; whoever fetched it has it"
        if reasons <= {PLAIN_THERE, _BEFORE}
        else f"`gitcp pull {remote}` keeps their line as a fork beside yours;"
        f" `gitcp fork NAME`, then `gitcp push {remote}`, shares yours under a new name"
    )
    if len(rejected) == len(pushed):
        raise BranchMovedError(f"nothing was sent: {'; '.join(names)}", hint=hint)
    raise PartialError(
        f"{len(rejected)} of {len(pushed)} branches were not sent",
        left=names,
        hint=hint,
    )


def _is_ledger(key: Key) -> bool:
    return key[1] == ledgers.NO_BRANCH


class _Push:
    def __init__(
        self,
        workspace: Workspace,
        remote: str,
        scan: Scan,
        sending: Sending,
        progress: Told | None,
        *,
        pruned: bool,
        interactive: bool,
    ) -> None:
        self._pruned = pruned
        self._workspace = workspace
        self._store = workspace.store
        self._remote = remote
        self._scan = scan
        self._sending = sending
        self._progress = progress
        self._interactive = interactive
        self._limits = limits_of(workspace.settings.sharing)
        self._scanned: set[str] = set()
        self._there_then: dict[str, str] = {}
        # What the remote had when it was last seen, by its own names for branches.
        prefix = f"{layout.REMOTES}{encode(remote)}/"
        noted = workspace.repository.refs.list(prefix)
        self._seen = {
            layout.SESSIONS + ref.removeprefix(prefix): oid
            for ref, oid in noted.items()
        }

    def run(self, tips: Mapping[Key, str], *, dry_run: bool) -> list[Pushed]:
        done: dict[Key, Pushed] = {}
        waiting = dict(tips)
        pause = 0.05
        self._sending.refuse_plaintext(tips)
        for attempt in range(_TRIES):
            there = self._there_then = self._there(tips)
            updates: dict[Key, Update] = {}
            for key, oid in sorted(waiting.items()):
                decided = self._decide(key, oid, there)
                its = done.get(ledgers.key_of(key[0]))
                if not isinstance(decided, Update):
                    done[key] = decided
                elif its is not None and its.result == REJECTED:
                    done[key] = self._rejected(key, oid, _BEFORE)
                else:
                    updates[key] = decided
            if not updates:
                break
            outgoing = Outgoing(
                self._remote,
                tuple(one for one in updates.values() if one.new not in self._scanned),
                tuple(sorted(set(there.values()))),
            )
            # The one place where what leaves is looked at; nothing has been sent yet.
            self._scan(self._workspace, outgoing)
            self._scanned.update(one.new for one in outgoing.updates)
            if dry_run:
                done |= {key: self._result(key, one) for key, one in updates.items()}
                break
            answers = self._send(self._sending.forms(updates))
            waiting = {}
            last = attempt == _TRIES - 1
            for key, update in updates.items():
                answer = answers.get(update.ref, Answer("!", "no answer"))
                if answer.done:
                    self._sending.sent(key)
                    done[key] = self._result(key, update)
                elif not last and any(
                    word in answer.reason for word in (*_STALE, *_BUSY)
                ):
                    waiting[key] = update.new
                else:
                    done[key] = self._rejected(key, update.new, answer.reason)
            for key, update in updates.items():
                if waiting.keys() & {key, ledgers.key_of(key[0])}:
                    done.pop(key, None)
                    waiting[key] = update.new
            if not waiting:
                break
            time.sleep(random.uniform(0, pause))  # noqa: S311  no secret
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._find_kept(done, self._there_then)
        if not dry_run:
            self._remember(tips, done)
        return [done[key] for key in sorted(done)]

    def _send(self, updates: Mapping[Key, Update]) -> dict[str, Answer]:
        """Sends ledgers, then the branches of those sessions whose ledger is there."""
        steps = {key: one for key, one in updates.items() if _is_ledger(key)}
        answers = self._sent(list(steps.values()))
        missed = {
            key[0]
            for key, one in steps.items()
            if not answers.get(one.ref, Answer("!", "")).done
        }
        others = [(key, one) for key, one in updates.items() if key not in steps]
        held = {
            one.ref: Answer("!", _BEFORE) for key, one in others if key[0] in missed
        }
        return (
            answers
            | held
            | self._sent([one for _, one in others if one.ref not in held])
        )

    def _sent(self, updates: Sequence[Update]) -> dict[str, Answer]:
        if not updates:
            return {}
        return remotes.send(
            self._workspace.repository,
            self._remote,
            updates,
            limits=self._limits,
            progress=self._progress,
            interactive=self._interactive,
        )

    def _there(self, tips: Mapping[Key, str]) -> dict[str, str]:
        found = remotes.advertised(
            self._workspace.repository,
            self._remote,
            (layout.SESSIONS, layout.EFFECTS),
            limits=self._limits,
            interactive=self._interactive,
        ).refs
        keys = {ref: branch_key(ref, layout.SESSIONS) for ref in found}
        there = {key: found[ref] for ref, key in keys.items() if key is not None}
        # From here on an encrypted tip is what it stands for, where that is known.
        plain = self._sending.seen(there, {key[0] for key in tips})
        return {
            ref: oid if (key := keys[ref]) is None else plain[key]
            for ref, oid in found.items()
        }

    def _decide(self, key: Key, oid: str, there: Mapping[str, str]) -> Pushed | Update:
        ref = ledgers.ref_of(key)
        old = there.get(ref)
        if _is_ledger(key):
            return self._decide_steps(key, oid, old)
        session, branch = self._store.names(key, oid)
        if old is None:
            same = self._only_names(oid, there)
            if same is not None:
                return Pushed(session, branch, UP_TO_DATE, same, oid)
            return Update(ref, None, oid)
        anew = self._sending.anew
        plain = self._sending.stands_plain(key)
        if old == oid and not anew:
            reason = PLAIN_THERE if plain else None
            return Pushed(session, branch, UP_TO_DATE, branch, oid, reason)
        if plain and not anew:
            return self._rejected(key, oid, PLAIN_THERE)
        if self._follows(old, oid):
            return Update(ref, old, oid)
        if self._follows(oid, old) or is_pruned_form(self._store, of=oid, line=old):
            return Pushed(session, branch, UP_TO_DATE, branch, old, _MORE)
        if is_pruned_form(self._store, of=old, line=oid) or was_purged(
            self._store, old, oid
        ):
            if self._pruned:
                return Update(ref, old, oid)
            return self._rejected(key, oid, _PRUNED_HERE)
        return self._rejected(key, oid, _GREW)

    def _decide_steps(self, key: Key, oid: str, old: str | None) -> Pushed | Update:
        """Decides on the ledger of a session."""
        session = self._name(key, oid)
        if self._sending.on:
            return self._rejected(key, oid, PLAIN_STEPS)
        if old == oid:
            return Pushed(session, "", UP_TO_DATE, "", oid)
        known, purged = ledgers.commits_of(self._workspace, key[0], oid)
        if old is None or old in known:
            return Update(ledgers.ref_of(key), old, oid)
        if old in purged:
            if self._pruned:
                return Update(ledgers.ref_of(key), old, oid)
            return self._rejected(key, oid, _PRUNED_HERE)
        noted = ledgers.noted_ref(self._remote, key)
        if self._workspace.repository.refs.read(noted) == oid:
            # All of ours is there, and it only grows.
            return Pushed(session, "", UP_TO_DATE, "", old, _MORE)
        return self._rejected(key, oid, _RAN)

    def _name(self, key: Key, oid: str) -> str:
        if _is_ledger(key):
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

    def _find_kept(self, done: dict[Key, Pushed], there: Mapping[str, str]) -> None:
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
                    component = key[0], ref.removeprefix(prefix)
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

    def _result(self, key: Key, update: Update) -> Pushed:
        result = CREATED if update.old is None else FAST_FORWARD
        result = CREATED if update.old is None else FAST_FORWARD
        if _is_ledger(key):
            known, _ = ledgers.commits_of(self._workspace, key[0], update.new)
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
        """Says so where the remote no longer had what it had when it was last seen."""
        seen = self._seen.get(update.ref)
        if seen is None or seen == update.old:
            return None
        if update.old is None:
            return GONE
        if goes_back(self._store, seen, update.old):
            return TAKEN_BACK
        return None

    def _rejected(self, key: Key, oid: str, reason: str) -> Pushed:
        if _is_ledger(key):
            return Pushed(self._name(key, oid), "", REJECTED, "", oid, reason)
        session, branch = self._store.names(key, oid)
        return Pushed(session, branch, REJECTED, branch, oid, reason)

    def _remember(self, tips: Mapping[Key, str], done: Mapping[Key, Pushed]) -> None:
        """Notes what the remote has now, as a pull would."""
        refs = self._workspace.repository.refs
        noted = refs.list(f"{layout.REMOTES}{encode(self._remote)}/")
        noted |= refs.list(f"{layout.REMOTE_EFFECTS}{encode(self._remote)}/")
        moves = {}
        for key, one in done.items():
            if one.name != one.branch:
                # It is there by another name only.
                continue
            ref = ledgers.noted_ref(self._remote, key)
            sent = one.result in {CREATED, FAST_FORWARD} or one.commit == tips[key]
            if sent and one.result not in {REJECTED, FORKED}:
                seen = noted.get(ref)
                if seen != tips[key]:
                    moves[ref] = seen, tips[key]
        if not moves:
            return
        with transaction(self._workspace.repository) as opened:
            for ref, (seen, oid) in moves.items():
                remember(self._workspace.repository, opened, ref, seen, oid)
