"""Private stores: git directories in the user's state directory, for folders without git.

Only folders in which git finds no repository have one, and only once the user wanted it
(docs/decisions/0092).
"""

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.errors import (
    NotFoundError,
    UnsupportedRepositoryError,
    UnsureFolderError,
)
from gitcp.format.oid import FORMS, SHA1
from gitcp.git import area, configuration, process, questions
from gitcp.git.folder import UNKNOWN, Folder, folder_at
from gitcp.git.new_bare import make_bare_store
from gitcp.git.repository import Repository
from gitcp.git.served import check_place, check_supported
from gitcp.user_state import state_directory

# How a folder was found: as it was, at another path, or another directory at its path.
HERE = "here"
MOVED = "moved"
REPLACED = "replaced"

_ENTRY = "folder.json"
_GIT = "store.git"
_LOCK = "lock"
_IDENT = re.compile(r"[0-9a-f]{12}")
_TIMEOUT = 30.0


class PrivateStore(NamedTuple):
    """One private store, and the folder that it is for."""

    ident: str
    directory: Path
    folder: Folder

    @property
    def git_dir(self) -> Path:
        """The git directory."""
        return self.directory / _GIT


class Found(NamedTuple):
    """The store of a folder, the folder's path without links, and how it was found."""

    store: PrivateStore
    top: Path
    how: str


def _root() -> Path:
    return area.private_stores()


def every_store() -> list[PrivateStore]:
    """Returns all private stores of this user.

    Raises:
        UnsupportedRepositoryError: the directory that they are in is another user's.
        StorageError: the directory of the stores cannot be read.
    """
    root = _root()
    with durable.storage("looking for private stores"):
        try:
            names = sorted(os.listdir(root))
        except (FileNotFoundError, NotADirectoryError):
            return []
        _check_owner(root)
        return [
            PrivateStore(name, root / name, _entry(root / name))
            for name in names
            if _IDENT.fullmatch(name)
        ]


def store_named(ident: str) -> PrivateStore:
    """Returns a private store by its name, or the beginning of it.

    Raises:
        NotFoundError: there is none, or more than one.
    """
    found = [one for one in every_store() if one.ident.startswith(ident)]
    if len(found) != 1 or not ident:
        raise NotFoundError(
            f"{'no' if not found else 'more than one'} private store is named {ident!a}",
            hint="`gitcp folders` lists them",
        )
    return found[0]


def find(directory: str | os.PathLike[str]) -> Found | None:
    """Returns the private store for a directory: that of the nearest folder above it."""
    stores = every_store()
    if not stores:
        return None
    where = Path(os.path.realpath(directory))
    for top in (where, *where.parents):
        found = _at(top, stores)
        if found is not None:
            return found
    return None


def at(top: Path) -> Found | None:
    """Returns the private store of one directory itself."""
    return _at(Path(os.path.realpath(top)), every_store())


def _at(top: Path, stores: list[PrivateStore]) -> Found | None:
    found: dict[str, PrivateStore] = {}
    with suppress(OSError):
        for store in stores:
            same_path = store.folder.place == top
            if store.folder.is_at(top):
                # One directory may have several paths, by a bind mount.
                here = same_path or _is_same(store.folder.place, top)
                found.setdefault(HERE if here else MOVED, store)
            elif same_path:
                found.setdefault(REPLACED, store)
    for how in (HERE, MOVED, REPLACED):
        if how in found:
            return Found(found[how], top, how)
    return None


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return one.samefile(other)
    return False


# --- what discovery asks for ----------------------------------------------------------


def repository_around(directory: str | os.PathLike[str]) -> Repository | None:
    """Returns the repository of the private store for a directory without git, or None.

    Raises:
        UnsureFolderError: the store may be another folder's; the user has to decide.
        UnsupportedRepositoryError: gitcp does not serve it.
    """
    found = find(directory)
    if found is None:
        return None
    if found.how != HERE:
        raise _unsure(found, here=found.top == Path(os.path.realpath(directory)))
    return open_store(found.store, found.top)


def _unsure(found: Found, *, here: bool) -> UnsureFolderError:
    """Returns the question that the user has to answer before a store is used.

    `here` says that the command runs in the folder itself, not below it.
    """
    top, ident = found.top, found.store.ident
    where = "" if here else f" -C {shlex.quote(os.fspath(top))}"
    if found.how == MOVED:
        message = (
            f"{top} was at {found.store.folder.place} when its checkpoints were saved"
        )
    else:
        message = (
            f"{top} is not the directory whose checkpoints are in the private"
            f" store {ident}: it was created again or replaced"
        )
    return UnsureFolderError(
        message,
        store=ident,
        folder=os.fspath(top),
        hint=f"if it is the same project: `gitcp{where} folders --use {ident}`; for a new"
        f" history: `gitcp{where} save --init`",
    )


