"""Forks branches and switches between them."""

import os
from pathlib import Path

from gitcp.checkpoints import export_files, restore_plan, unfinished_fork
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import request_restore
from gitcp.errors import (
    NotFoundError,
    UnsupportedRepositoryError,
    UsageError,
    WouldOverwriteError,
)
from gitcp.git.transaction import transaction
from gitcp.names import quoted
from gitcp.project.workspace import Current, Workspace, open_workspace
from gitcp.store.append import append_checkpoint
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import fork_draft, fork_note
from gitcp.store.find_current import find_current
from gitcp.store.store import Store
from gitcp.trust import trusted_remotes as trust_notes
from gitcp.worktree.plan import FilePlan


def check_free(store: Store, session: str, branch: str) -> None:
    """Raises if a branch exists.

    Raises:
        UsageError: the branch exists.
    """
    if store.tip(session, branch) is not None:
        raise UsageError(
            f"{session} has a branch {branch!r} already",
            hint=f"choose another name, or `gitcp switch {quoted(f'{session}/{branch}')}`",
        )


def fork_only(store: Store, start: Checkpoint, name: str) -> Checkpoint:
    """Makes a branch at a checkpoint and returns its first checkpoint.

    No work tree is touched and no other branch becomes current.

    Raises:
        UsageError: the name is taken.
        BranchMovedError: another process took the name at the same time.
        NotFoundError: the checkpoint has been pruned.
        TransferError: the checkpoint came from elsewhere and exceeds the size limit.
    """
    check_free(store, start.session, name)
    start.refuse_if_vast()
    with transaction(store.repository) as txn:
        start = find_current(store, start)
        draft = fork_draft(start)
        first = append_checkpoint(store, txn, start.session, name, draft).checkpoint
    trust_notes.note_made(store, first, start)
    return first


def plan_fork(
    workspace: Workspace, start: Checkpoint, name: str, *, trust: bool = False
) -> RestorePlan:
    """Returns what a fork into this work tree would do to its files.

    Raises:
        UsageError: the name is taken.
    """
    check_free(workspace.store, start.session, name)
    return restore_plan.plan_restore(
        workspace,
        request_restore(
            start, note=fork_note(start), fork=(start.session, name), trust=trust
        ),
    )


def fork_here(workspace: Workspace, start: Checkpoint, name: str) -> Checkpoint:
    """Makes a branch where the work tree is already and makes it current."""
    workspace.refuse_if_interrupted()
    first = fork_only(workspace.store, start, name)
    workspace.make_current(first.session, first.branch)
    return first


def fork_into_worktree(
    workspace: Workspace,
    start: Checkpoint,
    name: str,
    directory: Path,
    *,
    trust: bool = False,
) -> tuple[Checkpoint, FilePlan]:
    """Makes a branch in a new git worktree that holds the checkpoint's files.

    Returns its first checkpoint, and what was written or left out. The worktree's HEAD
    is detached at the commit that `head_for` names. What an earlier, killed run of the
    same command left there is removed.

    Raises:
        WouldOverwriteError: there is something at the directory.
        UsageError: the name is taken.
        UnsupportedRepositoryError: the work tree is a folder without git.
        GitFailedError: git could not make the worktree.
        PartialError: done, but some paths could not be written.
    """
    check_free(workspace.store, start.session, name)
    _refuse_without_git(workspace, start, name)
    directory = directory.absolute()
    commit = head_for(workspace, start, trust=trust)
    # Check everything else first, while there is nothing to undo.
    steps = export_files.plan_whole(
        start,
        bounds=restore_plan.bounds_for(workspace, start, trust=trust),
        trust=trust,
        check=False,
    )
    branch = Current(start.session, name)
    if directory.is_dir() and os.path.lexists(directory / ".git"):
        unfinished_fork.clear(workspace, directory, commit, start, steps, branch)
    _refuse_what_is_there(directory)
    place = os.fspath(directory)
    # Forced, because after a killed run git may know a worktree that is not on disk.
    workspace.repository.git(
        "worktree", "add", "-f", "--detach", "--no-checkout", "--", place, commit
    )
    try:
        other = open_workspace(directory)
        with other.locked():
            # As after a checkout, so that git status there tells the truth.
            other.repository.git("read-tree", "HEAD")
            with other.root() as root:
                left = export_files.write_whole(root, start, steps)
            # Before the branch: with that the fork is done.
            other.make_current(branch.session, branch.branch)
            first = fork_only(workspace.store, start, name)
    except BaseException:
        workspace.repository.git("worktree", "remove", "--force", "--", place)
        raise
    export_files.refuse_left(left)
    return first, steps


def head_for(workspace: Workspace, start: Checkpoint, *, trust: bool) -> str:
    """Returns the commit for a new worktree with a checkpoint's files.

    That is the commit that the checkpoint was made on. But what HEAD holds counts as the
    user's own, and a checkpoint made elsewhere may name any commit: if none of the user's
    branches has that, the commit is the present HEAD.

    Raises:
        NotFoundError: there is no commit.
    """
    base = start.manifest.base
    commit = base.commit if base else None
    if commit and start.origin.files is not None and not trust:
        head, _ = workspace.repository.head()
        if not _is_own(workspace, commit, head):
            commit = head
    if not commit:
        raise NotFoundError(
            f"checkpoint {start.id} was made before the first git commit",
            hint="git needs a commit for a work tree: commit, save, then fork",
        )
    return commit


def _is_own(workspace: Workspace, commit: str, head: str | None) -> bool:
    """Whether HEAD or a local branch has a commit."""
    repository = workspace.repository
    if not repository.objects.exists(bytes.fromhex(commit)):
        return False
    own = ["--branches", *([head] if head else [])]
    return not repository.git("rev-list", "--max-count=1", commit, "--not", *own)


def _refuse_what_is_there(directory: Path) -> None:
    if os.path.lexists(directory) and (
        not directory.is_dir() or any(directory.iterdir())
    ):
        raise WouldOverwriteError(
            f"{directory} exists and is not empty",
            paths=[os.fspath(directory)],
            hint="name a new directory",
        )


def _refuse_without_git(workspace: Workspace, start: Checkpoint, name: str) -> None:
    if workspace.repository.private:
        words = f"{start.number or start.id} {quoted(name)}"
        raise UnsupportedRepositoryError(
            f"{workspace.top} has no git repository, so there is no commit for a"
            " work tree",
            hint=f"`gitcp fork {words}` forks in this folder",
        )


def switch(workspace: Workspace, session: str, branch: str) -> Checkpoint:
    """Makes a branch current; files stay as they are.

    Raises:
        NotFoundError: there is no such branch.
        TransferError: its tip came from elsewhere, and holds more than may be walked.
    """
    tip = workspace.store.require_tip(session, branch)
    tip.refuse_if_vast()
    workspace.refuse_if_interrupted()
    workspace.make_current(session, branch)
    return tip


def at_present(plan: RestorePlan) -> bool:
    """Whether a plan leaves every file as it is."""
    return not plan.steps.steps and not plan.obstacles
