"""What a thread counts as its own: seals do not cover the parents and trailers of commits."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")

from gitcp.errors import UsageError
from gitcp.format import layout
from gitcp.format.checkpoint import Manifest, Sealed
from gitcp.format.tree import Entry
from gitcp.store import origin
from tests.support.clones import clone, make_hub, results
from tests.support.forge import Forge
from tests.support.gitrepo import git, git_line, run_gitcp
from tests.support.graphs import at, chain, everything, opened, put
from tests.support.inprocess import ok

RESUME = "00000000-0000-0000-0000-000000000000"
REFS = "refs/gitcp/s/langgraph-{}/main"


@pytest.fixture
def bob(tmp_path: Path) -> Path:
    return clone(make_hub(tmp_path), "bob")


def stranger(bob: Path) -> Path:
    """Another clone, which has what bob has pushed."""
    results(bob, "push")
    ann = clone(bob.parent / "hub.git", "ann")
    results(ann, "pull")
    return ann


def forged(repo: Path, commit: str, old: bytes, new: bytes) -> str:
    """A commit with another text and the same tree."""
    raw = git(repo, "cat-file", "commit", commit)
    assert raw.count(old) == 1
    args = ("hash-object", "-t", "commit", "-w", "--stdin")
    return git(repo, *args, input=raw.replace(old, new)).decode().strip()


def on_top(
    repo: Path, commit: str, session: str, branch: str, note: str | None = None
) -> str:
    """A stranger's checkpoint on a commit, as the beginning of a branch."""
    forge = Forge()
    below = bytes.fromhex(commit)
    made = forge.checkpoint(session=session, branch=branch, parent=below, note=note)
    ref = f"refs/gitcp/s/{session}/{branch}"
    forge.into(repo / ".git", {ref: made})
    return ref


def ident(config: Any) -> bytes:
    return str(config["configurable"]["checkpoint_id"]).encode()


@pytest.mark.parametrize("lost", ["the refs", "all but the key"])
def test_ones_own_threads_come_back(bob, tmp_path, lost):
    with opened(bob) as saver:
        chain(saver, "long", 3)
        put(saver, at("short"), {"n": 1})
        saver.copy_thread("short", "copy")
        before = everything(saver)
    results(bob, "push")
    back = bob
    if lost == "the refs":
        for ref in git(
            bob, "for-each-ref", "--format=%(refname)", "refs/gitcp"
        ).split():
            git(bob, "update-ref", "-d", ref.decode())
    else:
        back = clone(bob.parent / "hub.git", "back")
        (back / ".git" / "gitcp").mkdir()
        shutil.copy(bob / ".git" / "gitcp" / "key", back / ".git" / "gitcp")
    results(back, "pull")
    with opened(back) as saver:
        assert everything(saver) == before


@pytest.mark.parametrize("way", ["pull", "pull and prune", "import", "fetch"])
def test_an_answer_to_one_question_answers_no_other(bob, tmp_path, way):
    """The trailer says which checkpoint writes belong to, and no seal covers it."""
    with opened(bob) as saver:
        first = put(saver, at("t"), {"ask": "list?"}, 0)
        saver.put_writes(first, [("__resume__", "yes")], RESUME)
        second = put(saver, first, {"ask": "delete?"}, 1)
    ann = stranger(bob)
    answer = git_line(ann, "rev-parse", f"{REFS.format('t')}~1")
    moved = forged(ann, answer, ident(first), ident(second))
    ref = on_top(ann, moved, "langgraph-t", "x")
    if way == "import":
        git(ann, "bundle", "create", "-q", str(tmp_path / "b"), ref)
        assert run_gitcp(bob, "import", tmp_path / "b").returncode == 0
    elif way == "fetch":
        git(bob, "fetch", "-q", str(ann), f"{ref}:{ref}")
    else:
        git(ann, "push", "-q", "origin", f"{ref}:{ref}")
        results(bob, "pull")
    with opened(bob) as saver:
        if way == "pull and prune":
            saver.prune(["t"])
        with pytest.raises(UsageError, match="made elsewhere"):
            saver.get_tuple(at("t"))


@pytest.mark.parametrize("way", ["pull", "pull and remove"])
def test_a_state_of_one_thread_is_none_of_another(bob, way):
    """No seal covers the commit before, and a thread is what its commits lead back to."""
    with opened(bob) as saver:
        put(saver, at("b"), {"n": "mine"})
        put(saver, at("a"), {"n": "another's"})
        put(saver, at("c"), {"n": "third"})
    ann = stranger(bob)
    own = git_line(ann, "rev-parse", REFS.format("b"))
    other = git_line(ann, "rev-parse", REFS.format("a"))
    anchor = git(ann, "cat-file", "commit", own).split(b"\nauthor ")[0]
    below = anchor.split(b"\nparent ")[0] + b"\nparent " + other.encode()
    moved = forged(ann, own, anchor, below)
    ref = on_top(ann, moved, "langgraph-b", "x")
    git(ann, "push", "-q", "origin", f"{ref}:{ref}")
    results(bob, "pull")
    with opened(bob) as saver:
        if way == "pull and remove":
            saver.prune(["b"])
        with pytest.raises(UsageError, match="made elsewhere"):
            saver.get_tuple(at("b"))
        assert saver.get_tuple(at("a")) is not None


