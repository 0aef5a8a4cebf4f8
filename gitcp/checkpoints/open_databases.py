"""Plans the restore of SQLite databases: with their logs, and not while one is open."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.git.objects import Objects
from gitcp.git.transaction import Transaction
from gitcp.project.workspace import Workspace
from gitcp.worktree.capture import Capture
from gitcp.worktree.databases import BESIDE, MAGIC, is_open
from gitcp.worktree.files import Root
from gitcp.worktree.plan import WRITE, FilePlan, Left, selection
from gitcp.worktree.snapshot import Snapshot

T = TypeVar("T")

OPEN = "another process has this database open; --force replaces it anyway"


def beside(snapshot: Snapshot) -> frozenset[bytes]:
    """Returns the paths of SQLite's files beside databases: SQLite would read a file there."""
    known = snapshot.state.databases
    return frozenset(path + suffix for path in known for suffix in BESIDE)


def with_logs(request: RestoreRequest, snapshot: Snapshot) -> RestoreRequest:
    """Returns a request that names, with each database, the files beside it."""
    if not request.paths or request.hunk is not None:
        return request
    selects = selection(request.paths)
    named = filter(selects, sorted(snapshot.state.databases))
    more = tuple(path + suffix for path in named for suffix in BESIDE)
    return request._replace(paths=(*request.paths, *more))


def without_open(root: Root, snapshot: Snapshot, steps: FilePlan) -> FilePlan:
    """Returns a plan without the steps for open databases and the files beside them.

    A process that has a database open would keep using the old file, or write its log into
    the new one.
    """
    touched = {step.path for step in steps.steps}
    kept: set[bytes] = set()
    left: list[Left] = []
    for path in sorted(snapshot.state.databases):
        names = {path, *(path + suffix for suffix in BESIDE)}
        if not touched.isdisjoint(names) and is_open(root, path):
            kept |= names
            left.append(Left(path, OPEN))
    if not left:
        return steps
    return FilePlan(
        tuple(step for step in steps.steps if step.path not in kept),
        (*steps.left, *left),
    )


class OutlivedLogsError(Exception):
    """A plan writes databases, and files beside them lie there that no snapshot has.

    The databases themselves are gone, and no scan state knows of them.
    """

    def __init__(self, databases: frozenset[bytes]) -> None:
        super().__init__(databases)
        self.databases = databases


def capture_for(
    capture: Capture, transaction: Transaction, use: Callable[[Snapshot], T]
) -> tuple[Snapshot, T]:
    """Captures as `Capture.using` does, with the logs that outlived their databases.

    `use` says by OutlivedLogsError that there are some.
    """
    try:
        return capture.using(transaction, use)
    except OutlivedLogsError as exc:
        capture.databases |= exc.databases
        return capture.using(transaction, use)


def refuse_outlived(
    workspace: Workspace, snapshot: Snapshot, steps: FilePlan, objects: Objects
) -> None:
    """Raises OutlivedLogsError if SQLite would apply such a log to a database of a plan."""
    known = snapshot.state.databases
    written = {
        step.path: step.after.oid
        for step in steps.steps
        if step.action == WRITE and step.after is not None and step.path not in known
    }
    if not written:
        return
    directories = {path.rpartition(b"/")[0] for path in written}
    with workspace.root() as root:
        owners = {path for name in directories for path in _owners_in(root, name)}
    found = frozenset(
        path
        for path in owners & written.keys()
        if next(objects.content(written[path]), b"").startswith(MAGIC)
    )
    if found:
        raise OutlivedLogsError(found)


def _owners_in(root: Root, directory: bytes) -> Iterator[bytes]:
    """Yields the paths of the databases that files in a directory would belong to."""
    prefix = directory + b"/" if directory else b""
    with suppress(OSError):
        for name in map(os.fsencode, os.listdir(root.directory(directory))):
            for suffix in BESIDE:
                if name.endswith(suffix):
                    yield prefix + name.removesuffix(suffix)
