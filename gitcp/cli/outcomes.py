"""Prints the outcome of a push or a pull for each branch and ledger, as lines or JSON."""

from typing import TYPE_CHECKING, Any

from gitcp.cli.emit import Output, safe_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitcp.sync.outcome import Outcome

WIDTH = 12


def outcome_line(out: Output, outcome: "Outcome") -> str:
    """Returns the line for the outcome of a branch or ledger."""
    shown = out.style(safe_line(outcome.shown), fg="cyan")
    if not outcome.branch:
        shown += " (steps)"
    if outcome.name != outcome.branch:
        shown += f" as {out.style(safe_line(outcome.name), fg='cyan')}"
    reason = f"  ({safe_line(outcome.reason)})" if outcome.reason else ""
    where = f" at {safe_line(outcome.address)}" if outcome.address else ""
    return f"  {outcome.result:<{WIDTH}} {shown}{where}{reason}"


def outcome_documents(outcomes: "Iterable[Outcome]") -> list[dict[str, Any]]:
    """Returns the outcomes of branches, for JSON."""
    return [
        {
            "session": outcome.session,
            "branch": outcome.branch,
            "result": outcome.result,
            "as": outcome.name,
            "commit": outcome.commit,
            "reason": outcome.reason,
            **_address(outcome),
        }
        for outcome in outcomes
    ]


def steps_documents(outcomes: "Iterable[Outcome]") -> list[dict[str, Any]]:
    """Returns the outcomes of ledgers, for JSON."""
    return [
        {
            "session": outcome.session,
            "result": outcome.result,
            "commit": outcome.commit,
            "reason": outcome.reason,
            **_address(outcome),
        }
        for outcome in outcomes
    ]


def _address(outcome: "Outcome") -> dict[str, str]:
    """Returns the address, as a field, if the remote has several."""
    return {"address": outcome.address} if outcome.address else {}
