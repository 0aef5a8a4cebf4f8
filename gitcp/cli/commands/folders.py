"""`gitcp folders`: folders without git that have a private store."""

import os

import click

from gitcp.cli.emit import Output, safe_path
from gitcp.cli.options import command, yes_option
from gitcp.cli.private_folder import confirm
from gitcp.cli.render import count
from gitcp.errors import UsageError
from gitcp.project import folders
from gitcp.project.folders import PrivateFolder


@command("folders")
@click.option("--use", metavar="STORE", help="Use this store for the current folder")
@click.option(
    "--remove", metavar="STORE", help="Remove this store with all its checkpoints"
)
@yes_option
def folders_command(
    out: Output, use: str | None, remove: str | None, yes: bool
) -> None:
    """List folders without git that have checkpoints.

    `gitcp save --init` in such a folder creates a private store for it. If you moved the
    folder, restored it from a backup or created it again, --use connects it to its
    checkpoints. If the folder is gone, its store stays until you --remove it.
    """
    if use is not None and remove is not None:
        raise UsageError(
            "--use and --remove are mutually exclusive", hint="use one of them"
        )
    if use is not None:
        _use(out, folders.named(use), yes=yes)
    elif remove is not None:
        _remove(out, folders.named(remove), yes=yes)
    else:
        _list(out)


def _use(out: Output, store: PrivateFolder, *, yes: bool) -> None:
    here = os.path.realpath(out.directory)
    if store.there and str(store.folder) != here:
        confirm(
            out,
            f"{_place(store)} still exists and would lose its checkpoints. Use its"
            " store for this folder?",
            yes=yes,
        )
    taken = folders.use(store.store, here)
    if out.json:
        out.document(_document("use", [taken]))
        return
    out.print(f"{_place(taken)} has {_branches(taken)} of {store.store}")


def _remove(out: Output, store: PrivateFolder, *, yes: bool) -> None:
    confirm(
        out,
        f"Remove the private store of {_place(store)} with {_branches(store)}, for good?",
        yes=yes,
    )
    folders.remove(store.store)
    if out.json:
        out.document(_document("remove", [store]))
        return
    out.print(f"Removed {store.store}, of {_place(store)}")


def _list(out: Output) -> None:
    rows = list(folders.listed())
    if out.json:
        out.document(_document(None, rows))
        return
    for row in rows:
        about = "" if row.there else "  (not there)"
        if row.has_repository:
            about = "  (has a git repository now: `gitcp adopt` there)"
        out.print(f"{row.store}  {_branches(row):<11} {_place(row)}{about}")
    if not rows:
        out.note("there are no folders without git that have checkpoints")


def _place(row: PrivateFolder) -> str:
    return safe_path(os.fspath(row.folder)) if row.folder else "an unknown folder"


def _branches(row: PrivateFolder) -> str:
    if row.branches is None:
        return "unreadable checkpoints"
    return count(row.branches, "branch", "branches")


def _document(done: str | None, rows: list[PrivateFolder]) -> dict[str, object]:
    return {
        "schema": "gitcp.folders/1",
        "done": done,
        "folders": [
            {
                "store": row.store,
                "folder": None if row.folder is None else _place(row),
                "there": row.there,
                "branches": row.branches,
                "git_dir": safe_path(os.fspath(row.git_dir)),
            }
            for row in rows
        ],
    }
