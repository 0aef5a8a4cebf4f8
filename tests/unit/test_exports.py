"""The public names: a type checker and a running program see the same ones."""

from __future__ import annotations

import ast
from pathlib import Path

import gitcp


def test_type_checkers_know_every_export_from_the_same_module():
    tree = ast.parse(Path(gitcp.__file__).read_text())
    known = {
        name.asname: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
        if name.asname and name.asname != "__version__"
    }
    assert known == gitcp._EXPORTS
