"""Purges a secret or a path from all checkpoints; ids and numbers stay."""

import os
import stat
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import NamedTuple

from gitcp.errors import CorruptError, GitcpError, NotFoundError
from gitcp.format import layout
from gitcp.format.checkpoint import show_path
from gitcp.format.commit import purged
from gitcp.format.layout import LedgerKey
from gitcp.git.drop_unreachable import drop_unreachable, store_locked
from gitcp.git.objects import BLOB
from gitcp.git.staying import staying
from gitcp.git.transaction import Transaction, transaction
from gitcp.maintenance.gc import journals
from gitcp.project import search_files
from gitcp.project.workspace import Workspace
from gitcp.purge import beside, tracking_refs
from gitcp.purge.checkpoints import Purger
from gitcp.purge.ledgers import clean
from gitcp.purge.redact import Eraser
from gitcp.purge.values import find_values, long_enough
from gitcp.secrets import cache
from gitcp.spool.withdraw import withdrawn
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.rewrite import rewrite
from gitcp.sync import encrypted_refs, ledgers
from gitcp.sync.history import same
from gitcp.trust.trusted_remotes import Pulled, note_replaced
from gitcp.worktree.files import Root, chunks

_ROUNDS = 5
_LARGEST_FILE = 200 << 20


class Wanted(NamedTuple):
    """What to purge: secrets by fingerprint or by value, and paths."""

    fingerprints: tuple[str, ...] = ()
    values: tuple[bytes, ...] = ()
    paths: tuple[bytes, ...] = ()


class Purged(NamedTuple):
    """The result of a purge, or of its dry run.

    `checkpoints` are the old ones that held the value or path. `paths` are the files that
    it was in. `remotes` have it; `left` says where else it still is, in words. `ledgers`
    are the sessions whose ledger of steps held it.
    """

    checkpoints: tuple[Checkpoint, ...]
    paths: tuple[bytes, ...]
    fingerprints: tuple[str, ...]
    remotes: tuple[str, ...]
    left: tuple[str, ...]
    ledgers: tuple[str, ...] = ()


def purge(workspace: Workspace, wanted: Wanted, *, dry_run: bool = False) -> Purged:
    """Removes values or paths from every checkpoint of every branch.

    Ledgers of steps come first, each by itself. Then all branches move at one moment. If
    the purge is killed before that, no branch has changed; if later, all have, and the
    same purge again removes the old objects.

    Raises:
        NotFoundError: no checkpoint holds it.
        CorruptError: a checkpoint cannot be read and no other holds the value; or a name holds it.
        UsageError: a value is so short that it would match other text.
        RestoreInterruptedError: a restore has to be finished or aborted first.
        BusyError: another process uses the store; not everything was removed.
    """
    workspace.refuse_if_interrupted()
    repository = workspace.repository
    values, missing = _values(workspace, wanted)
    eraser = Eraser(values) if values else None
    refs = list(repository.refs.list(layout.SESSIONS))
    timeout = workspace.settings.lock_timeout
    handed_over = withdrawn(workspace, dry_run=dry_run)
    with store_locked(repository, timeout=timeout), handed_over:
        steps = _Steps(workspace)
        if eraser is not None:
            steps.run(eraser, dry_run=dry_run)
        with _no_index(workspace, dry_run=dry_run), transaction(repository) as opened:
            purger = _purger(workspace, opened, eraser, wanted.paths)
            if dry_run:
                _try(workspace, purger, refs)
                old: set[str] = {one.commit for one in purger.changed.values()}
            else:
                old = _rewrite(workspace, opened, purger, refs)
        # A killed purge may have moved its branches without reporting the remotes.
        old |= _stood_for(workspace)
        remotes = tracking_refs.reaching(workspace, old)
        taken = 0
        if not dry_run:
            remotes = tracking_refs.forget(workspace, old, remotes)
            taken = _remove(workspace, eraser, old)
    if not (purger.changed or steps.changed or remotes):
        raise missing or _nowhere(purger)
    left = _damaged(purger)
    left += _in_work_tree(workspace, eraser, wanted.paths, purger.files)
    left += beside.left(workspace, eraser, dry_run=dry_run)
    left += steps.left
    if not dry_run:
        left += _still_there(workspace, purger.gone | steps.gone)
        left += _used(taken)
    return Purged(
        tuple(sorted(purger.changed.values(), key=lambda one: (one.session, one.seq))),
        tuple(
            sorted({eraser.erased(path) if eraser else path for path in purger.files})
        ),
        tuple(dict.fromkeys(name for _, name in values)),
        tuple(sorted({tracking_refs.name_of(ref) for ref in remotes})),
        tuple(left),
        tuple(steps.changed),
    )


