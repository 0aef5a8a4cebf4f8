"""gitcp's own directories in a git directory: creates them, and checks their owner.

Those that belong to the user, not to a project, are below the state directory.

A project may come with directories that look like these. So none of them may be a
symbolic link, and none may belong to another user, unless the repository is shared.
"""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import UnsupportedRepositoryError
from gitcp.git.access import Access
from gitcp.user_state import state_directory

NAME = "gitcp"
_PRIVATE = 0o700


def private_stores() -> Path:
    """Returns the directory of the private stores of folders without git."""
    return state_directory() / "folders"


def check(top: Path, access: Access) -> None:
    """Checks the directory `gitcp` of a git directory; it may be missing.

    Raises:
        UnsupportedRepositoryError: the directory or something in it is a link, or belongs to
            another user.
    """
    try:
        status = os.lstat(top)
    except FileNotFoundError:
        return
    _check_one(top, status, access)
    try:
        with os.scandir(top) as entries:
            for one in entries:
                if one.is_symlink():
                    raise _is_a_link(one.path)
                # It may be gone: other processes are at work.
                with suppress(FileNotFoundError):
                    inner = one.stat(follow_symlinks=False)
                    _check_owner(one.path, inner, access)
    except PermissionError as exc:
        raise UnsupportedRepositoryError(
            f"{top} is not open to your group: it was created before the"
            " repository was shared",
            hint="ask its owner to run `gitcp save`, or any other command that writes",
        ) from exc


def make(top: Path, directory: Path, access: Access) -> None:
    """Makes a directory of gitcp's own, `top` or one below it, durably.

    Raises:
        UnsupportedRepositoryError: a directory of the path is a link, or another user's.
        OSError: the disk refused.
    """
    path = top
    for part in ("", *directory.relative_to(top).parts):
        path = path / part
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            _make_one(path, access)
            continue
        _check_one(path, status, access)


def _make_one(path: Path, access: Access) -> None:
    # If another process has just made it, it may not be durable yet.
    try:
        path.mkdir(mode=_PRIVATE)
        access.adjust(path)
    except FileExistsError:
        _check_one(path, os.lstat(path), access)
    durable.sync_directory(path.parent)


def _check_one(path: Path, status: os.stat_result, access: Access) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise _is_a_link(path)
    if not stat.S_ISDIR(status.st_mode):
        raise UnsupportedRepositoryError(
            f"{path} is not a directory",
            hint="move it away: gitcp creates a directory of this name",
        )
    _check_owner(path, status, access)


def _check_owner(path: str | Path, status: os.stat_result, access: Access) -> None:
    if status.st_uid != os.geteuid() and not access.shared:
        raise UnsupportedRepositoryError(
            f"{path} belongs to another user (uid {status.st_uid}), and the repository"
            " is not shared",
            hint="run gitcp as that user; or `chown` it; or, for a repository that a"
            " group uses, `git config core.sharedRepository group`",
        )


def _is_a_link(path: str | Path) -> UnsupportedRepositoryError:
    return UnsupportedRepositoryError(
        f"{path} is a symbolic link, and would make gitcp write elsewhere",
        hint="remove the link",
    )


def _is_closed(top: Path, access: Access) -> bool:
    """Whether a directory of ours was made before the repository was shared."""
    try:
        return _to_be_opened(top, access)
    except FileNotFoundError:
        return False


def open_up(common_dir: Path, git_dir: Path, access: Access) -> None:
    """Gives the group access to files that were written before the repository was shared.

    Files of other users stay as they are: their owners open them. Keys stay private.
    """
    if not access.shared:
        return
    store, worktree = common_dir / NAME, git_dir / NAME
    # The store's own directory comes last: its permissions say whether this is done.
    if _is_closed(store, access):
        _open_below(common_dir / "refs" / "gitcp", access)
        for path in (common_dir / "objects" / "pack").iterdir():
            _open_one(path, access)
        _open_below(store, access)
    if _is_closed(worktree, access):
        _open_below(worktree, access)


def _open_below(top: Path, access: Access) -> None:
    for where, _, files in os.walk(top, topdown=False):
        for name in files:
            if not is_secret(name):
                _open_one(Path(where, name), access)
        _open_one(Path(where), access)


def _to_be_opened(top: Path, access: Access) -> bool:
    status = os.lstat(top)
    mine = status.st_uid == os.geteuid()
    return mine and access.mode(status.st_mode) != stat.S_IMODE(status.st_mode)


def _open_one(path: Path, access: Access) -> None:
    """Opens a file or directory to the group, if it is ours."""
    # It may be gone: other processes are at work.
    with suppress(FileNotFoundError):
        if _to_be_opened(path, access):
            access.adjust(path)


def is_secret(name: str) -> bool:
    """Whether a file of this name is a user's key, which no other user may read."""
    return re.split("[-.]", name, maxsplit=1)[0] in {"key", "seal"}
