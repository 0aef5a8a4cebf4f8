"""Runs git's own tests with gitcp's hooks in every repository that they make.

    python -m tests.compat.git_own_tests GIT_SOURCE [TEST ...]

GIT_SOURCE is a git source tree after `make`. Each test runs twice: as it is, and with
the hooks in git's template directory, from which `git init` and `git clone` copy them.
A result that differs is printed; one that is not in `EXPECTED` makes the exit status 1.
This takes about half an hour on two idle cores, so it is no part of the suite.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from gitcp.githooks import script_text

# git's tests of hooks, rebase, merge, stash and push.
TESTS = (
    "t7500",
    "t7501",
    "t7502",
    "t7503",
    "t7504",
    "t7505",
    "t7600",
    "t7201",
    "t3400",
    "t3404",
    "t3415",
    "t3418",
    "t3420",
    "t3501",
    "t3903",
    "t5402",
    "t5403",
    "t5407",
    "t5516",
    "t5571",
    "t2400",
    "t7113",
    "t7520",
    "t7003",
)

# What gitcp is allowed to change, with the reason: test, number of the case.
EXPECTED: dict[str, dict[int, str]] = {}

_LINE = re.compile(r"^(ok|not ok) (\d+) - (.*)$", re.MULTILINE)
_LIMIT = 3600


@contextmanager
def hooks_in_template(source: Path) -> Iterator[None]:
    """Puts gitcp's hooks where git copies a new repository's hooks from."""
    template = source / "templates" / "blt" / "hooks"
    if not template.is_dir():
        sys.exit(f"{source} is not a built git source tree: {template} is missing")
    with tempfile.TemporaryDirectory() as scratch:
        home, repo = Path(scratch, "home"), Path(scratch, "repo")
        home.mkdir()
        environment = os.environ | {"HOME": str(home), "PYTHONPATH": str(Path.cwd())}
        subprocess.run(["git", "init", "-q", repo], check=True, env=environment)
        subprocess.run(
            [sys.executable, "-m", "gitcp", "-C", repo, "install", "git-hooks"],
            check=True,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        # git's tests run with their repository as the home, where gitcp does nothing.
        runner = repo / ".git" / "hooks" / "gitcp-hook"
        first, rest = runner.read_text().split("\n", 1)
        runner.write_text(f"{first}\nHOME='{home}'; export HOME\n{rest}")
        hooks = {hook: template / hook.name for hook in runner.parent.iterdir()}
        hooks = {hook: to for hook, to in hooks.items() if hook.suffix != ".sample"}
        library = source / "t" / "test-lib-functions.sh"
        functions = library.read_text()
        try:
            library.write_text(_joining(functions, Path(scratch)))
            for hook, to in hooks.items():
                shutil.copy2(hook, to)
            yield
        finally:
            library.write_text(functions)
            for to in hooks.values():
                to.unlink(missing_ok=True)


def _joining(functions: str, scratch: Path) -> str:
    """Returns git's test library so that a hook a test writes gets gitcp's lines too."""
    join = scratch / "join"
    join.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        f"sys.path.insert(0, {str(Path.cwd())!r})\n"
        f"from {script_text.__name__} import insert\n"
        "hook = pathlib.Path(sys.argv[1])\n"
        "hook.write_bytes(insert(hook.read_bytes(), sys.argv[2]))\n"
    )
    join.chmod(0o755)
    for old, new in (
        ('test_path_is_missing "$hook_file"', ":"),
        (
            '\twrite_script "$hook_file"\n}',
            f'\twrite_script "$hook_file" &&\n\t"{join}" "$hook_file" "$1"\n}}',
        ),
    ):
        if functions.count(old) != 1:
            sys.exit("this version of git writes hooks in its tests in another way")
        functions = functions.replace(old, new)
    return functions


class Ran(NamedTuple):
    """The result and title of each case by its number; how many refs gitcp made."""

    cases: dict[int, tuple[str, str]]
    refs: int


def run(source: Path, test: str) -> Ran:
    """Runs one test script."""
    (script,) = sorted((source / "t").glob(f"{test}-*.sh"))
    with tempfile.TemporaryDirectory(prefix=f"{test}.") as root:
        done = subprocess.run(
            ["sh", script.name, "--debug", f"--root={root}"],
            cwd=source / "t",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=_LIMIT,
            check=False,
            env=os.environ | {"PYTHONPATH": str(Path.cwd())},
        )
        refs = sum(1 for path in Path(root).rglob("refs/gitcp/s/*/*") if path.is_file())
    found = {
        int(number): (result, title.split(" # ")[0])
        for result, number, title in _LINE.findall(done.stdout)
    }
    if not found:
        sys.exit(f"{test} ran no case")
    return Ran(found, refs)


def compare(test: str, without: Ran, hooked: Ran) -> int:
    """Prints what differs, and returns how many of these are not expected."""
    unexpected = 0
    for number in sorted(without.cases.keys() | hooked.cases.keys()):
        before, after = without.cases.get(number), hooked.cases.get(number)
        if before == after:
            continue
        reason = EXPECTED.get(test, {}).get(number)
        unexpected += reason is None
        title = (before or after or ("", ""))[1]
        now = after[0] if after else "missing"
        print(f"  {test}.{number} {title}: {now} ({reason or 'NOT EXPECTED'})")
    return unexpected


def main() -> int:
    """Runs the tests and returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("tests", nargs="*", default=TESTS)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    source = given.source.resolve()
    # Ended from outside, it still takes its hooks out of git's template.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    with ThreadPoolExecutor(given.jobs) as pool:
        without = list(pool.map(lambda test: run(source, test), given.tests))
        with hooks_in_template(source):
            hooked = list(pool.map(lambda test: run(source, test), given.tests))
    unexpected = 0
    for test, before, after in zip(given.tests, without, hooked, strict=True):
        print(f"{test}: {len(before.cases)} cases, {after.refs} branches of gitcp")
        unexpected += compare(test, before, after)
    print(f"{unexpected} unexpected differences in {len(given.tests)} test scripts")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
