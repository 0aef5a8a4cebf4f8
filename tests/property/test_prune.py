"""Random histories with forks, labels, restores and prunings: what stays is as it was."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gitcp
from gitcp.maintenance.gc import gc
from gitcp.maintenance.prune import plan_prune, prune
from gitcp.maintenance.verify import verify
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.retention import RetentionRules
from tests.support.gitrepo import git, make_repo, write_files

Held = tuple[Any, ...]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("save"), st.booleans()),
        st.tuples(st.just("fork"), st.integers(0, 9)),
        st.tuples(st.just("switch"), st.integers(0, 9)),
        st.tuples(st.just("restore"), st.integers(0, 9)),
        st.tuples(
            st.just("prune"), st.tuples(st.integers(0, 4), st.booleans(), st.booleans())
        ),
        st.tuples(st.just("gc"), st.booleans()),
    ),
    min_size=6,
    max_size=24,
)


def held(found: Checkpoint) -> Held:
    """All that a checkpoint says and holds, but its commit and parent."""
    return (
        found.manifest,
        {path: (e.mode, found.objects.blob(e.oid)) for path, e in found.files()},
        found.empty_dirs,
        found.conversation(),
        found.decisions(),
        found.raw.tree,
        found.raw.committer,
    )


def everything(workspace: Workspace) -> dict[str, Checkpoint]:
    store = workspace.store
    return {
        one.id: one
        for oid in store.refs().values()
        if (tip := store.checkpoint(oid)) is not None
        for one in store.line(tip)
    }


def numbers(workspace: Workspace) -> dict[tuple[str, str], list[str]]:
    """The ids on each line, newest first."""
    store = workspace.store
    return {
        key: [one.id for one in store.line(tip)]
        for key, oid in store.refs().items()
        if (tip := store.checkpoint(oid)) is not None
    }


def play(top: Path, told: list[tuple[str, Any]]) -> None:
    repo = make_repo(top / "r", {"a": b"0"})
    workspace = open_workspace(repo)
    store = gitcp.open(repo)
    session = store.session("s")
    known: dict[str, Held] = {}
    made = [session.save(note="first")]
    branches: list[gitcp.Session] = [session]
    for number, (what, given_) in enumerate(told):
        if what == "save":
            write_files(repo, {"a": b"%d" % number, f"d/{number % 3}": b"x" * number})
            made.append(
                session.save(
                    append=[{"n": number}],
                    decisions=[gitcp.Decision(f"d{number}")],
                    label=f"l{number}" if given_ else None,
                )
            )
        elif what == "switch":
            session = branches[given_ % len(branches)]
        elif what in {"fork", "restore"}:
            here = everything(workspace)
            start = here[sorted(here)[given_ % len(here)]]
            if what == "fork":
                branches.append(session.fork(start, f"f{number}"))
            else:
                session.restore(session.plan_restore(start))
        elif what == "prune":
            last, labelled, counted = given_
            before = numbers(workspace)
            known = {one.id: held(one) for one in everything(workspace).values()}
            labels = {i for i, one in everything(workspace).items() if one.label}
            plan = plan_prune(workspace, RetentionRules(last, None, labelled, counted))
            gone = {one.id for one in plan.go}
            prune(workspace, plan)
            after = numbers(workspace)
            # Nothing but what was said goes, and in no other order.
            assert after == {
                key: [one for one in line if one not in gone]
                for key, line in before.items()
            }
            assert {line[0] for line in before.values()}.isdisjoint(gone)
            assert not labelled or labels.isdisjoint(gone)
            fresh = everything(open_workspace(repo))
            assert {i: held(one) for i, one in fresh.items()} == {
                i: one for i, one in known.items() if i not in gone
            }
            forked = {one.manifest.forked_from for one in fresh.values()} - {None}
            assert forked <= fresh.keys()
        else:
            if given_:
                git(repo, "gc", "-q", "--prune=now")
            there = {i: held(one) for i, one in everything(workspace).items()}
            gc(workspace)
            fresh = everything(open_workspace(repo))
            assert {i: held(one) for i, one in fresh.items()} == there
    assert verify(open_workspace(repo).store).problems == ()
    # No checkpoint lies there under two commits.
    count = git(repo, "rev-list", "--count", "--glob=refs/gitcp", "--committer=gitcp@")
    assert int(count) == len(everything(workspace))
    git(repo, "fsck", "--strict", "--no-dangling")


COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}


def run(told: list[tuple[str, Any]]) -> None:
    top = Path(tempfile.mkdtemp(prefix="gitcp-prune-"))
    try:
        play(top, told)
    finally:
        shutil.rmtree(top)


@settings(max_examples=12, **COMMON)
@given(steps)
def test_what_a_pruning_leaves_is_as_it_was(told):
    run(told)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=200, **COMMON)
@given(steps)
def test_what_a_pruning_leaves_is_as_it_was_at_length(told):
    run(told)
