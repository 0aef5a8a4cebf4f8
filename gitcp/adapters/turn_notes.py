"""The trigger and the note of each checkpoint of a framework's run."""

from collections.abc import Iterable
from typing import Any

from gitcp.checkpoints import record_forms, spoken_turns
from gitcp.checkpoints.conversation import blocks, role, tool_call
from gitcp.checkpoints.turn_notes import asked_in, turn_note
from gitcp.clients.triggers import TOOL, TURN_END, TURN_START


class TurnNotes:
    """Makes triggers and notes for the checkpoints of runs, as the hooks of clients do."""

    def __init__(self) -> None:
        self._asked: str | None = None

    def name(self, messages: Iterable[Any]) -> tuple[str, str | None]:
        """Returns the trigger and the note of a checkpoint that adds some messages."""
        trigger = TOOL
        tools: list[str] = []
        for given in messages:
            message = record_forms.common(given)
            if not isinstance(message, dict):
                continue
            calls = [call[0] for call in map(tool_call, blocks(message)) if call]
            tools += calls
            prompt = spoken_turns.prompt_in(message)
            if prompt:
                self._asked = asked_in(prompt)
                trigger = TURN_START
            elif role(message) == "assistant" and not calls:
                trigger = TURN_END
            else:
                trigger = TOOL
        return trigger, turn_note(trigger, self._asked, tools)
