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

    from gitcp.checkpoints.finish_restore import Restored as Restored
    from gitcp.checkpoints.restore_plan import Plan as Plan
    from gitcp.checkpoints.session import Batch as Batch
    from gitcp.errors import (
        AgentRecordError as AgentRecordError,
    )
    from gitcp.errors import (
        AmbiguousError as AmbiguousError,
    )
    from gitcp.errors import (
        BranchMovedError as BranchMovedError,
    )
    from gitcp.errors import (
        BusyError as BusyError,
    )
    from gitcp.errors import (
        CompensationError as CompensationError,
    )
    from gitcp.errors import (
        CorruptError as CorruptError,
    )
    from gitcp.errors import (
        EffectsStandError as EffectsStandError,
    )
    from gitcp.errors import (
        FormatTooNewError as FormatTooNewError,
    )
    from gitcp.errors import (
        GitcpError as GitcpError,
    )
    from gitcp.errors import (
        GitFailedError as GitFailedError,
    )
    from gitcp.errors import (
        NotARepositoryError as NotARepositoryError,
    )
    from gitcp.errors import (
        NotFoundError as NotFoundError,
    )
    from gitcp.errors import (
        NothingToDoError as NothingToDoError,
    )
    from gitcp.errors import (
        PartialError as PartialError,
    )
    from gitcp.errors import (
        RestoreInterruptedError as RestoreInterruptedError,
    )
    from gitcp.errors import (
        StepChangedError as StepChangedError,
    )
    from gitcp.errors import (
        StepLoopError as StepLoopError,
    )
    from gitcp.errors import (
        StepTimeoutError as StepTimeoutError,
    )
    from gitcp.errors import (
        StepUnknownError as StepUnknownError,
    )
    from gitcp.errors import (
        StorageError as StorageError,
    )
    from gitcp.errors import (
        UnsafePathError as UnsafePathError,
    )
    from gitcp.errors import (
        UnsupportedRepositoryError as UnsupportedRepositoryError,
    )
    from gitcp.errors import (
        UsageError as UsageError,
    )
    from gitcp.errors import (
        WouldOverwriteError as WouldOverwriteError,
    )
    from gitcp.format.log import (
        Decision as Decision,
    )
    from gitcp.ledger.state import Call as Call
    from gitcp.notices import (
        GitcpWarning as GitcpWarning,
    )
    from gitcp.steps.compensate import (
        Compensated as Compensated,
    )
    from gitcp.steps.model import (
        Retry as Retry,
    )
    from gitcp.steps.model import (
        Step as Step,
    )
    from gitcp.steps.model import (
        current_step as current_step,
    )
    from gitcp.steps.repair import (
        Affected as Affected,
    )
    from gitcp.steps.session import (
        Branch as Branch,
    )
    from gitcp.steps.session import (
        Session as Session,
    )
    from gitcp.steps.session import (
        Store as Store,
    )
    from gitcp.steps.session import (
        open as open,  # noqa: A004  gitcp.open reads as it should
    )
    from gitcp.store.checkpoint import (
        Checkpoint as Checkpoint,
    )

# name -> module; imported on use, so that `gitcp --version` does not load libgit2
_EXPORTS = {
    "AgentRecordError": "gitcp.errors",
    "AmbiguousError": "gitcp.errors",
    "Affected": "gitcp.steps.repair",
    "Batch": "gitcp.checkpoints.session",
    "Branch": "gitcp.steps.session",
    "BranchMovedError": "gitcp.errors",
    "BusyError": "gitcp.errors",
    "Call": "gitcp.ledger.state",
    "Checkpoint": "gitcp.store.checkpoint",
    "CompensationError": "gitcp.errors",
    "Compensated": "gitcp.steps.compensate",
    "CorruptError": "gitcp.errors",
    "Decision": "gitcp.format.log",
    "EffectsStandError": "gitcp.errors",
    "FormatTooNewError": "gitcp.errors",
    "GitFailedError": "gitcp.errors",
    "GitcpError": "gitcp.errors",
    "GitcpWarning": "gitcp.notices",
    "NotARepositoryError": "gitcp.errors",
    "NotFoundError": "gitcp.errors",
    "NothingToDoError": "gitcp.errors",
    "PartialError": "gitcp.errors",
    "Plan": "gitcp.checkpoints.restore_plan",
    "RestoreInterruptedError": "gitcp.errors",
    "Retry": "gitcp.steps.model",
    "Restored": "gitcp.checkpoints.finish_restore",
    "Session": "gitcp.steps.session",
    "Step": "gitcp.steps.model",
    "StepChangedError": "gitcp.errors",
    "StepLoopError": "gitcp.errors",
    "StepTimeoutError": "gitcp.errors",
    "StepUnknownError": "gitcp.errors",
    "StorageError": "gitcp.errors",
    "Store": "gitcp.steps.session",
    "UnsafePathError": "gitcp.errors",
    "UnsupportedRepositoryError": "gitcp.errors",
    "UsageError": "gitcp.errors",
    "WouldOverwriteError": "gitcp.errors",
    "current_step": "gitcp.steps.model",
    "open": "gitcp.steps.session",
}
__all__ = ["__version__", *_EXPORTS]  # noqa: PLE0604  names, all of them text


def __getattr__(name: str) -> "Any":
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'gitcp' has no attribute {name!r}")
    import importlib  # noqa: PLC0415  on use

    found = getattr(importlib.import_module(module), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
