"""`gitcp purge`: removes a secret or files from all checkpoints."""

import re
from typing import TYPE_CHECKING, Any

import click

from gitcp.cli.documents import path_fields
from gitcp.cli.emit import Output, safe, safe_path
from gitcp.cli.options import command, path_inside, yes_option
from gitcp.cli.render import count, name_of, prompt_plan
from gitcp.errors import UsageError
from gitcp.names import quoted

if TYPE_CHECKING:
    from gitcp.purge.purge import Purged

_FINGERPRINT = re.compile(r"[0-9a-f]{12}")
_SHOWN = 40


@command("purge")
@click.argument("what", metavar="[FINGERPRINT|PATH]...", nargs=-1)
@click.option(
    "--value-from-stdin",
    "stdin",
    is_flag=True,
    help="Purge the text on stdin, without the final newline",
)
@click.option("--dry-run", is_flag=True, help="Show what would change")
@yes_option
def purge_command(
    out: Output, what: tuple[str, ...], stdin: bool, dry_run: bool, yes: bool
) -> None:
    """Remove a secret, or files, from all checkpoints.

    Name a secret by its fingerprint, which `gitcp scan` or a refused push shows. gitcp
    replaces it by a marker. Checkpoints keep their ids and numbers, but get new commits.
    You cannot undo this. Your own files stay as they are. Pushed copies stay on the remote
    until `gitcp push --pruned`, so revoke a secret that has been pushed.
    """
    import sys

    from gitcp.project.workspace import open_workspace
    from gitcp.purge import purge as ops

    workspace = open_workspace(out.directory)
    names = tuple(word for word in what if _FINGERPRINT.fullmatch(word))
    paths = tuple(
        path_inside(out, workspace.top, word)
        for word in what
        if not _FINGERPRINT.fullmatch(word)
    )
    if b"" in paths:
        raise UsageError("the whole project cannot be purged", hint="`gitcp prune`")
    values = (sys.stdin.buffer.read(),) if stdin else ()
    if not (names or paths or values):
        raise UsageError(
            "there is nothing to purge",
            hint="give a FINGERPRINT, a PATH or --value-from-stdin",
        )
    wanted = ops.Wanted(names, values, paths)
    if not dry_run:
        if not yes and not out.json:
            planned = ops.purge(workspace, wanted, dry_run=True)
            prompt_plan(out, _lines(out, planned), _SHOWN)
        out.confirm("Rewrite these checkpoints? This cannot be undone.", yes=yes)
    done = ops.purge(workspace, wanted, dry_run=dry_run)
    if out.json:
        out.document(_document(done, dry_run=dry_run))
    else:
        _print(out, done, dry_run=dry_run)


def _document(done: "Purged", *, dry_run: bool) -> dict[str, Any]:
    return {
        "schema": "gitcp.purge/1",
        "dry_run": dry_run,
        "checkpoints": [
            {
                "id": rewritten.id,
                "session": rewritten.session,
                "branch": rewritten.branch,
                "seq": rewritten.seq,
                "was": rewritten.commit,
            }
            for rewritten in done.checkpoints
        ],
        "paths": [path_fields(path) for path in done.paths],
        "fingerprints": list(done.fingerprints),
        "remotes": list(done.remotes),
        "ledgers": list(done.ledgers),
        "left": list(done.left),
    }


def _print(out: Output, done: "Purged", *, dry_run: bool) -> None:
    verb = "would be changed" if dry_run else "changed"
    out.print(f"{count(len(done.checkpoints), 'checkpoint')} {verb}:")
    for line in _lines(out, done)[:_SHOWN]:
        out.print(line)
    for remote in done.remotes:
        out.warn(
            f"{remote} still has it: `gitcp push {quoted(remote)} --pruned` replaces it there;"
            " existing clones keep it"
        )
    for place in done.left:
        out.warn(f"it is still in {place}")


def _lines(out: Output, done: "Purged") -> list[str]:
    if not (done.checkpoints or done.ledgers):
        return ["  none: this finishes an interrupted purge"]
    return [
        # No notes: a note may hold the purged value.
        *(f"  {name_of(out, one)}" for one in done.checkpoints),
        *(f"  in {safe_path(path)}" for path in done.paths),
        *(f"  in the step ledger of {safe(name)}" for name in done.ledgers),
    ]
