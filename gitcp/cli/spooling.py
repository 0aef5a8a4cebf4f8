"""Hands a push to the pusher of this machine, and reports what is still queued."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gitcp.cli import outcomes
from gitcp.cli.emit import Output, safe, safe_line
from gitcp.cli.render import count
from gitcp.errors import BranchMovedError, GitcpError, SecretsFoundError, TransferError
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from gitcp.secrets.policy import Gate
    from gitcp.spool.unsent import Unsent
    from gitcp.sync.outcome import Outcome


def hand_over(
    out: Output,
    workspace: Workspace,
    remote: str,
    sessions: Sequence[str],
    gate: "Gate",
    *,
    fork: bool,
    wait: bool,
) -> None:
    """Carries out `gitcp push --spool`, and `--wait`.

    Raises:
        SecretsFoundError: some sessions hold secrets; the others were handed over.
        TransferError: not everything was pushed in time.
        BranchMovedError: the remote refused some branches.
    """
    from gitcp.project import failed_push
    from gitcp.spool import intake, pusher
    from gitcp.sync.push_policy import refuse_rejected

    waiting = intake.waiting_for(workspace, remote)
    noted = intake.note(workspace, waiting, sessions)
    taken: list[Outcome] = []
    problem: GitcpError | None = None
    try:
        taken = intake.take_in(workspace, waiting, sessions, gate=gate, fork=fork)
    except (SecretsFoundError, TransferError) as exc:
        problem = exc
    intake.settle(waiting.spool, waiting.clone, noted, problem)
    if workspace.settings.background and not wait:
        pusher.start(waiting.spool)
    left = True
    if wait:
        limit = workspace.settings.sharing.transfer_limit
        left = pusher.wait(waiting.spool, waiting.clone, timeout=limit)
    _tell(out, workspace, remote, taken, gate, wait=wait)
    if problem is not None and (not wait or isinstance(problem, SecretsFoundError)):
        raise problem
    refuse_rejected(taken, remote)
    if wait:
        _refuse_unsent(workspace, remote, left=left)
    if not sessions:
        failed_push.forget(workspace.repository, remote)


def _tell(
    out: Output,
    workspace: Workspace,
    remote: str,
    taken: "list[Outcome]",
    gate: "Gate",
    *,
    wait: bool,
) -> None:
    from gitcp.cli import findings

    if out.json:
        out.document(
            {
                "schema": "gitcp.push-spool/1",
                "remote": remote,
                "branches": outcomes.outcome_documents(
                    [one for one in taken if one.branch]
                ),
                "ledgers": outcomes.steps_documents(
                    [one for one in taken if not one.branch]
                ),
                "secrets": findings.documents([*gate.findings, *gate.allowed]),
                "unsent": documents(workspace),
            }
        )
        return
    for one in taken:
        if one.result != "up-to-date" or one.reason:
            out.print(outcomes.outcome_line(out, one))
    if not wait and taken:
        interval = workspace.settings.sharing.push_interval
        out.note(
            "not sent yet: the next push of this machine sends it, within"
            f" {interval:g} s"
        )


def _refuse_unsent(workspace: Workspace, remote: str, *, left: bool) -> None:
    from gitcp.spool.unsent import unsent

    for one in unsent(workspace):
        if one.remote != remote:
            continue
        why = one.reason or "it was not tried in time"
        error = BranchMovedError if left else TransferError
        raise error(
            f"{count(len(one.refs), 'ref')} not sent to {remote}: {why}",
            hint="they are queued on this machine; `gitcp push --wait` waits for them",
        )


def documents(workspace: Workspace) -> list[dict[str, Any]]:
    """Returns the refs that have not been pushed yet, for JSON."""
    from gitcp.format.checkpoint import timestamp
    from gitcp.spool.unsent import unsent

    return [
        {
            "remote": one.remote,
            "refs": list(one.refs),
            "since": timestamp(one.since),
            "due": timestamp(one.due),
            "reason": one.reason or None,
            "noted": one.noted,
        }
        for one in unsent(workspace)
    ]


def tell_unsent(out: Output, workspace: Workspace) -> None:
    """Prints what has not been pushed yet, in a line for each remote."""
    from gitcp.spool.unsent import unsent

    for one in unsent(workspace):
        line = _line(one)
        if one.reason:
            out.warn(line)
        else:
            out.print(line)


def _line(one: "Unsent") -> str:
    import time

    what = [count(len(one.refs), "ref")] if one.refs else []
    if one.noted:
        what.append("what was saved since then")
    seconds = max(0, round(one.due - time.time()))
    line = (
        f"Not sent to {safe(one.remote)} yet: {' and '.join(what) or 'some sessions'}"
    )
    if one.reason:
        return f"{line} ({safe_line(one.reason)})"
    return f"{line}; the next push is due in {seconds} s"
