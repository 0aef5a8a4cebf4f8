"""`gitcp label`: names a checkpoint that was made without a label."""

import click

from gitcp.checkpoints import label as ops
from gitcp.checkpoints.selectors import select
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe_line
from gitcp.cli.options import command
from gitcp.cli.render import name_of
from gitcp.errors import UsageError
from gitcp.project.workspace import open_workspace


@command("label")
@click.argument("sel")
@click.argument("name", required=False)
@click.option("--remove", is_flag=True, help="Remove the label")
def label_command(out: Output, sel: str, name: str | None, remove: bool) -> None:
    """Name a checkpoint, to select it by name and keep it from being pruned.

    A checkpoint has one label. Within a session a label names one checkpoint; if you give
    it to another checkpoint, it moves there. The checkpoint's number, id and commit stay
    the same, so a pushed branch does not change. Labels of this command stay in this
    repository; labels of `save --label` are part of the checkpoint and are pushed with it.
    """
    if (name is None) != remove:
        raise UsageError(
            "label requires a checkpoint and a NAME",
            hint="`gitcp label 3 NAME` sets it, `gitcp label 3 --remove` removes it",
        )
    workspace = open_workspace(out.directory, bare=out.directory != ".")
    checkpoint = select(workspace, sel)
    if name is None:
        done = ops.take(workspace, checkpoint)
    else:
        done = ops.give(workspace, checkpoint, name)
    if out.json:
        out.document(
            {
                "schema": "gitcp.label/1",
                "checkpoint": documents.checkpoint(checkpoint),
                "label": name,
                "removed": done.label if name is None else None,
                "moved_from": [documents.checkpoint(one) for one in done.moved_from],
            }
        )
        return
    shown = safe_line(done.label)
    if name is None:
        out.print(f"{name_of(out, checkpoint)} is no longer labelled {shown}")
        return
    moved = ", ".join(name_of(out, one) for one in done.moved_from)
    out.print(
        f"{name_of(out, checkpoint)} is labelled {shown}"
        f"{f', which was {moved} before' if moved else ''}"
    )
