"""What gitcp's hooks add to a commit, and what very many sessions add to a command.

python bench/githooks.py --gitcp VENV/bin/gitcp
"""

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from generate import Copy, copies, make
from measure import Case, Edits, in_turn, run, table

_WHO = {
    f"GIT_{role}_{what}": "bench@localhost"
    for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def main() -> None:
    """Runs every case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gitcp", default="gitcp", help="the installed command")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--skip-commit", action="store_true")
    parser.add_argument("--skip-sessions", action="store_true")
    given = parser.parse_args()
    gitcp = shutil.which(given.gitcp) or given.gitcp
    with tempfile.TemporaryDirectory() as scratch:
        if not given.skip_commit:
            commits(gitcp, Path(scratch), given.files, given.rounds)
        if not given.skip_sessions:
            sessions(gitcp, Path(scratch), given.rounds)


def commits(gitcp: str, scratch: Path, files: int, rounds: int) -> None:
    """Times `git commit` of ten changed files, and a rebase of 50 commits."""
    top = scratch / "project"
    make(top, files)
    run([gitcp, "save"], top)
    copies(top, "main", (Copy(f"session-{n}") for n in range(500)))
    run(["git", "config", "gc.auto", "0"], top)
    run([gitcp, "install", "git-hooks"], top)
    edits = Edits(top, 10)

    def case(name: str, env: dict[str, str]) -> Case:
        def commit() -> None:
            run(["git", "commit", "-q", "-a", "-m", "ten files"], top, {**_WHO, **env})

        return Case(name, commit, edits)

    hooks = top / ".git" / "hooks"
    aside = top / ".git" / "hooks-aside"

    def bare(there: bool) -> None:
        if there == aside.exists():
            return
        hooks.rename(aside) if there else aside.rename(hooks)

    def prepared(wanted: Case, *, there: bool) -> Case:
        def prepare() -> None:
            bare(not there)
            edits()

        return wanted._replace(prepare=prepare)

    cases = [
        prepared(case("git commit", {}), there=False),
        prepared(case("with GITCP_DISABLE=1", {"GITCP_DISABLE": "1"}), there=True),
        prepared(case("with gitcp's hooks", {}), there=True),
    ]
    for one in cases:
        one.prepare()
        one.run()
    table(
        f"a commit of ten files, {files:,} files, 500 sessions (bar: 0.3 s more)",
        in_turn(cases, rounds),
        "git commit",
    )
    bare(False)
    rebase(top, bare)


def rebase(top: Path, bare: Callable[[bool], None]) -> None:
    """Times a rebase of 50 commits."""
    off = {**_WHO, "GITCP_DISABLE": "1"}
    start = run(["git", "rev-parse", "HEAD"], top).strip()
    edits = Edits(top, 50)
    for path in edits.paths:
        path.write_bytes(path.read_bytes() + b"// more\n")
        run(["git", "commit", "-q", "-a", "-m", path.name], top, off)
    tip = run(["git", "rev-parse", "HEAD"], top).strip()
    run(["git", "checkout", "-q", "-b", "onto", start], top, off)
    (top / "another").write_text("file\n")
    run(["git", "add", "another"], top)
    run(["git", "commit", "-q", "-m", "another"], top, off)
    run(["git", "checkout", "-q", "-b", "moving", tip], top, off)

    def case(name: str, *, there: bool) -> Case:
        def prepare() -> None:
            bare(not there)
            run(["git", "reset", "-q", "--hard", tip], top)

        return Case(
            name, lambda: run(["git", "rebase", "-q", "onto"], top, _WHO), prepare
        )

    cases = [case("git rebase", there=False), case("with gitcp's hooks", there=True)]
    table("a rebase of 50 commits", in_turn(cases, 5), "git rebase")
    bare(False)


def sessions(gitcp: str, scratch: Path, rounds: int) -> None:
    """Times commands where there are ten sessions, and where there are 10,000."""
    tops = {}
    for count in (10, 10_000):
        top = tops[count] = scratch / f"sessions-{count}"
        make(top, 300)
        run([gitcp, "save"], top)
        copies(top, "main", (Copy(f"session-{n}") for n in range(count)))
        # As they come to be after a while: every so often a save packs refs.
        run([gitcp, "gc"], top)
    for command in (
        ["git", "status"],
        [gitcp, "log"],
        [gitcp, "sessions"],
        [gitcp, "sessions", "--json"],
        [gitcp, "status"],
        [gitcp, "save", "--allow-empty"],
    ):
        shown = " ".join(command).replace(gitcp, "gitcp")

        def case(count: int, command: list[str] = command) -> Case:
            return Case(f"{count:,} sessions", lambda: run(command, tops[count]))

        table(
            f"{shown} (bar 1.5 x)",
            in_turn([case(10), case(10_000)], rounds),
            "10 sessions",
        )


if __name__ == "__main__":
    main()
