"""What push and pull cost: on a large project, and beside ten thousand sessions.

    python bench/share.py --gitcp /tmp/installed/bin/gitcp [TREE]

TREE is a committed project, as `prepare.py` makes it; without one 78,000 files are
generated. Nothing is changed in it.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from generate import make
from measure import Case, Edits, in_turn, run, table

_FEW, _MANY = 10, 10_000


def main() -> None:
    """Runs both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path)
    parser.add_argument("--gitcp", default="gitcp")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=_MANY)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitcp-bench-") as base:
        many(Path(base, "many"), given.gitcp, given.rounds, given.sessions)
        tree = given.tree
        if tree is None:
            tree = Path(base, "tree")
            make(tree, 78_000)
        large(Path(base, "large"), tree, given.gitcp, given.rounds)


def large(base: Path, tree: Path, gitcp: str, rounds: int) -> None:
    """The first push of a session with ten changed files, and its first pull.

    Each round has a remote and a clone that never saw a session.
    """
    base.mkdir()
    hub, ann, bob = base / "hub.git", base / "ann", base / "bob"
    run(["git", "clone", "-q", "--bare", tree, hub], base)
    run(["git", "clone", "-q", hub, ann], base)
    run(["git", "clone", "-q", "--no-checkout", hub, bob], base)
    branch = run(["git", "symbolic-ref", "--short", "HEAD"], ann).strip()
    edits = Edits(ann, 10)
    run([gitcp, "save", "-q", "-s", "warm"], ann)
    sent: dict[str, list[int]] = {"push": [], "pull": []}
    number = 0

    def save() -> None:
        nonlocal number
        number += 1
        edits()
        run([gitcp, "save", "-q", "-s", f"s{number}"], ann)

    def push() -> None:
        before = _size(hub)
        run([gitcp, "push", "-q", "origin", f"s{number}"], ann)
        sent["push"].append(_size(hub) - before)

    def pull() -> None:
        before = _size(bob / ".git")
        run([gitcp, "pull", "-q", "origin", f"s{number}"], bob)
        sent["pull"].append(_size(bob / ".git") - before)

    def commit() -> None:
        edits()
        who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        run(["git", *who, "-c", "gc.auto=0", "commit", "-qam", "x"], ann)

    def git_push() -> None:
        run(["git", "push", "-q", "origin", f"HEAD:refs/heads/b{number}"], ann)
        run(["git", "reset", "-q", "--soft", f"origin/{branch}"], ann)

    cases = [
        Case("git push of a commit", git_push, commit),
        Case("gitcp push", push, save),
        Case("gitcp pull", pull),
    ]
    title = f"Ten changed files of {len(run(['git', 'ls-files'], ann).splitlines()):,}"
    table(title, in_turn(cases, rounds), "git push of a commit")
    for name, sizes in sent.items():
        print(f"\n{name}: {min(sizes) / 1000:.0f} to {max(sizes) / 1000:.0f} kB")


def _size(git_dir: Path) -> int:
    found = 0
    for path in (git_dir / "objects").rglob("*"):
        found += path.stat().st_size if path.is_file() else 0
    return found


def many(base: Path, gitcp: str, rounds: int, sessions: int) -> None:
    """A push of one session, where there are ten here and there, and ten thousand."""
    cases = []
    for count in (_FEW, sessions):
        hub, ann = base / f"hub{count}.git", base / f"ann{count}"
        hub.mkdir(parents=True)
        run(["git", "init", "-q", "--bare", "-b", "main"], hub)
        ann.mkdir()
        run(["git", "init", "-q", "-b", "main"], ann)
        (ann / "a.py").write_text("1\n")
        run(["git", "add", "."], ann)
        who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        run(["git", *who, "commit", "-qm", "x"], ann)
        run(["git", "remote", "add", "origin", hub], ann)
        run(["git", "push", "-q", "origin", "main"], ann)
        run([gitcp, "save", "-q", "-s", "mine"], ann)
        stream = base / f"stream{count}"
        stream.write_text("".join(_others(ann, count - 1)))
        run(["sh", "-c", f"git fast-import --quiet --force <{stream}"], ann)
        run(["git", "push", "-q", "origin", "refs/gitcp/*:refs/gitcp/*"], ann)
        cases += list(_cases(ann, hub, count, gitcp))
    table("Push of one session", in_turn(cases, rounds), cases[0].name)


def _cases(ann: Path, hub: Path, count: int, gitcp: str) -> Iterator[Case]:
    at = 0

    def save() -> None:
        nonlocal at
        at += 1
        (ann / "a.py").write_text(f"{at}\n")
        run([gitcp, "save", "-q", "-s", "mine"], ann)

    def push() -> None:
        run([gitcp, "push", "-q", "origin", "mine"], ann)

    yield Case(f"{count:,} sessions", push, save)

    def pack() -> None:
        save()
        for repository in (ann, hub):
            run(["git", "pack-refs", "--all"], repository)

    yield Case(f"{count:,} sessions, refs packed", push, pack)


def _others(ann: Path, count: int) -> Iterator[str]:
    """Yields sessions of one checkpoint each, as `git fast-import` reads them."""
    tip = "refs/gitcp/s/mine/main"
    text = run(["git", "show", f"{tip}:.gitcp/checkpoint.json"], ann)
    base = run(["git", "rev-parse", "HEAD"], ann).strip()
    for number in range(count):
        ident = f"{number:012x}"
        record = json.loads(text) | {"id": ident, "session": f"s{number}"}
        data = json.dumps(record, indent=2) + "\n"
        message = (
            f"x\n\nGitcp-Checkpoint: {ident}\nGitcp-Session: s{number}\n"
            f"Gitcp-Branch: main\nGitcp-Seq: 1\nGitcp-Trigger: manual\n"
        )
        yield (
            f"commit refs/gitcp/s/s{number}/main\n"
            "committer gitcp <gitcp@localhost> 1700000000 +0000\n"
            f"data {len(message)}\n{message}\n"
            f"from {base}\nM 100644 inline .gitcp/checkpoint.json\n"
            f"data {len(data)}\n{data}\n"
        )


if __name__ == "__main__":
    main()
