"""`gitcp push`, `pull` and `remote-sessions`: shares sessions through a remote."""

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from gitcp.cli.emit import Output, safe_line
from gitcp.cli.options import command, reader
from gitcp.cli.outcomes import (
    WIDTH,
    outcome_documents,
    outcome_line,
    steps_documents,
)
from gitcp.errors import UsageError
from gitcp.project.workspace import Workspace, open_workspace

if TYPE_CHECKING:
    from gitcp.secrets.policy import Gate
    from gitcp.sync.outcome import Outcome
    from gitcp.sync.pulled import Pulled
    from gitcp.sync.remote_sessions import RemoteSession

_TAKEN = frozenset({"created", "fast-forward", "forked"})


def transfer_progress(out: Output) -> Callable[[str], None] | None:
    """Returns a function that shows git's progress on stderr; None without a terminal."""
    import sys

    if out.quiet or out.json or not sys.stderr.isatty():
        return None
    return out.transient


def can_ask() -> bool:
    """Whether there is a terminal at which the user can type a password."""
    import sys

    return sys.stdin.isatty() and sys.stderr.isatty()


def _remote(workspace: Workspace, given: str | None) -> str:
    return given or workspace.settings.sharing.remote


@command("push")
@click.argument("remote", metavar="[REMOTE]", required=False)
@click.argument("sessions", metavar="[SESSION[/BRANCH]]...", nargs=-1)
@click.option(
    "--allow",
    multiple=True,
    metavar="FINGERPRINT",
    help="Let this secret pass this once (repeatable)",
)
@click.option(
    "--pruned",
    is_flag=True,
    help="Also remove checkpoints from the remote that were pruned here",
)
@click.option(
    "--re-encrypt",
    is_flag=True,
    help="Encrypt everything again, to the recipients in gitcp.encryptTo",
)
@click.option("--fork", is_flag=True, help="Send diverged branches under new names")
@click.option(
    "--spool",
    is_flag=True,
    help="Queue it for the process that pushes for all clones here",
)
@click.option(
    "--wait", is_flag=True, help="The same, and wait until the remote has all of it"
)
@click.option("--dry-run", is_flag=True, help="Show what would be sent")
def push_command(
    out: Output,
    remote: str | None,
    sessions: tuple[str, ...],
    allow: tuple[str, ...],
    pruned: bool,
    re_encrypt: bool,
    fork: bool,
    spool: bool,
    wait: bool,
    dry_run: bool,
) -> None:
    """Push sessions to a remote (default: all but imported ones).

    A push only fast-forwards branches on the remote, and skips those that have diverged.
    With --fork gitcp sends yours under new names, and you continue on these.

    gitcp first scans what it would send for secrets. If it finds one, it sends nothing and
    shows where each secret is and its fingerprint, never its value.

    With the setting encryptTo, gitcp encrypts conversations, decision logs, notes, labels
    and step ledgers, but not the project's files and the names of sessions.

    With --spool gitcp only queues the result, for the next push of this machine; there is
    at most one push per gitcp.pushInterval. `gitcp status` shows what is not sent yet.
    """
    from gitcp.cli import findings
    from gitcp.cli.spooling import hand_over
    from gitcp.project import failed_push
    from gitcp.secrets.policy import Gate
    from gitcp.sync.push import push
    from gitcp.sync.push_policy import refuse_rejected

    workspace = reader(out, numbers=False)
    name = _remote(workspace, remote)
    gate = Gate(allow, progress=findings.progress(out))
    if spool or wait:
        if pruned or re_encrypt or dry_run:
            raise UsageError(
                "--spool and --wait take no --pruned, --re-encrypt or --dry-run",
                hint="remove one of them",
            )
        hand_over(out, workspace, name, sessions, gate, fork=fork, wait=wait)
        return
    pushed = push(
        workspace,
        name,
        sessions,
        pruned=pruned,
        re_encrypt=re_encrypt,
        fork=fork,
        dry_run=dry_run,
        gate=gate,
        progress=transfer_progress(out),
        interactive=can_ask(),
    )
    _show_pushed(out, workspace, name, pushed, gate, sessions, dry_run=dry_run)
    refuse_rejected(pushed, name)
    if not (dry_run or sessions):
        failed_push.forget(workspace.repository, name)


