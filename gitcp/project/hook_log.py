"""`hooks.log`: the log of the hooks, with their failures."""

import datetime
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.errors import GitcpError
from gitcp.git.discover import discover
from gitcp.git.repository import Repository

_ENTRY = r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (\S+) "
NAME = "hooks.log"
_LIMIT = 1024 * 1024


def write(
    directory: str | os.PathLike[str],
    what: str,
    started: float,
    text: str,
) -> None:
    """Adds an entry to the log of the repository around `directory`.

    Without a repository, or if the log cannot be written, the entry is dropped: a hook
    must not print.
    """
    with suppress(GitcpError, OSError):
        repository = discover(directory)
        repository.make_directory(repository.store_dir)
        path = Path(repository.store_dir) / NAME
        with suppress(FileNotFoundError):
            if path.stat().st_size > _LIMIT:
                path.replace(path.with_suffix(".log.1"))
        took = time.monotonic() - started
        now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC)
        lines = text.rstrip("\n").replace("\n", "\n    ")
        entry = f"{now:%Y-%m-%dT%H:%M:%SZ} {what} {took:.3f}s {lines}\n"
        durable.append(path, entry.encode("utf-8", "backslashreplace"))


def last_events(repository: Repository) -> dict[str, float]:
    """Returns when each client or git hook last had an entry, in seconds since 1970."""
    last: dict[str, float] = {}
    with suppress(OSError):
        text = (Path(repository.store_dir) / NAME).read_text("utf-8", "replace")
        for line in text.splitlines():
            found = re.match(_ENTRY, line)
            if found is not None:
                moment = datetime.datetime.fromisoformat(found[1])
                last[found[2]] = moment.timestamp()
    return last
