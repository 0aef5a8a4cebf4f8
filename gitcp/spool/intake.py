"""Moves a clone's sessions into the spool: decides, scans, encrypts, copies.

All of that happens in the clone, with its settings, as in any push; the spool stands in for
the remote. It knows the remote's refs when last asked, and the refs that wait for it.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import (
    GitcpError,
    NotARepositoryError,
    SecretsFoundError,
    SpoolFullError,
    TransferError,
    UsageError,
)
from gitcp.format import layout
from gitcp.format.layout import RefKey
from gitcp.git import promised, store_address
from gitcp.git import remote as remotes
from gitcp.git.remote import Answer, Update
from gitcp.git.repository import Repository
from gitcp.names import quoted
from gitcp.project.workspace import Workspace
from gitcp.remotes import by_address as sources
from gitcp.remotes import packs
from gitcp.remotes.by_address import Patience
from gitcp.secrets.policy import Gate
from gitcp.spool.entries import (
    CloneNote,
    Pending,
    Route,
    Spool,
    clone_ident,
    now,
    spool_of,
)
from gitcp.spool.kept_clones import KeptClones
from gitcp.spool.policy import policy_of
from gitcp.sync.import_objects import limits_of
from gitcp.sync.outcome import Outcome
from gitcp.sync.push import chosen, push
from gitcp.trust.trusted_remotes import spelled

PREFIXES = (layout.SESSIONS, layout.EFFECTS, "refs/heads/")
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/]+:")
# The settings of git that say how a remote is reached.
_ROUTE = re.compile(
    r"(?i)(core\.(sshcommand|gitproxy|askpass)|ssh\.variant|credential\..*|http\..*"
    r"|protocol\..*|url\..*|pack\.(threads|windowmemory))"
)
_OF_REMOTE = re.compile(r"(?i)(receivepack|proxy|proxyauthmethod|vcs)")


class Waiting(NamedTuple):
    """The spool that a remote's sessions wait in, and the id of a clone there."""

    spool: Spool
    route: Route
    remote: str
    clone: str


def waiting_for(workspace: Workspace, remote: str | None = None) -> Waiting:
    """Returns the spool for a remote; the spool need not exist yet.

    Raises:
        UsageError: there is no such remote, or a spool cannot serve it.
    """
    repository = workspace.repository
    sharing = workspace.settings.sharing
    name = remotes.find(repository, remote or sharing.remote)
    addresses = remotes.addresses(repository, name)
    if len(addresses) > 1:
        raise UsageError(
            f"{name} has several addresses, but a spool sends to only one",
            hint=f"`gitcp push {quoted(name)}` sends to each of them now",
        )
    if (repository.common_dir / "shallow").exists() or promised.remotes(
        repository.config
    ):
        raise UsageError(
            "a shallow or partial clone lacks history that the spool needs",
            hint=f"`gitcp push {quoted(name)}` sends from here; `git fetch --unshallow` fetches"
            " the history",
        )
    (address,) = addresses
    if address == name:
        address = (repository.config.get(f"remote.{name.lower()}.url") or [name])[0]
    if not _WITH_SCHEME.match(address):
        address = str(Path(repository.top or repository.git_dir, address).resolve())
    route = Route(
        *(address, spelled(repository, address)),
        *(repository.form.name, sharing.push_interval),
        *(sharing.transfer_timeout, sharing.transfer_limit),
    )
    return Waiting(spool_of(route), route, name, clone_ident(repository.common_dir))


def note(
    workspace: Workspace, waiting: Waiting, sessions: Sequence[str] = ()
) -> CloneNote:
    """Notes that a clone has something to send, without reading its sessions.

    Raises:
        StorageError: the disk refused.
    """
    waiting.spool.make(waiting.route)
    before = waiting.spool.clone(waiting.clone)
    named = tuple(sessions)
    if before is not None and before.wanted:
        # The sessions of both notes; none stands for all sessions.
        both = before.sessions and named
        named = tuple(dict.fromkeys((*before.sessions, *named))) if both else ()
    top = workspace.repository.git_dir if workspace.bare else workspace.top
    noted = CloneNote(
        *(str(top), waiting.remote, now()),
        wanted=True,
        sessions=named,
        asked=before.asked if before is not None else 0.0,
    )
    waiting.spool.note_clone(waiting.clone, noted)
    return noted


