"""Writers of an object store of which every request may fail lose nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gitcp.project.workspace import open_workspace
from tests.support.clones import clone, make_hub, save
from tests.support.gitrepo import git, gitcp_argv, gitcp_environment
from tests.support.stores import s3_server

SEED = int(os.environ.get("SEED", "1"))
SHARED, OWN = 8, 50
_AT_ONCE = 16


@pytest.fixture(params=["directory", "s3"])
def store(request, tmp_path) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a store, and the environment that leads to it."""
    if request.param == "directory":
        directory = tmp_path / "store"
        directory.mkdir()
        yield f"file://{directory}", {}
        return
    pytest.importorskip("moto.server")
    pytest.importorskip("obstore")
    with s3_server("shelf", tmp_path / "log") as server:
        yield "s3://shelf/team", server.environment


@pytest.mark.slow
def test_every_acknowledged_checkpoint_is_there_once(store, tmp_path):
    url, environment = store
    hub = make_hub(tmp_path)

    def run(repo: Path, *words: str | bytes | Path) -> bytes:
        done = subprocess.run(
            [*words],
            cwd=repo,
            env=gitcp_environment(environment),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def write(job: tuple[str, str, int, int]) -> list[str]:
        name, session, rounds, seed = job
        repo = clone(hub, name)
        git(repo, "config", "user.name", name)
        out = run(
            Path(__file__).parents[2],
            *(sys.executable, "-m", "tests.support.faulty_store"),
            *(repo, url, session, str(rounds), str(seed)),
        )
        told = json.loads(out)
        faults.append(told["faults"])
        return told["acknowledged"]

    faults: list[int] = []
    first = clone(hub, "first")
    save(first, "-s", "shared")
    run(first, *gitcp_argv("push", url))
    jobs = [(f"s{n}", "shared", 4, SEED * 1000 + n) for n in range(SHARED)]
    jobs += [(f"o{n}", f"own-{n}", 3, SEED * 1000 + 100 + n) for n in range(OWN)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        acknowledged = [one for each in pool.map(write, jobs) for one in each]
    assert len(acknowledged) == len(set(acknowledged)) == SHARED * 4 + OWN * 3
    assert sum(faults) > len(acknowledged)

    if not environment:
        # What pushes left goes, and nothing else.
        packs = list((tmp_path / "store" / "packs").iterdir())
        for pack in packs:
            os.utime(pack, (0, 0))
        out = run(first, *gitcp_argv("gc", "--json", "--remote", url))
        assert 0 < json.loads(out)["removed"] < len(packs)
    reader = clone(hub, "reader")
    run(reader, *gitcp_argv("pull", url))
    run(reader, *gitcp_argv("verify"))
    opened = open_workspace(reader).store
    commits = defaultdict(set)
    tips = [opened.checkpoint(oid) for oid in opened.refs().values()]
    for tip in tips:
        for one in opened.line(tip) if tip is not None else ():
            commits[one.id].add(one.commit)
    assert {name: len(commits[name]) for name in acknowledged} == dict.fromkeys(
        acknowledged, 1
    )
    # One was first in each round, at most; each of the others has a fork.
    shared = [tip for tip in tips if tip is not None and tip.session == "shared"]
    assert len(shared) > SHARED // 2
