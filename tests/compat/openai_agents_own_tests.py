"""Runs the OpenAI Agents SDK's own tests with GitcpSession in the place of SQLiteSession.

    python -m tests.compat.openai_agents_own_tests SOURCE [TEST.py ...]

SOURCE is the unpacked source distribution, or a clone of the SDK's repository, of the release
that is installed here. Each test module that makes sessions of SQLite's runs twice: as it is,
which is the control, and with GitcpSession. Results that differ are printed and make the exit
status 1, but for tests of SQLite itself: its connections, locks, transactions and damaged
rows. It is no part of the suite.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compat.own_tests import results

TESTS = (
    "memory/test_session.py",
    "memory/test_session_limit.py",
    "memory/test_openai_responses_compaction_session.py",
    "memory/test_compaction_model_visibility.py",
    "test_agent_runner.py",
    "test_agent_runner_streamed.py",
    "test_max_turns.py",
    "test_programmatic_tool_calling.py",
    "test_run_impl_resume_paths.py",
    "test_soft_cancel.py",
    "test_tool_batch_failure_history.py",
    "test_tool_failure_boundaries.py",
)
# What these look at is SQLite, or a method of that class that is no part of the protocol.
OF_SQLITE = (
    "connection",
    "corrupt",
    "file_lock",
    "write_lock",
    "closed_rejects",
    "post_commit",
    "rolls_back",
    "sqlite_session_reaps",
    # A private method that the SDK's own stores have, by which a part of a history is compacted.
    "test_automatic_compaction_does_not_reload_unbounded_hidden_history",
    "test_automatic_compaction_rollback_budget[True]",
    "test_backend_read_limit_cannot_hide_retained_history_from_compaction",
    "test_expired_read_overhead_does_not_authorize_hidden_history",
    # They put themselves between SQLite and its worker.
    "test_handoff_resume_after_cancelled_compaction_commits",
    "test_settled_clear_failure_invalidates_response_chain",
    "test_settled_pop_failure_invalidates_response_chain",
)
_INSTEAD = """

import atexit as _atexit
import contextlib as _contextlib
import shutil as _shutil
import subprocess as _subprocess
import tempfile as _tempfile

import agents as _agents
import agents.memory as _memory
import gitcp as _gitcp
from agents.memory.session_settings import SessionSettings as _SessionSettings
from agents.memory.session_settings import coerce_session_settings as _coerce
from gitcp.adapters.openai_agents import GitcpSession as _GitcpSession

_stores = {}


def _store(path):
    if path == ":memory:" or path not in _stores:
        top = _tempfile.mkdtemp()
        _atexit.register(_shutil.rmtree, top, True)
        _subprocess.run(["git", "init", "-q", top], check=True)
        if path == ":memory:":
            return _gitcp.open(top)
        _stores[path] = _gitcp.open(top)
    return _stores[path]


class _Instead(_GitcpSession):
    def __init__(self, session_id, db_path=":memory:", *, session_settings=None):
        super().__init__(
            _store(str(db_path)).session(session_id),
            session_settings=_coerce(session_settings) if session_settings else None,
        )

    def close(self):
        pass


_agents.SQLiteSession = _memory.SQLiteSession = _Instead
"""


def run(source: Path, tests: list[str]) -> dict[str, str]:
    """Returns how each test ended, by its name."""
    report = source / "report.xml"
    report.unlink(missing_ok=True)
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--junit-xml"]
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", *words, str(report)),
            *("-n", "2", "-o", "addopts=", *(f"tests/{name}" for name in tests)),
        ],
        cwd=source,
        check=False,
        env=env,
    )
    return results(report)


def main() -> int:
    """Runs the tests and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("tests", nargs="*")
    given = parser.parse_args()
    tests = given.tests or list(TESTS)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "source")
        shutil.copytree(
            given.source, source, ignore=shutil.ignore_patterns("src", ".git")
        )
        control = run(source, tests)
        with (source / "tests" / "conftest.py").open("a") as file:
            file.write(_INSTEAD)
        ours = run(source, tests)
    differ = spared = 0
    for name in sorted(control.keys() | ours.keys()):
        if control.get(name) != ours.get(name):
            if any(words in name for words in OF_SQLITE):
                spared += 1
                continue
            differ += 1
            print(f"{name}: {control.get(name)}, {ours.get(name)} with GitcpSession")
    passed = sum(end == "passed" for end in ours.values())
    print(f"{passed} of {len(ours)} passed with GitcpSession,", end=" ")
    print(f"{sum(end == 'passed' for end in control.values())} without;", end=" ")
    print(f"{spared} that differ are of SQLite itself")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
