"""Finds the agent session in whose shell a command runs.

Clients name the session in the environment of their agents' commands: see
docs/decisions/0083.
"""

from collections.abc import Mapping

from gitcp.agents import bindings
from gitcp.agents.bindings import Binding
from gitcp.clients import registry
from gitcp.format.log import AgentSession
from gitcp.project.workspace import Workspace


def in_shell_of(
    workspace: Workspace, environment: Mapping[str, str]
) -> AgentSession | None:
    """Returns the session whose agent runs this command, or None if that is not known.

    Only counts a session that gitcp's hooks know in this work tree and that has not ended:
    any other session may never get a next checkpoint. If one client was started in the
    shell of another, the environment names both, and does not say which is the inner one.
    """
    found = [*_named(workspace, environment), *_told(workspace, environment)]
    if len(found) != 1 or found[0] is None or found[0].ended:
        return None
    return AgentSession(found[0].agent, found[0].agent_session)


def _named(
    workspace: Workspace, environment: Mapping[str, str]
) -> list[Binding | None]:
    """Returns the sessions that variables name by id; None for an unknown session."""
    idents = {
        agent: environment[variable]
        for agent, variable in registry.SESSION_VARIABLES.items()
        if environment.get(variable)
    }
    return [bindings.find(workspace, agent, ident) for agent, ident in idents.items()]


def _told(workspace: Workspace, environment: Mapping[str, str]) -> list[Binding | None]:
    """Returns the open session of each client that names only itself; None for several."""
    found: list[Binding | None] = []
    for agent, variable in registry.CLIENT_VARIABLES.items():
        if environment.get(variable):
            there = bindings.likely_open(workspace, agent)
            found.append(there[0] if len(there) == 1 else None)
    return found
