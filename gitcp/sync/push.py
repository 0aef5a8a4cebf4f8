"""Pushes sessions: fast-forwards only, exact commits, each ref with a push lease."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from gitcp.errors import NotFoundError
from gitcp.format import layout
from gitcp.git import remote as remotes
from gitcp.git.remote import Answer, Update
from gitcp.git.transaction import transaction
from gitcp.git.transport import Told
from gitcp.names import check_typed, encode
from gitcp.project.workspace import Workspace
from gitcp.secrets.policy import Gate
from gitcp.sync import ledgers, push_urls
from gitcp.sync.adopt import CREATED, FAST_FORWARD, FORKED, REJECTED, remember
from gitcp.sync.encrypting import Sending
from gitcp.sync.import_objects import limits_of
from gitcp.sync.push_policy import BEFORE, Decider, Pushed, is_ledger
from gitcp.sync.validate import Key
from gitcp.trust.trusted_remotes import spelled

_TRIES = 30
_LONGEST_PAUSE = 1.0
_HEADS = "refs/heads/"
# Up to so many sessions the remote is asked for theirs only.
_NAMED = 50
# What a server says when another push was faster, or holds the lock right now.
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
    see `deciding.refuse_rejected`. With `pruned` a branch whose old checkpoints were pruned here is
    replaced there, too, if it holds nothing else there; by lease. What leaves is looked
    through first, by `scan`: the default refuses secrets as the settings say. The ledger
    of a session's steps goes before its branches, and where it cannot, they do not. Where
    `gitcp.encryptTo` is set all is encrypted after that; with `re_encrypt` all of it again,
    to whom the setting names now.

    Raises:
        PlaintextError: it would be sent as it is where there is ciphertext.
        EncryptionError: it cannot be encrypted.
        SecretsFoundError: it holds secrets; nothing was sent.
        UsageError: there is no such remote.
        NotFoundError: there is no such session.
        TransferError: the remote cannot be reached, or broke off.
    """
    workspace.refresh()
    place = remotes.find(
        workspace.repository, remote or workspace.settings.sharing.remote
    )
    gate = scan or Gate()
    sending = Sending(workspace, place, reencrypt=re_encrypt)
    with sending.ready():
        tips = chosen(workspace, sessions)
        addresses = remotes.addresses(workspace.repository, place)
        pushes = [
            _Push(
                workspace,
                place,
                address,
                gate,
                sending,
                progress,
                pruned=pruned,
                interactive=interactive,
                alone=len(addresses) == 1,
            )
            for address in addresses
        ]
        if len(pushes) == 1:
            done = [pushes[0].run(tips, dry_run=dry_run)]
        else:
            done = push_urls.to_each(pushes, tips, dry_run=dry_run)
        if not dry_run:
            _remember(workspace, place, tips, push_urls.everywhere(done))
        return [each[key] for each in done for key in sorted(each)]


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


