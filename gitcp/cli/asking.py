"""Asks whether to restore what a checkpoint made elsewhere would bring."""

import difflib
import os
from collections.abc import Iterator

import click

from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.cli.emit import safe
from gitcp.cli.render import count
from gitcp.errors import GitcpError
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import EXECUTABLE, LINK
from gitcp.project.workspace import Workspace
from gitcp.trust.withheld import ASKED
from gitcp.worktree.files import Root

# What a reader can take in; more is looked at with `gitcp diff`.
_LARGEST = 64 * 1024
_LINES = 60
_PATHS = 20


def ask_about_withheld(workspace: Workspace, plan: RestorePlan) -> RestoreRequest:
    """Shows what dot paths and new programs hold and asks whether they may come, too.

    Returns the request that brings them if the answer is yes, else the request as it is.
    """
    asked = [left.path for left in plan.steps.left if left.reason in ASKED]
    if not asked:
        return plan.request
    with workspace.root() as root:
        for path in asked[:_PATHS]:
            click.echo("", err=True)
            for line in _shown(root, plan, path):
                click.echo(safe(line), err=True)
    more = f" ({len(asked) - _PATHS} are not shown)" if len(asked) > _PATHS else ""
    question = (
        f"Bring {'this path' if len(asked) == 1 else f'these {len(asked)} paths'},"
        f" too? Tools may obey or run what {'it holds' if len(asked) == 1 else 'they hold'}"
        f".{more}"
    )
    if not click.confirm(question, default=False, err=True):
        return plan.request
    return plan.request._replace(brought=frozenset(asked))


def _shown(root: Root, plan: RestorePlan, path: bytes) -> Iterator[str]:
    """Yields what would change at a path."""
    entry = plan.target.entry(path)
    name = show_path(path)
    if entry is None:
        yield f"--- {name}: would be deleted"
        return
    kind = {LINK: "a link", EXECUTABLE: "executable"}.get(entry.mode, "a file")
    yield f"+++ {name} ({kind})"
    before, after = _present(root, path), _stored(plan, entry.oid)
    if before is None or after is None:
        yield "  too large to show, or not text; `gitcp cat` prints it"
        return
    lines = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"  … and {count(len(lines) - _LINES, 'more line')}"


def _stored(plan: RestorePlan, oid: bytes) -> list[str] | None:
    try:
        _, size = plan.target.objects.header(oid)
        return None if size > _LARGEST else _text(plan.target.objects.blob(oid))
    except GitcpError:
        return None


def _present(root: Root, path: bytes) -> list[str] | None:
    """Returns the lines that are there now; none where there is no such file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        parent, name = root.parent(path)
        with os.fdopen(os.open(name, flags, dir_fd=parent), "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return []
    return None if len(data) > _LARGEST else _text(data)


def _text(data: bytes) -> list[str] | None:
    if b"\0" in data:
        return None
    return data.decode("utf-8", "backslashreplace").splitlines()