def test_a_copy_is_ones_own_also_when_it_is_pruned(bob):
    with opened(bob) as saver:
        chain(saver, "t", 3)
        saver.copy_thread("t", "copy")
        saver.copy_thread("copy", "again")
        state = saver.get_tuple(at("t")).checkpoint
        for name in ("copy", "again"):
            assert saver.get_tuple(at(name)).checkpoint == state
        saver.prune(["copy"])
        for name in ("copy", "again"):
            assert saver.get_tuple(at(name)).checkpoint == state
        on = put(saver, saver.get_tuple(at("copy")).config, {"n": 9}, 9)
        assert saver.get_tuple(at("copy")).config == on


def test_an_earlier_answer_that_comes_again_replaces_no_later_one(bob):
    with opened(bob) as saver:
        asked = put(saver, at("t"), {"ask": "delete?"}, 0)
        saver.put_writes(asked, [("__resume__", "yes")], RESUME)
        saver.put_writes(asked, [("__resume__", "no")], RESUME)
    ann = stranger(bob)
    yes = git_line(ann, "rev-parse", f"{REFS.format('t')}~1")
    again = forged(
        ann,
        yes,
        b"\ncommitter gitcp <gitcp@localhost> 1",
        b"\ncommitter gitcp <gitcp@localhost> 2",
    )
    ref = on_top(ann, again, "langgraph-t", "x")
    git(ann, "push", "-q", "origin", f"{ref}:{ref}")
    results(bob, "pull")
    with opened(bob) as saver:
        [(_, _, said)] = saver.get_tuple(at("t")).pending_writes
        assert said == "no"


# --- what gitcp 0.1.0 sealed ---------------------------------------------------------

SECRET = b"a name that has to go"


def seal_as_before(
    seals: origin.Seals,
    manifest: Manifest,
    inner: Mapping[bytes, Entry],
    given: origin.Origin,
    scratch: Path | None,
) -> Sealed:
    """Seals as 0.1.0 did: the files and the logs alone."""
    key = seals._read() or seals._new(scratch)
    tree = manifest.files.tree
    logs = inner.get(layout.LOG)
    seal = origin._old_seal(
        key,
        manifest.id,
        bytes.fromhex(tree) if tree else None,
        logs.oid if logs else None,
        given,
    )
    return Sealed(seal, given.files, given.logs)


def of_before(repo: Path, monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    """A thread that gitcp 0.1.0 made, with a checkpoint for each value."""
    with monkeypatch.context() as patch, opened(repo) as saver:
        patch.setattr(origin.Seals, "make", seal_as_before)
        config = at("t")
        for step, value in enumerate(values):
            config = put(saver, config, {"n": value}, step)


def with_event(repo: Path, commit: str, change: Callable[[bytes], bytes]) -> str:
    """A commit with another graph.json: the seal of 0.1.0 does not cover it."""
    event = change(git(repo, "cat-file", "blob", f"{commit}:.gitcp/graph.json"))

    def made(kind: str, data: bytes) -> bytes:
        args = ("hash-object", "-t", kind, "-w", "--stdin")
        return bytes.fromhex(git(repo, *args, input=data).decode())

    def swapped(tree: str, name: bytes, new: bytes) -> bytes:
        raw = git(repo, "cat-file", "tree", tree)
        old = bytes.fromhex(git_line(repo, "rev-parse", f"{tree}/{name.decode()}"))
        assert raw.count(name + b"\0" + old) == 1
        return made("tree", raw.replace(name + b"\0" + old, name + b"\0" + new))

    inner = swapped(f"{commit}:.gitcp", b"graph.json", made("blob", event))
    root = git(repo, "cat-file", "tree", f"{commit}^{{tree}}")
    old = bytes.fromhex(git_line(repo, "rev-parse", f"{commit}:.gitcp"))
    whole = made("tree", root.replace(b".gitcp\0" + old, b".gitcp\0" + inner)).hex()
    tree = git_line(repo, "rev-parse", f"{commit}^{{tree}}")
    return forged(repo, commit, tree.encode(), whole.encode())


@pytest.mark.parametrize(
    "way",
    ["pull", "purge it", "purge what is below it", "purge what is above it", "prune"],
)
def test_what_counts_as_a_strangers_is_not_sealed_again(bob, monkeypatch, way):
    """Only the note of the pull tells a forged event with a seal of 0.1.0 from one's own."""
    first = SECRET.decode() if way == "purge what is below it" else "first"
    of_before(bob, monkeypatch, first, "mine")
    ann = stranger(bob)
    own = git_line(ann, "rev-parse", REFS.format("t"))
    more = SECRET if way == "purge it" else b"nothing"

    def change(event: bytes) -> bytes:
        said = msgspec.json.decode(event)
        said["metadata"] = {"json": {"source": "loop", "step": 9, "x": more.decode()}}
        return msgspec.json.encode(said) + b"\n"

    note = SECRET.decode() if way == "purge what is above it" else None
    ref = on_top(ann, with_event(ann, own, change), "langgraph-t", "x", note)
    git(ann, "push", "-q", "origin", f"{ref}:{ref}")
    results(bob, "pull")
    if way.startswith("purge"):
        ok(bob, "purge", "--value-from-stdin", "--yes", input=SECRET)
    with opened(bob) as saver:
        if way == "prune":
            saver.prune(["t"])
        with pytest.raises(UsageError, match="made elsewhere"):
            saver.get_tuple(at("t"))
