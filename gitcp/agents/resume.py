"""After a restore, writes the conversation where its client looks for it."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn

from gitcp import durable
from gitcp.agents import bindings, placing
from gitcp.agents.bindings import Binding
from gitcp.clients import known, registry
from gitcp.clients.client import (
    Client,
    ClientPlaces,
    ResumeFiles,
    StoredConversation,
)
from gitcp.errors import UsageError
from gitcp.format.layout import LogName
from gitcp.names import decode
from gitcp.project.workspace import Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbers import last_restore


class Resumption(NamedTuple):
    """How to continue a restored conversation: a command, or what to do instead."""

    agent: str
    agent_session: str
    command: tuple[str, ...]
    directory: Path
    first: tuple[str, ...] = ()
    told: str | None = None

    def shown(self, here: str) -> str | None:
        """Returns the command for a shell in a directory; None if there is no command."""
        if not self.command:
            return None
        import shlex  # noqa: PLC0415  only a resumption that is shown

        command = shlex.join(self.command)
        if self.first:
            command = f"{shlex.join(self.first)} && {command}"
        if os.path.realpath(here) == os.path.realpath(self.directory):
            return command
        return f"cd {shlex.quote(str(self.directory))} && {command}"


def place(
    top: Path | None, environment: Mapping[str, str] | None = None
) -> ClientPlaces:
    """Returns where to look for clients."""
    return ClientPlaces(
        top, Path.home(), os.environ if environment is None else environment
    )


def check_agent(target: Checkpoint, agent: str | None) -> None:
    """Raises if an agent cannot resume a conversation.

    Raises:
        UsageError: the agent is not known, or the conversation is another client's.
    """
    if agent is None:
        return
    client = registry.client(agent)
    conversation = target.manifest.conversation
    kind = conversation.kind if conversation is not None else None
    if kind != agent:
        raise UsageError(
            f"checkpoint {target.id} has no conversation of"
            f" {client.title}{(f', but one of {kind}' if kind else '')}",
            hint="remove --agent: gitcp recognises the client by the conversation",
        )


def is_foreign(checkpoint: Checkpoint) -> bool:
    """Whether any part of a checkpoint's conversation was made elsewhere."""
    return (
        checkpoint.manifest.conversation is not None
        and checkpoint.origin.logs is not None
    )


