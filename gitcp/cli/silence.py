"""Decides which calls of a command print nothing with `-q`: those that change something."""

from collections.abc import Mapping
from typing import Any

# With any arguments except --dry-run.
CHANGING = frozenset(
    {
        *("save", "restore", "rollback", "undo", "fork", "switch", "decide", "run"),
        *("label", "watch", "prune", "gc", "purge", "push", "pull", "import"),
        *("export", "install", "uninstall", "adopt", "import-history"),
    }
)
_STEPS = frozenset({"answer", "repair"})


def changes_something(name: str, given: Mapping[str, Any]) -> bool:
    """Whether a command with these parameters changes something, rather than showing it."""
    if given.get("dry_run"):
        return False
    match name:
        # Depending on their arguments, these list or change something.
        case "trust":
            return given["remote"] is not None
        case "config":
            return given["value"] is not None or given["unset"]
        case "folders":
            return given["use"] is not None or given["remove"] is not None
        case "steps":
            return not _STEPS.isdisjoint(given["words"][:1])
        case _:
            return name in CHANGING
