"""Captures the work tree's files with each step of a graph.

A snapshot taken in `put` has the next step's files: LangGraph calls it from another
thread while that step runs. The version of the channels is made between the steps, in
the loop's own thread, so that is when the snapshot is taken; the version names it.
"""

import os
import threading
import warnings
from collections import OrderedDict
from contextlib import ExitStack
from typing import NamedTuple

from gitcp import at_fork
from gitcp.checkpoints.save import captured
from gitcp.errors import UsageError
from gitcp.format.checkpoint import Base
from gitcp.project.adapter_store import write
from gitcp.project.workspace import Workspace, files_of, open_workspace
from gitcp.store.draft import FilesState
from gitcp.store.store import Store
from gitcp.worktree import journal
from gitcp.worktree.snapshot import Snapshot

# Versions whose checkpoint has not come: a graph that was interrupted leaves some.
_KEPT = 64


class _KeptSnapshot(NamedTuple):
    """A snapshot; the stack keeps its objects from git's gc until a ref holds them."""

    files: FilesState
    stack: ExitStack


class WorktreeSnapshots:
    """Takes snapshots of one work tree and keeps them until a checkpoint needs them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._reset_after_fork()
        at_fork.in_child(self, WorktreeSnapshots._reset_after_fork)

    def _reset_after_fork(self) -> None:
        self._mutex = threading.Lock()
        self._held: OrderedDict[str, _KeptSnapshot] = OrderedDict()
        self._last: FilesState | None = None
        self._published: bytes | None = None
        # Whether versions are made where snapshots are taken; None as long as unknown.
        self._asked: bool | None = None

    def snapshot(self, version: str) -> None:
        """Captures the files for the step that a version ends.

        Raises:
            RestoreInterruptedError, BusyError, StorageError, GitFailedError: as `save`.
        """
        workspace = self.workspace
        workspace.refresh()
        with self._mutex, workspace.locked(), ExitStack() as stack:
            self._asked = True
            journal.refuse_if_open(workspace.directory)
            txn = stack.enter_context(write(workspace.store))

            def store(snapshot: Snapshot) -> FilesState:
                files = files_of(snapshot)
                if files.tree is not None and files != self._last:
                    head, _ = workspace.repository.head()
                    known = [self._published]
                    if head is not None:
                        known.append(txn.objects.commit(bytes.fromhex(head)).tree)
                    txn.complete(files.tree, tuple(known))
                    txn.store()
                return files

            # The write-ahead log keeps trees, and no lists of chunks beside them.
            with workspace.capturing(chunked=False) as capture:
                files = captured(capture, txn, store)
            if files == self._last:
                self._held[version] = _KeptSnapshot(files, ExitStack())
            else:
                self._held[version] = _KeptSnapshot(files, stack.pop_all())
            self._last = files
            while len(self._held) > _KEPT:
                _, old = self._held.popitem(last=False)
                old.stack.close()

    def of(self, version: object) -> FilesState | None:
        """Returns the files that belong to a version; None if it is not known."""
        with self._mutex:
            held = self._held.get(version) if isinstance(version, str) else None
            return held.files if held is not None else None

    def missed(self) -> None:
        """Warns, once, that a step's files were not captured: no version was requested.

        That is so where something around the saver makes the versions itself, as
        LangGraph's server does.
        """
        with self._mutex:
            warn, self._asked = self._asked is None, bool(self._asked)
        if warn:
            warnings.warn(
                "workspace= captures no files here: the channels' versions do not"
                " come from GitcpSaver's get_next_version",
                RuntimeWarning,
                stacklevel=2,
            )

    def published(self, version: object) -> None:
        """Releases a snapshot whose objects a ref holds now."""
        with self._mutex:
            if isinstance(version, str) and version in self._held:
                held = self._held[version]
                held.stack.close()
                self._held[version] = _KeptSnapshot(held.files, ExitStack())
                self._published = held.files.tree

    def base(self) -> Base:
        """Returns where the user's own history stands."""
        repository = self.workspace.repository
        head, branch = repository.head()
        text = branch.encode("utf-8", "replace").decode() if branch else None
        return Base(head, text, repository.operation())

    def anchor(self) -> str | None:
        """Returns what the first checkpoint of a thread is put upon."""
        return self.workspace.repository.anchor()


def snapshots_of(directory: str | os.PathLike[str], store: Store) -> WorktreeSnapshots:
    """Returns a follower of the work tree around a directory.

    Raises:
        UsageError: the work tree belongs to another repository.
        NotARepositoryError: the directory is in no repository.
        UnsupportedRepositoryError: gitcp does not serve the repository.
    """
    workspace = open_workspace(directory, lasting=True)
    mine = os.path.realpath(workspace.repository.common_dir)
    if mine != os.path.realpath(store.repository.common_dir):
        raise UsageError(
            f"{workspace.top} is a work tree of {mine}, not of {store.repository.common_dir}",
            hint="files and graph are saved in one commit: give the same repository"
            " for both",
        )
    return WorktreeSnapshots(workspace)
