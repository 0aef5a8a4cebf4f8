"""Finds the agent that is active while git commits: its branch, and its conversation so far."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.agents import bindings, transcripts
from gitcp.agents.bindings import Binding
from gitcp.agents.meanwhile import overtaking
from gitcp.agents.shells import in_shell_of
from gitcp.checkpoints.known_sources import KnownSources
from gitcp.clients import registry
from gitcp.clients.client import Event
from gitcp.format.log import AgentSession
from gitcp.project.workspace import Workspace
from gitcp.store.draft import NewRecords

# A client writes to its transcript before it starts a command such as `git commit`. If a
# transcript has not grown for this long, its client waits for a person, who may work meanwhile.
_AT_WORK = 600.0
_FUTURE = 60.0


class Live(NamedTuple):
    """The branch that a checkpoint goes to; None: the current branch."""

    session: str | None = None
    branch: str | None = None
    records: tuple[NewRecords, ...] = ()
    agent: AgentSession | None = None


def live(workspace: Workspace, what: str, environment: Mapping[str, str]) -> Live:
    """Returns the branch for an automatic checkpoint, and the conversation so far.

    `environment` is that of the command that caused the checkpoint: it names the agent, if
    an agent ran the command.
    """
    binding = _at_work(workspace, environment)
    if binding is None or binding.session is None or binding.transcript is None:
        return Live()
    client = registry.client(binding.agent)
    event = Event(
        what,
        binding.agent_session,
        str(workspace.top),
        transcript=Path(binding.transcript),
    )
    tip = workspace.store.tip(binding.session, binding.branch)
    known = KnownSources(workspace.directory)
    gathered = transcripts.gather(client, event, binding.source, tip, known)
    agent = AgentSession(binding.agent, binding.agent_session)
    return Live(binding.session, binding.branch, gathered.records, agent)


def is_at_work(workspace: Workspace) -> bool:
    """Whether an agent works in this work tree right now."""
    return any(_age(one) < _AT_WORK for one in _growing(workspace))


def _at_work(workspace: Workspace, environment: Mapping[str, str]) -> Binding | None:
    """Returns the agent whose shell this is, or else the agent whose conversation grew last.

    If no conversation grew lately, returns the agent that appends to the current branch.
    """
    growing = _growing(workspace)
    own = in_shell_of(workspace, environment)
    for one in growing:
        if own == AgentSession(one.agent, one.agent_session):
            return one
    working = min(growing, key=_age, default=None)
    if working is not None and _age(working) < _AT_WORK:
        return working
    current = workspace.current()
    for one in growing:
        if (one.session, one.branch) == (current.session, current.branch):
            return one
    return None


def _growing(workspace: Workspace) -> list[Binding]:
    return [
        one
        for one in bindings.latest_first(workspace)
        if one.session is not None
        and one.superseded is None
        and one.transcript
        and overtaking(workspace, one) is None
    ]


def _age(one: Binding) -> float:
    """Returns how long ago a conversation grew, in seconds."""
    with suppress(OSError):
        age = time.time() - Path(one.transcript or "").stat().st_mtime
        # A time far in the future comes from a wrong clock, and gives no age.
        if age > -_FUTURE:
            return age
    return float("inf")
