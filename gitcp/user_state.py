"""The directory of gitcp's own files that belong to a user, not to a project."""

import os
from collections.abc import Mapping
from pathlib import Path

NAME = "gitcp"


def state_directory(
    environment: Mapping[str, str] = os.environ, home: Path | None = None
) -> Path:
    """Returns the directory, which need not exist: below $XDG_STATE_HOME, or below HOME.

    A relative $XDG_STATE_HOME is ignored, as the XDG specification demands.
    """
    own = environment.get("XDG_STATE_HOME")
    if own and os.path.isabs(own):
        return Path(own, NAME)
    home = home or Path(environment.get("HOME") or os.path.expanduser("~"))
    return home / ".local" / "state" / NAME
