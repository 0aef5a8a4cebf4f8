"""Gives an agent the reasons of its work tree when a conversation begins."""

from gitcp.agents import bindings
from gitcp.clients import triggers
from gitcp.clients.client import Client, Event
from gitcp.project.workspace import Workspace

# In bytes: each reminder costs the agent tokens.
_MOST = 2_048


def reminder(workspace: Workspace, client: Client, event: Event) -> str | None:
    """Returns the reasons to give to an agent as a session begins; None if none are due.

    By default they are due after a compaction and in a new conversation. A resumed
    conversation already contains its own.
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
