"""`gitcp verify`: checks everything that is stored, and repairs it."""

import click

from gitcp.cli import documents
from gitcp.cli.emit import Output, safe, safe_line, safe_path
from gitcp.cli.options import command, reader
from gitcp.cli.render import count
from gitcp.errors import CorruptError, UsageError
from gitcp.format import layout
from gitcp.maintenance.doubts import Doubts, doubts
from gitcp.maintenance.problems import Problem
from gitcp.maintenance.repair import repair
from gitcp.maintenance.verify import Report, verify
from gitcp.names import check_typed
from gitcp.project.recovery import logs_set_aside
from gitcp.project.workspace import Workspace

# How long to look for possible mistakes of an older gitcp, in seconds.
_DOUBTS = 20.0
_SHOWN = 20


@command("verify")
@click.argument("branches", nargs=-1, metavar="[SESSION[/BRANCH]]...")
@click.option(
    "--repair",
    "mend",
    is_flag=True,
    help="Replace damaged objects of which the work tree or git has a good copy",
)
@click.option(
    "--lost",
    is_flag=True,
    help="List branches and step ledgers that have lost their refs; with --repair,"
    " restore the refs",
)
def verify_command(
    out: Output, branches: tuple[str, ...], mend: bool, lost: bool
) -> int:
    """Read and check everything that is stored.

    Exits with 15 if something is damaged. It also lists checkpoints that a bug in an older
    gitcp may have made wrong; these do not change the exit status.
    """
    workspace = reader(out)
    if lost:
        if branches:
            raise UsageError(
                "--lost takes no names: it looks for all branches",
                hint="drop the names",
            )
        return _lost(out, workspace, mend=mend)
    only = [_where(text) for text in branches]
    progress = out.progress("checking branches:")
    if mend:
        report = repair(workspace, only, progress=progress)
    else:
        report = verify(workspace.store, only, progress=progress)
    aside = [] if only else logs_set_aside(workspace.repository)
    doubtful = Doubts((), complete=True) if only else doubts(workspace, _DOUBTS)
    if out.json:
        problems = (*report.problems, *doubtful.problems)
        out.document(
            {
                "schema": "gitcp.verify/1",
                "checked": report.checked,
                "ok": report.ok,
                "problems": [_document(problem) for problem in problems],
                "doubts": {
                    "found": len(doubtful.problems),
                    "complete": doubtful.complete,
                },
                "set_aside": [str(path) for path in aside],
                "repaired": [_document(problem) for problem in report.repaired],
                "moved": [branch._asdict() for branch in report.moved],
            }
        )
    else:
        _show(out, report, mend=mend)
        _show_doubts(out, doubtful)
        for path in aside:
            out.warn(
                "a damaged log was set aside and is no longer read:"
                f" {safe_path(str(path))}"
            )
    return 0 if report.ok else CorruptError.exit_status


def _lost(out: Output, workspace: Workspace, *, mend: bool) -> int:
    from gitcp.maintenance.lost_refs import lost, lost_ledgers, put_back

    lines, steps = lost(workspace), lost_ledgers(workspace)
    names = put_back(workspace, [*lines, *steps]) if mend else {}
    if out.json:
        out.document(
            {
                "schema": "gitcp.verify/1",
                "ok": mend or not (lines or steps),
                "lost": [
                    {
                        "session": item.session,
                        "branch": item.branch,
                        "checkpoint": item.tip.id,
                        "commit": item.tip.commit,
                        "seq": item.tip.seq,
                        "taken": item.is_taken,
                        "as": names.get(item.tip.id),
                    }
                    for item in lines
                ],
                "ledgers": [
                    {"session": item.session, "commit": item.commit, "last": item.last}
                    for item in steps
                ],
            }
        )
    else:
        for item in lines:
            name = out.style(safe_line(f"{item.session}/{item.branch}"), fg="cyan")
            line = f"  {name}  {item.tip.seq} {item.tip.id}"
            back = names.get(item.tip.id, item.branch)
            if back != item.branch:
                line += f"  as {safe_line(f'{item.session}/{back}')}"
            elif item.is_taken:
                line += "  (the branch has other checkpoints now)"
            out.print(line)
        for ledger in steps:
            name = out.style(safe_line(ledger.session), fg="cyan")
            out.print(f"  {name} (steps)  {ledger.last} records")
        if not (lines or steps):
            out.print("no branch has lost its ref, or checkpoints")
        elif mend:
            out.note("put back")
        else:
            out.note(
                "nothing refers to them: `gitcp verify --lost --repair` restores"
                " them, `gitcp gc --drop-lost` deletes them"
            )
    return CorruptError.exit_status if (lines or steps) and not mend else 0


def _where(text: str) -> tuple[str, str | None]:
    session, slash, branch = text.partition("/")
    check_typed(session, "session")
    return session, check_typed(branch, "branch") if slash else None


def _document(problem: Problem) -> dict[str, str | None]:
    return {
        "checkpoint": problem.checkpoint,
        **documents.path_fields(problem.path),
        "problem": problem.problem,
        "object": problem.oid.hex() if problem.oid else None,
        "kind": problem.about,
    }


def _line(out: Output, problem: Problem, color: str) -> str:
    where = safe_path(problem.path) or "(the checkpoint itself)"
    ident = out.style(problem.checkpoint or "?", fg=color)
    return f"  {ident}  {where}: {safe_line(problem.problem)}"


def _show_doubts(out: Output, doubtful: Doubts) -> None:
    if not doubtful.problems:
        return
    bad = len({problem.checkpoint for problem in doubtful.problems})
    out.warn(
        f"an older gitcp may have made {count(bad, 'checkpoint')} wrong. The"
        " stored data is sound, but it may differ from what was on disk:"
    )
    for problem in doubtful.problems[:_SHOWN]:
        out.note(_line(out, problem, "yellow"))
    if len(doubtful.problems) > _SHOWN or not doubtful.complete:
        out.note("  and perhaps more; `gitcp verify --json` lists all of them")


def _show(out: Output, report: Report, *, mend: bool) -> None:
    checked = count(report.checked, "checkpoint")
    if report.repaired:
        out.print("repaired:")
        for problem in report.repaired:
            out.print(_line(out, problem, "green"))
        out.note(
            "`git fsck` may still name the damaged file; `git repack -a -d` replaces it"
        )
    for moved in report.moved:
        name = out.style(safe(moved.ref.removeprefix(layout.SESSIONS)), fg="cyan")
        if moved.now is None:
            out.print(f"  {name}: it has no sound checkpoint left; its ref was removed")
        else:
            out.print(
                f"  {name}: moved to its newest sound checkpoint, {moved.now[:12]}"
            )
        out.note(f"  lost: everything after it, up to the commit {moved.was[:12]}")
    if report.ok:
        out.print(f"{checked} checked, {out.style('all sound', fg='green')}")
        return
    for problem in report.problems:
        out.print(_line(out, problem, "red"))
    bad = len({problem.checkpoint for problem in report.problems})
    out.print(
        f"{checked} checked, {out.style(f'{bad} damaged', fg='red', bold=True)};"
        " the others are sound"
    )
    if mend:
        out.note("the rest cannot be repaired: there is no good copy of it here")
    else:
        out.note("`gitcp verify --repair` replaces what has a good copy")
