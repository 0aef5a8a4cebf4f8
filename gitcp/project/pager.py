"""Finds the pager that the user wants, as git does."""

from collections.abc import Mapping

from gitcp.git.pager import show
from gitcp.project.workspace import Workspace

__all__ = ["chosen", "show"]

_DEFAULT = "less"


def chosen(workspace: Workspace, environment: Mapping[str, str]) -> str | None:
    """Returns the pager; None if it is empty or `cat`.

    `GIT_PAGER`, `core.pager`, `PAGER`, in this order. As in git, the repository's own
    configuration counts: a clone never brings it, and git reads none that another user owns.
    """
    pager = environment.get("GIT_PAGER")
    if pager is None:
        pager = workspace.repository.setting("core.pager")
    if pager is None:
        pager = environment.get("PAGER")
    if pager is None:
        pager = _DEFAULT
    return None if pager.strip() in {"", "cat"} else pager
