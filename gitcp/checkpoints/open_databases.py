"""Plans the restore of SQLite databases: with their logs, and not while one is open."""

from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.worktree.databases import BESIDE, is_open
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, Left, selection
from gitcp.worktree.snapshot import Snapshot

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
