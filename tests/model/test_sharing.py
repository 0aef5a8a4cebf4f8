"""Three clones and a remote that do everything to each other, in any order.

After each step: what was acknowledged is there, unless it was pruned; it holds what
it held; every branch is a line; gitcp and git find nothing wrong.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitcp.git.discover import discover
from gitcp.maintenance.verify import verify
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store
from tests.support.clones import clone, make_hub
from tests.support.gitrepo import (
    git,
    gitcp_argv,
    gitcp_environment,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import Done, invoke

SESSIONS = ("main", "s")
BRANCHES = ("main", "f", "g")
WORDS = (b"wombat-7351", b"quokka-2290")
HOOK = Path(__file__).resolve().parents[2] / "hooks" / "update"

where = st.integers(0, 2)
number = st.integers(0, 9)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("save"), where, st.integers(0, 1), number),
        st.tuples(st.just("save"), where, st.integers(0, 1), number),
        st.tuples(st.just("push"), where, st.just(0), number),
        st.tuples(st.just("push"), where, st.just(0), number),
        st.tuples(st.just("pull"), where, st.just(0), number),
        st.tuples(st.just("forking"), where, st.just(0), number),
        st.tuples(st.just("pull"), where, st.just(0), number),
        st.tuples(st.just("pruned"), where, st.just(0), number),
        st.tuples(st.just("fork"), where, st.integers(0, 2), number),
        st.tuples(st.just("switch"), where, st.just(0), number),
        st.tuples(st.just("restore"), where, st.just(0), number),
        st.tuples(st.just("prune"), where, st.integers(1, 3), number),
        st.tuples(st.just("purge"), where, st.integers(0, 1), number),
        st.tuples(st.just("gc"), where, st.integers(0, 1), number),
    ),
    min_size=8,
    max_size=24,
)


class Held(NamedTuple):
    """What a checkpoint holds that nothing may change."""

    files: tuple[tuple[bytes, int, bytes], ...]
    conversation: bytes
    decisions: bytes
    note: str | None
    seq: int
    session: str
    only_names: bool


def held(found: Checkpoint) -> Held:
    conversation = found.conversation() or b""
    return Held(
        tuple(
            (path, entry.mode, found.objects.blob(entry.oid))
            for path, entry in found.files()
        ),
        conversation,
        "\n".join(one.text for one in found.decisions()).encode(),
        found.note,
        found.seq,
        found.session,
        # A fork that a pull makes of another clone's branch is not pushed.
        found.trigger == "fork" and "~" in found.branch,
    )


def opened(repo: Path) -> Store:
    """The store of a clone, or of the remote, which has no files."""
    return Store(discover(repo, worktree=False))


def lines(repo: Path) -> dict[tuple[str, str], list[Checkpoint]]:
    store = opened(repo)
    return {
        key: list(store.line(tip))
        for key, oid in store.refs().items()
        if (tip := store.checkpoint(oid)) is not None
    }


def everything(repo: Path) -> dict[str, Held]:
    return {
        one.id: held(one) for line in lines(repo).values() for one in reversed(line)
    }


class World:
    """The clones, the remote, and what is known to have been acknowledged."""

    def __init__(self, base: Path) -> None:
        self.hub = make_hub(base)
        shutil.copy(HOOK, self.hub / "hooks" / "update")
        git(self.hub, "config", "gitcp.allowPruned", "true")
        git(self.hub, "config", "receive.fsckObjects", "true")
        self.clones = [clone(self.hub, name) for name in ("ann", "bob", "cyd")]
        # What each has had, by id; the remote is the last.
        self.had: dict[Path, dict[str, Held]] = {
            one: {} for one in (*self.clones, self.hub)
        }
        self.pruned: set[str] = set()
        self.count = 0

    def do(self, what: str, at: int, argument: int, pick: int) -> None:
        repo = self.clones[at]
        self.count += 1
        before = tree_bytes(repo)
        if what == "save":
            done: Done | None = self.save(repo, argument, pick)
        elif what in {"push", "pull"}:
            done = invoke(repo, what, "--json")
        elif what == "pruned":
            done = invoke(repo, "push", "--json", "--pruned")
        elif what == "forking":
            done = invoke(repo, "push", "--json", "--fork")
        elif what in {"prune", "purge", "gc"}:
            done = self.upkeep(repo, what, argument)
        else:
            done = self.goes(repo, what, argument, pick)
        if done is not None:
            said = done.stderr.decode()
            assert "Traceback" not in said, said
            # 2: the name is taken; 3, 12: diverged; 13: no message has that word.
            assert done.returncode in self.may(what), (what, done.returncode, said)
        if what in {"push", "pruned", "forking", "pull", "prune", "purge", "gc"}:
            assert tree_bytes(repo) == before, what

    @staticmethod
    def may(what: str) -> set[int]:
        return {
            "push": {0, 3, 12},
            "pruned": {0, 3, 12},
            "forking": {0, 3, 12},
            "fork": {0, 2},
            "purge": {0, 13},
        }.get(what, {0})

    def save(self, repo: Path, session: int, pick: int) -> Done:
        word = WORDS[pick] if pick < len(WORDS) else b"nothing"
        text = b"%d %s" % (self.count, word)
        write_files(repo, {"a.py": text, f"d/{pick}": text * (pick + 1)})
        return invoke(
            repo, "save", "--json", "-s", SESSIONS[session], "--append", "-",
            "--decision", f"d{self.count} {word.decode()}", "-m", f"n{self.count}",
            input=b'{"n":%d,"content":"%s"}\n' % (self.count, word),
        )  # fmt: skip

    def goes(self, repo: Path, what: str, argument: int, pick: int) -> Done | None:
        """Goes somewhere else; None if there is nowhere to go."""
        ids, tips = list(everything(repo)), sorted(lines(repo).items())
        if not ids:
            return None
        chosen = ids[pick % len(ids)]
        if what == "fork":
            return invoke(repo, "fork", "--json", "-y", chosen, BRANCHES[argument])
        if what == "restore":
            return invoke(repo, "restore", "--json", "-y", chosen)
        tip = tips[pick % len(tips)][1][0]
        place = f"{tip.session}/{tip.branch}"
        return invoke(repo, "switch", "--json", "-y", "--restore", place)

    def upkeep(self, repo: Path, what: str, argument: int) -> Done:
        if what == "prune":
            before = set(everything(repo))
            keep = str(argument)
            done = invoke(repo, "prune", "--json", "--keep-last", keep, "-y")
            self.pruned |= before - set(everything(repo))
            return done
        if what == "purge":
            word = WORDS[argument]
            given = ["--value-from-stdin", "-y"]
            return invoke(repo, "purge", "--json", *given, input=word)
        if argument:
            git(repo, "gc", "-q", "--prune=now")
        return invoke(repo, "gc", "--json")

    def form(self, one: Held) -> Held:
        """What of a checkpoint is the same before and after a purge of the words."""
        return one._replace(
            files=tuple((path, mode, blank(data)) for path, mode, data in one.files),
            conversation=blank(one.conversation),
            decisions=blank(one.decisions),
        )

    def check(self, *repos: Path) -> None:
        for repo in repos:
            had, here = self.had[repo], everything(repo)
            missing = had.keys() - here.keys() - self.pruned
            assert not missing, (repo.name, missing)
            for ident, one in here.items():
                for other in self.had.values():
                    if ident in other:
                        assert self.form(other[ident]) == self.form(one), repo.name
            self.had[repo] = {**had, **here}
            for (session, branch), line in lines(repo).items():
                assert line, (session, branch)
                ids = [two.id for two in line]
                assert len(ids) == len(set(ids))
            problems = verify(opened(repo)).problems
            assert problems == (), (repo.name, problems)
            merges = git(repo, "rev-list", "--min-parents=2", "--glob=refs/gitcp/s/*")
            assert merges == b""
            git(repo, "fsck", "--strict", "--no-dangling")
            assert list((repo / ".git" / "gitcp").glob("tmp/*")) == []
            assert list(repo.glob("**/refs/gitcp/**/*.lock")) == []

    def settle(self) -> None:
        """All of it comes together at the remote, as each is told how."""
        for _ in range(2):
            for repo in self.clones:
                pulled = invoke(repo, "pull", "--json")
                assert pulled.returncode == 0, pulled.stderr
                done = invoke(repo, "push", "--json", "--pruned", "--fork")
                assert done.returncode == 0, done.stderr
        self.check(*self.clones, self.hub)
        fresh = clone(self.hub, "fresh")
        pulled = invoke(fresh, "pull", "--json")
        assert pulled.returncode == 0, pulled.stderr
        there = everything(fresh)
        for repo in self.clones:
            here = {i for i, one in everything(repo).items() if not one.only_names}
            missing = here - there.keys() - self.pruned
            assert not missing, (repo.name, missing)
        assert verify(opened(fresh)).problems == ()


def blank(data: bytes) -> bytes:
    for word in WORDS:
        data = data.replace(word, b"?")
    return re.sub(rb"\[purged[^\]]*\]", b"?", data)


def run(told: list[tuple[str, int, int, int]]) -> None:
    base = Path(tempfile.mkdtemp(prefix="gitcp-sharing-"))
    try:
        world = World(base)
        for what in told:
            world.do(*what)
            # No other clone's is touched; that is checked at the end.
            world.check(world.clones[what[1]], world.hub)
        world.settle()
    finally:
        shutil.rmtree(base)


COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}


@settings(max_examples=4, **COMMON)
@given(steps)
def test_clones_that_share_lose_nothing(told):
    run(told)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=120, **COMMON)
@given(steps)
def test_clones_that_share_lose_nothing_at_length(told):
    run(told)


AT_ONCE = {
    "save": ["save", "--decision", "wombat-7351", "--allow-empty"],
    "fork": ["fork", "last", "--no-switch"],
    "push": ["push"],
    "pull": ["pull"],
    "pruned": ["push", "--pruned"],
    "prune": ["prune", "--keep-last", "2", "-y"],
    "purge": ["purge", "--value-from-stdin", "-y"],
    "gc": ["gc"],
}


def started(
    repo: Path, what: str, told: random.Random, number: int
) -> subprocess.Popen[bytes]:
    """One command in a process of its own; a purge is told the word on its input."""
    more = {
        "save": ["-s", told.choice(SESSIONS), "-m", f"n{number}"],
        "fork": [f"f{number}"],
    }.get(what, [])
    process = subprocess.Popen(
        gitcp_argv(*AT_ONCE[what], *more, "--json"),
        cwd=repo,
        env=gitcp_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(WORDS[0] if what == "purge" else b"")
    process.stdin.close()
    process.stdin = None
    return process


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(6))
def test_clones_that_share_at_once_lose_nothing(tmp_path, seed):
    """Two processes in each clone, all at the same time, and again."""
    told = random.Random(seed)
    world = World(tmp_path)
    saved: list[tuple[Path, str]] = []
    for turn in range(5):
        running: list[tuple[Path, str, subprocess.Popen[bytes]]] = []
        for repo in world.clones * 2:
            write_files(repo, {"a.py": b"%d %s" % (turn, WORDS[0])})
            what = told.choice([*AT_ONCE, "save"])
            process = started(repo, what, told, len(running) + 10 * turn)
            running.append((repo, what, process))
        for repo, what, process in running:
            out, err = process.communicate(timeout=600)
            assert b"Traceback" not in err, err
            # 11: another held a lock for too long; 13: there is nothing yet.
            assert process.returncode in {0, 3, 11, 12, 13}, (what, err)
            if process.returncode:
                continue
            if what == "prune":
                gone = json.loads(out)["removed"]
                world.pruned |= {one["id"] for one in gone}
            elif what == "save":
                saved.append((repo, json.loads(out)["checkpoint"]["id"]))
        for repo, ident in saved:
            assert ident in everything(repo) or ident in world.pruned
        world.check(*world.clones, world.hub)
    world.settle()
