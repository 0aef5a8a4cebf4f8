"""`gitcp doctor`: checks everything that could keep gitcp from working."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import GitcpError
from gitcp.git.drop_unreachable import packed_objects
from gitcp.git.ended import sweep
from gitcp.git.versions import OLDEST_GIT, TABLES_UNSYNCED, git_version, libgit2_version
from gitcp.maintenance import disk_checks
from gitcp.maintenance.doctor_check import DoctorCheck
from gitcp.maintenance.doubts import doubts
from gitcp.maintenance.lost_refs import lost
from gitcp.maintenance.verify import head_damage
from gitcp.names import quoted
from gitcp.project import folders
from gitcp.project.recovery import logs_set_aside
from gitcp.project.workspace import (
    Workspace,
    may_have_been_private,
    open_workspace,
)
from gitcp.worktree import journal, watched
from gitcp.worktree import state as states

_SHOWN = 5
# In a repository with more objects, it takes long to find unreferenced ones.
_LARGE = 500_000
# How long to search for errors of older gitcp versions, in seconds.
_DOUBTS = 5.0
_WHOLE = re.compile(r"\+?refs/\*:refs/\*")


Look = Callable[[Workspace], DoctorCheck]


def doctor(directory: Path, features: Sequence[Look] = ()) -> Iterator[DoctorCheck]:
    """Yields the results of the checks; removes only the leftovers of killed processes.

    `features` are the checks of packages above this one.
    """
    yield _git(directory)
    yield DoctorCheck("libgit2", ok=True, detail=libgit2_version())
    yield from _folders()
    try:
        workspace = open_workspace(directory)
    except GitcpError as exc:
        yield DoctorCheck("repository", ok=False, detail=exc.message, hint=exc.hint)
        return
    yield _repository(workspace)
    yield from _left_behind(workspace)
    yield from _tables(workspace)
    for look in (
        _lock,
        _left_over,
        _ref_locks,
        _restore,
        _head,
        _branches,
        _history,
        _numbers,
        _lost,
        _damaged_logs,
        _mirrors,
        *features,
        _scan,
        disk_checks.packs,
        disk_checks.size,
        disk_checks.disk,
    ):
        try:
            yield look(workspace)
        except (GitcpError, OSError) as exc:
            name = look.__name__.strip("_").replace("_", "-")
            hint = exc.hint if isinstance(exc, GitcpError) else None
            yield DoctorCheck(name, ok=False, detail=str(exc), hint=hint)


def _git(directory: Path) -> DoctorCheck:
    try:
        numbers, said = git_version(directory if directory.is_dir() else Path("/"))
    except GitcpError as exc:
        return DoctorCheck("git", ok=False, detail=exc.message, hint=exc.hint)
    oldest = ".".join(map(str, OLDEST_GIT))
    if numbers < OLDEST_GIT:
        return DoctorCheck(
            "git", ok=False, detail=said, hint=f"install git {oldest} or newer"
        )
    return DoctorCheck("git", ok=True, detail=said)


def _repository(workspace: Workspace) -> DoctorCheck:
    name = workspace.repository.worktree_name
    kind = f"linked worktree {name}" if name else "main worktree"
    store = workspace.private_store
    kind = f"folder without git, private store {store}" if store else kind
    form = workspace.repository.form.title
    refs = workspace.repository.ref_storage
    form = form if refs == "files" else f"{form}, {refs}"
    return DoctorCheck(
        "repository", ok=True, detail=f"{workspace.top} ({kind}, {form})"
    )


def _folders() -> Iterator[DoctorCheck]:
    """Names private stores whose folder is missing; yields nothing if there is no store."""
    try:
        rows = list(folders.listed())
    except GitcpError as exc:
        yield DoctorCheck("folders", ok=False, detail=exc.message, hint=exc.hint)
        return
    gone = [row for row in rows if not row.there]
    if gone:
        names = [f"{row.store} ({row.folder or 'unknown'})" for row in gone]
        yield DoctorCheck(
            "folders",
            ok=True,
            detail=f"private stores whose folder is not there: {_first(names)}",
            hint=f"run `gitcp folders --use {gone[0].store}` in the folder's new place,"
            f" or `gitcp folders --remove {gone[0].store}`",
        )
    elif rows:
        detail = f"{len(rows):,} with a private store"
        yield DoctorCheck("folders", ok=True, detail=detail)


def _tables(workspace: Workspace) -> Iterator[DoctorCheck]:
    """Says what the user's own git commands risk if refs are in tables (0093)."""
    if workspace.repository.ref_storage == "files":
        return
    # If git is missing, another check has reported it.
    with suppress(GitcpError):
        numbers, said = git_version(workspace.top)
        if numbers > TABLES_UNSYNCED:
            known = ".".join(map(str, TABLES_UNSYNCED))
            detail = f"whether {said} syncs the end of a table is not known; {known} does not"
        else:
            detail = (
                f"{said} does not sync the end of a table: a power cut half a minute after a"
                " git command of yours may leave refs that git cannot read"
            )
        private = workspace.repository.private
        where = (
            f" --git-dir {quoted(str(workspace.repository.git_dir))}" if private else ""
        )
        yield DoctorCheck(
            "tables",
            ok=True,
            detail=f"{detail}; what gitcp saved is synced",
            hint=f"`git{where} refs migrate --ref-format=files` puts refs into files",
        )


