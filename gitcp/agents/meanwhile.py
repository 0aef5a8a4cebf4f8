"""Handles a client that stayed open during a restore: it changes no branch without asking."""

from typing import TYPE_CHECKING

from gitcp.agents.bindings import Binding
from gitcp.clients.client import Client, Event
from gitcp.clients.triggers import SESSION_END
from gitcp.format.checkpoint import timestamp
from gitcp.format.numbers import Assigned
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbers import last_restore

if TYPE_CHECKING:
    from gitcp.store.draft import Draft

# Not a turn: nothing of the conversation is in it.
TRIGGER = "after-restore"


def overtaking(workspace: Workspace, binding: Binding | None) -> Assigned | None:
    """Returns the restore that a client has not seen, or None.

    A client has seen a restore if its turn began after the restore, or if gitcp wrote its
    conversation after it.
    """
    if binding is None:
        return None
    restore = last_restore(workspace.store.numbers)
    if restore is None or restore.id == binding.restore:
        return None
    if binding.restore is None and timestamp(binding.seen) > restore.created:
        # An older gitcp wrote this binding, without the restore that the client knows.
        return None
    return restore


def told(workspace: Workspace, binding: Binding | None) -> str | None:
    """Returns the message to a client's model as a turn begins, or None."""
    restore = overtaking(workspace, binding)
    if binding is None or restore is None:
        return None
    number = _restored(workspace, restore)
    to = f"#{number}" if number else "another state"
    apart = (
        " From here on this conversation is saved as a branch of its own."
        if binding.superseded
        else ""
    )
    return (
        f"gitcp: the files of this project were restored to {to} since your last turn."
        " They are not as you left them. Read a file again before you rely on it."
        f"{apart} `gitcp log` shows what happened (#{restore.number} is the restore), and"
        " `gitcp undo` takes the restore back."
    )


def branch_name(workspace: Workspace, restore: Assigned) -> str:
    """Returns the name of the branch on which a client continues after a restore."""
    return f"after-restore-{_restored(workspace, restore) or restore.number}"


def save_files(workspace: Workspace, draft: "Draft") -> Checkpoint | None:
    """Saves only the files, on the work tree's current branch; returns the new checkpoint."""
    from gitcp.checkpoints.save import save  # noqa: PLC0415  mostly nothing is due
    from gitcp.checkpoints.standing import stands_on  # noqa: PLC0415

    stood = stands_on(workspace)
    saved = save(
        workspace, draft, session=stood.session, branch=stood.branch, steer=False
    )
    return saved.checkpoint if saved.created else None


def save_changed(workspace: Workspace, client: Client) -> Checkpoint | None:
    """Saves changed files, as a client without any message is closed.

    Without an earlier checkpoint nothing counts as changed.
    """
    from gitcp.checkpoints.standing import stands_on  # noqa: PLC0415  mostly nothing is due
    from gitcp.store.draft import Draft  # noqa: PLC0415

    stood = stands_on(workspace)
    if workspace.store.tip(stood.session, stood.branch) is None:
        return None
    note = f"changed before {client.title} was closed"
    return save_files(workspace, Draft(SESSION_END, note=note, quiet=True))


def says_more(
    workspace: Workspace, client: Client, event: Event, binding: Binding
) -> bool:
    """Whether a client that is closed has messages that no checkpoint holds.

    A turn that was running during the restore ended without its conversation.
    """
    from gitcp.agents import transcripts  # noqa: PLC0415  rarely needed
    from gitcp.checkpoints.known_sources import KnownSources  # noqa: PLC0415

    if binding.session is None:
        return False
    tip = workspace.store.tip(binding.session, binding.branch)
    if binding.superseded is not None and tip is not None:
        line = workspace.store.line(tip)
        tip = next((one for one in line if one.id == binding.superseded), None)
    if tip is None:
        return False
    known = KnownSources(workspace.directory)
    return transcripts.gather(client, event, binding.source, tip, known).has_messages


def save_beside(
    workspace: Workspace, client: Client, restore: Assigned
) -> Checkpoint | None:
    """Saves changes since a restore without the conversation, because this is not a turn.

    The conversation and these files are from different moments. The next prompt saves the
    conversation.
    """
    from gitcp.store.draft import Draft  # noqa: PLC0415  mostly nothing is due

    note = (
        f"changed after the restore #{restore.number}, with {client.title} open from"
        " before it"
    )
    return save_files(workspace, Draft(TRIGGER, note=note, quiet=True))


def _restored(workspace: Workspace, restore: Assigned) -> int | None:
    """Returns the number of the checkpoint that a restore restored, or None."""
    # Only the hook of a client that has not seen a restore needs these.
    from gitcp.checkpoints.reach import Reach, readable  # noqa: PLC0415

    checkpoint = readable(Reach(workspace.store), restore)
    source = checkpoint.manifest.restored_from if checkpoint is not None else None
    return workspace.store.numbers.of(source) if source is not None else None
