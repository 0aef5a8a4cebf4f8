"""Repositories that earlier versions made are read, and go on, for ever."""

from __future__ import annotations

import tarfile
from pathlib import Path

from tests.support.gitrepo import git
from tests.support.inprocess import invoke, ok

KEPT = Path(__file__).resolve().parents[1] / "compat"


def unpacked(name: str, to: Path) -> Path:
    with tarfile.open(KEPT / f"{name}.tgz") as archive:
        archive.extractall(to, filter="data")
    return to / "repo"


def test_a_session_from_before_pruning_is_sound_and_can_be_pruned(tmp_path):
    repo = unpacked("before-pruning", tmp_path)
    assert ok(repo, "verify") == {
        "schema": "gitcp.verify/1",
        "checked": 6,
        "ok": True,
        "problems": [],
        "repaired": [],
    }
    found = ok(repo, "log", "-s", "main/main")["checkpoints"]
    assert [one["seq"] for one in found] == [4, 3, 2, 1]
    before = {one["id"]: invoke(repo, "cat", one["id"], "a").stdout for one in found}
    assert before[found[0]["id"]] == "4 é\n".encode()
    ok(repo, "prune", "--keep-last", "1", "-y")
    ok(repo, "gc")
    # The label, and where the fork starts.
    left = ok(repo, "log", "-s", "main/main")["checkpoints"]
    assert left == [
        {**one, "commit": two["commit"]}
        for one, two in zip(found[:3], left, strict=True)
    ]
    for one in left:
        assert invoke(repo, "cat", one["id"], "a").stdout == before[one["id"]]
    assert [one["n"] for one in ok(repo, "messages", "main/main:4")] == [1, 2, 3, 4]
    (repo / "a").write_text("next\n")
    assert ok(repo, "save", "-s", "main/main")["checkpoint"]["seq"] == 5
    assert ok(repo, "verify")["ok"]
    git(repo, "fsck", "--strict")
