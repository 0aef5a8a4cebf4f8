"""What the runner of slow tests (.ci/slow.py) has still to run."""

from __future__ import annotations

import sys

import pytest

from tests.support import ci_scripts

TESTS = {"a.py::one": "v2", "b.py::two": "v2"}


@pytest.fixture(scope="module")
def slow():
    return ci_scripts.load("slow")


def to_run(slow, passes: int, *results: tuple[str, str, str]) -> list[tuple[str, int]]:
    made = [
        slow.Result(version, test, "1", "5", outcome)
        for version, test, outcome in results
    ]
    return list(slow.still_to_run(TESTS, made, passes))


def test_a_pass_is_whole_before_the_next_begins(slow):
    assert to_run(slow, 2) == [
        ("a.py::one", 1),
        ("b.py::two", 1),
        ("a.py::one", 2),
        ("b.py::two", 2),
    ]


def test_only_green_results_of_the_same_code_count(slow):
    results = [
        ("v2", "a.py::one", "passed"),
        ("v1", "a.py::one", "passed"),
        ("v2", "b.py::two", "failed"),
        ("v2", "b.py::two", "out of time"),
        ("v2", "gone.py::three", "passed"),
    ]
    assert to_run(slow, 2, *results) == [
        ("b.py::two", 1),
        ("a.py::one", 2),
        ("b.py::two", 2),
    ]


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("pass", "passed"),
        ("assert False", "failed"),
        ("import pytest; pytest.skip('not here')", "skipped"),
    ],
)
def test_a_result_is_what_pytest_says(slow, tmp_path, monkeypatch, body, outcome):
    monkeypatch.setattr(slow, "ROOT", tmp_path)
    plugins = ("-p", "no:cacheprovider", "-p", "no:langsmith_plugin")
    plain = (sys.executable, "-m", "pytest", *plugins)
    monkeypatch.setattr(slow, "PYTEST", plain)
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    result = slow.run("test_it.py::test_it", "v2", 7, tmp_path / "log")
    assert result[:3] == ("v2", "test_it.py::test_it", "7")
    assert result.outcome == outcome
