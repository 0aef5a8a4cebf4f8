"""Removes the work tree that a killed `fork --worktree` left without a branch.

It is recognized by its content: it holds nothing that its commit or the checkpoint does not
hold as well. So its removal loses nothing, even if the user made it.
"""

import os
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.checkpoints import export_files
from gitcp.errors import BusyError, GitcpError, GitFailedError
from gitcp.project.workspace import Current, Workspace, open_workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree import leftovers
from gitcp.worktree.plan import FilePlan


def clear(
    workspace: Workspace,
    directory: Path,
    commit: str,
    start: Checkpoint,
    steps: FilePlan,
    branch: Current,
) -> None:
    """Removes such a work tree at a directory; changes nothing in any other.

    `commit` is its HEAD, and `steps` are those that write the checkpoint's files there.

    Raises:
        BusyError: the fork is under way.
    """
    other = _unfinished(workspace, directory, commit, branch)
    if other is None:
        return
    with suppress(FileNotFoundError):
        held = durable.try_lock(other.directory / "worktree.lock", create=False)
        if held is None:
            raise BusyError(
                f"another gitcp writes into {directory}", hint="wait for it to end"
            )
        durable.unlock(held)
    with other.root() as root:
        # A file that was being written.
        leftovers.settle(root, steps, start.objects.content, start.id)
        root.forget()
        export_files.take_back(root, start, steps)
        if os.listdir(root.fd) != [".git"]:
            # It holds something else: put back what was removed.
            export_files.write_whole(root, start, steps)
            return
    _remove(workspace, directory)


def _unfinished(
    workspace: Workspace, directory: Path, commit: str, branch: Current
) -> Workspace | None:
    """Returns the work tree at a directory if it may be one that a fork left."""
    try:
        other = open_workspace(directory)
        there = other.repository
        if (
            other.top != Path(os.path.realpath(directory))
            or there.worktree_name is None
            or there.common_dir != workspace.repository.common_dir
            or there.head() != (commit, None)
            or other.noted() not in {None, branch}
            or other.is_interrupted()
        ):
            return None
        # A killed git may not have made an index.
        if (there.git_dir / "index").exists():
            there.git("diff-index", "--cached", "--quiet", "HEAD", "--")
    except GitcpError:
        return None
    return other


def _remove(workspace: Workspace, directory: Path) -> None:
    with suppress(GitFailedError):
        workspace.repository.git("worktree", "unlock", "--", os.fspath(directory))
    workspace.repository.git(
        "worktree", "remove", "--force", "--", os.fspath(directory)
    )
