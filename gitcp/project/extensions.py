"""Lets features extend operations of packages below them: by name, loaded on use.

The operation has a protocol; the module named here fulfils it. So the operation knows no
feature, and a command that does without the operation does not load one.
"""

from importlib import import_module
from typing import Any

# `gitcp.project.workspace.AfterSave`, in order.
AFTER_SAVE = ("gitcp.maintenance.after_save", "gitcp.spool.after_save")
# `gitcp.checkpoints.restore_observer.RestoreObserver`.
RESTORE_OBSERVER = "gitcp.steps.restores"


def load(name: str) -> Any:
    """Returns the module of a feature."""
    return import_module(name)
