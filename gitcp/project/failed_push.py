"""Remembers that a push of sessions during a `git push` failed, until one succeeds."""

import datetime
import os
import re
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.git.repository import Repository

_NAME = "push-failed.json"
# A password in a URL, or a token in place of a user.
_SECRET = re.compile(r"(https?://)[^/@\s]*@|(://[^/@:\s]*:)[^/@\s]*@")


class FailedPush(msgspec.Struct, frozen=True):
    """The last failed push: when, as ISO 8601 in UTC, to which remote, and why.

    `hint` is the command's hint. `told` says that the user has seen the failure.
    """

    at: str
    remote: str
    reason: str
    hint: str = ""
    told: bool = False


def note(repository: Repository, remote: str, output: str) -> None:
    """Notes a failure, from the command's output. The same failure is reported once only."""
    remote = _shown(remote)
    reason, hint = _error(output)
    before = read(repository)
    told = (
        before is not None
        and before.told
        and (before.remote, before.reason) == (remote, reason)
    )
    now = datetime.datetime.fromtimestamp(time.time(), datetime.UTC).isoformat()
    _write(repository, FailedPush(now, remote, reason, hint, told))


def read(repository: Repository) -> FailedPush | None:
    """Returns the last failed push, or None if a push has succeeded since."""
    with suppress(OSError, msgspec.MsgspecError):
        raw = (Path(repository.store_dir) / _NAME).read_bytes()
        return msgspec.json.decode(raw, type=FailedPush)
    return None


def untold(repository: Repository) -> FailedPush | None:
    """Returns a failure that the user has not seen yet, and marks it as seen."""
    failed = read(repository)
    if failed is None or failed.told:
        return None
    # If the repository cannot be written, the failure is reported each time.
    with suppress(OSError):
        _write(repository, msgspec.structs.replace(failed, told=True))
    return failed


def forget(repository: Repository, remote: str) -> None:
    """Notes that a push to a remote succeeded."""
    failed = read(repository)
    if failed is not None and failed.remote == _shown(remote):
        with suppress(OSError):
            os.unlink(Path(repository.store_dir) / _NAME)


def _shown(remote: str) -> str:
    """Returns a remote's name or URL without secrets."""
    return _SECRET.sub(r"\1\2…@", remote)


def _write(repository: Repository, failed: FailedPush) -> None:
    repository.make_directory(repository.store_dir)
    path = Path(repository.store_dir) / _NAME
    durable.replace(path, msgspec.json.encode(failed))


def _error(output: str) -> tuple[str, str]:
    """Returns the error and the hint among the lines that a command printed."""
    lines = output.splitlines()
    for at, line in enumerate(lines):
        text = line.removeprefix("gitcp: ")
        if text != line and not text.startswith("warning: "):
            after = lines[at + 1] if at + 1 < len(lines) else ""
            return text, after.strip() if after.startswith("  ") else ""
    return (lines[-1].strip() if lines else "no reason was given"), ""
