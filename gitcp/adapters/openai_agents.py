"""gitcp for the OpenAI Agents SDK (`pip install 'gitcp[openai-agents]'`).

See docs/how-to/openai-agents.md.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

try:
    from agents import SessionSettings, TResponseInputItem
    from agents.memory import SessionABC
except ModuleNotFoundError as exc:
    if exc.name != "agents":
        raise
    raise ModuleNotFoundError(
        "gitcp.adapters.openai_agents needs the OpenAI Agents SDK:"
        " pip install 'gitcp[openai-agents]'",
        name=exc.name,
    ) from exc

from gitcp.adapters import made_elsewhere
from gitcp.adapters.turn_notes import TurnNotes
from gitcp.checkpoints.save import save
from gitcp.checkpoints.session import BaseSession
from gitcp.clients.triggers import TOOL
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, NewRecords

__all__ = ["GitcpSession"]

T = TypeVar("T")


class GitcpSession(SessionABC):
    """Keeps the history of a run in a gitcp session, with the files as they were.

        session = GitcpSession(gitcp.open(".").session("tidy"))
        result = await Runner.run(agent, "Tidy up this project", session=session)

    Each time the SDK adds items, gitcp makes a checkpoint: one with the prompt, before the
    agent does anything, and one after each answer of the model, with the results of its
    tools. After a restore the next run continues from the restored history.

    The SDK defines the items; gitcp returns them equal to those added. Several processes may
    add to one session. `pop_item` and `clear_session` never remove an item that another
    process added in between without returning it.

    A history that was made elsewhere, even in part, is not read unless it came from a remote
    that the user trusts (`gitcp trust`), or `trust` is true.
    """

    def __init__(
        self,
        session: BaseSession,
        *,
        session_settings: SessionSettings | None = None,
        trust: bool = False,
    ) -> None:
        self._session = session
        self._trust = trust
        self._notes = TurnNotes()
        self.session_id = session.name
        self.session_settings = session_settings or SessionSettings()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the items, the oldest first; with a limit, only the newest so many.

        Raises:
            UsageError: a part was made elsewhere, and is not trusted.
            CorruptError: a part of the history is missing or damaged.
        """
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        items = await asyncio.to_thread(self._items)
        if limit is not None and limit >= 0:
            items = items[max(0, len(items) - limit) :]
        return items

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items at the end, and makes a checkpoint.

        Raises:
            UsageError: an item is not JSON.
            BusyError: another process is saving or restoring in this work tree.
            StorageError: the disk refused; nothing was added.
        """
        if items:
            trigger, note = self._notes.name(items)
            await _finished(
                lambda: self._session.save(append=items, trigger=trigger, note=note)
            )

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item and returns it; None if there is none.

        Raises:
            UsageError: a part of the history was made elsewhere, and is not trusted.
        """
        return await _finished(self._pop)

    async def clear_session(self) -> None:
        """Removes all items; earlier checkpoints still have them."""
        await _finished(lambda: self._replace(lambda _: b""))

    def _items(self) -> list[TResponseInputItem]:
        last = self._session.last
        return self._messages(last) if last is not None else []

    def _messages(self, tip: Checkpoint) -> list[Any]:
        made_elsewhere.check(self._session, tip, trust=self._trust)
        return tip.messages()

    def _pop(self) -> TResponseInputItem | None:
        popped: list[Any] = []

        def shorter(tip: Checkpoint) -> bytes:
            popped[:] = self._messages(tip)[-1:]
            data = tip.conversation()
            return data[: data.rstrip(b"\n").rfind(b"\n") + 1]

        self._replace(shorter)
        return cast("TResponseInputItem", popped[0]) if popped else None

    def _replace(self, change: Callable[[Checkpoint], bytes]) -> None:
        """Replaces the present history by another one, if there is one.

        The history is read with the work tree locked, so no other process adds to it meanwhile.
        """

        def complete(draft: Draft) -> Draft:
            tip = self._session.last
            if tip is None or not tip.conversation():
                return draft._replace(quiet=True)
            return draft._replace(records=(NewRecords(change(tip), whole=True),))

        if self._session.last is not None:
            save(
                self._session.workspace,
                Draft(TOOL),
                session=self._session.name,
                branch=self._session.branch,
                complete=complete,
            )


async def _finished(work: Callable[[], T]) -> T:
    """Completes a change in a thread, even if the caller is cancelled.

    A thread cannot be stopped, and the SDK's next call must see the change.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()
