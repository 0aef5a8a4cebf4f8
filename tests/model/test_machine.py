"""A state machine against a model: whole trees, conversation and reasons."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.gitrepo import Node, commit_all, git, git_line, make_repo, tree_bytes
from tests.support.inprocess import ok

NAMES = [b"a", b"b", b"d/a", b"d/b", b"d/e/a", b"e", b"e/a", b"\xff\n", b"x.ign"]
DIRECTORIES = [b"d", b"d/e", b"e", b"f/g", b"a"]
CONTENTS = [b"", b"1", b"2\r\n", b"\0\xff" * 40, b"1\n" * 5000]
TARGETS = [b"a", b"d", b"nowhere", b"../outside", b"."]

Tree = dict[bytes, Node]


class State(NamedTuple):
    """What a checkpoint holds, by the model."""

    id: str
    tree: Tree
    messages: tuple[int, ...]
    decisions: tuple[str, ...]
    session: str
    branch: str


def captured(tree: Tree) -> Tree:
    """What of a tree a checkpoint holds: ignored files are not in it."""
    ignored = {path for path, node in tree.items()
               if path.endswith(b".ign") and node[0] != "dir"}  # fmt: skip
    return {path: node for path, node in tree.items() if path not in ignored}


class Machine(RuleBasedStateMachine):
    """gitcp and git on one side, a list of whole trees on the other."""

    checkpoints = Bundle("checkpoints")

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="gitcp-machine-"))
        self.top = make_repo(self.base / "r")
        (self.base / "outside").write_bytes(b"outside")
        self.messages: tuple[int, ...] = ()
        self.decisions: tuple[str, ...] = ()
        self.count = 0
        self.saved: list[State] = []
        self.replaced: State | None = None
        self.tips: dict[str, State] = {}
        self.branch = "main"

    def teardown(self) -> None:
        git(self.top, "fsck", "--strict", "--no-dangling")
        for state in self.saved[-3:]:
            found = ok(self.top, "show", state.id)["checkpoint"]
            assert found["id"] == state.id
        assert (self.base / "outside").read_bytes() == b"outside"
        shutil.rmtree(self.base)

    # --- the shell ----------------------------------------------------------------

    def path(self, name: bytes) -> bytes:
        return os.path.join(os.fsencode(self.top), name)

    def clear(self, name: bytes) -> None:
        path = self.path(name)
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        elif os.path.isdir(path):
            shutil.rmtree(path)

    def make_way(self, name: bytes) -> None:
        above = b""
        for part in name.split(b"/")[:-1]:
            above = above + b"/" + part if above else part
            if os.path.islink(self.path(above)) or not os.path.isdir(self.path(above)):
                self.clear(above)
                os.mkdir(self.path(above))

    @initialize(target=checkpoints)
    def first(self):
        (self.top / ".gitignore").write_bytes(b"*.ign\n")
        return self.save_now()

    @rule(
        name=st.sampled_from(NAMES), content=st.sampled_from(CONTENTS), x=st.booleans()
    )
    def write(self, name, content, x):
        self.make_way(name)
        if os.path.islink(self.path(name)) or os.path.isdir(self.path(name)):
            self.clear(name)
        with open(self.path(name), "wb") as file:
            file.write(content)
        os.chmod(self.path(name), 0o755 if x else 0o644)

    @rule(name=st.sampled_from(NAMES), to=st.sampled_from(TARGETS))
    def link(self, name, to):
        self.make_way(name)
        self.clear(name)
        os.symlink(to, self.path(name))

    @rule(name=st.sampled_from(DIRECTORIES))
    def mkdir(self, name):
        self.make_way(name + b"/x")

    @rule(name=st.sampled_from([*NAMES, *DIRECTORIES]))
    def delete(self, name):
        above = name.rpartition(b"/")[0]
        if not (above and os.path.islink(self.path(above))):
            self.clear(name)

    @rule()
    def wreck(self):
        for name in os.listdir(os.fsencode(self.top)):
            if name not in {b".git", b".gitignore"} and not name.endswith(b".ign"):
                self.clear(name)

    # --- git ----------------------------------------------------------------------

    @rule()
    def commit(self):
        commit_all(self.top)

    @rule()
    def collect(self):
        git(self.top, "gc", "-q", "--prune=now")

    @rule()
    def pack_refs(self):
        git(self.top, "pack-refs", "--all", "--prune")

    @precondition(lambda self: self.has_commit())
    @rule(back=st.booleans())
    def checkout(self, back):
        start = ["HEAD~1"] if back else []
        git(self.top, "checkout", "-q", "-B", "other", *start, check=False)

    @precondition(lambda self: self.has_commit())
    @rule()
    def reset(self):
        git(self.top, "reset", "-q", "--hard")

    def has_commit(self) -> bool:
        return git(self.top, "rev-parse", "-q", "--verify", "HEAD", check=False) != b""

    # --- gitcp --------------------------------------------------------------------

    def remember(self, document: dict) -> State:
        state = State(
            document["id"],
            captured(tree_bytes(self.top)),
            self.messages,
            self.decisions,
            document["session"],
            document["branch"],
        )
        assert document["branch"] == self.branch
        self.saved.append(state)
        self.tips[self.branch] = state
        return state

    def save_now(self, *args: str, **given) -> State:
        document = ok(self.top, "save", *args, **given)
        if not document["created"]:
            tip = self.tips[self.branch]
            assert document["checkpoint"]["id"] == tip.id
            assert tip.tree == captured(tree_bytes(self.top))
            return tip
        return self.remember(document["checkpoint"])

    @rule(target=checkpoints, say=st.booleans(), decide=st.booleans())
    def save(self, say, decide):
        self.count += 1
        args: list[str] = []
        given = None
        if say:
            self.messages += (self.count,)
            args += ["--append", "-"]
            given = b'{"n":%d}\n' % self.count
        if decide:
            self.decisions += (f"d{self.count}",)
            args += ["--decision", f"d{self.count}"]
        return self.save_now(*args, input=given)

    def changed(self, before: Tree, document: dict, target: State) -> None:
        """A restore saved what was there; ignored files are as they were."""
        after = tree_bytes(self.top)
        assert {p: n for p, n in before.items() if p not in captured(before)} == {
            p: n for p, n in after.items() if p not in captured(after)
        }
        if document["saved"] is not None:
            tip = State(
                document["saved"]["id"], captured(before), self.messages,
                self.decisions, "main", document["saved"]["branch"],
            )  # fmt: skip
            self.saved.append(tip)
            self.tips[tip.branch] = tip
            self.replaced = tip
        else:
            self.replaced = self.tips[self.branch]
        self.messages, self.decisions = target.messages, target.decisions

    def in_the_way(self, target: State) -> bool:
        """Whether an ignored file lies where the target has something else."""
        here = tree_bytes(self.top)
        loose = [path for path in here if path not in captured(here)]
        return any(
            path in target.tree
            or any(
                target.tree.get(path[:at], ("dir",))[0] != "dir"
                for at, byte in enumerate(path)
                if byte == 0x2F
            )
            for path in loose
        )

    def expect(self, target: State) -> None:
        here = captured(tree_bytes(self.top))
        loose = {
            path[:at]
            for path in tree_bytes(self.top)
            if path not in here
            for at, byte in enumerate(path)
            if byte == 0x2F
        }
        # A directory that holds an ignored file stays.
        assert {path: node for path, node in here.items() if path not in loose} == {
            path: node for path, node in target.tree.items() if path not in loose
        }

    @rule(target=checkpoints, chosen=checkpoints)
    def restore(self, chosen):
        if self.in_the_way(chosen):
            return multiple()
        before = tree_bytes(self.top)
        document = ok(self.top, "restore", "-y", chosen.id)
        self.changed(before, document, chosen)
        self.expect(chosen)
        return self.remember(document["checkpoint"])

    @precondition(lambda self: self.replaced is not None)
    @rule(target=checkpoints)
    def undo(self):
        target = self.replaced
        assert target is not None
        if self.in_the_way(target):
            return multiple()
        before = tree_bytes(self.top)
        document = ok(self.top, "undo", "-y")
        self.changed(before, document, target)
        self.expect(target)
        return self.remember(document["checkpoint"])

    @rule(target=checkpoints, chosen=checkpoints)
    def fork(self, chosen):
        if self.in_the_way(chosen):
            return multiple()
        self.count += 1
        before = tree_bytes(self.top)
        name = f"f{self.count}"
        document = ok(self.top, "fork", "-y", chosen.id, name)
        if "plan" in document:
            self.changed(before, document, chosen)
        else:
            self.messages, self.decisions = chosen.messages, chosen.decisions
        # From here an undo means what the new line says; the model does not know.
        self.replaced = None
        self.expect(chosen)
        self.branch = name
        return self.remember(document["checkpoint"])

    @rule(target=checkpoints, pick=st.integers(0, 100))
    def switch(self, pick):
        name = sorted(self.tips)[pick % len(self.tips)]
        chosen = self.tips[name]
        if self.in_the_way(chosen):
            return multiple()
        before = tree_bytes(self.top)
        old = self.branch
        document = ok(self.top, "switch", "-y", "--restore", f"main/{name}")
        self.changed(before, document, chosen)
        self.expect(chosen)
        assert old in self.tips
        self.branch = name
        return self.remember(document["checkpoint"])

    @rule()
    def relink(self):
        """Rewrites every commit of every branch, as pruning does: ids stay."""
        done: dict[str, str] = {}
        refs = git_line(self.top, "for-each-ref", "--format=%(refname)", "refs/gitcp/s")
        for ref in refs.splitlines():
            line = git_line(self.top, "rev-list", "--first-parent", "--reverse", ref)
            for commit in line.splitlines():
                if commit in done:
                    continue
                raw = git(self.top, "cat-file", "commit", commit).split(b"\n")
                raw = [
                    b"parent " + done[row[7:].decode()].encode()
                    if row.startswith(b"parent ") and row[7:].decode() in done
                    else row
                    for row in raw
                ]
                text = b"\n".join(raw).replace(b"> 1", b"> 2", 1)
                made = git(self.top, "hash-object", "-t", "commit", "-w", "--stdin",
                           input=text)  # fmt: skip
                done[commit] = made.decode().strip()
            tip = git_line(self.top, "rev-parse", ref)
            git(self.top, "update-ref", ref, done[tip], tip)

    # --- what always holds --------------------------------------------------------

    @invariant()
    def the_newest_checkpoint_is_as_the_model_has_it(self):
        if not self.saved:
            return
        tip = self.tips[self.branch]
        shown = ok(self.top, "show", "last")["checkpoint"]
        assert (shown["id"], shown["branch"]) == (tip.id, self.branch)
        self.look_at(tip)

    @rule(chosen=checkpoints)
    def look(self, chosen):
        self.look_at(chosen)

    def look_at(self, chosen: State) -> None:
        messages = ok(self.top, "messages", chosen.id)
        assert tuple(one["n"] for one in messages) == chosen.messages
        said = ok(self.top, "decisions", chosen.id)["decisions"]
        assert tuple(one["text"] for one in said) == chosen.decisions

    @rule(chosen=checkpoints)
    def write_elsewhere(self, chosen):
        with tempfile.TemporaryDirectory() as where:
            ok(self.top, "restore", chosen.id, "--to", Path(where) / "new")
            assert tree_bytes(Path(where) / "new") == chosen.tree


COMMON: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "print_blob": True,
}


def test_everything_comes_back():
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=10, stateful_step_count=20, **COMMON)
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_everything_comes_back_at_length():
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=150, stateful_step_count=40, **COMMON)
    )
