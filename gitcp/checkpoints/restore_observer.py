"""The interface by which the ledger of steps takes part in a restore."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.project import extensions
from gitcp.project.workspace import Current, Workspace

if TYPE_CHECKING:
    from gitcp.ledger.call import Call


class RewoundSteps(NamedTuple):
    """The steps that a restore rewinds past, newest first.

    The effects of the `outside` ones stay; the `inside` ones run again when called.
    """

    outside: "tuple[Call, ...]" = ()
    inside: "tuple[Call, ...]" = ()


class RestoreObserver(Protocol):
    """Takes part in each restore; `restore` is the id that its checkpoint will have."""

    def before_plan(
        self, workspace: Workspace, request: RestoreRequest
    ) -> RewoundSteps:
        """Returns what the restore would rewind past."""

    def refuse(self, request: RestoreRequest, rewound: RewoundSteps) -> None:
        """Raises if the restore must not be done as it was requested."""

    def after_apply(
        self,
        workspace: Workspace,
        request: RestoreRequest,
        branch: Current,
        restore: str,
    ) -> None:
        """Records a restore whose files are in place; repeatable."""

    def on_abort(self, workspace: Workspace, branch: Current, restore: str) -> None:
        """Undoes what `after_apply` did; repeatable."""


def restore_observer() -> RestoreObserver:
    """Returns the observer of restores."""
    observer: RestoreObserver = extensions.load(extensions.RESTORE_OBSERVER)
    return observer
