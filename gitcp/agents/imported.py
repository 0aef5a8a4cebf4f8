"""Tells which of clients' conversations are in the store, and where an import continues one."""

from collections.abc import Iterator
from itertools import chain, count

from gitcp.agents import bindings
from gitcp.agents.hook_events import INTERVAL
from gitcp.clients import triggers
from gitcp.format.checkpoint import IMPORT
from gitcp.project.workspace import MAIN
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# Only these and an import add to a client's conversation. A restore, a fork and a save by
# hand repeat it.
_HOOKS = frozenset(
    {
        *(triggers.TURN_START, triggers.TURN_END, triggers.TOOL),
        *(triggers.BEFORE_COMMAND, triggers.COMPACT, triggers.SUBAGENT_STOP),
        *(triggers.SESSION_END, INTERVAL),
    }
)


class Stored:
    """The conversations that a store has, by their client's name and id."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tips: dict[tuple[str, str], Checkpoint] = {}
        self._names: set[str] = set()
        for _, tip in store.tips():
            self._names.add(tip.session)
            held = tip.manifest.conversation
            if held is None or held.agent_session is None:
                continue
            other = self._tips.get((held.kind, held.agent_session))
            if other is None or not _is_import(other):
                self._tips[held.kind, held.agent_session] = tip

    def __contains__(self, conversation: tuple[str, str]) -> bool:
        """Whether a branch ends with the conversation."""
        return conversation in self._tips

    def growing(self, client: str, ident: str) -> str | None:
        """Returns the session that ends with what was imported, so that an import continues it.

        None if there is none: after any other checkpoint, an import would seem to continue
        what that one holds.
        """
        tip = self._tips.get((client, ident))
        return tip.session if tip is not None and _is_import(tip) else None

    def last(self, client: str, ident: str) -> Checkpoint | None:
        """Returns the last checkpoint that added to a conversation, or None.

        Raises:
            CorruptError: a checkpoint of its session cannot be read.
        """
        for start in self._starts(client, ident):
            for one in self._store.line(start):
                held = one.manifest.conversation
                if (
                    held is not None
                    and (held.kind, held.agent_session) == (client, ident)
                    and (one.trigger == IMPORT or one.trigger in _HOOKS)
                ):
                    return one
        return None

    def _starts(self, client: str, ident: str) -> Iterator[Checkpoint]:
        """Yields the tips below which a conversation may be."""
        tip = self._tips.get((client, ident))
        if tip is not None:
            yield tip
            return
        # A copy of it may have taken its branch over.
        for name in _names(client, ident):
            tip = self._store.tip(name, MAIN)
            if tip is not None:
                yield tip

    def new_name(self, client: str, ident: str) -> str:
        """Returns the name that the client's hooks would give to the session, if it is free."""
        names = _names(client, ident)
        numbered = (f"{names[-1]}-{number}" for number in count(2))
        name = next(one for one in chain(names, numbered) if one not in self._names)
        self._names.add(name)
        return name


def _names(client: str, ident: str) -> tuple[str, str]:
    return f"{client}-{bindings.short(ident)}", f"{client}-{ident}"


def _is_import(tip: Checkpoint) -> bool:
    return tip.trigger == IMPORT and tip.branch == MAIN
