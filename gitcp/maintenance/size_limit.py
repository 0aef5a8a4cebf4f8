"""Prunes old automatic checkpoints until gitcp keeps to `gitcp.maxSize` (0103)."""

import time

import msgspec

from gitcp.clients import triggers
from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format import layout
from gitcp.git.drop_unreachable import drop_unreachable, store_locked
from gitcp.git.registry import pack_sizes
from gitcp.maintenance.disk_usage import added, held
from gitcp.maintenance.prune import DEFAULT_LAST, plan_prune, prune, roots
from gitcp.maintenance.upkeep import read_note, write_note
from gitcp.project import config, hook_log
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.retention import RetentionGraph, RetentionRules, made_here

# Checkpoints younger than this, in seconds, are not pruned.
YOUNG = 30 * 24 * 60 * 60.0
# It prunes to this share of the limit, so that not every save has to prune again.
_SHARE = 0.9
# The user did not ask for these. Checkpoints of git's hooks are not among them, because they
# hold little that git does not have.
AUTOMATIC = frozenset(
    {
        triggers.TURN_START,
        triggers.TURN_END,
        triggers.TOOL,
        triggers.BEFORE_COMMAND,
        triggers.COMPACT,
        triggers.SUBAGENT_STOP,
        triggers.SESSION_END,
        "interval",
        "before-run",
        "before-restore",
    }
)


def prune_to_size(workspace: Workspace) -> int:
    """Measures the size of checkpoints, prunes if needed, returns the number removed.

    Raises:
        BusyError: another process uses the store; nothing was removed, or the space is
            freed later.
        GitFailedError: git failed, for example because an object of the user's is missing.
        StorageError: the disk refused.
    """
    repository = workspace.repository
    limit = workspace.settings.max_size
    used = held(workspace)
    removed = 0
    note = read_note(repository)
    given = config.get(repository, "maxSize").origin != "default"
    if used > limit and (note.prunes or given):
        removed = _prune(workspace, int(limit * _SHARE))
        if removed:
            used = held(workspace)
    note = read_note(repository)
    now = workspace.store.time()
    note = msgspec.structs.replace(
        note, held=used, packs=sum(pack_sizes(workspace.repository).values()), at=now
    )
    if removed:
        note = msgspec.structs.replace(
            note, removed=note.removed + removed, removed_at=workspace.store.now()
        )
    write_note(repository, note)
    return removed


def _prune(workspace: Workspace, target: int) -> int:
    started = time.monotonic()
    remote = _trees_of_remotes(workspace)

    def may_go(checkpoint: Checkpoint) -> bool:
        if checkpoint.trailers.trigger not in AUTOMATIC:
            return False
        # The remote-tracking ref would keep its objects, so this would free nothing.
        if checkpoint.raw.tree.hex() in remote:
            return False
        try:
            return checkpoint.origin.here and not checkpoint.origin.foreign
        except (CorruptError, FormatTooNewError):
            return False

    rules = RetentionRules(DEFAULT_LAST, YOUNG, apart=True)
    # Everyone who may push could fill the limit; nothing of the user's goes because of that.
    target += _made_elsewhere(workspace)
    plan = plan_prune(workspace, rules, max_size=target, may_go=may_go)
    done = prune(workspace, plan)
    if not done.go:
        return 0
    repository = workspace.repository
    timeout = workspace.settings.lock_timeout
    with store_locked(repository, timeout=timeout):
        drop_unreachable(repository, roots=lambda: roots(workspace), timeout=timeout)
    numbers = sorted(one.number for one in done.go if one.number is not None)
    named = f" (#{numbers[0]} to #{numbers[-1]})" if numbers else ""
    text = f"removed {len(done.go):,} old automatic checkpoints{named}: gitcp.maxSize"
    hook_log.write(workspace.top, "gc --auto", started, text)
    return len(done.go)


def _made_elsewhere(workspace: Workspace) -> int:
    """Returns the size of the checkpoints that were made elsewhere."""
    lines = RetentionGraph(workspace.store).lines
    every = (one for line in lines for one in line.checkpoints)
    trees = [one.raw.tree.hex() for one in every if not made_here(one)]
    return sum(added(workspace, trees).values()) if trees else 0


def _trees_of_remotes(workspace: Workspace) -> frozenset[str]:
    out = workspace.repository.git(
        "log", "--format=%T", "--no-show-signature", f"--glob={layout.REMOTES}*"
    )
    return frozenset(out.decode("ascii").split())
