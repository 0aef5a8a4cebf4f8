"""The check of sizes that CI runs (.ci/sizes.py)."""

from __future__ import annotations

import pytest

from tests.support import ci_scripts


@pytest.fixture(scope="module")
def sizes():
    return ci_scripts.load("sizes")


def function(lines: int) -> str:
    return "def f():\n" + "    x = 1\n" * (lines - 1)


def class_(methods: int) -> str:
    return "class C:\n" + "".join(
        f"    def m{number}(self): ...\n" for number in range(methods)
    )


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1\n" * 400, None),
        ("x = 1\n" * 401, "module m.py: 401, and at most 400 is allowed"),
        (function(60), None),
        (function(61), "function m.py:f: 61, and at most 60 is allowed"),
        (class_(15) + "    def _private(self): ...\n", None),
        (class_(16), "class m.py:C: 16, and at most 15 is allowed"),
    ],
)
def test_what_is_above_a_limit_is_reported(sizes, source, problem):
    found = sizes.problems(sizes.sizes("m.py", source))
    assert found == ([problem] if problem else [])
