"""`gitcp export` and `import`: moves a session in a file."""

from pathlib import Path
from typing import Any

import click

from gitcp.checkpoints.selectors import select
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe_line, safe_path
from gitcp.cli.options import command, reader
from gitcp.cli.render import count, size, withheld_lines
from gitcp.errors import PartialError
from gitcp.names import quoted
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.sync.bundles import export, take_in
from gitcp.sync.outcome import UP_TO_DATE, Outcome
from gitcp.sync.preview import Foretold, of_tips


@command("export")
@click.argument("selector", metavar="SEL")
@click.option("-o", "--output", "file", required=True, metavar="FILE", help="Where to")
@click.option("--force", is_flag=True, help="Replace FILE if it exists")
@click.option(
    "--allow",
    multiple=True,
    metavar="FINGERPRINT",
    help="Let this secret pass this once (repeatable)",
)
def export_command(
    out: Output, selector: str, file: str, force: bool, allow: tuple[str, ...]
) -> None:
    """Write the session of a checkpoint to one file.

    The file is a self-contained git bundle. It holds all branches of the session, with
    their files and conversations, and the project's history below them.

    As push does, gitcp first scans what no remote has yet for secrets. If it finds one, it
    writes nothing and shows where each secret is and its fingerprint.
    """
    from gitcp.cli import findings
    from gitcp.secrets.policy import Gate

    gate = Gate(allow, progress=findings.progress(out))
    workspace = reader(out)
    chosen = select(workspace, selector)
    done = export(workspace, chosen, Path(out.directory, file), force=force, gate=gate)
    if out.json:
        out.document(
            {
                "schema": "gitcp.export/1",
                "session": chosen.session,
                "branches": list(done.branches),
                "file": str(done.path),
                "bytes": done.size,
                "secrets": findings.documents([*gate.findings, *gate.allowed]),
            }
        )
        return
    if gate.findings:
        out.warn("it holds secrets (allowed, because gitcp.secrets is `warn`):")
        findings.show(out, gate.findings)
    names = safe_line(", ".join(done.branches))
    out.print(
        f"wrote {safe_line(chosen.session)} ({names}) to {safe_path(file)}: {size(done.size)}"
    )
    out.note(f"`gitcp import {quoted(file)}` imports it elsewhere")


@command("import")
@click.argument("file", metavar="FILE")
def import_command(out: Output, file: str) -> None:
    """Import a file that `export` wrote, or a `.session` directory.

    gitcp checks everything before it accepts anything. Your files do not change; `gitcp
    restore` changes them. If a branch has diverged, theirs becomes a fork. A session from
    a repository with the other hash (SHA-1 or SHA-256) is converted.

    A `.session` directory holds checkpoints that other tools wrote as markdown. gitcp
    imports the decision log and the files themselves into the session `old-session`.
    """
    workspace = open_workspace(out.directory)
    path = Path(out.directory, file)
    if path.is_dir():
        _import_directory(out, workspace, path)
        return
    adopted, form = take_in(workspace, path)
    news = [one for one in adopted if one.branch and one.result != UP_TO_DATE]
    foretold = of_tips(workspace, [one.commit for one in news if one.commit])
    if out.json:
        out.document(
            {
                "schema": "gitcp.import/1",
                "branches": [_branch(one, foretold) for one in adopted if one.branch],
                "ledgers": [
                    {"session": one.session, "result": one.result, "commit": one.commit}
                    for one in adopted
                    if not one.branch
                ],
                "converted_from": form.name if form else None,
            }
        )
        return
    if form is not None:
        out.note(f"converted from {form.title}: new commits, the same checkpoints")
    for one in adopted:
        place = f"{one.session}/{one.name}" if one.branch else one.session
        what = "" if one.branch else " (steps)"
        out.print(f"  {one.result:<12} {out.style(safe_line(place), fg='cyan')}{what}")
        for line in withheld_lines(foretold.get(one.commit or "", Foretold())):
            out.print(f"{'':<12}   {line}")
        if one.result == "forked":
            out.note(f"  {one.branch} diverged: both sides are kept")


def _branch(one: Outcome, foretold: dict[str, Foretold]) -> dict[str, Any]:
    return {
        "session": one.session,
        "branch": one.branch,
        "result": one.result,
        "as": one.name,
        "commit": one.commit,
        "withheld": documents.withheld(foretold.get(one.commit or "")),
    }


def _import_directory(out: Output, workspace: Workspace, path: Path) -> None:
    from gitcp.agents.import_markdown import SESSION, import_session

    done = import_session(workspace, path)
    if out.json:
        tip = done.tip
        result = "created" if tip and tip.seq == done.checkpoints else "fast-forward"
        branch = {
            "session": SESSION,
            "branch": "main",
            "result": result if done.checkpoints else "up-to-date",
            "as": "main",
            "commit": tip.commit if tip else None,
        }
        out.document(
            {
                "schema": "gitcp.import/1",
                "branches": [branch],
                "checkpoints": done.checkpoints,
                "entries": done.entries,
                "left": list(done.left),
            }
        )
    else:
        made = count(done.checkpoints, "checkpoint")
        entries = count(done.entries, "log line")
        out.print(f"imported {made} with {entries} into {SESSION}")
        if done.known:
            out.note(f"  {count(done.known, 'file')} were already here")
        out.note(f"`gitcp decisions {SESSION}:last` shows them")
    if done.left:
        raise PartialError(
            f"{count(len(done.left), 'file')} could not be imported as checkpoints",
            left=done.left,
            hint="the files themselves are stored if they can be read",
        )