def _left_behind(workspace: Workspace) -> Iterator[DoctorCheck]:
    """Names the private store that the folder had before it was a repository."""
    if not may_have_been_private(workspace):
        return
    # If another user owns the directory, another check has reported it.
    with suppress(GitcpError):
        found = folders.left_behind(workspace, workspace.top)
        if found is not None:
            yield DoctorCheck(
                "adopt",
                ok=True,
                detail=f"checkpoints from before `git init` are in the private store"
                f" {found.store}",
                hint="`gitcp adopt` moves them here",
            )


def _lock(workspace: Workspace) -> DoctorCheck:
    try:
        held = durable.try_lock(workspace.directory / "worktree.lock", create=False)
    except FileNotFoundError:
        return DoctorCheck("lock", ok=True, detail="not held")
    except OSError as exc:
        if exc.errno not in durable.READ_ONLY:
            raise
        return DoctorCheck(
            "lock",
            ok=False,
            detail="nothing can be written here: only commands that read work",
            hint="make `.git` writable",
        )
    if held is None:
        return DoctorCheck(
            "lock",
            ok=False,
            detail="another gitcp process is saving or restoring in this work tree",
            hint="wait for it, or find it with `ps`; a killed process holds no lock",
        )
    durable.unlock(held)
    return DoctorCheck("lock", ok=True, detail="free")


def _left_over(workspace: Workspace) -> DoctorCheck:
    swept = sweep(workspace.repository)
    detail = f"removed what {swept} killed processes left behind" if swept else "none"
    return DoctorCheck("left-over", ok=True, detail=detail)


def _ref_locks(workspace: Workspace) -> DoctorCheck:
    locks = sorted(map(str, workspace.repository.refs.locks()))
    if not locks:
        return DoctorCheck("ref-locks", ok=True, detail="none")
    return DoctorCheck(
        "ref-locks",
        ok=False,
        detail=", ".join(locks),
        hint="if no git command is running, remove these files",
    )


def _restore(workspace: Workspace) -> DoctorCheck:
    if journal.read(workspace.directory) is None:
        return DoctorCheck("restore", ok=True, detail="none is in progress")
    return DoctorCheck(
        "restore",
        ok=False,
        detail="a restore was interrupted in this work tree",
        hint="`gitcp restore --continue` finishes it, `--abort` undoes it",
    )


def _head(workspace: Workspace) -> DoctorCheck:
    damage = head_damage(workspace.repository)
    if damage is None:
        return DoctorCheck("head", ok=True, detail="can be read")
    return DoctorCheck(
        "head",
        ok=False,
        detail=damage,
        hint="until then checkpoints have no base; `git checkout --detach` a sound"
        " commit, or repair this one",
    )


def _branches(workspace: Workspace) -> DoctorCheck:
    """Reads the newest checkpoint of each branch, as every command does."""
    wrong = [f"{name}: names no commit" for name in workspace.repository.refs.damaged()]
    store = workspace.store
    refs = store.refs()
    for key, oid in refs.items():
        try:
            found = store.checkpoint(oid)
            if found is not None:
                _ = found.manifest
        except GitcpError as exc:
            wrong.append(f"{'/'.join(key)}: {exc.message}")
    if not wrong:
        count = f"{len(refs):,}" if refs else "none yet"
        return DoctorCheck("branches", ok=True, detail=count)
    return DoctorCheck(
        "branches",
        ok=False,
        detail=_first(wrong),
        hint="`gitcp verify --repair` replaces what has a good copy, and otherwise"
        " moves a branch to its newest sound checkpoint; `gitcp verify --lost`"
        " looks for the rest",
    )


