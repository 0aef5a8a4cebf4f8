"""An ordinary session with a build product that changes at each turn; nothing is run by hand.

    python bench/build_product.py --gitcp VENV/bin/gitcp [--turns 1000] [--in DIR]

Each turn edits three of 300 source files, adds 10 KB to the transcript, and links the product
again, as a compiler does: of its 200 parts one has another length and other content, and 500
addresses, anywhere, move with it. Half of it is text that compresses. `.git` is measured as a
user sees it, between saves, and again once nothing works in the background any more.
"""

import argparse
import random
import shutil
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from generate import make
from measure import Case, Edits, Taken, in_turn, run

SESSION = "11111111-2222-4333-8444-555555555555"
PARTS = 200
SIZE = 100_000
MOVED = 500
# As far as the median of a turn goes to either side.
AROUND = 5
WORDS = [random.Random(n).randbytes(8) for n in range(500)]


class Product:
    """A linked program of some 20 MB."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._chance = random.Random(5)
        self._parts = [self._compiled(SIZE) for _ in range(PARTS)]
        self.link()

    def _compiled(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            data += self._chance.randbytes(8) + self._chance.choice(WORDS)
        return data

    def link(self) -> None:
        """Compiles one part again, moves addresses, and writes the whole."""
        at = self._chance.randrange(PARTS)
        self._parts[at] = self._compiled(SIZE + self._chance.randrange(-500, 500))
        for _ in range(MOVED):
            part = self._parts[self._chance.randrange(PARTS)]
            offset = self._chance.randrange(len(part) - 4)
            part[offset : offset + 4] = self._chance.randbytes(4)
        self._path.write_bytes(b"".join(self._parts))


def medians(taken: Sequence[Taken]) -> Taken:
    """Returns the median time, and the median processor time."""
    return Taken(
        statistics.median(one.wall for one in taken),
        statistics.median(one.cpu for one in taken),
    )


def size_of(top: Path) -> float:
    """Returns the megabytes below `.git`."""
    found = 0
    for one in (top / ".git").rglob("*"):
        try:
            found += one.stat().st_size if one.is_file() else 0
        except FileNotFoundError:
            # Packs are merged meanwhile.
            continue
    return found / 1e6


def main() -> None:
    """Takes the turns and prints what each tenth of them cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--in", dest="place", default=None)
    given = parser.parse_args()
    gitcp = shutil.which(given.gitcp) or given.gitcp
    chance = random.Random(3)
    with tempfile.TemporaryDirectory(dir=given.place) as place:
        top = Path(place, "project")
        make(top, 300)
        edit = Edits(top, 3)
        product = Product(top / "program")
        transcript = Path(place, "transcript.jsonl")
        print(f"product {(top / 'program').stat().st_size / 1e6:.1f} MB")
        took: list[Taken] = []
        for turn in range(1, given.turns + 1):
            edit()
            product.link()
            with transcript.open("a") as file:
                file.write(
                    f'{{"type":"user","sessionId":"{SESSION}","uuid":"{turn:032x}","message":'
                    f'{{"role":"user","content":"{chance.randbytes(5_000).hex()}"}}}}\n'
                )
            words = ["save", "-q", "--trigger", "turn-end", "--transcript", transcript]
            save = Case("save", partial(run, [gitcp, *words], top))
            took += in_turn([save], 1)[save.name]
            if turn in {10, given.turns} or turn % max(1, given.turns // 10) == 0:
                some = medians(took[-2 * AROUND :])
                print(
                    f"turn {turn}: .git {size_of(top):.0f} MB, median save"
                    f" {some.wall:.3f} s, {some.cpu:.3f} s of processor time",
                    flush=True,
                )
        tenth, every = medians(took[10 - AROUND : 10 + AROUND]), medians(took)
        longest = max(one.wall for one in took)
        print(
            f"median save {every.wall:.3f} s, {every.wall / tenth.wall:.2f} x that of turn"
            f" 10 (bar 1.2), {every.cpu / tenth.cpu:.2f} x its processor time; at most"
            f" {longest:.2f} s"
        )
        before = size_of(top)
        run([gitcp, "gc", "-q"], top)
        print(f".git {before:.0f} MB; `gitcp gc` leaves {size_of(top):.0f} MB")


if __name__ == "__main__":
    main()
