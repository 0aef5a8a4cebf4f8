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
        CorruptError as CorruptError,
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
    from gitcp.ops.planning import (
        Plan as Plan,
    )
    from gitcp.ops.restore import (
        Restored as Restored,
    )
    from gitcp.ops.session import (
        Batch as Batch,
    )
    from gitcp.ops.session import (
        Branch as Branch,
    )
    from gitcp.ops.session import (
        Session as Session,
    )
    from gitcp.ops.session import (
        Store as Store,
    )
    from gitcp.ops.session import (
        open as open,  # noqa: A004  gitcp.open reads as it should
    )
    from gitcp.store.checkpoint import (
        Checkpoint as Checkpoint,
    )

# name -> module; imported on use, so that `gitcp --version` does not load libgit2
_EXPORTS = {
    "AgentRecordError": "gitcp.errors",
    "AmbiguousError": "gitcp.errors",
    "Batch": "gitcp.ops.session",
    "Branch": "gitcp.ops.session",
    "BranchMovedError": "gitcp.errors",
    "BusyError": "gitcp.errors",
    "Checkpoint": "gitcp.store.checkpoint",
    "CorruptError": "gitcp.errors",
    "Decision": "gitcp.format.log",
    "FormatTooNewError": "gitcp.errors",
    "GitFailedError": "gitcp.errors",
    "GitcpError": "gitcp.errors",
    "NotARepositoryError": "gitcp.errors",
    "NotFoundError": "gitcp.errors",
    "NothingToDoError": "gitcp.errors",
    "PartialError": "gitcp.errors",
    "Plan": "gitcp.ops.planning",
    "RestoreInterruptedError": "gitcp.errors",
    "Restored": "gitcp.ops.restore",
    "Session": "gitcp.ops.session",
    "StorageError": "gitcp.errors",
    "Store": "gitcp.ops.session",
    "UnsafePathError": "gitcp.errors",
    "UnsupportedRepositoryError": "gitcp.errors",
    "UsageError": "gitcp.errors",
    "WouldOverwriteError": "gitcp.errors",
    "open": "gitcp.ops.session",
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
