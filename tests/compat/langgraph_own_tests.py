"""Runs LangGraph's own tests with GitcpSaver in the place of its SQLite checkpointer.

    python -m tests.compat.langgraph_own_tests RELEASE [TEST.py ...]

The source distribution of each release of LangGraph holds its tests. An environment of its
own gets the release, what its tests need, and this checkout. Each test that takes a
checkpointer from SQLite runs four times: with SQLite's saver, which is the control, and
with GitcpSaver; with LANGGRAPH_STRICT_MSGPACK unset and set. Results that differ from
the control are printed and make the exit status 1. This takes some ten minutes on
two cores and needs a package index, so it is no part of the suite. One test asserts
how many tenths of a second pass (`test_stream_subgraphs_during_execution`): it may differ
on a machine that is busy, as the control's store is in memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.compat.own_tests import results

_NEEDS = (
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
    "psycopg[binary]",
    "pycryptodome",
    "pytest",
    "pytest-mock",
    "pytest-xdist",
    "redis",
    "syrupy",
)
_STRICT = "LANGGRAPH_STRICT_MSGPACK"
_SAVER = """

import tempfile

from gitcp.adapters.langgraph import GitcpSaver


@contextmanager
def _checkpointer_sqlite():
    with tempfile.TemporaryDirectory() as directory:
        with GitcpSaver(directory + "/store") as checkpointer:
            yield checkpointer


@asynccontextmanager
async def _checkpointer_sqlite_aio():
    with tempfile.TemporaryDirectory() as directory:
        async with GitcpSaver(directory + "/store") as checkpointer:
            yield checkpointer
"""


def environment(where: Path, release: str) -> Path:
    """Makes the environment and returns its python."""
    subprocess.run([sys.executable, "-m", "venv", where], check=True)
    python = where / "bin" / "python"
    wanted = [f"langgraph=={release}", *_NEEDS, f"{Path.cwd()}[langgraph]"]
    subprocess.run([python, "-m", "pip", "install", "-q", *wanted], check=True)
    return python


def tests_of(release: str, python: Path, to: Path) -> Path:
    """Fetches a release's source distribution and returns its directory, without sources.

    They would be imported before the installed release.
    """
    fetch = ["pip", "download", "-q", "--no-deps", "--no-binary", "langgraph"]
    name = f"langgraph-{release}"
    subprocess.run(
        [python, "-m", *fetch, "-d", to, f"langgraph=={release}"], check=True
    )
    subprocess.run(["tar", "-C", to, "-xzf", to / f"{name}.tar.gz"], check=True)
    (to / name / "langgraph").rename(to / name / "sources")
    return to / name


def run(
    python: Path, package: Path, tests: list[str], *, strict: bool
) -> dict[str, str]:
    """Returns how each test ended, by its name."""
    report = package / "report.xml"
    report.unlink(missing_ok=True)
    asked = [f"tests/{name}" for name in tests] or ["tests"]
    words = ["-q", "-n", "2", "-p", "no:cacheprovider", "--junit-xml", "report.xml"]
    env = {**os.environ, "NO_DOCKER": "true"}
    env.pop(_STRICT, None)
    if strict:
        env[_STRICT] = "true"
    subprocess.run(
        [python, "-m", "pytest", *words, "-k", "sqlite and not sqlite_aes", *asked],
        cwd=package,
        check=False,
        env=env,
    )
    return results(report)


def main() -> int:
    """Runs the tests and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release")
    parser.add_argument("tests", nargs="*")
    given = parser.parse_args()
    differ = 0
    with tempfile.TemporaryDirectory() as scratch:
        python = environment(Path(scratch, "venv"), given.release)
        package = tests_of(given.release, python, Path(scratch))
        fixtures = package / "tests" / "conftest_checkpointer.py"
        original = fixtures.read_text()
        for strict in (False, True):
            fixtures.write_text(original)
            control = run(python, package, given.tests, strict=strict)
            fixtures.write_text(original + _SAVER)
            ours = run(python, package, given.tests, strict=strict)
            for name in sorted(control.keys() | ours.keys()):
                if control.get(name) != ours.get(name):
                    differ += 1
                    print(f"strict={strict} {name}: {control.get(name)} with SQLite's")
                    print(f"  saver, {ours.get(name)} with GitcpSaver")
            passed = sum(end == "passed" for end in ours.values())
            print(f"strict={strict}: {passed} of {len(ours)} passed with GitcpSaver")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