def _values(
    workspace: Workspace, wanted: Wanted
) -> tuple[list[tuple[bytes, str]], NotFoundError | None]:
    """Returns the values with their fingerprints, and the error if some were not found."""
    names = cache.fingerprints(workspace.repository)
    values = [(value, names.of(value)) for value in map(long_enough, wanted.values)]
    found, missing = find_values(workspace, wanted.fingerprints)
    if missing is not None and (found or values or wanted.paths):
        raise missing
    return values + found, missing


def _used(taken: int) -> list[str]:
    if not taken:
        return []
    text = (
        f"git, or a clone that borrows objects from here: it has used the packs that"
        f" {taken} of these objects were in, and may hold a copy"
    )
    return [text]


def _remove(workspace: Workspace, eraser: Eraser | None, old: set[str]) -> int:
    """Removes the objects of old commits; returns how many of them git may have used."""
    repository = workspace.repository
    encrypted_refs.forget(workspace, old)
    beside.clear(workspace, eraser)
    # This also removes objects that are on no branch.
    dropped = drop_unreachable(
        repository,
        roots=lambda: journals(repository),
        purged=old,
        timeout=workspace.settings.lock_timeout,
    )
    return dropped.taken


def _no_index(workspace: Workspace, *, dry_run: bool) -> AbstractContextManager[None]:
    """Removes the index of the search, and keeps it away until all branches have moved.

    It contains words of purged content. If the purge is killed inside, the index is gone,
    and a rebuilt one contains only what git has.
    """
    if dry_run:
        return nullcontext()
    return search_files.removed(
        workspace.repository, timeout=workspace.settings.lock_timeout
    )


def _damaged(purger: Purger) -> list[str]:
    """Returns the checkpoints that stay unchanged, with the reason."""
    return [
        (
            f"{one.trailers.session}/{one.trailers.branch}:{one.seq} {one.id},"
            f" perhaps: it cannot be read and stays as it is ({reason})"
        )
        for one, reason in purger.damaged.values()
    ]


def _nowhere(purger: Purger) -> GitcpError:
    if purger.damaged:
        return CorruptError(
            "no readable checkpoint holds this as text; it may be in"
            f" {'; in '.join(_damaged(purger))}",
            hint="`gitcp verify --repair` repairs what it can",
        )
    return NotFoundError(
        "no checkpoint holds this as text",
        hint="`gitcp scan` lists what there is; to purge a whole file that holds it"
        " compressed, run `gitcp purge PATH`",
    )


