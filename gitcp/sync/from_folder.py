"""Moves the sessions of a private store into the repository that its folder has become."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import (
    BusyError,
    RestoreInterruptedError,
    TransferError,
    UsageError,
)
from gitcp.format import layout
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import Assigned
from gitcp.git import private_stores
from gitcp.git.private_stores import PrivateStore
from gitcp.git.repository import Repository
from gitcp.git.secret import FINGERPRINTS, LEDGER, DerivedKey, KeyFile
from gitcp.git.transaction import transaction
from gitcp.names import quoted
from gitcp.project.recovery import drain_logs
from gitcp.project.settings import Settings
from gitcp.project.workspace import Workspace
from gitcp.store.moved_numbers import take_over
from gitcp.store.numbering import number_all
from gitcp.store.store import Store
from gitcp.sync import ledgers
from gitcp.sync.adopt import adopt, copy
from gitcp.sync.outcome import Outcome
from gitcp.wal import log_file
from gitcp.worktree import journal

_OWN = "refs/gitcp/"
_SUFFIX = "folder"
_SECTION = "gitcp."
# Lines are added to these files; any other file that is here already stays as it is.
_LINES = ("labels.jsonl", "pulled.jsonl", "pending.jsonl")
_FILES = ("current.json", "brought.json", "hooks.log")
_DIRECTORIES = ("agents", "damaged")
_JOURNAL = "restore.json"


class MovedIn(NamedTuple):
    """The outcomes of the branches, and the numbers that changed: old and new."""

    branches: list[Outcome]
    numbers: list[tuple[int, int]]


def move_in(workspace: Workspace, store: PrivateStore) -> MovedIn:
    """Moves everything from a private store into a repository, and removes the store.

    If it is killed at any moment, the next call finishes it: each step can be repeated,
    and the store is removed last. If the repository has a branch of the same name that
    diverged, that stays, and the store's branch becomes a fork beside it.

    Raises:
        UsageError: there is no git repository, this is a linked work tree, or the
            store belongs to a folder above or below the top of this repository.
        TransferError: the two name their objects by different hashes.
        RestoreInterruptedError: a restore has to be finished or aborted first.
        BusyError: another process is at work.
        StorageError, GitFailedError: something is left in the store.
    """
    _refuse(workspace, store)
    workspace.refuse_if_interrupted()
    first = _take(workspace, store)
    # From here on no process that has the store open writes to it.
    store = private_stores.renamed(store)
    second = _take(workspace, store)
    private_stores.remove(store)
    branches = {(one.session, one.branch): one for one in first[0]}
    branches |= {
        place: one
        for one in second[0]
        if (place := (one.session, one.branch)) not in branches
    }
    numbers = [(was.number, now) for was, now in second[1] if was.number != now]
    return MovedIn(list(branches.values()), numbers)


def _refuse(workspace: Workspace, store: PrivateStore) -> None:
    top = Path(os.path.realpath(workspace.top))
    if workspace.repository.private:
        raise UsageError(
            f"{top} has no git repository to move checkpoints into",
            hint="run `git init` first; use `gitcp folders --use` to give a folder"
            " another store",
        )
    if workspace.repository.worktree_name is not None:
        raise UsageError(
            f"{top} is a linked work tree", hint="run this in the main work tree"
        )
    place = store.folder.place
    if place != top and (place.is_relative_to(top) or top.is_relative_to(place)):
        raise UsageError(
            f"the checkpoints belong to {place}: in {top} their paths would be wrong",
            hint=f"`gitcp -C {quoted(str(store.git_dir))} log` and `cat` read them there",
        )


def _take(
    workspace: Workspace, store: PrivateStore
) -> tuple[list[Outcome], list[tuple[Assigned, int]]]:
    """Moves data that is not here yet; returns branches, and numbers there and here."""
    ours = workspace.repository
    theirs = private_stores.open_store(store, workspace.top)
    if theirs.form is not ours.form:
        raise TransferError(
            f"the private store names its objects by {theirs.form.title}, this"
            f" repository by {ours.form.title}, so nothing can be moved unchanged",
            hint="create the repository with `git init"
            f" --object-format={theirs.form.name}`; or, for each session, `gitcp"
            f" -C {quoted(str(store.git_dir))} export SESSION:last -o FILE` and `gitcp import"
            f" FILE`, and then `gitcp folders --remove {store.ident}`",
        )
    other = Workspace(theirs, Settings.of(theirs))
    with ExitStack() as stack:
        stack.enter_context(workspace.locked())
        stack.enter_context(other.locked())
        drain_logs(theirs, timeout=other.settings.lock_timeout)
        if log_file.names(theirs):
            raise BusyError(
                "another process is writing steps into the private store"
                f" {store.ident}",
                hint="end it, then run the command again",
            )
        open_restore = journal.is_open(theirs.worktree_dir)
        if open_restore and ours.refs.any(_OWN) and not _is_begun(ours, theirs):
            raise RestoreInterruptedError(
                "a restore was interrupted in this folder before it had a repository",
                hint="move .git away, run `gitcp restore --continue` or `--abort`, and"
                " move .git back",
            )
        number_all(Store(theirs))
        _state(ours, theirs)
        timeout = workspace.settings.lock_timeout
        numbers = take_over(ours, theirs, timeout=timeout)
        branches = _branches(workspace, theirs)
        _settings(ours, theirs)
        if open_restore:
            _copy(theirs.worktree_dir / _JOURNAL, ours.worktree_dir / _JOURNAL, ours)
    return branches, numbers


def _is_begun(ours: Repository, theirs: Repository) -> bool:
    """Whether everything here came from the store, in a call that was killed."""
    have, has = ours.refs.list(_OWN), theirs.refs.list(_OWN)
    return have.items() <= has.items()


def _branches(workspace: Workspace, theirs: Repository) -> list[Outcome]:
    """Moves objects, then refs."""
    ours = workspace.repository
    refs = theirs.refs.list(_OWN)
    here = ours.refs.list(_OWN)
    tips = {
        key: oid
        for ref, oid in refs.items()
        if (key := layout.ref_key(ref)) is not None
    }
    with transaction(ours) as txn:
        if not refs.items() <= here.items():
            copy(txn, theirs, refs.values(), set(here.values()) & set(refs.values()))
        branches = {key: oid for key, oid in tips.items() if isinstance(key, BranchKey)}
        ledgers.take_over(workspace, ledgers.among(tips), branches)
        done = [
            adopt(workspace.store, txn, key, oid, suffix=_SUFFIX)
            for key, oid in sorted(branches.items())
        ]
        for ref, oid in refs.items():
            if layout.ref_key(ref) is None and ref not in here:
                txn.move_ref(ref, expect=None, new=oid)
    return done


def _state(ours: Repository, theirs: Repository) -> None:
    """Moves keys, and the state files beside the objects."""
    with durable.storage("taking over the state of the private store"):
        ours.make_directory(ours.store_dir)
        _keys(ours, theirs)
        for name in _LINES:
            _add_lines(theirs.store_dir / name, ours.store_dir / name)
        for name in _FILES:
            _copy(theirs.store_dir / name, ours.store_dir / name, ours)
        for directory in _DIRECTORIES:
            for path in _files(theirs.store_dir / directory):
                inside = path.relative_to(theirs.store_dir)
                _copy(path, ours.store_dir / inside, ours)


def _keys(ours: Repository, theirs: Repository) -> None:
    """Moves the key, but first the files that 0.1.0 made beside it.

    After the key, ours could be theirs already, and those files would not count as ours.
    """
    for purpose in (LEDGER, FINGERPRINTS):
        DerivedKey(ours, purpose).adopt(DerivedKey(theirs, purpose))
    own = KeyFile(ours)
    key = KeyFile(theirs).read()
    if key is not None:
        own.adopt(key, known=own.read())


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file())


def _copy(source: Path, target: Path, repository: Repository) -> None:
    """Copies a file, unless the target exists."""
    if source.is_file() and not os.path.lexists(target):
        repository.make_directory(target.parent)
        durable.replace(target, source.read_bytes())


def _add_lines(source: Path, target: Path) -> None:
    """Adds the lines of one file that another lacks, at the front of that one."""
    if not source.is_file():
        return
    raw = target.read_bytes() if target.is_file() else b""
    present = set(raw.split(b"\n"))
    missing = [line for line in source.read_bytes().split(b"\n") if line not in present]
    if missing:
        # The last line about a thing counts, and the lines here are newer.
        durable.replace(target, b"".join(line + b"\n" for line in missing) + raw)


def _settings(ours: Repository, theirs: Repository) -> None:
    """Copies settings that the repository does not have itself."""
    have = _local(ours)
    for name, values in _local(theirs).items():
        if name.startswith(_SECTION) and not have.get(name):
            for value in values:
                ours.git("config", "--local", "--add", name, value)


def _local(repository: Repository) -> dict[str, list[str]]:
    raw = repository.git("config", "--local", "--list", "-z")
    found: dict[str, list[str]] = {}
    for item in raw.decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = item.partition("\n")
        if name:
            found.setdefault(name, []).append(value)
    return found
