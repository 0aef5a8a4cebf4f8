"""No module imports, in the end, itself; imports for types and inside functions count."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import gitcp

PACKAGE = Path(gitcp.__file__).parent


def modules(package: Path) -> dict[str, Path]:
    """The modules of a package by their names."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(tree: ast.Module, names: set[str]) -> set[str]:
    """The modules of `names` that a module imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                found.add(below if below in names else node.module)
    return found & names


def cycles(graph: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """The modules that import each other, grouped (Tarjan's components)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: set[tuple[str, ...]] = set()

    def visit(name: str) -> None:
        numbers[name] = lowest[name] = len(numbers)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in numbers:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == numbers[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.add(tuple(sorted(stack[at:])))
            del stack[at:]

    for name in sorted(graph):
        if name not in numbers:
            visit(name)
    return found


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, set()),
        ({"a": {"b"}, "b": {"a", "c"}, "c": set()}, {("a", "b")}),
        ({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}, {("b", "c")}),
    ],
)
def test_a_cycle_is_found(graph, expected):
    assert cycles(graph) == expected


def test_no_modules_import_each_other():
    paths = modules(PACKAGE)
    names = set(paths)
    graph = {
        name: imports(ast.parse(path.read_bytes()), names) - {name}
        for name, path in paths.items()
    }
    assert len(graph) > 100
    assert not cycles(graph)