class _Steps:
    """Removes values from the ledgers of steps."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._repository = workspace.repository
        self.changed: list[str] = []
        self.left: list[str] = []
        # Objects that nothing needs any more after the purge.
        self.gone: set[bytes] = set()

    def run(self, eraser: Eraser, *, dry_run: bool) -> None:
        """Rewrites each ledger that holds one of the values."""
        tips = self._workspace.store.refs()
        for key in ledgers.here(self._workspace):
            session = ledgers.name_of(self._workspace, key, tips)
            self._one(session, key, eraser, dry_run=dry_run)

    def _one(
        self, session: str, key: LedgerKey, eraser: Eraser, *, dry_run: bool
    ) -> None:
        ledger = self._workspace.ledgers.of(session)
        with ledger.drained(), transaction(self._repository) as txn:
            tip = self._repository.refs.read(key.ref)
            if tip is None:
                return
            pages = ledgers.pages_of(self._repository, key, tip)
            done = clean(txn, ledger.signet, key.session, pages, eraser)
            if done.pages and not dry_run:
                new = bytes.fromhex(done.pages[tip])
                ledger.drop_kept()
                txn.publish(key.ref, expect=tip, new=new)
        if done.records:
            self.changed.append(session)
        self.gone |= {bytes.fromhex(oid) for oid in done.pages}
        self.left += [
            f"the name of a step of {session} ({name}): names cannot be purged"
            for name in (eraser.erased(one.encode()).decode() for one in done.named)
        ]


def _purger(
    workspace: Workspace,
    opened: Transaction,
    eraser: Eraser | None,
    paths: Iterable[bytes],
) -> Purger:
    store = workspace.store
    noted = _Noted(workspace)
    return Purger(opened, store.seals, eraser, paths, noted.of, Pulled(store))


def _try(workspace: Workspace, purger: Purger, refs: Iterable[str]) -> None:
    """Finds out what would change; the transaction discards the new objects."""
    seen: set[bytes] = set()
    for ref in refs:
        tip = workspace.repository.refs.read(ref)
        start = workspace.store.checkpoint(tip) if tip is not None else None
        for found in workspace.store.line(start) if start is not None else ():
            if found.oid in seen:
                break
            seen.add(found.oid)
            purger.change(found)


def _rewrite(
    workspace: Workspace, opened: Transaction, purger: Purger, refs: list[str]
) -> set[str]:
    """Rewrites all branches, including checkpoints that are saved meanwhile."""
    old: set[str] = set()
    for _ in range(_ROUNDS):
        done = rewrite(
            workspace.store,
            opened,
            refs,
            purger.change,
            lambda: note_replaced(workspace.store, purger.replaced),
        )
        if not done.moved:
            break
        old |= {commit.hex() for commit in done.commits}
        refs = list(workspace.repository.refs.list(layout.SESSIONS))
    return old


# --- where else it is ---------------------------------------------------------------


class _Noted:
    """The checkpoints that remotes had when last seen: some may have been pruned here since."""

    def __init__(self, workspace: Workspace) -> None:
        self._by_id: dict[str, list[Checkpoint]] = {}
        seen: set[bytes] = set()
        for tip in workspace.repository.refs.list(layout.REMOTES).values():
            start = workspace.store.checkpoint(tip)
            for found in workspace.store.line(start) if start is not None else ():
                if found.oid in seen:
                    break
                seen.add(found.oid)
                self._by_id.setdefault(found.id, []).append(found)

    def of(self, wanted: Checkpoint) -> list[str]:
        """Returns the other commits of a checkpoint, with the same content."""
        return sorted(
            one.commit
            for one in self._by_id.get(wanted.id, ())
            if one.commit != wanted.commit and same(one, wanted)
        )


def _stood_for(workspace: Workspace) -> set[str]:
    """Returns the commits that any purge has replaced."""
    old: set[str] = set()
    seen: set[bytes] = set()
    for tip in workspace.repository.refs.list(layout.SESSIONS).values():
        start = workspace.store.checkpoint(tip)
        for found in workspace.store.line(start) if start is not None else ():
            if found.oid in seen:
                break
            seen.add(found.oid)
            old |= purged(found.raw)
    for key, tip in ledgers.here(workspace).items():
        old |= ledgers.commits_of(workspace, key, tip)[1]
    return old


def _in_work_tree(
    workspace: Workspace,
    eraser: Eraser | None,
    paths: Iterable[bytes],
    files: Iterable[bytes],
) -> Iterable[str]:
    unwanted = set(paths)
    with workspace.root() as root:
        for path in sorted({*files, *unwanted}):
            holds = False
            # A path that cannot be read, such as one below a link, holds nothing here.
            with suppress(OSError):
                held = root.lstat(path)
                holds = held is not None and (
                    path in unwanted
                    or (eraser is not None and eraser.holds(_bytes(root, path, held)))
                )
            if holds:
                yield (
                    f"the work tree: {show_path(path)}; the next save captures it again"
                )


def _bytes(root: Root, path: bytes, held: os.stat_result) -> bytes:
    """Returns the content of a file or link; empty for anything else, or if too large."""
    if stat.S_ISLNK(held.st_mode):
        return root.readlink(path)
    if not stat.S_ISREG(held.st_mode) or held.st_size >= _LARGEST_FILE:
        return b""
    fd = root.open(path)
    try:
        return b"".join(chunks(fd))
    finally:
        os.close(fd)


def _still_there(workspace: Workspace, gone: set[bytes]) -> Iterable[str]:
    """Returns what keeps objects alive that gitcp itself no longer needs."""
    held, unneeded = staying(workspace.repository, gone)
    # Trees and blobs that a checkpoint shares with other content may rightly stay.
    objects = workspace.repository.objects
    blobs = [oid for oid in held if objects.header(oid)[0] == BLOB]
    said = []
    if blobs:
        said.append(
            f"git's own branches, reflogs or index: {len(blobs)} objects there hold it,"
            " and gitcp does not rewrite these"
        )
    if unneeded:
        said.append(
            f"git's own packs: {len(unneeded)} objects that nothing needs;"
            " `git gc --prune=now` removes them"
        )
    return said
