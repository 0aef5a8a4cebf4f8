"""Lets features extend operations of lower packages: by name, loaded on use.

The operation defines a protocol, and the module named here implements it. So the
operation does not depend on features, and a command without the operation loads none.
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
