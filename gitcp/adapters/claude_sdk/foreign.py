"""Decides which sessions made elsewhere the SDK gets, and rebuilds those."""

from pathlib import Path

from gitcp.agents.resume import refuse_if_large
from gitcp.clients import claude_code_foreign, known
from gitcp.errors import UsageError
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store
from gitcp.trust.trusted_remotes import Trusting


class Allowed:
    """The checkpoints whose conversation a client may get, as things are now."""

    def __init__(self, store: Store, *, trust: bool) -> None:
        self._trusting = Trusting(store)
        self._trust = trust

    def __contains__(self, tip: Checkpoint) -> bool:
        return not is_foreign(tip) or self._trust or tip in self._trusting

    def check(self, tip: Checkpoint) -> None:
        """Raises unless the client may get a conversation.

        Raises:
            UsageError: it was made elsewhere, and the user has not trusted it.
        """
        if tip not in self:
            where = tip.origin.logs
            raise UsageError(
                f"the session {tip.session!a} was made elsewhere ({where}), so gitcp does"
                " not hand it to a client unless you say so",
                hint="look at it with `gitcp messages`; then `gitcp trust REMOTE` once, or"
                " GitcpSessionStore(path, trust=True)",
            )


def is_foreign(tip: Checkpoint) -> bool:
    """Whether any part of a session's records was made elsewhere."""
    return tip.origin.logs is not None


def rebuilt(tip: Checkpoint, source: str, session: str) -> bytes:
    """Returns a main transcript made elsewhere, from known fields only.

    Permission modes, file histories and the like stay out, as in what `--trust` hands over.

    Raises:
        AgentRecordError: the transcript is too large to rebuild.
        CorruptError: the checkpoint is damaged.
    """
    refuse_if_large(tip, [source])
    raw = tip.conversation(source)
    known.refuse_if_dense(raw)
    return claude_code_foreign.rebuilt_in_place(raw, session, Path.cwd())
