"""Asks whether to create a private store for a folder without git, or to use an earlier one."""

import os
from contextlib import suppress
from pathlib import Path

from gitcp.cli.emit import Output, safe_path
from gitcp.errors import (
    ConfirmationError,
    GitcpError,
    NoGitHereError,
    NotARepositoryError,
    NothingToDoError,
    UnsureFolderError,
)
from gitcp.names import quoted
from gitcp.project import folders
from gitcp.project.workspace import Workspace
from gitcp.user_state import state_directory


def offer(out: Output, exc: NotARepositoryError, *, init: bool) -> None:
    """Makes a private store for the present folder, or reuses its earlier one.

    Raises:
        NotARepositoryError: there is no terminal to ask at, and `init` was not given; or
            git has found something that it cannot open.
        NothingToDoError: the answer was no.
        UnsupportedRepositoryError: the folder cannot have a private store.
    """
    where = Path(os.path.realpath(out.directory))
    if isinstance(exc, UnsureFolderError):
        try:
            if _is_same(out, exc):
                return
        except ConfirmationError:
            if not init:
                raise exc from None
    elif not isinstance(exc, NoGitHereError):
        raise exc
    if not init:
        _ask(out, exc, where)
    made = folders.make(where)
    out.note(
        f"made a private store for {safe_path(str(made.folder))} in"
        f" {safe_path(str(made.git_dir.parent))}"
    )


def _ask(out: Output, exc: NotARepositoryError, where: Path) -> None:
    question = (
        "There is no git repository here. Keep the checkpoints of"
        f" {safe_path(str(where))} in {safe_path(str(state_directory()))}?"
        " gitcp puts nothing into the folder."
    )
    try:
        out.confirm(question, yes=False)
    except ConfirmationError:
        raise exc from None


def again(out: Output, exc: UnsureFolderError) -> bool:
    """Asks whether a moved or replaced folder is the same; returns whether to try again."""
    try:
        return _is_same(out, exc)
    except ConfirmationError:
        return False


def _is_same(out: Output, exc: UnsureFolderError) -> bool:
    """Asks whether a folder takes over a store; if so, records it.

    Raises:
        ConfirmationError: there is no terminal to ask at.
    """
    question = f"{safe_path(exc.message)}. Use its checkpoints for this folder?"
    try:
        out.confirm(question, yes=False)
    except NothingToDoError:
        return False
    folders.use(exc.store, exc.folder)
    return True


def confirm(out: Output, question: str, *, yes: bool) -> None:
    """Asks the user, unless `yes` was given, in a command without `--dry-run`.

    Raises:
        ConfirmationError: there is no terminal to ask at.
        NothingToDoError: the answer was no.
    """
    try:
        out.confirm(question, yes=yes)
    except ConfirmationError as exc:
        raise ConfirmationError(exc.message, hint="add --yes") from exc


def tell_left_behind(out: Output, workspace: Workspace) -> None:
    """Prints that a repository's folder has checkpoints from before it had git."""
    found = None
    # The command does not need this, and another user's state directory may be in the way.
    with suppress(GitcpError):
        found = folders.left_behind(workspace, out.directory)
    if found is None:
        return
    if found.folder == Path(os.path.realpath(workspace.top)):
        out.note(
            "checkpoints of this folder from before it had a git repository are in a"
            " private store; `gitcp adopt` moves them here"
        )
    else:
        out.note(
            f"{safe_path(str(found.folder))} had checkpoints of its own before it was part"
            f" of this repository; `gitcp -C {quoted(str(found.git_dir))} log` lists them"
        )
