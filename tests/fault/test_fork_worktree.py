"""`fork --worktree`, killed at any call: the same command again does what it was to do."""

from __future__ import annotations

import os
import random

import pytest

from tests.fault import verbs
from tests.fault.harness import fsck, needs_strace
from tests.fault.sweep import (
    FAULTS,
    Outcome,
    copy,
    in_processes,
    inject,
    must,
    points,
    run,
)
from tests.support.gitrepo import git_line, tree_bytes, write_files

pytestmark = needs_strace

SEED = int(os.environ.get("SEED") or 1)
FORK = ("fork", "1", "beside", "--worktree", "../beside")
SAMPLES = 4
WORKERS = 2


class Trials:
    def __init__(self, base):
        base.mkdir()
        verbs._history(base)
        self.base = base
        self.pristine = copy(base, base.with_name("pristine"))
        self.points = points(copy(self.pristine, base), FORK)
        self.files = tree_bytes(base / "beside")
        self.files.pop(b".git", None)

    def trial(self, point):
        """Kills it at a call; returns whether it was killed."""
        base = copy(self.pristine, self.base)
        done = inject(base, point, FAULTS["kill"], FORK)
        repo = base / "repo"
        fsck(repo)
        branch = "refs/gitcp/s/main/beside"
        if not git_line(repo, "for-each-ref", branch):
            must(base, *FORK)
        assert git_line(repo, "for-each-ref", branch)
        files = tree_bytes(base / "beside")
        files.pop(b".git", None)
        assert files == self.files
        listed = git_line(repo, "worktree", "list", "--porcelain")
        assert listed.count("worktree ") == 2
        assert git_line(base / "beside", "diff", "--cached", "--stat") == ""
        # The work tree is on its branch.
        write_files(base / "beside", {"more.txt": b"more"})
        must(base, "-C", "../beside", "save", "-m", "more")
        assert git_line(repo, "show", f"{branch}:more.txt") == "more"
        return done.returncode != 0


def test_killed_at_sampled_calls_it_is_made_good_by_the_same_command(tmp_path):
    trials = Trials(tmp_path / "scene")
    chance = random.Random(SEED)
    for point in chance.sample(trials.points, SAMPLES):
        assert trials.trial(point), point


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_killed_at_every_call_it_is_made_good_by_the_same_command(tmp_path):
    def share(number):
        top = tmp_path / str(number)
        top.mkdir()
        trials = Trials(top / "scene")
        return [
            Outcome(int(trials.trial(point)), "new")
            for point in trials.points[number::WORKERS]
        ]

    met = in_processes(share, WORKERS)
    killed = sum(outcome.status for outcome in met)
    print(f"{len(met)} runs, {killed} of them met their fault")
    assert killed >= 0.9 * len(met) > 30


def test_a_work_tree_with_something_else_in_it_is_left_alone(tmp_path):
    trials = Trials(tmp_path / "scene")
    base = copy(trials.pristine, trials.base)
    writes = [point for point in trials.points if "/beside/" in point.line]
    inject(base, writes[len(writes) // 2], FAULTS["kill"], FORK)
    write_files(base / "beside", {"mine.txt": b"mine"})
    before = tree_bytes(base / "beside")
    done = run(base, *FORK)
    assert done.returncode == 18, done.stderr
    assert (base / "beside/mine.txt").read_bytes() == b"mine"
    assert before.items() <= tree_bytes(base / "beside").items()
