"""What the picker costs: first paint in a terminal of its own, and each key after that.

    python bench/ui.py [--repository DIR] [--sessions 500] [--turns 10] [--files 20000] [--runs 9]

The repository is that of `bench/timeline.py`: two checkpoints a turn. First paint is the time
from the start of the process, whose terminal is a pty of 120 x 40, until the frame is there
(`frame`), and until the rows with their prompts are (`rows`); `processor` is the time of
processors until then, on Linux; `whole` is when Textual has drawn the picker. The time of a
key is that from the key press until the screen has been drawn again, in Textual's own test
driver, in the same repository: of keys pressed one after the other while the picker still
reads, and of those pressed once it is idle.
"""

import argparse
import asyncio
import fcntl
import gc
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from textual.events import Key

from bench.timeline import made
from gitcp.cli.picker.app import Picker
from gitcp.cli.picker.choice import Look
from gitcp.cli.picker.jobs import Jobs

_EVERY = (
    *("j", "j", "pagedown", "G", "k", "pageup", "g", "]", "[", "2", "3", "4", "1"),
    *("space", "d", "escape", "w", "w", "f", "t", "t", "tab", "j", "tab"),
    *("question_mark", "escape", "slash", "a", "s", "k", "backspace", "escape"),
)
_CHARACTERS = {"slash": "/", "question_mark": "?", "space": " "}
# A key that changes nothing on the screen draws nothing.
_UNDRAWN = 0.5
_LONGEST = 60.0


class Painted(NamedTuple):
    """Seconds until the frame, the first rows, and the whole picker.

    `processor` are those that processors took until the rows.
    """

    frame: float
    rows: float
    processor: float
    whole: float


def _processor(process: int) -> float:
    """Returns the seconds of a processor that a process and its children took so far."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")


def first_paint(top: Path) -> Painted:
    """Starts a picker in a terminal and watches what it draws."""
    began = time.perf_counter()
    process, master = pty.fork()
    if process == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="120", LINES="40")
        argv = [sys.executable, "-m", "gitcp", "-C", str(top), "ui"]
        os.execv(sys.executable, argv)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen, frame = b"", 0.0
    while True:
        ready, _, _ = select.select([master], [], [], _LONGEST)
        if not ready:
            sys.exit(f"nothing was drawn: {seen[-500:]!r}")
        seen += os.read(master, 1 << 16)
        now = time.perf_counter() - began
        if not frame and b"(now)" in seen:
            frame = now
        if b"ask " in seen:
            break
    rows, processor = now, _processor(process)
    while b"quit" not in seen:
        seen += os.read(master, 1 << 16)
    whole = time.perf_counter() - began
    os.write(master, b"q")
    while True:
        try:
            if not os.read(master, 1 << 16):
                break
        except OSError:
            break
    os.waitpid(process, 0)
    os.close(master)
    return Painted(frame, rows, processor, whole)


class _Watched(Picker):
    """A picker that notes when it draws first after a key."""

    drawn = 0.0

    def _display(self, screen, renderable) -> None:
        super()._display(screen, renderable)
        self.drawn = self.drawn or time.perf_counter()


def keys(top: Path) -> Iterator[tuple[str, float]]:
    """Yields each key with its seconds: pressed while rows are read, then when idle."""
    reads, heavy = Jobs(str(top)), Jobs(str(top))
    app = _Watched(reads, heavy, Look(), str(top))
    times: list[tuple[str, float]] = []

    async def until(holds) -> None:
        while not holds():  # noqa: ASYNC110  it asks a thread
            await asyncio.sleep(0.0005)

    async def press(when: str, key: str) -> None:
        character = (
            _CHARACTERS.get(key, key) if len(key) == 1 or key in _CHARACTERS else None
        )
        app.drawn, began = 0.0, time.perf_counter()
        app.post_message(Key(key, character))
        await until(lambda: app.drawn or time.perf_counter() - began > _UNDRAWN)
        if app.drawn:
            times.append((f"{when} {key}", app.drawn - began))

    async def idle() -> None:
        await until(lambda: reads.idle and heavy.idle)
        await asyncio.sleep(0.1)

    async def run() -> None:
        async with app.run_test(size=(120, 40)):
            await until(lambda: app.listing.found is not None)
            for key in _EVERY:
                await press("reading", key)
            await idle()
            for key in _EVERY:
                await press("idle", key)
                await idle()

    gc.set_threshold(100_000, 20, 20)
    reads.start()
    heavy.start()
    asyncio.run(run())
    reads.close()
    heavy.close()
    yield from times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repository", type=Path)
    parser.add_argument("--sessions", type=int, default=500)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=9)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitcp-bench-") as scratch:
        top = chosen.repository
        if top is None:
            top = Path(scratch, "project")
            top.mkdir()
            made(top, chosen.sessions, chosen.turns, chosen.files)
        painted = [first_paint(top) for _ in range(chosen.runs)]
        for name, each in zip(Painted._fields, zip(*painted, strict=True), strict=True):
            print(
                f"first paint, {name:<9} median {statistics.median(each) * 1000:6.0f} ms"
                f"  least {min(each) * 1000:6.0f} ms"
            )
        found = list(keys(top))
        for when in ("reading", "idle"):
            times = [(name, took) for name, took in found if name.startswith(when)]
            worst = max(times, key=lambda one: one[1])
            middle = statistics.median(took for _, took in times)
            print(
                f"keys while {when:<8} median {middle * 1000:5.1f} ms"
                f"  worst {worst[1] * 1000:5.1f} ms ({worst[0].split()[1]})"
            )


if __name__ == "__main__":
    main()
