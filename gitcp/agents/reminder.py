"""Gives an agent the reasons of its work tree when a conversation begins."""

from gitcp.agents import bindings
from gitcp.clients import triggers
from gitcp.clients.client import Client, Event
from gitcp.project.workspace import Workspace

# Bytes: what is given costs the agent tokens each time.
_MOST = 2_048


def reminder(workspace: Workspace, client: Client, event: Event) -> str | None:
    """Returns what an agent is given as a session begins; None if nothing is due.

    By default that is after a compaction and in a new conversation. A conversation that
    is resumed has its own reasons in it.
    """
    wanted = workspace.settings.inject_context
    if event.what != triggers.SESSION_START or wanted == "off":
        return None
    binding = bindings.find(workspace, client.name, event.session)
    is_new = binding is None and event.start_reason not in {"resume", "fork"}
    if not (is_new or event.start_reason == "compact" or wanted == "always"):
        return None
    from gitcp.checkpoints import briefing, reasons  # noqa: PLC0415  once a session

    return briefing.within(reasons.of_work_tree(workspace, pending=True), _MOST)
