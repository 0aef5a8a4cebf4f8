"""Starts a pager the way git does."""

import os
import re
import subprocess
from typing import IO

from gitcp import at_fork

# Git's options for `less` and `lv`, if the user sets none.
_DEFAULTS = {"LESS": "FRX", "LV": "-c"}
# A pager with one of these characters is a line for a shell.
_SHELL = r"[|&;<>()$`\\\"' \t\n*?\[#~=%]"
# A shell's status if there is no such command, or it cannot be run.
_MISSING = frozenset({126, 127})


def show(pager: str, content: IO[bytes]) -> bool:
    """Shows a file from its current position, until the user leaves the pager.

    Returns False if the pager could not be started: nothing was shown.
    """
    command = ["sh", "-c", pager] if re.search(_SHELL, pager) else [pager]
    try:
        with at_fork.opening():
            process = subprocess.Popen(
                command, stdin=content, env={**_DEFAULTS, **os.environ}
            )
            at_fork.started(process)
    except (OSError, ValueError):
        return False
    while True:
        try:
            return process.wait() not in _MISSING
        except KeyboardInterrupt:
            # The interrupt went to the pager as well, which stops its work but stays.
            continue
