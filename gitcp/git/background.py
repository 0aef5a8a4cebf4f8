"""Starts gitcp in a process of its own, which outlives this one and its terminal."""

import os
import sys
from contextlib import suppress

from gitcp.git import process

# A shell starts it and ends, so it is not a child that has to be waited for.
_SCRIPT = 'exec nice -n 19 "$@" >/dev/null 2>&1 </dev/null &'


def start_gitcp(*arguments: str) -> None:
    """Starts a command of this gitcp with the lowest priority; failing is no error.

    It inherits no variable of git's that would lead it elsewhere.
    """
    # A program that has Python inside of it does not know how to start one.
    if not sys.executable:
        return
    words = [sys.executable, "-P", "-m", "gitcp", *arguments]
    with suppress(OSError):
        process.detach(["sh", "-c", _SCRIPT, "sh", *words], cwd=os.sep)