def _history(workspace: Workspace) -> DoctorCheck:
    """Names checkpoints that an older gitcp may have made wrong; these do not stop gitcp."""
    found = doubts(workspace, _DOUBTS)
    ids = list(dict.fromkeys(one.checkpoint or "?" for one in found.problems))
    if not ids:
        rest = "" if found.complete else ", as far as time allowed"
        return DoctorCheck("history", ok=True, detail=f"no doubts{rest}")
    names = ", ".join(ids[:_SHOWN]) + (" …" if len(ids) > _SHOWN else "")
    return DoctorCheck(
        "history",
        ok=True,
        detail=f"an older gitcp may have made these wrong: {names}",
        hint="`gitcp verify` says why",
    )


def _numbers(workspace: Workspace) -> DoctorCheck:
    """Whether the list of numbers is intact; checkpoints in damaged lines get new numbers."""
    damaged = workspace.store.numbers.damaged
    if not damaged:
        return DoctorCheck("numbers", ok=True, detail="can be read")
    return DoctorCheck(
        "numbers",
        ok=False,
        detail=f"damaged lines in .git/gitcp-numbers: {damaged}",
        hint="their numbers are not used again; the checkpoints are sound, under their"
        " ids",
    )


def _lost(workspace: Workspace) -> DoctorCheck:
    """Names branches that have lost checkpoints, even if the name was taken since."""
    if packed_objects(workspace.repository) > _LARGE:
        return DoctorCheck(
            "lost",
            ok=True,
            detail="not checked: `gitcp verify --lost` takes a while",
        )
    found = lost(workspace)
    if not found:
        return DoctorCheck("lost", ok=True, detail="no branch has lost checkpoints")
    names = [
        f"{one.session}/{one.branch}, with {one.tip.seq} checkpoints" for one in found
    ]
    return DoctorCheck(
        "lost",
        ok=True,
        detail=f"nothing refers to them any more: {_first(names)}",
        hint="`gitcp verify --lost --repair` restores them, `gitcp gc --drop-lost`"
        " deletes them",
    )


def _damaged_logs(workspace: Workspace) -> DoctorCheck:
    found = logs_set_aside(workspace.repository)
    if not found:
        return DoctorCheck("damaged-logs", ok=True, detail="none")
    return DoctorCheck(
        "damaged-logs",
        ok=True,
        detail=f"set aside and no longer read: {_first(list(map(str, found)))}",
        hint="everything before the damage was saved; the rest may hold acknowledged"
        " steps. Keep the file as long as you need it, then remove it",
    )


def _first(names: Sequence[str]) -> str:
    return "; ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


def _mirrors(workspace: Workspace) -> DoctorCheck:
    found = set()
    for key, values in workspace.repository.config.items():
        section, _, rest = key.partition(".")
        name, _, variable = rest.rpartition(".")
        if section != "remote":
            continue
        mirror = variable == "mirror" and workspace.repository.flag(key)
        whole = variable in {"fetch", "push"} and any(map(_WHOLE.fullmatch, values))
        if mirror or whole:
            found.add(name)
    if not found:
        return DoctorCheck("mirrors", ok=True, detail="none")
    names = ", ".join(sorted(found))
    return DoctorCheck(
        "mirrors",
        ok=False,
        detail=f"{names}: mirrors every ref. A fetch from it can delete checkpoints,"
        " a push to it publishes them unseen",
        hint="name the refs: git config remote.NAME.fetch '+refs/heads/*:refs/heads/*'",
    )


def _scan(workspace: Workspace) -> DoctorCheck:
    directory = workspace.directory / "scan"
    if not directory.is_dir():
        unread = "there is none yet: the next save reads every file"
        return DoctorCheck("scan", ok=True, detail=unread)
    with suppress(OSError):
        if states.load(directory) != states.ScanState():
            said, hint = watched.standing(workspace.repository, directory)
            return DoctorCheck("scan", ok=True, detail=said, hint=hint)
    return DoctorCheck(
        "scan",
        ok=True,
        detail="not usable: the next save reads every file and rebuilds it",
    )
