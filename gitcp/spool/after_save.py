"""Notes after a save that a clone has sessions to send: `gitcp.autoPush save`."""

from gitcp.errors import GitcpError
from gitcp.project.settings import AFTER_SAVE
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint


def after_save(workspace: Workspace, tip: Checkpoint) -> None:
    """Notes it; a process in the background looks at it, so that the save ends now.

    The checkpoint is saved: what fails here must not deny that, and is told by `status`.
    """
    if workspace.settings.sharing.auto_push != AFTER_SAVE:
        return
    from gitcp.project import failed_push  # noqa: PLC0415  most saves send nothing
    from gitcp.spool import intake, pusher  # noqa: PLC0415

    try:
        waiting = intake.waiting_for(workspace)
        intake.note(workspace, waiting, [tip.session])
        if workspace.settings.background:
            pusher.start(waiting.spool)
    except GitcpError as exc:
        text = f"gitcp: {exc.message}\n  {exc.hint}" if exc.hint else exc.message
        failed_push.note(workspace.repository, workspace.settings.sharing.remote, text)