def take_in(
    workspace: Workspace,
    waiting: Waiting,
    sessions: Sequence[str] = (),
    *,
    gate: Gate | None = None,
    fork: bool = False,
) -> list[Outcome]:
    """Queues new commits of some sessions in the spool; returns the outcome of each branch.

    A secret in one session does not hold up the others.

    Raises:
        SecretsFoundError: a session holds secrets; sessions without one are in the spool.
        TransferError: the remote was never reached, and cannot be reached now.
        GitcpError: as for `gitcp push`.
    """
    relay = _SpoolRelay(workspace, waiting)
    relay.prepare(sessions)
    gate = gate or Gate()
    try:
        return _push(workspace, waiting, sessions, gate, relay, fork=fork)
    except SecretsFoundError as exc:
        each = sorted({key.ledger.session for key in workspace.store.refs()})
        names = _names(workspace, each) if not sessions else list(sessions)
        if len(names) == 1:
            raise
        for name in names:
            try:
                _push(workspace, waiting, [name], gate, relay, fork=fork)
            except SecretsFoundError:
                continue
        raise exc from None


def _names(workspace: Workspace, components: Sequence[str]) -> list[str]:
    refs = workspace.store.refs()
    found: dict[str, None] = {}
    for key, oid in refs.items():
        if key.session in components:
            found[workspace.store.names(key, oid)[0]] = None
    return list(found)


def _push(
    workspace: Workspace,
    waiting: Waiting,
    sessions: Sequence[str],
    gate: Gate,
    relay: "_SpoolRelay",
    *,
    fork: bool,
) -> list[Outcome]:
    return push(workspace, waiting.remote, sessions, fork=fork, gate=gate, relay=relay)


class _SpoolRelay:
    """A spool in place of the remote."""

    def __init__(self, workspace: Workspace, waiting: Waiting) -> None:
        self._workspace = workspace
        self._spool = waiting.spool
        self._route = waiting.route
        self._clone = waiting.clone
        self._remote = waiting.remote

    def prepare(self, sessions: Sequence[str]) -> None:
        """Makes the spool, and asks the remote once if it was never asked.

        A pattern or an object store is asked only for the sessions of this push. It is asked
        for others before they are sent.

        Raises:
            TransferError: the remote cannot be reached.
        """
        spool, repository = self._spool, self._workspace.repository
        spool.make(self._route)
        with spool.locked():
            self._gathering = spool.gathering()
            self._gathering.make()
            self._gathering.configure(_way(repository, self._remote, self._route))
        if spool.listed() is None:
            limits = limits_of(self._workspace.settings.sharing)
            # Git needs the name of the remote, because settings may be for that name.
            address = self._route.address
            where = address if store_address.is_store(address) else self._remote
            source = sources.at_address(repository, where, Patience(limits))
            prefixes: Sequence[str] = PREFIXES
            if not source.lists_all:
                keys = {key.ledger for key in chosen(self._workspace, sessions)}
                prefixes = layout.prefixes_of(keys, source.named) if keys else ()
            spool.note_listed(source.advertised(prefixes).refs if prefixes else {})

    def refs(self, prefixes: Sequence[str]) -> Mapping[str, str]:
        """Returns the refs that the remote had, replaced by those that wait for it."""
        below = tuple(prefixes)
        listed, pending = self._spool.listed() or {}, self._spool.pending()
        there = {ref: oid for ref, oid in listed.items() if ref.startswith(below)}
        waits = {ref: one.new for ref, one in pending.items() if ref.startswith(below)}
        return {**there, **waits}

    def take(
        self,
        updates: Mapping[RefKey, Update],
        plain: Mapping[RefKey, str],
        known: Collection[str],
    ) -> dict[str, Answer]:
        """Queues updates; the spool has its own copy of the objects when this returns."""
        answers: dict[str, Answer] = {}
        with self._spool.locked():
            sessions = {key.ledger for key in updates}
            there = self.refs(layout.prefixes_of(sessions))
            good = {}
            for key, update in updates.items():
                fits = there.get(update.ref) == update.old
                answers[update.ref] = Answer(" " if fits else "!", "stale info")
                if fits:
                    good[key] = update
            tips = {update.ref: update.new for update in good.values()}
            self._make_room()
            near = [
                ref
                for ref in there
                if (of := layout.ref_key(ref)) is not None and of.ledger in sessions
            ]
            self._gathering.take(self._workspace.repository, tips, known, near)
            listed = self._spool.listed() or {}
            pending = self._spool.pending()
            self._spool.put(
                *(
                    Pending(
                        *(update.ref, listed.get(update.ref), update.new, plain[key]),
                        clone=self._clone,
                        at=pending[update.ref].at if update.ref in pending else now(),
                        elsewhere=self._elsewhere(update.new),
                        policy=policy_of(self._workspace.settings.sharing),
                    )
                    for key, update in good.items()
                )
            )
        return answers

    def _elsewhere(self, commit: str) -> tuple[str, ...]:
        """Returns the commits that a pack can be based on: only the clone knows other remotes."""
        if not store_address.is_store(self._route.address):
            return ()
        return tuple(sorted(packs.anchors(self._workspace.repository, [commit])))

    def _make_room(self) -> None:
        """Removes objects that were sent; refuses more if that is not enough."""
        limit = self._workspace.settings.sharing.spool_max_size
        if not 0 < limit < self._gathering.size():
            return
        self._gathering.shrink(self._spool.pending().keys())
        if self._gathering.size() > limit:
            raise SpoolFullError(
                f"the queue for {self._route.shown} would exceed"
                f" gitcp.spoolMaxSize ({limit:,} bytes)",
                hint="the sessions stay in this clone, and are queued when there is"
                " room",
            )


