"""Checks whether gitcp supports a repository's format and the place of a work tree."""

import os
from pathlib import Path

from gitcp.errors import UnsupportedRepositoryError
from gitcp.format.oid import FORMS
from gitcp.git.configuration import Values

# All that git knows, but compatObjectFormat: git itself calls it unfinished.
_KNOWN_EXTENSIONS = frozenset(
    {
        "noop",
        "noop-v1",
        "objectformat",
        "partialclone",
        "preciousobjects",
        "refstorage",
        "relativeworktrees",
        "submodulepathconfig",
        "worktreeconfig",
    }
)


def check_supported(common_dir: Path, config: Values, object_format: str) -> None:
    """Refuses a repository of a form in which gitcp's promises would not hold.

    Raises:
        UnsupportedRepositoryError: the repository has such a form.
    """

    def refuse(what: str) -> None:
        raise UnsupportedRepositoryError(
            f"{common_dir} is {what}, which gitcp does not support",
            hint="gitcp needs a repository that `git init` makes, with or without"
            " options",
        )

    if object_format not in FORMS:
        refuse(f"a {object_format} repository")
    storage = config.get("extensions.refstorage", ["files"])[-1]
    if storage not in {"", "files", "reftable"}:
        refuse(f"a repository with its refs in {storage}")
    for name in config:
        section, _, key = name.partition(".")
        if section == "extensions" and key not in _KNOWN_EXTENSIONS:
            refuse(f"a repository with the extension {key}")


def check_place(top: Path) -> None:
    """Refuses a work tree that is not a project.

    Raises:
        UnsupportedRepositoryError: the work tree is the home directory, or contains it.
    """
    real = Path(os.path.realpath(top))
    home = os.environ.get("HOME")
    if real == Path("/"):
        what = "is the root directory"
    elif home and Path(os.path.realpath(home)).is_relative_to(real):
        same = real == Path(os.path.realpath(home))
        what = "is your home directory" if same else "contains your home directory"
    else:
        return
    raise UnsupportedRepositoryError(
        f"{top} {what}, and is not a project",
        hint="run gitcp in the folder of a project",
    )
