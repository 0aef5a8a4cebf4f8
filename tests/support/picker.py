"""The picker of `gitcp ui` without a terminal, driven by Textual's own pilot."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.events import Key
from textual.pilot import Pilot

from gitcp.cli.picker.app import Picker
from gitcp.cli.picker.choice import Choice, Look
from gitcp.cli.picker.jobs import Jobs

_LONGEST = 30.0
_CALM = 1.0
# The keys whose names differ from what a terminal sends for them.
_CHARACTERS = {
    "backspace": "\x7f",
    "enter": "\r",
    "escape": "\x1b",
    "full_stop": ".",
    "minus": "-",
    "slash": "/",
    "space": " ",
    "tab": "\t",
}


class Driven:
    """A picker that runs: keys go in, lines come out."""

    def __init__(self, app: Picker, pilot: Pilot[Choice | None]) -> None:
        self.app = app
        self.pilot = pilot

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Waits until something holds."""
        end = time.monotonic() + _LONGEST
        while not holds():
            assert time.monotonic() < end, f"never: {what}\n{self.screen}"
            await self.pilot.pause(0.01)

    async def shows(self, text: str) -> None:
        """Waits until a text is on the screen."""
        await self.until(lambda: text in self.screen, text)
        await self._calm()

    async def hides(self, text: str) -> None:
        """Waits until a text is not on the screen."""
        await self.until(lambda: text not in self.screen, f"without {text}")
        await self._calm()

    async def settled(self) -> None:
        """Waits until nothing is being read, and all that was read is shown."""
        app = self.app

        def is_settled() -> bool:
            view = app.browsing.view == app.browsing.shown or not app.listing.found
            return view and not app.listing.reading

        await self.until(is_settled, "the rows and the page")
        await self.until(lambda: not self._is_reading(), "idle")
        await self._processed()

    async def press(self, *keys: str) -> None:
        """Presses keys, one after the other.

        Not by the pilot, which waits 40 ms for each, and a second beside a busy thread.
        """
        for key in keys:
            self._send(key)
            await self._processed()
        await self._calm()

    async def _calm(self) -> None:
        """Waits until all requested reads have been drawn, but no longer than a second."""
        end = time.monotonic() + _CALM
        while self._is_reading() and time.monotonic() < end:
            await self.pilot.pause(0.005)
        await self._processed()

    def _is_reading(self) -> bool:
        app = self.app
        return app.is_running and not (app.reads.idle and app.heavy.idle)

    async def _processed(self) -> None:
        """Waits until the picker has processed all messages, and drawn what they changed."""
        app = self.app
        while app.is_running:
            await self.pilot.pause(0)
            pumps = [app, *app.screen.walk_children(with_self=True)]
            if all(pump._message_queue.empty() for pump in pumps):
                return

    def _send(self, key: str) -> None:
        known = _CHARACTERS.get(key)
        self.app.post_message(Key(key, known or (key if len(key) == 1 else None)))

    async def press_at_once(self, *keys: str) -> None:
        """Presses keys faster than the picker takes them, as a terminal hands them over."""
        for key in keys:
            self._send(key)
        await self._calm()

    async def type(self, text: str) -> None:
        """Types a text."""
        names = {char: name for name, char in _CHARACTERS.items()}
        await self.press(*(names.get(char, char) for char in text))

    async def plan(self, *keys: str) -> None:
        """Presses keys, and then asks for a restore."""
        await self.press(*keys, "r")
        await self.shows("Restore?")

    async def go_to(self, text: str) -> None:
        """Moves down on the right side to a line with a text."""
        while (line := self.app.pane.line) is None or text not in str(line.text):
            await self.press("j")

    async def answer(self, key: str, text: str) -> None:
        """Presses a key that asks for a line, and types the line."""
        await self.type(key)
        await self.type(text)
        await self.press("enter")

    @property
    def screen(self) -> str:
        """The text on the screen."""
        if not self.app.is_running:
            return ""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)

    @property
    def selected(self) -> str:
        """The row that is selected."""
        rows = self.app.rows
        parts = rows.parts(rows.at, 200)
        return "".join(part.text for part in parts).strip()


def drive(
    top: Path,
    steps: Callable[[Driven], Awaitable[None]],
    size: tuple[int, int] = (120, 30),
    look: Look | None = None,
) -> Choice | None:
    """Runs a picker in a repository until the steps are done; returns what was chosen.

    They begin once all that is shown first has been read.
    """
    reads, heavy = Jobs(str(top)), Jobs(str(top))
    app = Picker(reads, heavy, look or Look(), str(top))

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            driven = Driven(app, pilot)
            await driven.until(lambda: app.listing.found is not None, "rows")
            await driven.settled()
            await steps(driven)

    try:
        reads.start()
        heavy.start()
        asyncio.run(run())
    finally:
        reads.close()
        heavy.close()
    for crash in (reads.crash, heavy.crash):
        if crash is not None:
            raise crash
    return app.return_value
