"""Whether the tests that an agent ran passed, by the records of each client."""

from __future__ import annotations

import json

import pytest

from gitcp.checkpoints.tested import came_of
from tests.unit.test_tool_calls import (
    claude,
    claude_result,
    codex,
    codex_result,
    gemini,
    opencode,
)

PASSED = "collected 3 items\n\n===== 3 passed in 0.12s ====="
FAILED = "collected 3 items\n\n===== 1 failed, 2 passed in 0.12s ====="


def ran(command, output="", **more):
    return [claude("Bash", command=command), claude_result(content=output, **more)]


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "python -m pytest -q tests/unit",
        ".venv/bin/python -m unittest discover",
        "cd web && CI=1 npx vitest run",
        "uv run pytest -x && echo done",
        "npm run test:unit",
        "yarn -s test",
        "timeout 60 cargo test --all",
        "go test ./... 2>&1",
        "./gradlew :app:test",
        "make check",
        "bash -lc 'bundle exec rspec'",
        "ls\ntox -e py311",
    ],
)
def test_a_status_counts_where_it_is_that_of_the_tests(command):
    assert came_of(ran(command)) is True
    assert came_of(ran(command, "Exit code 1", is_error=True)) is False


@pytest.mark.parametrize(
    "command",
    [
        "cat tests/pytest.ini",
        "pip install pytest",
        "vim test_pytest.py",
        "pytest.sh",
        "npm install",
        "git commit -m 'go test'",
        "make testing",
        "echo make test=1",
    ],
)
def test_what_runs_no_tests_says_nothing(command):
    assert came_of(ran(command)) is None
    assert came_of(ran(command, is_error=True)) is None


@pytest.mark.parametrize(
    "command", ["pytest | tail -5", "pytest; true", "pytest || true", "pytest\ntrue"]
)
def test_what_hides_their_status_leaves_their_words(command):
    assert came_of(ran(command)) is None
    assert came_of(ran(command, PASSED)) is True
    assert came_of(ran(command, FAILED)) is False


@pytest.mark.parametrize(
    "output",
    [
        FAILED,
        "FAILED (failures=2)",
        "test result: FAILED. 3 passed; 1 failed;",
        "Tests:       1 failed, 4 passed, 5 total",
        "--- FAIL: TestSum (0.00s)",
        "  3 failing",
        "12 examples, 2 failures",
    ],
)
def test_words_of_failure_count_whatever_the_status(output):
    assert came_of(ran("make test", output)) is False


@pytest.mark.parametrize(
    "output", ["0 failed attempts", "===== 3 passed, 0 failed =====", "it has 3 failed"]
)
def test_other_words_do_not(output):
    assert came_of(ran("pytest", output)) is True


def test_the_last_run_counts_and_an_open_one_is_not_known():
    failed, passed = ran("pytest", FAILED, is_error=True), ran("pytest", PASSED)
    again = [claude("Bash", "2", command="pytest"), claude_result("2", content=PASSED)]
    assert came_of([*failed, *again]) is True
    assert came_of([*passed, claude("Bash", "2", command="pytest")]) is None
    assert came_of([*failed, claude("Bash", "2", command="ls")]) is False
    assert came_of([]) is None


@pytest.mark.parametrize(
    ("output", "came"),
    [
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\n", True),
        ("Chunk ID: 1\nProcess exited with code 1\nOutput:\n", False),
        (json.dumps({"output": "", "metadata": {"exit_code": 0}}), True),
        (json.dumps({"output": "", "metadata": {"exit_code": 101}}), False),
        (PASSED, True),
        ("nothing that says it", None),
    ],
)
def test_codex(output, came):
    for given in ({"cmd": "pytest"}, {"command": ["bash", "-lc", "pytest -q"]}):
        name = "exec_command" if "cmd" in given else "shell"
        assert came_of([codex(name, **given), codex_result(output)]) is came


def test_gemini_and_opencode():
    call = gemini("run_shell_command", "success", command="npm test")
    response = {"response": {"output": "Output: \nExit Code: 0"}}
    call["toolCalls"][0]["result"] = [{"functionResponse": response}]
    assert came_of([call]) is True
    response["response"]["output"] = "Output: \nExit Code: 1"
    assert came_of([call]) is False
    part = opencode("bash", "completed", command="npm test")
    assert came_of([part]) is None
    part["parts"][0]["state"]["metadata"] = {"exit": 0}
    assert came_of([part]) is True
    part["parts"][0]["state"]["metadata"] = {"exit": 2}
    assert came_of([part]) is False


def test_odd_records():
    assert came_of([{"payload": 3}, {"message": {"content": [None, 7]}}]) is None
    odd = ran("pytest")
    odd[1]["message"]["content"][0]["content"] = [{"text": {"text": 5}}, None, 7]
    assert came_of(odd) is True
