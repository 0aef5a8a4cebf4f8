"""Finds the session that a person names, for commands that are narrowed to one."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from gitcp.checkpoints.numbered import by_number_or_none
from gitcp.errors import AmbiguousError, NotFoundError
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

if TYPE_CHECKING:
    from gitcp.checkpoints.branch_index import ListedBranch

_SHOWN = 5
_NUMBER = re.compile(r"#?([1-9]\d{0,14})", re.ASCII)


class Named(NamedTuple):
    """A session, and a branch of it if one was named."""

    session: str
    branch: str | None = None


def named(workspace: Workspace, spec: str) -> Named:
    """Returns the session that `SESSION`, `SESSION/BRANCH`, `#N` or a prompt names.

    A whole name wins, then the number of a checkpoint, then the end or beginning of a
    name, then the first prompt of a conversation, or a part of it.

    Raises:
        NotFoundError: nothing has such a name.
        AmbiguousError: several sessions are meant.
        UsageError: a name is not usable.
    """
    session, slash, rest = spec.partition("/")
    if session and workspace.store.refs_of(session):
        branch = workspace.current().named(spec).branch
        return Named(session, branch if slash else None)
    number = _NUMBER.fullmatch(spec)
    if number is not None:
        checkpoint = by_number_or_none(workspace, int(number[1]))
        if checkpoint is not None:
            return Named(checkpoint.session)
    for found in _like(workspace, session, spec):
        if len(found) == 1:
            # A prompt may have a slash; then no part of it is a branch.
            is_name = slash and session in next(iter(found))
            return Named(next(iter(found)), rest if is_name else None)
        if found:
            some = ", ".join(sorted(found)[:_SHOWN])
            raise AmbiguousError(
                f"{spec!a} may be several sessions: {some}"
                f"{' …' if len(found) > _SHOWN else ''}",
                hint="`gitcp sessions` lists them",
            )
    workspace.current().named(spec)
    raise NotFoundError(
        f"there is no session {spec!a}", hint="`gitcp sessions` lists them"
    )


def _like(workspace: Workspace, session: str, spec: str) -> Iterator[set[str]]:
    """Yields sets of sessions that a text may mean, the most likely first."""
    if not session:
        return
    # Programs give names, and a name does not need this import.
    from gitcp.checkpoints import branch_index  # noqa: PLC0415

    branches = branch_index.listed(workspace.store, unreadable=lambda _: None)
    yield {
        one.session
        for one in branches
        if one.session.startswith(session) or one.session.endswith(f"-{session}")
    }
    words = spec.casefold()
    yield {one.session for one in branches if _asked(one) == words}
    yield {one.session for one in branches if words in _asked(one)}


def _asked(branch: "ListedBranch") -> str:
    return (branch.asked or "").casefold()


def newest_in(workspace: Workspace, spec: str) -> Checkpoint:
    """Returns the newest checkpoint of a session, on whatever branch, or of one branch.

    Raises:
        NotFoundError: there is no such session or branch.
        AmbiguousError: several sessions are meant.
        UsageError: a name is not usable.
        CorruptError: the checkpoint is damaged.
    """
    store = workspace.store
    session, branch = named(workspace, spec)
    if branch is not None:
        return store.require_tip(session, branch)
    tips = [
        store.tip(*store.names(key, oid)) for key, oid in store.refs_of(session).items()
    ]
    return max(filter(None, tips), key=lambda tip: (tip.raw.epoch, tip.created))
