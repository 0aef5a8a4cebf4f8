"""Decides whether an agent gets a conversation that was made elsewhere: it may call tools."""

from gitcp.checkpoints.session import BaseSession
from gitcp.errors import UsageError
from gitcp.store.checkpoint import Checkpoint
from gitcp.trust.trusted_remotes import is_trusted


def check(session: BaseSession, tip: Checkpoint, *, trust: bool) -> None:
    """Raises unless an agent may get a checkpoint's conversation.

    Raises:
        UsageError: a part of it was made elsewhere, and the user has not trusted it.
    """
    where = tip.origin.logs
    if trust or where is None or is_trusted(session.workspace.store, tip):
        return
    raise UsageError(
        f"the conversation of the session {tip.session!a} was made elsewhere ({where}), at"
        " least in part, so gitcp does not hand it to an agent unless you say so",
        hint="look at it with `gitcp messages`; then `gitcp trust REMOTE` once, or"
        " trust=True; or use a session of another name",
    )
