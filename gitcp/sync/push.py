"""Pushes sessions: fast-forwards only, exact commits, each ref with a push lease."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from gitcp.errors import CorruptError, FormatTooNewError, NotFoundError
from gitcp.format.checkpoint import IMPORT
from gitcp.format.layout import RefKey
from gitcp.git import remote as remotes
from gitcp.git.transaction import transaction
from gitcp.git.transport import Told
from gitcp.names import check_typed, encode
from gitcp.project.workspace import Workspace
from gitcp.secrets.policy import Gate
from gitcp.store.store import Store
from gitcp.sync import ledgers, push_forks, push_urls
from gitcp.sync.adopt import remember
from gitcp.sync.encrypting import encryption_for
from gitcp.sync.outcome import (
    CREATED,
    FAST_FORWARD,
    PRUNED,
    RE_ENCRYPTED,
    Outcome,
)
from gitcp.sync.push_address import AddressPush, Outcomes, PushTarget, Relay
from gitcp.sync.push_policy import is_unreadable
from gitcp.sync.tracking import tracked
from gitcp.trust.trusted_remotes import Pulled

# How often a push tries again what it could not read.
_MORE_TRIES = 2


def push(
    workspace: Workspace,
    remote: str | None = None,
    sessions: Sequence[str] = (),
    *,
    pruned: bool = False,
    re_encrypt: bool = False,
    fork: bool = False,
    dry_run: bool = False,
    gate: Gate | None = None,
    progress: Told | None = None,
    interactive: bool = False,
    relay: Relay | None = None,
) -> list[Outcome]:
    """Sends sessions (`SESSION` or `SESSION/BRANCH`; all if none is named).

    A branch only moves forward there. A branch that cannot is `rejected`, and the rest is
    sent; see `push_policy.refuse_rejected`. With `fork`, a diverged branch is forked here,
    and the fork is sent. With `pruned`, a branch whose old checkpoints were pruned here is
    replaced there, too, if it holds nothing else there; by lease. `gate` scans everything
    before it leaves: the default refuses secrets as the settings say. The ledger of a
    session's steps is sent before its branches; if it is rejected, they are not sent. If
    `gitcp.encryptTo` is set, everything is then encrypted; with `re_encrypt`, everything
    again, to the recipients that the setting names now. A `relay` receives the push in
    place of the remote.

    Raises:
        PlaintextError: a branch would be sent as plaintext although its session is
            encrypted there.
        EncryptionError: a session cannot be encrypted.
        SecretsFoundError: a session holds secrets; nothing was sent.
        UsageError: there is no such remote.
        NotFoundError: there is no such session.
        TransferError: the remote cannot be reached, or the transfer was interrupted.
    """
    workspace.refresh()
    name = remotes.find(
        workspace.repository, remote or workspace.settings.sharing.remote
    )
    with encryption_for(workspace, name, reencrypt=re_encrypt) as encryption:
        tips = chosen(workspace, sessions)
        addresses = remotes.addresses(workspace.repository, name)
        told = (pruned, progress, interactive, relay)
        target = PushTarget(workspace, name, gate or Gate(), encryption, *told)
        pushes = [
            AddressPush(target, address, alone=len(addresses) == 1)
            for address in addresses
        ]
        tips, outcomes = _send_and_retry(workspace, pushes, tips, dry_run=dry_run)
        if fork and not dry_run:
            taken = {key for each in pushes for key in each.there}
            forks = push_forks.fork_diverged(workspace, outcomes, taken)
            if forks:
                again = push_forks.to_send_again(tips, forks)
                second = _send(pushes, again, dry_run=False)
                outcomes = list(map(push_forks.merged, outcomes, second))
                tips |= forks
        if not dry_run and relay is None:
            _remember(workspace, name, tips, push_urls.everywhere(outcomes))
        return [each[key] for each in outcomes for key in sorted(each)]


def _send_and_retry(
    workspace: Workspace,
    pushes: Sequence[AddressPush],
    tips: Mapping[RefKey, str],
    *,
    dry_run: bool,
) -> tuple[dict[RefKey, str], list[Outcomes]]:
    """Returns the tips that were sent in the end, and the outcomes at each address.

    A branch may be unreadable although nothing is damaged: another process has rewritten it,
    or a collection has removed what it was compared with, which the remote has and no ref
    here reaches. Such a branch is sent again, as it is by now.
    """
    tips, outcomes = dict(tips), _send(pushes, tips, dry_run=dry_run)
    for _ in range(_MORE_TRIES):
        unread = {key for each in outcomes for key in each if is_unreadable(each[key])}
        if not unread:
            break
        now = {key: workspace.repository.refs.read(key.ref) for key in sorted(unread)}
        for key, oid in now.items():
            if oid is not None:
                tips[key] = oid
                continue
            del tips[key]
            for each in outcomes:
                each.pop(key, None)
        left = {key: tips[key] for key in unread & tips.keys()}
        if left:
            second = _send(
                pushes, push_forks.to_send_again(tips, left), dry_run=dry_run
            )
            outcomes = list(map(push_forks.merged, outcomes, second))
    return tips, outcomes


def _send(
    pushes: Sequence[AddressPush], tips: Mapping[RefKey, str], *, dry_run: bool
) -> list[Outcomes]:
    """Sends to each address; returns the outcome of each branch there."""
    if len(pushes) == 1:
        return [pushes[0].run(tips, dry_run=dry_run)]
    return push_urls.to_each(pushes, tips, dry_run=dry_run)


def chosen(workspace: Workspace, sessions: Sequence[str]) -> dict[RefKey, str]:
    """Returns the tips of the chosen branches, and of their ledgers.

    Raises:
        NotFoundError: there is no such session or branch.
    """
    store = workspace.store
    # Read ledgers after branches: then they have every step that a checkpoint names.
    if not sessions:
        pulled = Pulled(store)
        tips = {
            key: oid
            for key, oid in store.refs().items()
            if not _imported(store, oid, pulled)
        }
        return tips | ledgers.here(workspace)
    found: dict[RefKey, str] = {}
    for spec in sessions:
        session, branch = session_and_branch(spec)
        tips = store.refs_of(session)
        if branch is not None:
            tips = {
                key: oid for key, oid in tips.items() if key.branch == encode(branch)
            }
        steps = ledgers.of(workspace, session) if tips or branch is None else {}
        if not tips and not steps:
            raise NotFoundError(
                f"there is no session {spec!a}", hint="`gitcp sessions` lists them"
            )
        found |= tips | steps
    return found


def _imported(store: Store, oid: str, pulled: Pulled) -> bool:
    """Whether a branch was only imported here; it is sent only if it is named."""
    with suppress(CorruptError, FormatTooNewError):
        tip = store.checkpoint(oid)
        if tip is not None and tip.trailers.trigger == IMPORT:
            # What a pull brought was sent before, and says what a stranger likes.
            return oid not in pulled or tip.origin.here
    return False


def stay_here(workspace: Workspace) -> int:
    """Returns how many branches a push sends only if they are named: imported ones."""
    store = workspace.store
    pulled = Pulled(store)
    return sum(_imported(store, oid, pulled) for oid in store.refs().values())


def session_and_branch(spec: str) -> tuple[str, str | None]:
    """Returns session and branch of `SESSION[/BRANCH]`.

    Raises:
        UsageError: a name is not usable.
    """
    session, slash, branch = spec.partition("/")
    check_typed(session, "session")
    return session, check_typed(branch, "branch") if slash else None


def _remember(
    workspace: Workspace,
    remote: str,
    tips: Mapping[RefKey, str],
    outcomes: Mapping[RefKey, Outcome],
) -> None:
    """Notes the tips that were sent."""
    noted = tracked(workspace.repository.refs, remote, outcomes)
    moves = []
    for key, outcome in outcomes.items():
        if outcome.name != outcome.branch:
            # It is there only under another name.
            continue
        # That it is up to date is a claim of the remote's (`sync.proven`).
        if outcome.result in {CREATED, FAST_FORWARD, PRUNED, RE_ENCRYPTED}:
            seen = noted.get(key)
            if seen != tips[key]:
                moves.append((key.tracking_ref(remote), seen, tips[key]))
    if not moves:
        return
    with transaction(workspace.repository) as txn:
        for ref, seen, oid in moves:
            remember(txn, ref, seen, oid)
