"""What push and pull cost: on a large project, and beside ten thousand sessions.

    python bench/share.py --gitcp /tmp/installed/bin/gitcp [TREE]

TREE is a committed project, as `prepare.py` makes it; without one 78,000 files are
generated. Nothing is changed in it.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from generate import Copy, copies, make
from measure import Case, Edits, in_turn, run, table

_FEW, _MANY = 10, 10_000
_LISTED_ONCE = "commit-graph here and there, refs listed once"
_MINE = "refs/gitcp/s/mine/main:refs/gitcp/s/mine/main"


def main() -> None:
    """Runs both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", nargs="?", type=Path)
    parser.add_argument("--gitcp", default="gitcp")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=_MANY)
    parser.add_argument("--skip-large", action="store_true")
    parser.add_argument("--skip-many", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gitcp-bench-") as base:
        if not given.skip_many:
            many(Path(base, "many"), given.gitcp, given.rounds, given.sessions)
        cared_for(Path(base, "cared"), given.gitcp, given.rounds, given.sessions)
        if given.skip_large:
            return
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
    # Where the tree came in many packs, a gc beside the first push would be measured.
    run(["git", "config", "receive.autogc", "false"], hub)
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
    """A push of one session beside ten and beside ten thousand, and git's of one ref.

    Once as git's own gc leaves both repositories, which git starts by itself long before
    there are so many, and once without: their refs are packed, and no more.
    """
    for gc in (True, False):
        cases = []
        for here, there in ((_FEW, _FEW), (sessions, 1), (sessions, sessions)):
            top = base / f"{here}-{there}-{gc}"
            hub, ann = _pair(top, gitcp, here, there)
            for repository in (ann, hub) if gc else ():
                run(["git", "gc", "-q"], repository)
            cases += list(_cases(ann, hub, f"{here:,} here, {there:,} there", gitcp))
        title = f"Push of one session, {'after' if gc else 'without'} git gc"
        table(title, in_turn(cases, rounds), cases[0].name)


def cared_for(base: Path, gitcp: str, rounds: int, sessions: int) -> None:
    """A push of one session beside ten thousand, with less than a gc on both sides.

    With a commit-graph of what is here; with one at the remote, too; with the setting that
    docs/how-to/team-server.md names; with a gc of the remote alone, as a server's own
    maintenance does it; to a pattern over 256 repositories.
    """
    graph = ["git", "commit-graph", "write", "--reachable"]
    once = ["git", "config", "core.alternateRefsPrefixes", "refs/heads/"]
    cases = []
    for name, here, there in (
        ("nothing", None, None),
        ("commit-graph here", graph, None),
        ("commit-graph here and there", graph, graph),
        (_LISTED_ONCE, graph, graph),
        ("gc there", None, ["git", "gc", "-q"]),
        ("gc there, commit-graph here", graph, ["git", "gc", "-q"]),
    ):
        hub, ann = _pair(base / name.replace(" ", "-"), gitcp, sessions, sessions)
        for repository, command in ((ann, here), (hub, there)):
            if command is not None:
                run(command, repository)
        if name == _LISTED_ONCE:
            run(once, hub)
        cases += list(_cases(ann, hub, name, gitcp))
    hub, ann = _pair(base / "few", gitcp, _FEW, _FEW)
    few = list(_cases(ann, hub, "beside ten", gitcp))
    hub, ann = _pair(base / "shards", gitcp, sessions, 1)
    shards = base / "shards" / "sessions"
    shards.mkdir()
    for number in range(256):
        run(["git", "init", "-q", "--bare", f"{number:02x}.git"], shards)
    run(["git", "config", "gitcp.remote", f"{shards}/{{shard:02x}}.git"], ann)
    run([gitcp, "push", "-q"], ann)
    number = hashlib.sha256(b"mine").digest()[0]
    run(["git", "remote", "add", "shard", shards / f"{number:02x}.git"], ann)
    place = shards / f"{number:02x}.git"
    sharded = _cases(ann, place, "over 256 repositories", gitcp, remote="shard")
    table(
        "Push of one session beside ten thousand, without git gc but for what is named",
        in_turn([*few, *cases, *sharded], rounds),
        few[0].name,
    )


def _pair(top: Path, gitcp: str, here: int, there: int) -> tuple[Path, Path]:
    """Returns a remote with so many sessions, and a project with so many."""
    hub, ann = top / "hub.git", top / "ann"
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
    copies(ann, "mine", (Copy(f"s{number}") for number in range(here - 1)))
    pushed = "refs/gitcp/*:refs/gitcp/*" if there > 1 else _MINE
    run(["git", "push", "-q", "origin", pushed], ann)
    return hub, ann


def _cases(
    ann: Path, hub: Path, name: str, gitcp: str, *, remote: str | None = None
) -> Iterator[Case]:
    """Yields a push by gitcp, to the pattern if `remote` is one of its places, and by git."""
    at = 0
    where = "origin"
    if remote is not None:
        where = run(["git", "config", "gitcp.remote"], ann).strip()

    def save() -> None:
        nonlocal at
        at += 1
        (ann / "a.py").write_text(f"{at}\n")
        run([gitcp, "save", "-q", "-s", "mine"], ann)
        for repository in (ann, hub):
            run(["git", "pack-refs", "--all"], repository)

    def push() -> None:
        run([gitcp, "push", "-q", where, "mine"], ann)

    def pushed_by_git() -> None:
        run(["git", "push", "-q", remote or "origin", _MINE], ann)

    yield Case(name, push, save)
    yield Case(f"{name}: git push", pushed_by_git, save)


if __name__ == "__main__":
    main()
