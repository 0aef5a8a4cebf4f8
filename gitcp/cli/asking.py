"""Asks whether to restore the withheld changes of a checkpoint that was made elsewhere."""

from collections.abc import Iterator

import click

from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.cli.emit import folded, safe, safe_path
from gitcp.cli.render import count
from gitcp.project.workspace import Workspace
from gitcp.trust.withheld import ASKED
from gitcp.trust.withheld_text import change_of

# The number of lines that a user can read at a prompt; `gitcp diff` shows more.
_LINES = 60
_PATHS = 20


def ask_about_withheld(workspace: Workspace, plan: RestorePlan) -> RestoreRequest:
    """Shows the content of dot paths and new programs, and asks whether to restore them, too.

    Returns a request that restores them if the answer is yes, else the request unchanged.
    """
    asked = [left.path for left in plan.steps.left if left.reason in ASKED]
    if not asked:
        return plan.request
    target = plan.target
    with workspace.root() as root:
        for path in asked[:_PATHS]:
            change = change_of(root, target.objects, path, target.entry(path))
            click.echo("", err=True)
            for line in _shown(*change):
                click.echo(safe(line), err=True)
    more = f" ({len(asked) - _PATHS} are not shown)" if len(asked) > _PATHS else ""
    question = (
        f"Bring {'this path' if len(asked) == 1 else f'these {len(asked)} paths'},"
        f" too? Tools may obey or run what {'it holds' if len(asked) == 1 else 'they hold'}"
        f".{more}"
    )
    if not click.confirm(folded(question, 10), default=False, err=True):
        return plan.request
    return plan.request._replace(brought=frozenset(asked))


def _shown(headline: str, diff: Iterator[str] | None) -> Iterator[str]:
    """Yields the changes that a restore would make at a path."""
    yield safe_path(headline)
    if diff is None:
        yield "  too large to show, or not text; `gitcp cat` prints it"
        return
    lines = list(diff)
    yield from lines[:_LINES]
    if len(lines) > _LINES:
        yield f"  … and {count(len(lines) - _LINES, 'more line')}"
