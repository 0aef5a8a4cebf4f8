"""Finding the branch for an agent's session that has none, or whose branch was taken."""

import msgspec

from gitcp.agents.client import Client, Event
from gitcp.errors import GitcpError
from gitcp.ops import agent_records, agent_sessions, fork, select
from gitcp.ops.agent_sessions import Binding
from gitcp.ops.workspace import MAIN, Workspace
from gitcp.store.checkpoint import Checkpoint

_LOOKED_AT = 20
_SHORT = 8


def settle(
    workspace: Workspace, client: Client, event: Event, binding: Binding | None
) -> Binding:
    """Returns where a session grows from now on; makes the branch where it is a fork.

    The session of the result is None where the client forked, and has written nothing
    yet that would tell from what.
    """
    if binding is not None and binding.session is not None:
        if binding.superseded is None:
            return binding
        return _goes_on(workspace, binding)
    content = _content(client, event)
    if content:
        asked = binding.asked if binding else None
        related = _related(workspace, client, event, content, asked)
        if related is not None:
            return related
    elif binding is not None:
        return binding
    return _new(workspace, client, event)


def _content(client: Client, event: Event) -> bytes:
    for source in client.sources(event):
        if not source.name:
            if source.content is not None:
                return source.content
            return agent_records.read(source.path) if source.path else b""
    return b""


def _new(workspace: Workspace, client: Client, event: Event) -> Binding:
    """A session of its own; where its name is taken, the whole id tells it apart."""
    name = f"{client.name}-{event.session[:_SHORT]}"
    source = f"{client.name}-{event.session}"
    branch = workspace.repository.worktree_name or MAIN
    for session in (name, source):
        for candidate in (MAIN, branch):
            tip = workspace.store.tip(session, candidate)
            if tip is None or _holds(tip, event.session):
                return Binding(
                    client.name, event.session, session, candidate, source=source
                )
    return Binding(
        client.name, event.session, source, f"{branch}-{event.session}", source=source
    )


def _holds(tip: Checkpoint, agent_session: str) -> bool:
    said = tip.manifest.conversation
    return said is not None and said.agent_session == agent_session


def _goes_on(workspace: Workspace, binding: Binding) -> Binding:
    """Forks where the session was when another took its branch over."""
    assert binding.session is not None
    assert binding.superseded is not None
    tip = workspace.store.tip(binding.session, binding.branch)
    line = workspace.store.line(tip) if tip is not None else iter(())
    start = next((one for one in line if one.id == binding.superseded), None)
    if start is None:
        # Pruned, or the branch is gone: there is nothing to tell apart from any more.
        return msgspec.structs.replace(binding, superseded=None)
    name = _free(workspace, start.session, binding.agent_session)
    fork.fork_only(workspace.store, start, name)
    return agent_sessions.keep(
        workspace, msgspec.structs.replace(binding, branch=name, superseded=None)
    )


def _related(
    workspace: Workspace,
    client: Client,
    event: Event,
    content: bytes,
    asked: str | None,
) -> Binding | None:
    """Forks the session that this one is a copy of, where it was copied up to."""
    copied = client.copied(content)
    if not copied:
        return None
    for other in agent_sessions.latest_first(workspace, client.name)[:_LOOKED_AT]:
        if other.session is None or other.agent_session == event.session:
            continue
        try:
            tip = workspace.store.tip(other.session, other.branch)
            before = tip.conversation(other.source) if tip else b""
            if tip is None or not before:
                continue
            first = client.first_not_in(before, copied)
        except GitcpError:
            continue
        if first == "":
            continue
        start = tip
        if first is not None:
            start = select.before_message(workspace.store, tip, first) or tip
        name = _free(workspace, start.session, event.session)
        fork.fork_only(workspace.store, start, name)
        return agent_sessions.keep(
            workspace,
            Binding(
                client.name,
                event.session,
                start.session,
                name,
                source=f"{client.name}-{event.session}",
                asked=asked,
            ),
        )
    return None


def _free(workspace: Workspace, session: str, agent_session: str) -> str:
    for name in (f"fork-{agent_session[:_SHORT]}", f"fork-{agent_session}"):
        if workspace.store.tip(session, name) is None:
            return name
    number = 2
    while workspace.store.tip(session, f"{name}-{number}") is not None:
        number += 1
    return f"{name}-{number}"