def _show_pushed(
    out: Output,
    workspace: Workspace,
    name: str,
    pushed: "list[Outcome]",
    gate: "Gate",
    sessions: tuple[str, ...],
    *,
    dry_run: bool,
) -> None:
    from gitcp.cli import findings

    if out.json:
        out.document(
            {
                "schema": "gitcp.push/1",
                "remote": name,
                "branches": outcome_documents([one for one in pushed if one.branch]),
                "ledgers": steps_documents([one for one in pushed if not one.branch]),
                "secrets": findings.documents([*gate.findings, *gate.allowed]),
            }
        )
    else:
        if gate.findings:
            out.warn("secrets were sent, because gitcp.secrets is `warn`:")
            findings.show(out, gate.findings)
        _print_pushed(out, workspace, name, pushed, sessions, dry_run=dry_run)


def _print_pushed(
    out: Output,
    workspace: Workspace,
    remote: str,
    pushed: "list[Outcome]",
    named: tuple[str, ...],
    *,
    dry_run: bool,
) -> None:
    for outcome in pushed:
        if outcome.result != "up-to-date" or outcome.reason or outcome.address:
            out.print(outcome_line(out, outcome))
    if all(outcome.result == "up-to-date" for outcome in pushed):
        out.note(f"{remote} has everything" if pushed else "no sessions yet")
    elif dry_run:
        out.note("nothing was sent")
    from gitcp.sync.push import stay_here

    if not named and (number := stay_here(workspace)):
        out.note(f"  imported sessions are pushed only if you name them: {number}")


@command("pull")
@click.argument("remote", metavar="[REMOTE]", required=False)
@click.argument("sessions", metavar="[SESSION[/BRANCH]]...", nargs=-1)
@click.option(
    "--pruned",
    is_flag=True,
    help="Also remove checkpoints here that were pruned on the remote",
)
def pull_command(
    out: Output, remote: str | None, sessions: tuple[str, ...], pruned: bool
) -> None:
    """Pull sessions from a remote (default: all).

    gitcp checks everything before it accepts anything. Your files do not change; `gitcp
    restore` changes them. If a branch has diverged, theirs becomes a fork. If older
    checkpoints of a branch were pruned there, a pull removes them here only with --pruned,
    or if you trust the remote (`gitcp trust`); else what is new there becomes a fork, too.
    """
    from gitcp.cli import documents
    from gitcp.cli.render import withheld_lines
    from gitcp.sync.preview import Foretold, of_tips
    from gitcp.sync.pull import pull
    from gitcp.sync.pulled import news as has_news
    from gitcp.sync.pulled import refuse_rejected

    workspace = open_workspace(out.directory)
    name = _remote(workspace, remote)
    pulled = pull(
        workspace,
        name,
        sessions,
        pruned=pruned,
        progress=transfer_progress(out),
        interactive=can_ask(),
    )
    news = [one.commit for one in pulled.branches if one.result in _TAKEN]
    foretold = of_tips(workspace, [commit for commit in news if commit])
    if out.json:
        out.document(
            {
                "schema": "gitcp.pull/1",
                "remote": name,
                "branches": [
                    {
                        **document,
                        "withheld": documents.withheld(foretold.get(one.commit or "")),
                    }
                    for one, document in zip(
                        pulled.branches, outcome_documents(pulled.branches), strict=True
                    )
                ],
                "ledgers": steps_documents(pulled.ledgers),
                "secrets": [],
                "ignored": list(pulled.ignored),
                "rewound": [f"{one.session}/{one.branch}" for one in pulled.rewound],
                "gone": list(pulled.gone),
            }
        )
    else:
        for one in (*pulled.ledgers, *pulled.branches):
            if one.result != "up-to-date":
                out.print(outcome_line(out, one))
                for line in withheld_lines(foretold.get(one.commit or "", Foretold())):
                    out.print(f"{'':<{WIDTH}}   {line}")
        if not has_news(pulled) and not pulled.refused:
            out.note(f"nothing new at {name}")
    _tell(out, workspace, name, pulled)
    refuse_rejected(pulled, name)