def open_store(store: PrivateStore, top: Path | None) -> Repository:
    """Returns the repository in a private store; `top` is its work tree.

    Raises:
        GitFailedError: git cannot read it.
        UnsupportedRepositoryError: gitcp does not serve it.
    """
    git_dir = store.git_dir
    since = configuration.now()
    named = {"GIT_DIR": os.fspath(git_dir)}
    raw = process.run(questions.LIST, cwd=store.directory, env=named)
    listed = configuration.parse(raw)
    name = listed.values.get("extensions.objectformat", [SHA1.name])[-1]
    check_supported(git_dir, listed.values, name)
    repository = Repository(
        git_dir, git_dir, form=FORMS[name], listed=listed, since=since
    )
    area.check(repository.store_dir, repository.access)
    if top is not None:
        check_place(top)
        repository.top = top
        repository.private = True
    return repository


# --- changing -------------------------------------------------------------------------


def make(directory: str | os.PathLike[str]) -> Found:
    """Makes a private store for a folder; one that is there by now is taken.

    Raises:
        UnsupportedRepositoryError: the folder is not a project, or has the state directory
            in it.
        GitFailedError, StorageError: the store cannot be made.
    """
    top = Path(os.path.realpath(directory))
    _check_apart(top)
    with _alone() as root:
        found = _at(top, every_store())
        if found is not None and found.how == HERE:
            return found
        ident = os.urandom(6).hex()
        staged = root / f".new-{ident}"
        with durable.storage("making a private store"):
            staged.mkdir(mode=0o700)
            (staged / _GIT).mkdir()
            make_bare_store(staged / _GIT)
            _write(staged, folder_at(top))
            staged.rename(root / ident)
            durable.sync_directory(root)
        return Found(PrivateStore(ident, root / ident, _entry(root / ident)), top, HERE)


def _check_apart(top: Path) -> None:
    """Raises where a folder cannot have a private store."""
    check_place(top)
    state = Path(os.path.realpath(state_directory()))
    if state.is_relative_to(top) or top.is_relative_to(state):
        raise UnsupportedRepositoryError(
            f"the private store of {top} would be in {state}, but one of them is"
            " inside the other",
            hint="set XDG_STATE_HOME to a directory outside of the folder",
        )


def use(store: PrivateStore, directory: str | os.PathLike[str]) -> Found:
    """Uses a store for a folder from now on, whichever folder it was for.

    Raises:
        UnsupportedRepositoryError: the folder is not one that can have a store.
        StorageError: the disk refused.
    """
    top = Path(os.path.realpath(directory))
    _check_apart(top)
    with _alone(), durable.storage("noting the folder of a private store"):
        _write(store.directory, folder_at(top))
    return Found(store._replace(folder=_entry(store.directory)), top, HERE)


def note_names(repository: Repository) -> None:
    """Notes what a folder looks like after a save, to know it again.

    Raises:
        StorageError: the disk refused.
    """
    if repository.top is None:
        return
    directory = repository.git_dir.parent
    with durable.storage("noting what the folder looks like"):
        before, now = _entry(directory), folder_at(repository.top)
        # One directory may have several paths, by a bind mount.
        now = msgspec.structs.replace(now, path=before.path)
        if now != before:
            _write(directory, now)


def renamed(store: PrivateStore) -> PrivateStore:
    """Renames a store, so that a process that has it open no longer writes to it.

    Raises:
        StorageError: the disk refused.
    """
    with _alone() as root, durable.storage("closing a private store"):
        ident = os.urandom(6).hex()
        store.directory.rename(root / ident)
        durable.sync_directory(root)
    return PrivateStore(ident, root / ident, store.folder)


def remove(store: PrivateStore) -> None:
    """Removes a store with all checkpoints in it.

    Raises:
        StorageError: the disk refused.
    """
    with _alone() as root, durable.storage("removing a private store"):
        gone = root / f".gone-{store.ident}"
        store.directory.rename(gone)
        durable.sync_directory(root)
        shutil.rmtree(gone)


@contextmanager
def _alone() -> Iterator[Path]:
    """Lets one process at a time change which stores there are; yields their directory."""
    root = _root()
    with durable.storage("making the directory of private stores"):
        durable.make_directories(root, private=True)
        _check_owner(root)
    with durable.locked(
        root / _LOCK, what="the list of private stores", timeout=_TIMEOUT
    ):
        # We hold the lock, so the process that left these was killed.
        for left in root.glob(".*-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield root


def _check_owner(root: Path) -> None:
    owner = root.stat().st_uid
    if owner != os.geteuid():
        raise UnsupportedRepositoryError(
            f"{root} belongs to another user (uid {owner})",
            hint="run gitcp as that user, or set HOME or XDG_STATE_HOME to your own",
        )


def _entry(directory: Path) -> Folder:
    try:
        raw = (directory / _ENTRY).read_bytes()
        return msgspec.json.decode(raw, type=Folder)
    except (OSError, msgspec.MsgspecError):
        return UNKNOWN


def _write(directory: Path, folder: Folder) -> None:
    durable.replace(directory / _ENTRY, msgspec.json.encode(folder))
