"""Tells a person that sessions were not pushed beside a `git push`."""

import sys

from gitcp.cli.emit import Output, safe, safe_line
from gitcp.cli.layout import age
from gitcp.names import quoted
from gitcp.project import failed_push
from gitcp.project.failed_push import FailedPush
from gitcp.project.workspace import Workspace


def tell_failed_push(out: Output, workspace: Workspace) -> None:
    """Warns of a push that failed, until one succeeds."""
    failed = failed_push.read(workspace.repository)
    if failed is not None:
        _warn(out, failed)


def tell_failed_push_once(out: Output, workspace: Workspace) -> None:
    """Warns of a push that failed, unless a user has already seen that."""
    if out.json or not sys.stderr.isatty():
        return
    failed = failed_push.untold(workspace.repository)
    if failed is not None:
        _warn(out, failed)


def _warn(out: Output, failed: FailedPush) -> None:
    hint = failed.hint or f"`gitcp push {quoted(failed.remote)}` tries again"
    out.warn(
        f"sessions were not pushed to {safe(failed.remote)} ({age(failed.at)}):"
        f" {safe_line(failed.reason)}",
        safe(hint),
    )
