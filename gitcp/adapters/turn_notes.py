"""What tells the checkpoints of a framework's run from each other: a trigger and a note."""

from collections.abc import Iterable
from typing import Any

from gitcp.checkpoints import record_forms, spoken_turns
from gitcp.checkpoints.conversation import blocks, role, tool_call
from gitcp.checkpoints.first_line import brief
from gitcp.clients.triggers import TOOL, TURN_END, TURN_START

# Letters of a prompt.
_LONGEST = 72


class TurnNotes:
    """Names the checkpoints of one run after another, as the hooks of clients do."""

    def __init__(self) -> None:
        self._asked: str | None = None

    def name(self, messages: Iterable[Any]) -> tuple[str, str | None]:
        """Returns trigger and note for a checkpoint that adds some messages."""
        trigger, tools = TOOL, []
        for given in messages:
            message = record_forms.common(given)
            if not isinstance(message, dict):
                continue
            calls = [call[0] for call in map(tool_call, blocks(message)) if call]
            tools += calls
            prompt = spoken_turns.prompt_in(message)
            if prompt:
                self._asked = brief(prompt, _LONGEST)
                trigger = TURN_START
            elif role(message) == "assistant" and not calls:
                trigger = TURN_END
            else:
                trigger = TOOL
        if trigger == TURN_START:
            return trigger, f"before: {self._asked}"
        if trigger == TURN_END or not tools:
            return trigger, self._asked
        names = ", ".join(dict.fromkeys(tools))
        return trigger, brief(
            f"{names}: {self._asked}" if self._asked else names, _LONGEST
        )
