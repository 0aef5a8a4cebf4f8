"""Tells a person that gitcp takes more disk space than `gitcp.maxSize`."""

from gitcp.cli.emit import Output
from gitcp.cli.render import size
from gitcp.maintenance import upkeep
from gitcp.project.workspace import Workspace


def tell_if_large(out: Output, workspace: Workspace) -> None:
    """Prints a warning and a remedy if gitcp takes more than `gitcp.maxSize`."""
    found = upkeep.size(workspace)
    if not found.over:
        return
    out.warn(
        f"gitcp takes {size(found.used)} here, more than gitcp.maxSize"
        f" ({size(found.limit)}):",
        upkeep.told(found),
        "`gitcp du` shows what holds it, `gitcp prune` removes old checkpoints",
    )
