"""`gitcp adopt`: after `git init`, moves the checkpoints of a folder into its repository."""

import os
from pathlib import Path

import click

from gitcp.cli.emit import Output, safe, safe_path
from gitcp.cli.options import command, writer, yes_option
from gitcp.cli.private_folder import confirm
from gitcp.cli.render import count
from gitcp.errors import NothingToDoError
from gitcp.project import folders
from gitcp.project.workspace import Workspace
from gitcp.sync import from_folder
from gitcp.sync.outcome import FORKED, Outcome

# So many numbers are listed; --json has them all.
_SHOWN = 20


@command("adopt")
@click.argument("store", metavar="[STORE]", required=False)
@yes_option
def adopt_command(out: Output, store: str | None, yes: bool) -> None:
    """Move the checkpoints of a folder without git into its new repository.

    Use this if the folder had a private store before `git init`. gitcp moves sessions,
    numbers, keys and settings into the repository, and removes the store. Checkpoints
    keep their numbers, unless the repository already uses some of them: then gitcp lists
    the new numbers, and `gitcp log` shows the moved checkpoints below those saved since.
    STORE is the private store of another folder, as `gitcp folders` lists it.
    """
    workspace = writer(out)
    chosen = _chosen(out, workspace, store, yes=yes)
    done = from_folder.move_in(workspace, folders.stored(chosen))
    if out.json:
        out.document(
            {
                "schema": "gitcp.adopt/1",
                "store": chosen,
                "branches": [_branch(one) for one in done.branches],
                "numbers": [{"was": was, "now": now} for was, now in done.numbers],
            }
        )
        return
    branches = count(len(done.branches), "branch", "branches")
    out.print(f"Moved {branches} into {safe_path(str(workspace.top))}")
    for one in done.branches:
        if one.result == FORKED:
            out.print(
                f"  {safe(one.shown)} is now {safe(one.name)}, because the name"
                " was taken"
            )
    for was, now in done.numbers[:_SHOWN]:
        out.print(f"  #{was} is now #{now}")
    if len(done.numbers) > _SHOWN:
        out.print(f"  … and {count(len(done.numbers) - _SHOWN, 'more number')}")


def _chosen(out: Output, workspace: Workspace, store: str | None, *, yes: bool) -> str:
    """Returns the name of the store to move, once the user has agreed to it."""
    top = Path(os.path.realpath(workspace.top))
    found = folders.of_folder(top) if store is None else folders.named(store)
    if found is None:
        raise NothingToDoError(
            f"{top} has no private store",
            hint="name one that `gitcp folders` lists",
        )
    place = safe_path(str(found.folder)) if found.folder else "an unknown folder"
    if found.folder != top or not found.there:
        confirm(
            out,
            f"The private store {found.store} belongs to {place}. Move its"
            f" checkpoints into {safe_path(str(top))}?",
            yes=yes,
        )
    return found.store


def _branch(one: Outcome) -> dict[str, str | None]:
    return {
        "session": one.session,
        "branch": one.branch,
        "result": one.result,
        "as": one.name,
        "commit": one.commit,
    }