def _tell(out: Output, workspace: Workspace, remote: str, pulled: "Pulled") -> None:
    """Prints how to continue, if anything is left to do."""
    from gitcp.sync.outcome import PRUNED_THERE

    where = " in the repository of its name" if pulled.sharded else ""
    for ref in pulled.ignored:
        out.warn(
            f"{remote} has {ref}, which is not the branch of a session{where}; it"
            " was left alone"
        )
    for one in pulled.rewound:
        out.warn(
            f"{one.session}/{one.branch} was rewound on {remote}: its new state is"
            f" kept as {one.name}; yours is unchanged"
        )
    if pulled.gone:
        out.warn(
            f"{remote} had {', '.join(pulled.gone)} and removed it; your copy is"
            " unchanged"
        )
    for one in pulled.ledgers:
        if one.result == "up-to-date" and one.reason:
            out.warn(f"step ledger of {one.session}: {one.reason}")
    for session in pulled.short:
        out.warn(
            f"{remote} has only part of the step ledger of {session}: steps that"
            " are done in its checkpoints are unknown here and would run again;"
            " ask the author to push again"
        )
    current = workspace.current()
    diverged = False
    for one in pulled.branches:
        if (
            one.result == "forked"
            and one not in pulled.rewound
            and one.reason != PRUNED_THERE
        ):
            out.note(
                f"{one.session}/{one.branch} diverged: both sides are kept,"
                f" theirs as {one.session}/{one.name}"
            )
            diverged = True
        elif one.result == "fast-forward" and (one.session, one.branch) == (
            current.session,
            current.branch,
        ):
            out.note(
                "you are on this branch, and your files are unchanged: `gitcp"
                " restore last` restores the new state; a save adds your state"
                " after it"
            )
    default = remote == workspace.settings.sharing.remote
    word = "" if default else f" {shlex.quote(remote)}"
    if diverged:
        out.note("to share yours under a new name, and continue on it:")
        out.note(f"  gitcp push --fork{word}")
    _tell_pruned(out, pulled, word)


def _tell_pruned(out: Output, pulled: "Pulled", word: str) -> None:
    """Names what was pruned there and not here; `word` names the remote in a shown command."""
    from gitcp.sync.outcome import PRUNED, PRUNED_THERE

    kept = [
        one.shown
        for one in pulled.branches
        if one.reason == PRUNED_THERE and one.result != PRUNED
    ]
    if kept:
        more = f" and {len(kept) - 1} more" if len(kept) > 1 else ""
        out.note(
            f"{kept[0]}{more}: older checkpoints were pruned there, and none was removed"
            f" here; `gitcp pull --pruned{word}` removes them here, too"
        )


@command("remote-sessions")
@click.argument("remote", metavar="[REMOTE]", required=False)
def remote_sessions_command(out: Output, remote: str | None) -> None:
    """List the sessions that a remote has.

    It shows how each branch and each step ledger compares with yours: same, behind (a pull
    would fetch more), ahead (a push would send more), forked (they diverged), new (not
    here), pruned (here, but not there), pruned-there (there, but not here: `gitcp pull
    --pruned`), taken-back (the remote had more before). A step ledger may also be not-there,
    or different if only a pull can tell.
    """
    from gitcp.sync.pulled import refuse_silent
    from gitcp.sync.remote_sessions import remote_sessions

    workspace = reader(out)
    name = _remote(workspace, remote)
    there = remote_sessions(workspace, name, interactive=can_ask())
    _show_there(out, name, there.sessions)
    refuse_silent(there.silent)


def _show_there(
    out: Output, name: str, sessions_there: "dict[str, RemoteSession]"
) -> None:
    if out.json:
        out.document(
            {
                "schema": "gitcp.remote-sessions/1",
                "remote": name,
                "sessions": [
                    {
                        "name": session,
                        "branches": [
                            {"name": one.branch, "commit": one.commit, "here": one.here}
                            for one in state.branches
                        ],
                        "steps": state.steps._asdict() if state.steps else None,
                    }
                    for session, state in sessions_there.items()
                ],
            }
        )
        return
    for session, state in sessions_there.items():
        for one in state.branches:
            branch_name = out.style(safe_line(f"{session}/{one.branch}"), fg="cyan")
            out.print(f"  {one.here:<{WIDTH}} {branch_name}")
        if state.steps is not None:
            branch_name = out.style(safe_line(session), fg="cyan")
            out.print(f"  {state.steps.here:<{WIDTH}} {branch_name} (steps)")
    if not sessions_there:
        out.note(f"{name} has no sessions")
