"""Finds the session for a page, and the checkpoint that the page shows first."""

from typing import NamedTuple

from gitcp.checkpoints import in_session
from gitcp.checkpoints.scopes import Scope
from gitcp.checkpoints.selectors import select
from gitcp.errors import NotFoundError, UsageError
from gitcp.project.workspace import Workspace


class Chosen(NamedTuple):
    """A session, or one branch of it; `ident` is the id of the checkpoint shown first."""

    session: str
    branch: str | None = None
    ident: str | None = None

    @property
    def scope(self) -> Scope:
        """The scope of the timeline to list."""
        return Scope(session=self.session, branch=self.branch)


def choose(workspace: Workspace, text: str | None) -> Chosen:
    """Returns the session that `[SEL|SESSION]` names; None means the newest checkpoint here.

    The whole name of a session counts first, then a selector, then a part of a name or of
    a prompt.

    Raises:
        NotFoundError: no session or checkpoint has such a name.
        AmbiguousError: the text matches several checkpoints or sessions.
        UsageError: the text is not a valid name.
    """
    if text is None:
        return Chosen(select(workspace, None).session)
    session, slash, _ = text.partition("/")
    if (
        session
        and not session.lstrip("#").isdigit()
        and workspace.store.refs_of(session)
    ):
        named = in_session.named(workspace, text)
        return Chosen(named.session, named.branch if slash else None)
    try:
        found = select(workspace, text)
    except (NotFoundError, UsageError) as exc:
        if not text:
            raise
        try:
            return Chosen(in_session.named(workspace, text).session)
        except NotFoundError:
            raise exc from None
    return Chosen(found.session, None, found.id)
