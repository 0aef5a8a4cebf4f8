"""Notes after a save that a clone has sessions to send: `gitcp.autoPush save`."""

from gitcp.errors import GitcpError
from gitcp.project.settings import AFTER_SAVE
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint


def after_save(workspace: Workspace, tip: Checkpoint) -> None:
    """Notes the session; a background process sends it, so that the save ends at once.

    The checkpoint is saved already, so a failure here must not fail the save. `status`
    reports it.
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
