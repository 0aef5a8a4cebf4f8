"""A git directory without refs, from which git pushes faster where there are many (0134).

Before a push git reads every ref of the repository, and looks for each object that one
names, though gitcp names commits by their ids.
"""

import os
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import UnsupportedRepositoryError
from gitcp.git.repository import Repository, naming

_NAME = "push"
# As many bytes of packed refs as a thousand refs have, or fewer: below, it gains nothing.
_MANY = 64 * 1024
_HEAD = b"ref: refs/heads/none\n"
# What a push goes by that is in the git directory itself, and that another lacks.
_OWN_FILES = ("shallow", "info/grafts", "remotes", "branches")
_TRACKED = ("refs/heads/", "refs/tags/")


def naming_for_push(repository: Repository, remote: str) -> dict[str, str]:
    """Returns the environment that names a git directory to push commits from.

    It is one without refs if there are many refs, and if git would send the same from
    there. Otherwise it is what `naming` returns.
    """
    usual = naming(repository)
    if not _has_many_refs(repository) or not _is_plain(repository, remote):
        return usual
    with suppress(OSError, UnsupportedRepositoryError):
        where = _made(repository)
        objects = repository.common_dir / "objects"
        found = {"GIT_DIR": str(where), "GIT_OBJECT_DIRECTORY": str(objects)}
        if repository.top is not None:
            found["GIT_WORK_TREE"] = str(repository.top)
        return usual | found
    return usual


def _has_many_refs(repository: Repository) -> bool:
    with suppress(OSError):
        return (repository.common_dir / "packed-refs").stat().st_size >= _MANY
    return False


def _is_plain(repository: Repository, remote: str) -> bool:
    """Whether git reads the same settings there, and has nothing else to read or write."""
    for name in repository.config:
        if name.startswith("includeif.") or name.endswith(".promisor"):
            # The condition may be the place or the branch. And what is fetched on demand
            # may not be fetched into a repository that has no refs.
            return False
        if name.startswith("extensions.") and name != "extensions.objectformat":
            return False
    tracked = repository.config.get(f"remote.{remote.lower()}.fetch", [])
    if not all(one.removeprefix("+").startswith(_TRACKED) for one in tracked):
        # After the push git would note what it sent in a ref.
        return False
    return not any(_holds(repository.common_dir / name) for name in _OWN_FILES)


def _holds(path: Path) -> bool:
    """Whether there is a file, or a directory with something in it."""
    try:
        return any(path.iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _made(repository: Repository) -> Path:
    where = repository.store_dir / _NAME
    repository.make_directory(where / "refs")
    for name, content in (("HEAD", _HEAD), ("config", _config(repository))):
        path = where / name
        with suppress(FileNotFoundError):
            if path.read_bytes() == content and not path.is_symlink():
                continue
        durable.replace(path, content)
    return where


def _config(repository: Repository) -> bytes:
    """Returns settings that include the repository's; git reads the format in no other file."""
    version, form = 0, ""
    if repository.setting("extensions.objectformat"):
        version, form = 1, f"[extensions]\n\tobjectFormat = {repository.form.name}\n"
    up = os.path.join("..", "..", "config")
    return (
        f"[core]\n\trepositoryFormatVersion = {version}\n{form}"
        f"[include]\n\tpath = {up}\n"
    ).encode()