def can_resume(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint's conversation is of a client that gitcp knows."""
    held = checkpoint.manifest.conversation
    return held is not None and registry.known(held.kind)


def where_it_is(workspace: Workspace, checkpoint: Checkpoint) -> Resumption | None:
    """Returns how to continue a conversation that its client has just as a checkpoint has it.

    None if the client has continued it since or does not have it, or if it was made
    elsewhere. Writes nothing.
    """
    held = checkpoint.manifest.conversation
    if held is None or held.agent_session is None or is_foreign(checkpoint):
        return None
    own = bindings.find(workspace, held.kind, held.agent_session)
    grown = (checkpoint.session, checkpoint.branch)
    if own is None or not own.is_settled or (own.session, own.branch) != grown:
        return None
    client = registry.client(held.kind)
    command = (*client.resuming, own.agent_session)
    if not client.resuming or workspace.store.tip(*grown) != checkpoint:
        return None
    recorded = client.directory(checkpoint.conversation_to_read()[0])
    directory = _directory(workspace, recorded)
    return Resumption(client.name, own.agent_session, command, directory)


def write_back(workspace: Workspace, checkpoint: Checkpoint) -> Resumption | None:
    """Writes a checkpoint's conversation as a new conversation of its client.

    `checkpoint` is the newest of its branch, and later messages are saved on that branch.
    Returns None if there is nothing that a client could resume. If the conversation was
    made elsewhere, the caller has checked that the client may get it.

    Raises:
        StorageError: a file could not be written.
        CorruptError: the conversation is damaged.
        AgentRecordError: the conversation was made elsewhere, and is too large.
    """
    held = checkpoint.manifest.conversation
    if held is None or not registry.known(held.kind):
        return None
    client = registry.client(held.kind)
    written = client.resume_files(kept(workspace, checkpoint), place(workspace.top))
    if written is None:
        return None
    return _placed(workspace, checkpoint, client, written, held.source)


def kept(
    workspace: Workspace, checkpoint: Checkpoint, most: int = known.MOST_BYTES
) -> StoredConversation:
    """Returns a checkpoint's conversation, of any client, and the directory to continue in.

    One that was made elsewhere may have at most so many bytes.

    Raises:
        CorruptError: the checkpoint is damaged.
        AgentRecordError: the conversation was made elsewhere, and is too large.
    """
    held = checkpoint.manifest.conversation
    assert held is not None
    names = _names_beside(checkpoint, held.source)
    foreign = is_foreign(checkpoint)
    if foreign:
        refuse_if_large(checkpoint, [held.source, *names.values()], most)
    content = checkpoint.conversation()
    beside = {short: checkpoint.conversation(name) for short, name in names.items()}
    if foreign:
        for each in (content, *beside.values()):
            known.refuse_if_dense(each)
    recorded = None
    if not foreign and registry.known(held.kind):
        recorded = registry.client(held.kind).directory(content)
    return StoredConversation(
        None if foreign else held.agent_session,
        content,
        beside,
        _directory(workspace, recorded),
        foreign,
    )


def write_for(
    workspace: Workspace,
    checkpoint: Checkpoint,
    client: Client,
    conversation: StoredConversation,
) -> Resumption:
    """Writes another client's conversation for a client, as `write_back` does.

    Later messages are stored apart from the conversation in the checkpoint.

    Raises:
        StorageError: a file could not be written.
    """
    written = client.resume_files(conversation, place(workspace.top))
    assert written is not None
    source = f"{client.name}-{written.session}"
    return _placed(workspace, checkpoint, client, written, source)


def _placed(
    workspace: Workspace,
    checkpoint: Checkpoint,
    client: Client,
    written: ResumeFiles,
    source: str,
) -> Resumption:
    """Writes the files, and binds the new conversation to the checkpoint's branch."""
    placing.place(written)
    restore = last_restore(workspace.store.numbers)
    bindings.take_over(
        workspace,
        _binding(
            client.name,
            written,
            checkpoint,
            source,
            restore.id if restore is not None else None,
        ),
        _before(workspace, checkpoint),
    )
    return Resumption(
        client.name,
        written.session,
        written.command,
        written.directory,
        written.first,
        written.told,
    )


def become(resumption: Resumption) -> NoReturn:
    """Replaces this process by the client that continues a conversation.

    Raises:
        StorageError: the client cannot be started.
    """
    import shlex  # noqa: PLC0415

    command = f"exec {shlex.join(resumption.command)}"
    if resumption.first:
        command = f"{shlex.join(resumption.first)} && {command}"
    with durable.storage(f"starting {resumption.command[0]}"):
        os.chdir(resumption.directory)
        os.execv("/bin/sh", ["sh", "-c", command])  # noqa: S606  the words are quoted


def _binding(
    agent: str,
    written: ResumeFiles,
    checkpoint: Checkpoint,
    source: str,
    restore: str | None,
) -> Binding:
    """Returns the binding of a conversation that was written for a client."""
    return Binding(
        agent,
        written.session,
        checkpoint.session,
        checkpoint.branch,
        source=source,
        written={
            str(path): hashlib.sha256(data).hexdigest() for path, data in written.files
        },
        copied=tuple(str(target) for _, target in written.copies),
        restore=restore,
        written_at=checkpoint.id,
    )


def _before(workspace: Workspace, checkpoint: Checkpoint) -> str:
    """Returns the id of a branch's tip before a restore was appended to it."""
    parents = checkpoint.raw.parents
    before = workspace.store.checkpoint(parents[0]) if parents else None
    return before.id if before is not None else checkpoint.id


def _directory(workspace: Workspace, recorded: str | None) -> Path:
    """Returns the directory to continue in: the recorded one, if it is in this project."""
    if recorded is not None and os.path.isdir(recorded):
        real = Path(os.path.realpath(recorded))
        if real.is_relative_to(os.path.realpath(workspace.top)):
            return Path(recorded)
    return workspace.top


def _names_beside(checkpoint: Checkpoint, source: str) -> dict[str, str]:
    """Returns the sources of the files stored beside a conversation, by file name."""
    names = {}
    for component, entry in logs.sources(
        checkpoint.log_tree, "conversation", checkpoint.objects
    ):
        name = decode(component)
        if name is None:
            held = logs.meta_of(entry, checkpoint.objects)
            name = held.name if held else ""
        if name.startswith(f"{source}/"):
            names[name.removeprefix(f"{source}/")] = name
    return names


def refuse_if_large(
    checkpoint: Checkpoint, sources: list[str], most: int = known.MOST_BYTES
) -> None:
    """Raises if a conversation made elsewhere is too large to rebuild; reads none of it."""
    checkpoint.refuse_if_vast()
    size = sum(
        checkpoint.objects.header(oid)[1]
        for source in sources
        for oid in logs.segments(
            checkpoint.log_tree,
            LogName("conversation", source),
            checkpoint.objects.tree,
        )
    )
    if size > most:
        raise known.too_large(f"it has {size:,} bytes, and the limit is {most:,}")
