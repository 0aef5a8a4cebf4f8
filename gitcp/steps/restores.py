"""The ledger's part in a restore; see `checkpoints.restore_observer`."""

from types import ModuleType

from gitcp.checkpoints.restore_observer import RewoundSteps
from gitcp.checkpoints.restore_request import RestoreRequest
from gitcp.checkpoints.standing import continues_on, stands_on
from gitcp.errors import EffectsStandError
from gitcp.project.workspace import Current, Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

_SHOWN = 5


def before_plan(workspace: Workspace, request: RestoreRequest) -> RewoundSteps:
    """Returns the steps done since the target on the branch that the restore rewinds."""
    current = stands_on(workspace)
    branch = request.onto or continues_on(workspace, request, current)
    if not _rewinds(workspace, request, current, branch):
        return RewoundSteps()
    rewound: RewoundSteps = _rewind().behind(workspace, branch, request.target)
    return rewound


def refuse(request: RestoreRequest, rewound: RewoundSteps) -> None:
    """Raises if a step reached outside, unless its result will be replayed.

    Raises:
        EffectsStandError: a step reached outside.
    """
    if not rewound.outside or request.replay:
        return
    from gitcp.ledger.call import show_call  # noqa: PLC0415  as below

    names = [show_call(call) for call in rewound.outside]
    target = request.target.id
    raise EffectsStandError(
        f"{', '.join(names[:_SHOWN])}{(' …' if len(names) > _SHOWN else '')}"
        " happened after it, and a restore does not undo that",
        steps=names,
        hint=f"nothing was changed; `gitcp restore {target} --replay` keeps the"
        f" recorded results, `gitcp fork {target} NAME` runs it again on a branch,"
        f" `gitcp undo --effects --to {target}` undoes it",
    )


def after_apply(
    workspace: Workspace, request: RestoreRequest, branch: Current, restore: str
) -> None:
    """Records in the ledger that a restore rewound a branch."""
    if _rewinds(workspace, request, stands_on(workspace), branch):
        _rewind().went_back(workspace, branch, request.target, restore)


def on_abort(workspace: Workspace, branch: Current, restore: str) -> None:
    """Reverts the ledger record of a restore that was aborted or undone."""
    if workspace.ledgers.started(branch.session):
        _rewind().stayed(workspace, branch, restore)


def _rewinds(
    workspace: Workspace, request: RestoreRequest, current: Current, branch: Current
) -> bool:
    """Whether a restore rewinds its branch in the ledger."""
    return (
        request.whole
        and request.fork is None
        and not _arrives(workspace.store, current, branch, request.target)
        and workspace.ledgers.started(branch.session)
    )


def _arrives(store: Store, current: Current, onto: Current, target: Checkpoint) -> bool:
    """Whether a restore only arrives at the tip of a branch, and does not rewind it.

    Then later steps still count: the branch continues as the ledger has it.
    """
    tip = store.tip(onto.session, onto.branch)
    return tip == target and (current != onto or target.origin.files is not None)


def _rewind() -> ModuleType:
    # The code that reads ledgers takes time to load, and most sessions have no ledger.
    from gitcp.steps import rewind  # noqa: PLC0415

    return rewind
