#!/usr/bin/env python3
"""Reports modules, functions and classes of the package that are too large.

`sizes.txt` lists the present offenders with their sizes: none may grow, and none may be
added. An entry that is no longer needed is named, to be removed.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / ".ci" / "sizes.txt"
MODULE, FUNCTION, CLASS = "module", "function", "class"
# Lines of a module, lines of a function, public methods and properties of a class.
LIMITS = {MODULE: 400, FUNCTION: 60, CLASS: 15}


class Size(NamedTuple):
    """How large one thing is, as `LIMITS` counts it; `name` is its path, or `path:name`."""

    kind: str
    name: str
    size: int


def sizes(path: str, source: str) -> Iterator[Size]:
    """Yields the size of a module and of everything in it."""
    yield Size(MODULE, path, len(source.splitlines()))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Size(FUNCTION, f"{path}:{node.name}", length)
        elif isinstance(node, ast.ClassDef):
            public = [
                each
                for each in node.body
                if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                and not each.name.startswith("_")
            ]
            yield Size(CLASS, f"{path}:{node.name}", len(public))


def known(text: str) -> dict[tuple[str, str], int]:
    """Reads the list: a kind, a name and a size on each line."""
    rows = [line.split() for line in text.splitlines() if line and line[0] != "#"]
    return {(kind, name): int(size) for kind, name, size in rows}


def problems(measured: list[Size], listed: dict[tuple[str, str], int]) -> list[str]:
    """Returns a line for each thing above its limit and above its size in the list."""
    return [
        f"{each.kind} {each.name}: {each.size}, and at most"
        f" {max(LIMITS[each.kind], listed.get(each[:2], 0))} is allowed"
        for each in measured
        if each.size > max(LIMITS[each.kind], listed.get(each[:2], 0))
    ]


def main() -> int:
    """Prints what is too large; returns the exit status."""
    measured = [
        each
        for path in sorted((ROOT / "gitcp").rglob("*.py"))
        for each in sizes(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    ]
    listed = known(LIST.read_text("utf-8"))
    too_large = problems(measured, listed)
    for line in too_large:
        print(line)
    above = {each[:2] for each in measured if each.size > LIMITS[each.kind]}
    for kind, name in sorted(listed.keys() - above):
        print(f"remove from {LIST.name}: {kind} {name} is within the limit")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
