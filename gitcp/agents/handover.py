"""Continues the conversation of one client in another."""

import os
import uuid
from typing import NamedTuple

from gitcp import durable
from gitcp.agents import neutral_talk, resume
from gitcp.agents.resume import Resumption
from gitcp.checkpoints import briefing, conversation
from gitcp.clients import exchange, registry
from gitcp.clients.client import Client, StoredConversation
from gitcp.clients.exchange import Spoken
from gitcp.errors import NothingToDoError, UsageError
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

# How a conversation continues: its own client has it; its own client gets an exact copy, or
# one of known fields only; every message is converted for another client; another client
# gets a file to read.
IN_PLACE, VERBATIM, REBUILT = "in-place", "verbatim", "rebuilt"
CONVERTED, TOLD = "converted", "told"
# The pages that clients are asked to read, below gitcp's directory of the work tree.
FOLDER = "handed-over"
# Bytes of a conversation made elsewhere: all its messages are in memory at once, and take
# many times more there.
_MOST_FOREIGN = 16 * 1024 * 1024


class HandedOver(NamedTuple):
    """How a conversation continues, and how much was left out, by its kind."""

    resumption: Resumption
    how: str
    left: dict[str, int]


def target(checkpoint: Checkpoint, agent: str | None) -> Client:
    """Returns the client that is to continue a conversation.

    Raises:
        NothingToDoError: the checkpoint has no conversation.
        UsageError: no client has this name, or no name was given and the client of the
            conversation is not known.
    """
    held = checkpoint.manifest.conversation
    if held is None:
        raise NothingToDoError(
            f"checkpoint {checkpoint.id} has no conversation",
            hint="`gitcp log` shows which have one; name one of them",
        )
    if agent is None and not registry.known(held.kind):
        raise UsageError(
            f"gitcp does not know the client of the conversation of {checkpoint.id}",
            hint=f"name one: --with {' or '.join(registry.NAMES)}",
        )
    return registry.client(agent or held.kind)


def hand_over(
    workspace: Workspace, checkpoint: Checkpoint, client: Client
) -> HandedOver:
    """Writes a conversation for another client, and binds that to the branch.

    `checkpoint` is the newest of its branch, and later messages are saved on that branch.
    If the conversation was made elsewhere, the caller has checked that the client may get
    it.

    Raises:
        NothingToDoError: the conversation has no messages yet.
        StorageError: a file could not be written.
        CorruptError: the conversation is damaged.
        AgentRecordError: the conversation was made elsewhere, and is too large.
    """
    kept = resume.kept(workspace, checkpoint, _MOST_FOREIGN)
    spoken = _read(checkpoint, kept)
    messages = exchange.paired(spoken.messages)
    if not messages:
        raise NothingToDoError(
            f"the conversation of {checkpoint.id} has no messages",
            hint="`gitcp messages` shows what it holds",
        )
    writer = registry.exchange(client.name)
    if writer is None:
        resumption = _told(workspace, checkpoint, client, kept)
        return HandedOver(resumption, TOLD, spoken.left)
    session = str(uuid.uuid4())
    content = writer.written(messages, session, kept.directory)
    resumption = resume.write_for(
        workspace,
        checkpoint,
        client,
        StoredConversation(session, content, {}, kept.directory),
    )
    left = dict(spoken.left)
    stray = exchange.without_call(spoken.messages)
    if stray:
        left["results without a call"] = stray
    return HandedOver(resumption, CONVERTED, left)


def _read(checkpoint: Checkpoint, kept: StoredConversation) -> Spoken:
    held = checkpoint.manifest.conversation
    assert held is not None
    reader = registry.exchange(held.kind)
    if reader is not None:
        return reader.read(kept.content, kept.beside)
    content = kept.content
    if registry.known(held.kind):
        content = registry.active(held.kind, content)
    return neutral_talk.read(content)


def _told(
    workspace: Workspace,
    checkpoint: Checkpoint,
    client: Client,
    kept: StoredConversation,
) -> Resumption:
    """Writes context and conversation to a file that the first prompt asks the client to read.

    Raises:
        UsageError: the client takes no first prompt.
    """
    start = registry.prompted(client.name)
    if start is None:
        raise UsageError(
            f"{client.title} cannot be started with a prompt",
            hint="`gitcp context` and `gitcp messages` print what it needs to know",
        )
    page = (
        f"{briefing.context(checkpoint)}\n\n# The conversation so far\n\n"
        f"{conversation.as_markdown(kept.content)}"
    )
    path = workspace.directory / FOLDER / f"{checkpoint.id}.md"
    with durable.storage("writing the conversation down"):
        workspace.repository.make_directory(path.parent)
        durable.replace(path, page.encode("utf-8", "replace"), mode=0o600)
    prompt = (
        f"Read {os.path.abspath(path)} first. It is the conversation of another"
        " agent in this project, with what was decided and tried. Continue from"
        " there."
    )
    return Resumption(client.name, "", (*start, prompt), kept.directory)
