"""Pulls sessions: fetch, validate, adopt; never merges, never overwrites."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from gitcp.encryption.quarantine import Quarantine
from gitcp.errors import BranchMovedError, PartialError
from gitcp.format import layout
from gitcp.git import remote as remotes
from gitcp.git.drop_unreachable import store_locked
from gitcp.git.remote import RefusedError
from gitcp.git.transaction import Transaction, transaction
from gitcp.git.transport import Limits, Told
from gitcp.names import decode, encode
from gitcp.project.workspace import Workspace
from gitcp.sync import ledgers
from gitcp.sync.adopt import (
    PRUNED,
    REJECTED,
    UP_TO_DATE,
    Adopted,
    adopt,
    copy,
    fork,
    holds,
    move,
    remember,
)
from gitcp.sync.decrypting import Receiving
from gitcp.sync.history import goes_back, is_pruned_form, was_pruned, was_purged
from gitcp.sync.import_objects import judge, our_tips, refusal
from gitcp.sync.offered import offered
from gitcp.sync.validate import Fault, Key
from gitcp.trust import trusted_remotes

# Commits that a remote is told of, so that it need not send what is here.
_TOLD = 200


class Pulled(NamedTuple):
    """The result of a pull.

    `ignored` are refs that are not a branch's; `rewound` what became of branches whose tip
    there was taken back; `gone` names those that were there once and are not; `refused`
    says why what was not adopted was not. `ledgers` is what became of the ledgers of
    steps; of the sessions in `short` that remote has not all that their checkpoints say
    was done.
    """

    branches: list[Adopted]
    ignored: tuple[str, ...]
    rewound: tuple[Adopted, ...]
    refused: Mapping[Key, Fault]
    gone: tuple[str, ...] = ()
    ledgers: tuple[Adopted, ...] = ()
    short: tuple[str, ...] = ()


def pull(
    workspace: Workspace,
    remote: str | None = None,
    sessions: Sequence[str] = (),
    *,
    progress: Told | None = None,
    interactive: bool = False,
) -> Pulled:
    """Pulls sessions of a remote; all if none is named.

    Everything is judged before anything is adopted. A branch of ours is made or
    fast-forwarded; where both grew, theirs becomes a fork. Files do not change. Ledgers
    of steps come first: killed in between, more is known to be done than is here.

    Raises:
        UsageError: there is no such remote.
        NotFoundError: it has no such session.
        TransferError: it cannot be reached, git refuses what it sent, or it is too much.
    """
    workspace.refresh()
    place = remotes.find(
        workspace.repository, remote or workspace.settings.sharing.remote
    )
    there = offered(workspace, place, sessions, interactive=interactive)
    receiving = Receiving(workspace, place)
    # From here on an encrypted tip is what it stands for, where that is known.
    found = receiving.seen(there.branches)
    listed = {ledgers.key_of(name): oid for name, oid in there.ledgers.items()}
    steps_found = {key[0]: oid for key, oid in receiving.seen(listed).items()}
    lacking = ledgers.news(workspace, place, steps_found)
    new_steps = {name: there.ledgers[name] for name in lacking}
    prefix = f"{layout.REMOTES}{encode(place)}/"
    refs = workspace.repository.refs
    noted = refs.list(prefix)
    seen = {key: noted.get(f"{prefix}{key[0]}/{key[1]}") for key in found}
    ours = workspace.store.refs()
    before_it = {*ours.values(), *refs.list(layout.REMOTES).values()}
    gone = {key for key, oid in found.items() if _purged_here(workspace, key, oid)}
    wanted = {
        key: there.branches[key]
        for key, oid in found.items()
        if seen[key] != oid and key not in gone
    }

    branches: list[Adopted] = []
    rewound: list[Adopted] = []
    bad: dict[Key, Fault] = {}
    with transaction(workspace.repository) as opened:
        source = _Source(
            workspace, opened, place, receiving, progress, interactive=interactive
        )
        if wanted or new_steps:
            bad = source.take(wanted, new_steps)
            found.update(source.opened)
            steps_found.update(source.ledgers)
        tips = {key: found[key] for key in wanted if key not in bad}
        steps = ledgers.take_over(workspace, source.ledgers, tips)
        fit = {
            component: oid
            for component, oid in steps_found.items()
            if ledgers.key_of(component) not in bad
        }
        steps += ledgers.note(workspace, opened, place, fit)
        note = partial(remember, workspace.repository, opened)
        for component, oid in source.ledgers.items():
            receiving.note(ledgers.key_of(component), oid, note)
        for key, fault in bad.items():
            if key == ledgers.key_of(key[0]):
                session = decode(key[0]) or key[0]
                steps.append(Adopted(session, "", REJECTED, "", None, fault.text))
        for key, oid in found.items():
            if key in bad:
                session, branch = (decode(part) or part for part in key)
                branches.append(
                    Adopted(session, branch, REJECTED, branch, None, bad[key].text)
                )
                continue
            if key in wanted:
                receiving.note(key, oid, note)
            if seen[key] == oid == ours.get(key):
                session, branch = workspace.store.names(key, oid)
                branches.append(Adopted(session, branch, UP_TO_DATE, branch, oid))
                continue
            before = seen[key]
            back = before is not None and goes_back(workspace.store, before, oid)
            made = _pruned(workspace, opened, key, oid, seen[key])
            if made is None:
                made = _take(workspace, opened, key, oid, place, rewound=back)
            if key in wanted:
                ref = f"{prefix}{key[0]}/{key[1]}"
                remember(workspace.repository, opened, ref, seen[key], oid)
            branches.append(made)
            if back:
                rewound.append(made)
    trusted_remotes.note_pulled(workspace.store, place, tips.values(), before_it)
    missing = () if sessions else missing_there(noted, prefix, found)
    return Pulled(
        branches,
        there.ignored,
        tuple(rewound),
        bad,
        missing,
        tuple(steps),
        _short(workspace, tips),
    )


def missing_there(
    noted: Mapping[str, str], prefix: str, found: Mapping[Key, str]
) -> tuple[str, ...]:
    """Returns the branches that a remote had when it was last seen, and has no more."""
    gone = []
    for ref in noted:
        session, _, branch = ref.removeprefix(prefix).partition("/")
        if (session, branch) not in found:
            gone.append("/".join(decode(part) or part for part in (session, branch)))
    return tuple(gone)


class _Source:
    """A remote that objects are taken from."""

    def __init__(
        self,
        workspace: Workspace,
        opened: Transaction,
        place: str,
        receiving: Receiving,
        progress: Told | None,
        *,
        interactive: bool,
    ) -> None:
        self._workspace = workspace
        self._opened = opened
        self._place = place
        self._receiving = receiving
        # The commits that were wanted, or those that they stand for.
        self.opened: dict[Key, str] = {}
        self._progress = progress
        self._interactive = interactive
        # What came of ledgers and may be adopted.
        self.ledgers: dict[str, str] = {}

    def take(
        self, wanted: Mapping[Key, str], steps: Mapping[str, str]
    ) -> dict[Key, Fault]:
        """Fetches, judges and copies in; returns what is wrong with the rest.

        Raises:
            TransferError: the remote cannot be reached, or sends too much.
        """
        try:
            return self._some(wanted, steps, "quarantine")
        except RefusedError:
            sessions = sorted({*(key[0] for key in wanted), *steps})
            if len(sessions) == 1:
                raise
        # One bad session must not keep the others away.
        bad: dict[Key, Fault] = {}
        for number, session in enumerate(sessions):
            part = {key: oid for key, oid in wanted.items() if key[0] == session}
            its = {key: oid for key, oid in steps.items() if key == session}
            try:
                bad |= self._some(part, its, f"quarantine-{number}")
            except RefusedError as exc:
                keys = [*part, *map(ledgers.key_of, its)]
                bad |= dict.fromkeys(keys, Fault(exc.message))
        return bad

    def _near(self, wanted: Mapping[Key, str], ours: frozenset[str]) -> list[str]:
        """Returns the commits to tell the remote of; an argument list has an end."""
        head, _ = self._workspace.repository.head()
        first = [head] if head is not None else []
        for key in list(wanted)[:_TOLD]:
            tip = self._workspace.repository.refs.read(
                f"{layout.SESSIONS}{key[0]}/{key[1]}"
            )
            first += [tip] if tip is not None else []
        return list(dict.fromkeys([*first, *sorted(ours)]))[:_TOLD]

    def _some(
        self, wanted: Mapping[Key, str], steps: Mapping[str, str], name: str
    ) -> dict[Key, Fault]:
        ours = our_tips(self._workspace, wanted, steps)
        ours |= self._receiving.tips({*(key[0] for key in wanted), *steps})

        def fetch(quarantine: Quarantine, limits: Limits) -> None:
            remotes.fetch_into(
                self._workspace.repository,
                quarantine.objects,
                self._place,
                sorted({*wanted.values(), *steps.values()}),
                near=self._near(wanted, ours),
                limits=limits,
                progress=self._progress,
                look=quarantine.growth,
                interactive=self._interactive,
            )

        judged = judge(
            self._workspace,
            self._opened,
            wanted,
            ours,
            fetch,
            ledgers=steps,
            name=name,
            unlock=self._receiving.open,
        )
        # What is encrypted is kept beside what it stands for.
        both = {*judged.good.values(), *(wanted[key] for key in judged.good)}
        both |= {*judged.ledgers.values(), *(steps[name] for name in judged.ledgers)}
        fit = list(both)
        if fit:
            copy(self._opened, judged.theirs.repository, fit, ours)
        self.opened |= judged.good
        self.ledgers |= judged.ledgers
        unfit = {ledgers.key_of(name): why for name, why in judged.unfit.items()}
        return judged.bad | unfit


def _short(workspace: Workspace, tips: Mapping[Key, str]) -> tuple[str, ...]:
    """Returns the sessions whose checkpoints say more was done than their ledger has."""
    short = []
    for key, oid in tips.items():
        tip = workspace.store.checkpoint(oid)
        if tip is not None and not ledgers.holds(
            workspace, key[0], tip.manifest.ledger
        ):
            short.append(tip.session)
    return tuple(dict.fromkeys(short))


def _purged_here(workspace: Workspace, key: Key, oid: str) -> bool:
    """Whether a remote has what was purged here: it must not come back."""
    ours = workspace.repository.refs.read(f"{layout.SESSIONS}{key[0]}/{key[1]}")
    return ours is not None and ours != oid and was_purged(workspace.store, oid, ours)


def _pruned(
    workspace: Workspace, opened: Transaction, key: Key, oid: str, seen: str | None
) -> Adopted | None:
    """Deals with a branch that was pruned on one side; None where it was on neither.

    Ours is replaced only if that remote had all of it when it was last seen: no other
    remote can remove checkpoints that it never had.

    Raises:
        BusyError: `gc` or a pruning is at work here.
    """
    store = workspace.store
    ref = f"{layout.SESSIONS}{key[0]}/{key[1]}"
    ours = store.repository.refs.read(ref)
    tip = None if ours is None else store.checkpoint(ours)
    if ours is None or tip is None or ours == oid:
        return None
    session, branch = tip.session, tip.branch
    if was_purged(store, oid, ours):
        why = "purged here and not there; `gitcp push --pruned` does it there"
        return Adopted(session, branch, UP_TO_DATE, branch, ours, why)
    if is_pruned_form(store, of=oid, line=ours) or (
        seen == oid and was_pruned(store, oid, ours)
    ):
        why = "pruned here and not there; `gitcp push --pruned` does it there"
        return Adopted(session, branch, UP_TO_DATE, branch, ours, why)
    if (
        seen is None
        or not holds(store, seen, tip)
        or not is_pruned_form(store, of=ours, line=oid)
    ):
        return None
    try:
        with store_locked(store.repository, timeout=1):
            move(store.repository, opened, ref, ours, oid)
    except BranchMovedError:
        return None
    why = "older checkpoints were pruned there"
    return Adopted(session, branch, PRUNED, branch, oid, why)


def _take(
    workspace: Workspace,
    opened: Transaction,
    key: Key,
    oid: str,
    place: str,
    *,
    rewound: bool,
) -> Adopted:
    # The last part of a URL; a name of a remote may hold slashes, too.
    suffix = place.rstrip("/").rpartition("/")[2].removesuffix(".git") or "remote"
    if rewound:
        theirs = workspace.store.checkpoint(oid)
        if theirs is not None:
            return fork(workspace.store, opened, theirs, suffix)
    return adopt(workspace.store, opened, key, oid, suffix=suffix)


def refuse_rejected(pulled: Pulled, remote: str) -> None:
    """Raises if something was refused.

    Raises:
        CorruptError, UnsafePathError: nothing else was there.
        PartialError: the rest was adopted.
    """
    if not pulled.refused:
        return
    came = [*pulled.branches, *pulled.ledgers]
    if all(one.result == REJECTED for one in came):
        raise refusal(remote, pulled.refused)
    raise PartialError(
        f"{len(pulled.refused)} of {len(came)} branches and ledgers of {remote}"
        " were refused",
        left=[
            f"{one.session}{f'/{one.branch}' if one.branch else ''}: {one.reason}"
            for one in came
            if one.result == REJECTED
        ],
        hint="do not use these; ask who pushed them",
    )


def news(pulled: Pulled) -> bool:
    """Whether anything changed here."""
    came = [*pulled.branches, *pulled.ledgers]
    return any(one.result not in {UP_TO_DATE, REJECTED} for one in came)
