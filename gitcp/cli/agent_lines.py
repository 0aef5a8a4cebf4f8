"""Prints for `doctor` and `status` whether the hooks of coding agents run."""

from typing import Any

from gitcp.agents.health import AgentHealth
from gitcp.cli.emit import Output, safe
from gitcp.cli.layout import age
from gitcp.clients import registry

_KNOWN = ", ".join(registry.NAMES)


def document(one: AgentHealth) -> dict[str, Any]:
    """Returns the state of a client's hooks, in the form of the JSON interface."""
    return {
        "name": one.name,
        "installed": bool(one.installed),
        "scopes": one.installed,
        "runs": one.runs,
        "trusted": one.trusted,
        "last_event": one.last_event,
        "problems": one.problems,
    }


def detail(one: AgentHealth) -> str:
    """Returns whether a client's hooks run, and when the last one did."""
    works = "makes no checkpoints" if one.is_unprotected else "hooks run"
    seen = (
        f"last event {age(one.last_event)}" if one.last_event else "no event here yet"
    )
    return f"{works} ({', '.join(one.installed)}); {seen}"


def problems(out: Output, one: AgentHealth, indent: int) -> None:
    """Prints the problems of a client's hooks, with remedies."""
    for problem in one.problems:
        out.print(f"{'':{indent}} {safe(problem)}")


def tell_other_names(out: Output, agent: str | None) -> None:
    """Lists the agents that gitcp knows, if the given agent is not one of them."""
    if agent is None or registry.known(agent):
        return
    out.note(f"gitcp knows no agent called {safe(agent)}: {_KNOWN}")
