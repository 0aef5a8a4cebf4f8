"""Starts gitcp in a process of its own, which outlives this one and its terminal."""

import os
import sys
from contextlib import suppress

from gitcp.git import process

# A shell starts it and ends, so that this process need not wait for it.
_SCRIPT = 'exec nice -n 19 "$@" >/dev/null 2>&1 </dev/null &'


def start_gitcp(*arguments: str) -> None:
    """Starts a command of this gitcp with the lowest priority; ignores a failure to start it.

    It inherits no variable of git's that would lead it elsewhere.
    """
    # A program that embeds Python does not know how to start an interpreter.
    if not sys.executable:
        return
    words = [sys.executable, "-P", "-m", "gitcp", *arguments]
    with suppress(OSError):
        process.detach(["sh", "-c", _SCRIPT, "sh", *words], cwd=os.sep)
