"""How many kinds of secrets the scanner finds that it was not made for.

`python bench/secret_recall.py`: the kinds of `bench.secret_kinds` in each form in which a
tool or a person writes them, three of each kind; a kind's secret is found if the scan of
its text finds anything. Prints shares by form and by group, and no kind by its name, as the
rules are not to be made for these. `--misses` names the kinds that are missed in a plain
line: for the last run, when the rules are done.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench import secret_kinds
from gitcp.secrets import library
from gitcp.secrets.scanner import Fingerprints, Scanner

SEEDS = range(3)
PLAIN = "plain"


class Tried(NamedTuple):
    """One secret of a kind in a form, and whether it was found."""

    kind: str
    group: str
    form: str
    found: bool


def tried(scan: Scanner) -> Iterable[Tried]:
    """Yields each secret in each form that applies to it."""
    for kind in secret_kinds.KINDS:
        for number in SEEDS:
            rng = random.Random(f"{kind.name}/{number}")
            value = kind.make(rng)
            line = kind.line(value, rng)
            for form in secret_kinds.FORMS:
                if form.applies(kind, value):
                    text = form.wrap(value, line, rng)
                    data = text if isinstance(text, bytes) else text.encode()
                    found = bool(scan.scan([data]))
                    yield Tried(kind.name, kind.group, form.name, found)


def table(rows: list[Tried], by: Callable[[Tried], str]) -> dict[str, str]:
    """Returns the share that was found, by form or by group, in the order they came."""
    total, found = Counter(map(by, rows)), Counter(by(row) for row in rows if row.found)
    return {
        name: f"{100 * found[name] / count:5.1f} % of {count}"
        for name, count in total.items()
    }


def show(layers: dict[str, dict[str, str]]) -> None:
    """Prints a line for each name, a column for each layer."""
    names = dict.fromkeys(name for rows in layers.values() for name in rows)
    print(f"{'':28}" + "".join(f"{layer:>22}" for layer in layers))
    for name in names:
        print(f"{name:28}" + "".join(f"{rows[name]:>22}" for rows in layers.values()))


def main() -> None:
    """Prints recall by form, then by group in a plain line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--no-library", action="store_true")
    options = parser.parse_args()
    layers = {"built-in": Scanner(Fingerprints(bytes(32)))}
    extra = None if options.no_library else library.library()
    if extra is not None:
        layers["with the library"] = Scanner(Fingerprints(bytes(32)), extra=extra)
    results = {name: list(tried(scan)) for name, scan in layers.items()}
    print(f"{len(secret_kinds.KINDS)} kinds, {len(SEEDS)} of each")
    show({name: table(rows, lambda row: row.form) for name, rows in results.items()})
    plain = {
        name: [row for row in rows if row.form == PLAIN]
        for name, rows in results.items()
    }
    print(f"\nby group, {PLAIN}:")
    show({name: table(rows, lambda row: row.group) for name, rows in plain.items()})
    if options.misses:
        for name, rows in plain.items():
            missed = dict.fromkeys(row.kind for row in rows if not row.found)
            print(f"\nmissed in a plain line, {name}: {', '.join(missed)}")


if __name__ == "__main__":
    main()
