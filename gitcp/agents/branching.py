"""Chooses a branch for an agent's session that has none, or has lost its own."""

import msgspec

from gitcp.agents import bindings, transcripts
from gitcp.agents.bindings import Binding
from gitcp.agents.meanwhile import branch_name
from gitcp.checkpoints import fork
from gitcp.checkpoints.message_search import before_message
from gitcp.clients.client import Client, Event
from gitcp.errors import GitcpError
from gitcp.format.layout import LogName
from gitcp.project.workspace import MAIN, Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbers import last_restore

_LOOKED_AT = 20
_FIRST_SEGMENTS = 3


def settle(
    workspace: Workspace,
    client: Client,
    event: Event,
    binding: Binding | None,
) -> Binding:
    """Returns the binding of a session from now on; makes the branch if it is a fork.

    The session of the result is None if the client forked a conversation, and has written
    nothing yet that shows which one.
    """
    if binding is not None and binding.is_settled:
        return binding
    if binding is not None and binding.session is not None:
        # A restore took its branch; the number of the restore gives the new branch its name.
        restore = last_restore(workspace.store.numbers)
        name = branch_name(workspace, restore) if restore is not None else None
        return _goes_on(workspace, binding, name) or _new(workspace, client, event)
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
            return transcripts.read(source.path) if source.path else b""
    return b""


def _new(workspace: Workspace, client: Client, event: Event) -> Binding:
    """Returns a new session; if its short name is taken, its name holds the whole id."""
    name = f"{client.name}-{bindings.short(event.session)}"
    source = f"{client.name}-{event.session}"
    branch = workspace.repository.worktree_name or MAIN
    for session in (name, source):
        for candidate in (MAIN, branch):
            tip = workspace.store.tip(session, candidate)
            if tip is None or _is_its_own(workspace, tip, event.session):
                return Binding(
                    client.name, event.session, session, candidate, source=source
                )
    return Binding(
        client.name, event.session, source, f"{branch}-{event.session}", source=source
    )


def _is_its_own(workspace: Workspace, tip: Checkpoint, agent_session: str) -> bool:
    """Whether this session made a branch, though no binding says so."""
    conversation = tip.manifest.conversation
    if conversation is None or conversation.agent_session != agent_session:
        return False
    # After a restore the tip still has the old conversation, but the branch belongs to
    # another session.
    return not any(
        (one.session, one.branch) == (tip.session, tip.branch)
        and one.agent_session != agent_session
        and one.superseded is None
        for one in bindings.latest_first(workspace)
    )


def _goes_on(
    workspace: Workspace, binding: Binding, name: str | None
) -> Binding | None:
    """Forks at the session's last checkpoint on the branch that another session took over.

    Returns None if that checkpoint is gone.
    """
    assert binding.session is not None
    assert binding.superseded is not None
    tip = workspace.store.tip(binding.session, binding.branch)
    line = workspace.store.line(tip) if tip is not None else iter(())
    start = next((one for one in line if one.id == binding.superseded), None)
    if start is None:
        # It was pruned, or the branch is gone.
        return None
    names = _names(binding.agent_session) if name is None else (name,)
    branch = _free(workspace, start.session, names)
    fork.fork_only(workspace.store, start, branch)
    return bindings.keep(
        workspace, msgspec.structs.replace(binding, branch=branch, superseded=None)
    )


def _related(
    workspace: Workspace,
    client: Client,
    event: Event,
    content: bytes,
    asked: str | None,
) -> Binding | None:
    """Forks the session that this one was copied from, at the end of the copied part."""
    copied = client.copied(content)
    origin = _nearest(workspace, client, event, copied) if copied else None
    if origin is None:
        return None
    tip, first = origin
    start = tip
    if first is not None:
        start = before_message(workspace.store, tip, first) or tip
    name = _free(workspace, start.session, _names(event.session))
    fork.fork_only(workspace.store, start, name)
    return bindings.keep(
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


def _nearest(
    workspace: Workspace, client: Client, event: Event, copied: frozenset[str]
) -> tuple[Checkpoint, str | None] | None:
    """Returns the tip that shares the longest beginning, and where the two then differ.

    Branches of one session begin alike, so the branch seen last need not be the right one.
    """
    best: tuple[Checkpoint, str | None] | None = None
    longest = 0
    for other in bindings.latest_first(workspace, client.name)[:_LOOKED_AT]:
        if other.session is None or other.agent_session == event.session:
            continue
        try:
            tip = workspace.store.tip(other.session, other.branch)
            if tip is None or _bytes(tip, other.source) <= longest:
                continue
            if _begins_otherwise(client, tip, other.source, copied):
                continue
            content = tip.conversation(other.source)
            first = client.first_new_message(content, copied)
        except GitcpError:
            continue
        if first == "":
            continue
        shared = len(content)
        if first is not None:
            shared = client.position(content, first) or 0
        if shared > longest:
            best, longest = (tip, first), shared
    return best


def _bytes(tip: Checkpoint, source: str) -> int:
    held = transcripts.meta(tip, source)
    return held.bytes if held is not None else 0


def _begins_otherwise(
    client: Client, tip: Checkpoint, source: str, copied: frozenset[str]
) -> bool:
    """Whether not even the first message was copied, as for most sessions.

    A client waits for the answer, so only the beginning of a long conversation is read.
    """
    name = LogName("conversation", source)
    read = tip.objects
    oids = logs.segments(tip.log_tree, name, read.tree)[:_FIRST_SEGMENTS]
    beginning = b"".join(map(read.blob, oids))
    if not client.has_messages(beginning):
        return False
    return client.first_new_message(beginning, copied) == ""


def _names(agent_session: str) -> tuple[str, ...]:
    return f"fork-{bindings.short(agent_session)}", f"fork-{agent_session}"


def _free(workspace: Workspace, session: str, names: tuple[str, ...]) -> str:
    """Returns the first of these names that is free, or else one with a number."""
    for name in names:
        if workspace.store.tip(session, name) is None:
            return name
    number = 2
    while workspace.store.tip(session, f"{names[-1]}-{number}") is not None:
        number += 1
    return f"{names[-1]}-{number}"
