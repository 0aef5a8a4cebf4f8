"""`gitcp files` and `cat`: lists and prints the files of a checkpoint."""

import os
from pathlib import Path

import click

from gitcp.checkpoints.selectors import select
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe_path
from gitcp.cli.options import command, path_inside, reader
from gitcp.errors import NotFoundError
from gitcp.format.tree import DIRECTORY, GITLINK
from gitcp.project.workspace import Workspace
from gitcp.worktree.plan import selection


@command("files")
@click.argument("selector", metavar="[SEL]", required=False)
@click.argument("paths", metavar="[PATH]...", nargs=-1)
def files_command(out: Output, selector: str | None, paths: tuple[str, ...]) -> None:
    """List the files of a checkpoint."""
    workspace = reader(out)
    checkpoint = select(workspace, selector)
    top = _top(out, workspace)
    chosen = selection([path_inside(out, top, path) for path in paths])
    listed = [(path, entry) for path, entry in checkpoint.files() if chosen(path)]
    if out.json:
        out.document(
            {
                "schema": "gitcp.files/1",
                "checkpoint": checkpoint.id,
                "files": [
                    {
                        **documents.path_fields(path),
                        "mode": f"{entry.mode:06o}",
                        "oid": entry.oid.hex(),
                    }
                    for path, entry in listed
                ],
            }
        )
        return
    for path, _ in listed:
        out.print(safe_path(path), whole=True)


@command("cat")
@click.argument("selector", metavar="SEL")
@click.argument("path")
def cat_command(out: Output, selector: str, path: str) -> None:
    """Print the bytes of a file in a checkpoint."""
    workspace = reader(out)
    checkpoint = select(workspace, selector)
    inside = path_inside(out, _top(out, workspace), path)
    entry = checkpoint.entry(inside) or checkpoint.entry(os.fsencode(path))
    if entry is None or entry.mode in {DIRECTORY, GITLINK}:
        raise NotFoundError(
            f"there is no file {path!a} in checkpoint {checkpoint.id}",
            hint=f"`gitcp files {checkpoint.number or checkpoint.id}` lists them",
        )
    for chunk in checkpoint.objects.content(entry.oid):
        out.raw(chunk)


def _top(out: Output, workspace: Workspace) -> Path:
    """Returns the directory that paths are relative to; for a bare repository, its own."""
    return Path(out.directory) if workspace.bare else workspace.top