class _Push:
    def __init__(
        self,
        workspace: Workspace,
        remote: str,
        address: str,
        scan: Scan,
        sending: Sending,
        progress: Told | None,
        *,
        pruned: bool,
        interactive: bool,
        alone: bool,
    ) -> None:
        self._address = address
        self._alone = alone
        self._workspace = workspace
        self._remote = remote
        self._scan = scan
        self._sending = sending
        self._progress = progress
        self._interactive = interactive
        self._limits = limits_of(workspace.settings.sharing)
        self._scanned: set[str] = set()
        self._there_then: dict[str, str] = {}
        # What the other side has, by what it says of itself at this moment.
        self._known: frozenset[str] = frozenset()
        self._replaces = pruned or sending.reencrypt
        self._decider = Decider(workspace, remote, sending, pruned=pruned)

    @property
    def shown(self) -> str:
        """Where it goes, without what is secret in the address."""
        return spelled(self._workspace.repository, self._address)

    def none(self, tips: Mapping[Key, str], reason: str) -> dict[Key, Pushed]:
        """Returns that nothing could be sent, and why."""
        return {
            key: self._decider.rejected(key, oid, reason) for key, oid in tips.items()
        }

    def run(self, tips: Mapping[Key, str], *, dry_run: bool) -> dict[Key, Pushed]:
        """Sends what is not there yet; what becomes of each branch."""
        done: dict[Key, Pushed] = {}
        waiting = dict(tips)
        pause = 0.05
        self._sending.refuse_plaintext(tips)
        for attempt in range(_TRIES):
            there = self._there_then = self._there(tips)
            updates: dict[Key, Update] = {}
            for key, oid in sorted(waiting.items()):
                decided = self._decider.decide(key, oid, there)
                its = done.get(ledgers.key_of(key[0]))
                if not isinstance(decided, Update):
                    done[key] = decided
                elif its is not None and its.result == REJECTED:
                    done[key] = self._decider.rejected(key, oid, BEFORE)
                else:
                    updates[key] = decided
            if not updates:
                break
            outgoing = Outgoing(
                self._remote,
                tuple(one for one in updates.values() if one.new not in self._scanned),
                tuple(sorted(self._known)),
            )
            # The one place where what leaves is looked at; nothing has been sent yet.
            self._scan(self._workspace, outgoing)
            self._scanned.update(one.new for one in outgoing.updates)
            if dry_run:
                done |= {
                    key: self._decider.result(key, one) for key, one in updates.items()
                }
                break
            answers = self._send(self._sending.forms(updates))
            waiting = {}
            last = attempt == _TRIES - 1
            for key, update in updates.items():
                answer = answers.get(update.ref, Answer("!", "no answer"))
                if answer.done:
                    self._sending.sent(key)
                    done[key] = self._decider.result(key, update)
                elif not last and any(
                    word in answer.reason for word in (*_STALE, *_BUSY)
                ):
                    waiting[key] = update.new
                else:
                    done[key] = self._decider.rejected(key, update.new, answer.reason)
            for key, update in updates.items():
                if waiting.keys() & {key, ledgers.key_of(key[0])}:
                    done.pop(key, None)
                    waiting[key] = update.new
            if not waiting:
                break
            time.sleep(random.uniform(0, pause))  # noqa: S311  no secret
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._decider.find_kept(done, self._there_then)
        return done

    def _send(self, updates: Mapping[Key, Update]) -> dict[str, Answer]:
        """Sends ledgers, then the branches of those sessions whose ledger is there."""
        steps = {key: one for key, one in updates.items() if is_ledger(key)}
        answers = self._sent(list(steps.values()))
        missed = {
            key[0]
            for key, one in steps.items()
            if not answers.get(one.ref, Answer("!", "")).done
        }
        others = [(key, one) for key, one in updates.items() if key not in steps]
        held = {one.ref: Answer("!", BEFORE) for key, one in others if key[0] in missed}
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
            # By its name all addresses of a remote would be meant.
            self._remote if self._alone else self._address,
            updates,
            limits=self._limits,
            replaces=self._replaces,
            progress=self._progress,
            interactive=self._interactive,
        )

    def _there(self, tips: Mapping[Key, str]) -> dict[str, str]:
        """Returns the refs that the remote has of the sessions that are pushed.

        There may be thousands of others, and nothing of this push stands on them.
        """
        sessions = {key[0] for key in tips}
        below = [layout.SESSIONS, layout.EFFECTS]
        if len(sessions) <= _NAMED:
            below = [f"{layout.SESSIONS}{session}/" for session in sorted(sessions)]
            below += [layout.EFFECTS + session for session in sorted(sessions)]
        found = remotes.advertised(
            self._workspace.repository,
            self._remote,
            [*below, _HEADS],
            address=self._address,
            limits=self._limits,
            interactive=self._interactive,
        ).refs
        keys = {
            ref: key
            for ref in found
            if ref.removeprefix(layout.SESSIONS).partition("/")[0] in sessions
            and (key := layout.branch_key(ref)) is not None
        }
        steps = {ledgers.ref_of(key): key for key in map(ledgers.key_of, sessions)}
        keys |= {ref: key for ref, key in steps.items() if ref in found}
        # From here on an encrypted tip is what it stands for, where that is known.
        plain = self._sending.seen({key: found[ref] for ref, key in keys.items()})
        there = {ref: plain[key] for ref, key in keys.items()}
        self._known = self._history(found) | frozenset(there.values())
        return there

    def _history(self, advertised: Mapping[str, str]) -> frozenset[str]:
        """Returns commits of the project that a remote has, by the branches it has.

        A remote-tracking branch alone tells nothing: the address may be another since.
        """
        exists = self._workspace.repository.objects.exists
        tracked = f"refs/remotes/{self._remote}/"
        seen = self._workspace.repository.refs.list(tracked)
        found = set()
        for ref, oid in advertised.items():
            if not ref.startswith(_HEADS):
                continue
            if exists(bytes.fromhex(oid)):
                found.add(oid)
            elif before := seen.get(tracked + ref.removeprefix(_HEADS)):
                # It went on there: what was seen of it is below.
                found.add(before)
        return frozenset(found)


def _remember(
    workspace: Workspace,
    remote: str,
    tips: Mapping[Key, str],
    done: Mapping[Key, Pushed],
) -> None:
    """Notes what the remote has now, as a pull would."""
    refs = workspace.repository.refs
    noted = refs.list(f"{layout.REMOTES}{encode(remote)}/")
    noted |= refs.list(f"{layout.REMOTE_EFFECTS}{encode(remote)}/")
    moves = {}
    for key, one in done.items():
        if one.name != one.branch:
            # It is there by another name only.
            continue
        ref = ledgers.noted_ref(remote, key)
        sent = one.result in {CREATED, FAST_FORWARD} or one.commit == tips[key]
        if sent and one.result not in {REJECTED, FORKED}:
            seen = noted.get(ref)
            if seen != tips[key]:
                moves[ref] = seen, tips[key]
    if not moves:
        return
    with transaction(workspace.repository) as opened:
        for ref, (seen, oid) in moves.items():
            remember(workspace.repository, opened, ref, seen, oid)
