"""gitcp export and gitcp import."""

from pathlib import Path

import click

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command
from gitcp.cli.render import size
from gitcp.ops.select import select
from gitcp.ops.transfer import export, take_in
from gitcp.ops.workspace import open_workspace


@command("export")
@click.argument("selector", metavar="SEL")
@click.option("-o", "--output", "file", required=True, metavar="FILE", help="Where to")
@click.option("--force", is_flag=True, help="Replace FILE if it is there")
def export_command(out: Output, selector: str, file: str, force: bool) -> None:
    """Write the session of a checkpoint, with all its branches, to one file.

    The file is a git bundle that stands by itself. It holds files, conversations and
    the project's history below them, as they are: look before you give it away.
    """
    workspace = open_workspace(out.directory)
    chosen = select(workspace, selector)
    done = export(workspace, chosen, Path(out.directory, file), force=force)
    if out.json:
        out.document(
            {
                "schema": "gitcp.export/1",
                "session": chosen.session,
                "branches": list(done.branches),
                "file": str(done.path),
                "bytes": done.size,
            }
        )
        return
    names = safe(", ".join(done.branches))
    out.print(
        f"wrote {safe(chosen.session)} ({names}) to {safe(file)}: {size(done.size)}"
    )
    out.note(f"`gitcp import {file}` takes it in elsewhere")


@command("import")
@click.argument("file", metavar="FILE")
def import_command(out: Output, file: str) -> None:
    """Take in a session that `gitcp export` wrote.

    Everything is checked before anything is taken. Files do not change: `gitcp
    restore` brings them. Where a branch grew on both sides, theirs becomes a fork.
    """
    workspace = open_workspace(out.directory)
    adopted = take_in(workspace, Path(out.directory, file))
    if out.json:
        out.document(
            {
                "schema": "gitcp.import/1",
                "branches": [
                    {
                        "session": one.session,
                        "branch": one.branch,
                        "result": one.result,
                        "as": one.name,
                        "commit": one.commit,
                    }
                    for one in adopted
                ],
            }
        )
        return
    for one in adopted:
        place = out.style(safe(f"{one.session}/{one.name}"), fg="cyan")
        out.print(f"  {one.result:<12} {place}")
        if one.result == "forked":
            out.note(f"  {one.branch} grew here and there: both are kept")
