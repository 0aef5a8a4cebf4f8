"""Checkpoints of files, conversation and decisions, in your git repository.

    store = gitcp.open(".")
    session = store.session("auth-refactor")
    checkpoint = session.save(messages=messages, note="JWT working")
    plan = session.plan_restore(checkpoint)
    session.restore(plan)

Everything public is here. Every function may raise `GitcpError`; each error class says
when. All of it may be used from several processes at once; from a coroutine use
`asyncio.to_thread`.
"""

from gitcp._version import __version__ as __version__

# Not from typing, which takes longer to load than all of this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # isort: off
    from gitcp.checkpoints.finish_restore import Restored as Restored
    from gitcp.checkpoints.restore_plan import Plan as Plan
    from gitcp.errors import (
        AgentRecordError as AgentRecordError,
        AmbiguousError as AmbiguousError,
        BranchMovedError as BranchMovedError,
        BusyError as BusyError,
        CompensationError as CompensationError,
        CorruptError as CorruptError,
        EffectsStandError as EffectsStandError,
        FormatTooNewError as FormatTooNewError,
        GitFailedError as GitFailedError,
        GitcpError as GitcpError,
        NotARepositoryError as NotARepositoryError,
        NotFoundError as NotFoundError,
        NothingToDoError as NothingToDoError,
        PartialError as PartialError,
        RestoreInterruptedError as RestoreInterruptedError,
        StepChangedError as StepChangedError,
        StepLoopError as StepLoopError,
        StepTimeoutError as StepTimeoutError,
        StepUnknownError as StepUnknownError,
        StorageError as StorageError,
        UnsafePathError as UnsafePathError,
        UnsupportedRepositoryError as UnsupportedRepositoryError,
        UsageError as UsageError,
        WouldOverwriteError as WouldOverwriteError,
    )
    from gitcp.format.log import Decision as Decision
    from gitcp.format.tree import Change as Change
    from gitcp.ledger.call import Call as Call
    from gitcp.notices import GitcpWarning as GitcpWarning
    from gitcp.steps.batch import Batch as Batch
    from gitcp.steps.compensate import Compensated as Compensated
    from gitcp.steps.model import (
        Retry as Retry,
        Step as Step,
        current_step as current_step,
    )
    from gitcp.steps.repair import Affected as Affected
    from gitcp.steps.session import (
        Branch as Branch,
        Session as Session,
        Store as Store,
        open as open,  # noqa: A004  gitcp.open reads as it should
    )
    from gitcp.store.checkpoint import Checkpoint as Checkpoint
    # isort: on

# module -> names; imported on use, so that `gitcp --version` does not load libgit2
_MODULES = {
    "gitcp.checkpoints.finish_restore": "Restored",
    "gitcp.checkpoints.restore_plan": "Plan",
    "gitcp.errors": (
        "AgentRecordError AmbiguousError BranchMovedError BusyError "
        "CompensationError CorruptError EffectsStandError FormatTooNewError "
        "GitFailedError GitcpError NotARepositoryError NotFoundError "
        "NothingToDoError PartialError RestoreInterruptedError StepChangedError "
        "StepLoopError StepTimeoutError StepUnknownError StorageError "
        "UnsafePathError UnsupportedRepositoryError UsageError WouldOverwriteError"
    ),
    "gitcp.format.log": "Decision",
    "gitcp.format.tree": "Change",
    "gitcp.ledger.call": "Call",
    "gitcp.notices": "GitcpWarning",
    "gitcp.steps.batch": "Batch",
    "gitcp.steps.compensate": "Compensated",
    "gitcp.steps.model": "Retry Step current_step",
    "gitcp.steps.repair": "Affected",
    "gitcp.steps.session": "Branch Session Store open",
    "gitcp.store.checkpoint": "Checkpoint",
}
_EXPORTS = {
    name: module for module, names in _MODULES.items() for name in names.split()
}
__all__ = ["__version__", *_EXPORTS]  # noqa: PLE0604  names, all of them text


def __getattr__(name: str) -> "Any":
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'gitcp' has no attribute {name!r}")
    import importlib  # noqa: PLC0415  on use

    export = getattr(importlib.import_module(module), name)
    globals()[name] = export
    return export


def __dir__() -> list[str]:
    return sorted(__all__)