def _way(repository: Repository, remote: str, route: Route) -> list[tuple[str, str]]:
    """Returns the clone's present git settings for the connection to a remote."""
    prefix = f"remote.{remote}."
    found = []
    for name, value in repository.config_items:
        if _ROUTE.fullmatch(name):
            found.append((name, value))
        elif name.startswith(prefix) and _OF_REMOTE.fullmatch(
            key := name.removeprefix(prefix)
        ):
            found.append((f"remote.{route.address}.{key}", value))
    return found


def take_noted(spool: Spool, ident: str, clones: KeptClones) -> GitcpError | None:
    """Queues the sessions that a clone noted; returns why some cannot be queued."""
    noted = spool.clone(ident)
    if noted is None:
        return None
    problem: GitcpError | None = None
    try:
        workspace = clones.open(noted.directory)
        waiting = waiting_for(workspace, noted.remote)
        if waiting.spool.ident != spool.ident:
            # The remote has another address now; refs that wait here still go to the old one.
            note(workspace, waiting, noted.sessions)
        else:
            # Use this instance: it has already read the spool's files.
            waiting = waiting._replace(spool=spool)
            take_in(workspace, waiting, noted.sessions, fork=True)
    except NotARepositoryError as exc:
        # The clone is gone. The spool has all that was queued in time.
        spool.note_clone(ident, None)
        return exc
    except GitcpError as exc:
        problem = exc
    settle(spool, ident, noted, problem)
    return problem


def settle(
    spool: Spool, ident: str, noted: CloneNote, problem: GitcpError | None
) -> None:
    """Notes that a clone was asked, unless the clone has changed its note meanwhile."""
    with spool.locked():
        if spool.clone(ident) != noted:
            return
        transient = isinstance(problem, TransferError) or (
            problem is not None and problem.transient
        )
        reason = problem.message if problem is not None else ""
        spool.note_clone(
            ident,
            CloneNote(
                *(noted.directory, noted.remote, noted.at, transient, noted.sessions),
                reason=reason,
                asked=now(),
            ),
            sync=False,
        )
