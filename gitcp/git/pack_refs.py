"""Packs refs when there are very many loose ones."""

from contextlib import suppress

from gitcp import durable
from gitcp.errors import GitFailedError
from gitcp.format import layout
from gitcp.git.repository import Repository

# Each costs 0.07 ms whenever all are listed, which most commands do.
AT_MOST = 100


def pack_refs(repository: Repository) -> bool:
    """Runs `git pack-refs` if there are too many loose refs, as git's own gc does.

    No ref changes. It is housekeeping: if git fails, everything stays as it is.
    """
    if repository.refs.crowd(layout.SESSIONS) <= AT_MOST:
        return False
    # Only gitcp's own; git before 2.43 knows all or none.
    for which in (("--include", "refs/gitcp/*"), ("--all",)):
        with suppress(GitFailedError, OSError):
            repository.git("pack-refs", *which)
            # git before 2.36 does not sync the file, and none its name.
            durable.sync_file(repository.common_dir / "packed-refs")
            durable.sync_directory(repository.common_dir)
            return True
    return False
