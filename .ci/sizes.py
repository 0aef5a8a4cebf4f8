#!/usr/bin/env python3
"""Reports modules, functions and classes of the package that are too large."""

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
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


def problems(measured: Iterable[Size]) -> list[str]:
    """Returns a line for each thing above its limit."""
    return [
        f"{each.kind} {each.name}: {each.size}, and at most {LIMITS[each.kind]} is allowed"
        for each in measured
        if each.size > LIMITS[each.kind]
    ]


def main() -> int:
    """Prints what is too large; returns the exit status."""
    too_large = problems(
        each
        for path in sorted((ROOT / "gitcp").rglob("*.py"))
        for each in sizes(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))
    )
    for line in too_large:
        print(line)
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
