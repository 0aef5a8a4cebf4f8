"""Tells addresses of object stores from those of git."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gitcp.errors import UsageError
from gitcp.names import quoted

_CLOUD = re.compile(r"(s3|gs|az)://[a-z0-9][a-z0-9._-]*(/[^\s\x00-\x1f\x7f?#]*)?")
_OWN = {".gitcp-lock", "packs", "sessions"}
_FILE = re.compile(r"file://(localhost)?/[^\x00-\x1f\x7f?#]*")


def is_store(url: str) -> bool:
    """Whether an address is that of an object store, and not one for git.

    A directory counts if it is empty or has what gitcp put there: git says of any other why
    it cannot be used.
    """
    if _CLOUD.fullmatch(url):
        return True
    directory = directory_of(url)
    return directory is not None and _is_fit(directory)


def directory_of(url: str) -> Path | None:
    """Returns the directory that a `file://` address names; None for any other address."""
    return Path(unquote(urlsplit(url).path)) if _FILE.fullmatch(url) else None


def check_given(url: str) -> bool:
    """Whether an address that a user typed is that of an object store.

    Raises:
        UsageError: the address names a directory that cannot be an object store.
    """
    directory = directory_of(url)
    if directory is None:
        return is_store(url)
    if _is_git(directory):
        raise UsageError(
            f"{directory} is a git repository, not an object store",
            hint=f"`git remote add NAME {quoted(str(directory))}`, then `gitcp push NAME`",
        )
    if not directory.is_dir():
        raise UsageError(
            f"there is no directory {directory}",
            hint=f"mount it, or run `mkdir {quoted(str(directory))}`: gitcp does not create it",
        )
    if not _is_fit(directory):
        raise UsageError(
            f"{directory} contains files that are not an object store's",
            hint="name an empty directory, or one that gitcp has pushed to",
        )
    return True


def _is_fit(directory: Path) -> bool:
    """Whether a directory is empty, or one that gitcp has pushed to."""
    try:
        names = {path.name for path in directory.iterdir()}
    except OSError:
        return False
    return not names or not names.isdisjoint(_OWN)


def _is_git(directory: Path) -> bool:
    return (directory / ".git").exists() or (
        (directory / "HEAD").exists() and (directory / "objects").is_dir()
    )
