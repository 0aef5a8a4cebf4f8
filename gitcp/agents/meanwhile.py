"""A client that was at work before a person restored: it changes no branch unasked."""

from gitcp.agents.bindings import Binding
from gitcp.checkpoints.reach import Reach
from gitcp.checkpoints.standing import last_restore, readable, stands_on
from gitcp.clients import client as words
from gitcp.clients.client import Client, Event
from gitcp.format.checkpoint import timestamp
from gitcp.format.numbers import Assigned
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

# Not a turn: nothing of the conversation is in it.
TRIGGER = "after-restore"


def overtaking(workspace: Workspace, binding: Binding | None) -> Assigned | None:
    """Returns the restore that a client has not seen, or None.

    A client has seen what was there when its turn began, or when gitcp handed it its
    conversation.
    """
    if binding is None:
        return None
    restore = last_restore(workspace)
    if restore is None or restore.id == binding.restore:
        return None
    if binding.restore is None and timestamp(binding.seen) > restore.created:
        # Noted before gitcp kept which restore a client knows of.
        return None
    return restore


def told(workspace: Workspace, event: Event, binding: Binding | None) -> str | None:
    """Returns what a client's model is told as a turn begins, or None."""
    if event.what != words.TURN_START:
        return None
    restore = overtaking(workspace, binding)
    if restore is None:
        return None
    to = _target(workspace, restore)
    return (
        f"gitcp: the files of this project were restored to {to} since your last turn."
        " They are not as you left them. Read a file again before you rely on it. This"
        f" conversation goes on as a branch of its own; #{restore.number} is the restore,"
        " `gitcp log` shows what happened, and `gitcp undo` takes the restore back."
    )


def branch_name(workspace: Workspace, restore: Assigned) -> str:
    """Returns what the branch is called on which a client goes on after a restore."""
    checkpoint = readable(Reach(workspace.store), restore)
    source = checkpoint.manifest.restored_from if checkpoint is not None else None
    number = _number_of(workspace, source)
    return f"after-restore-{number or restore.number}"


def save_beside(
    workspace: Workspace, client: Client, restore: Assigned
) -> Checkpoint | None:
    """Saves what changed since a restore, as no turn at all: without a conversation.

    The client's words are of another moment than these files. They are saved once it
    continues with a new prompt.
    """
    from gitcp.checkpoints.save import save  # noqa: PLC0415  mostly nothing is due
    from gitcp.store.draft import Draft  # noqa: PLC0415

    stood = stands_on(workspace)
    note = (
        f"changed after the restore #{restore.number}, with {client.title} open from"
        " before it"
    )
    saved = save(
        workspace,
        Draft(TRIGGER, note=note, quiet=True),
        session=stood.session,
        branch=stood.branch,
        steer=False,
    )
    return saved.checkpoint if saved.created else None


def _target(workspace: Workspace, restore: Assigned) -> str:
    checkpoint = readable(Reach(workspace.store), restore)
    source = checkpoint.manifest.restored_from if checkpoint is not None else None
    number = _number_of(workspace, source)
    return f"#{number}" if number else source or "another state"


def _number_of(workspace: Workspace, ident: str | None) -> int | None:
    return workspace.store.numbers.of(ident) if ident is not None else None
