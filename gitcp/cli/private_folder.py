"""Asks whether a folder without git is to have a private store, and which one."""

import os
from pathlib import Path

from gitcp.cli.emit import Output, safe_path
from gitcp.errors import (
    ConfirmationError,
    NotARepositoryError,
    NothingToDoError,
    UnsureFolderError,
)
from gitcp.project import folders


def offer(out: Output, exc: NotARepositoryError, *, init: bool) -> None:
    """Makes a private store for the present folder, or takes the one that it had.

    Raises:
        NotARepositoryError: there is no terminal to ask at, and `init` was not given.
        NothingToDoError: the answer was no.
        UnsupportedRepositoryError: the folder cannot have one.
    """
    where = Path(os.path.realpath(out.directory))
    if isinstance(exc, UnsureFolderError):
        try:
            if _is_same(out, exc):
                return
        except ConfirmationError:
            if not init:
                raise exc from None
        # The user means this directory, whichever one above it had a store.
        where = Path(exc.folder)
    if not init:
        _ask(out, exc, where)
    made = folders.make(where)
    out.note(
        f"made a private store for {safe_path(str(made.folder))} in"
        f" {safe_path(str(made.git_dir.parent))}"
    )


def _ask(out: Output, exc: NotARepositoryError, where: Path) -> None:
    question = (
        f"There is no git repository here. Keep checkpoints of {safe_path(str(where))} in"
        f" {safe_path(str(folders.state_directory()))}? Nothing is put into the folder."
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
    """Asks whether a folder takes over a store, and notes it.

    Raises:
        ConfirmationError: there is no terminal to ask at.
    """
    question = f"{safe_path(exc.message)}. Take its checkpoints for this folder?"
    try:
        out.confirm(question, yes=False)
    except NothingToDoError:
        return False
    folders.use(exc.store, exc.folder)
    return True
