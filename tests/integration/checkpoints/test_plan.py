"""Plans: what they contain and what they refuse. Nothing here touches a disk."""

from __future__ import annotations

import pytest

from gitcp.format import tree as trees
from gitcp.format.oid import SHA1
from gitcp.format.tree import DIRECTORY, FILE, GITLINK, LINK, Entry
from gitcp.git.objects import TREE
from gitcp.worktree import plan
from gitcp.worktree.plan import Side

STORE: dict[bytes, trees.Tree] = {}
ONE, TWO = b"1" * 20, b"2" * 20
A, B, X = Entry(FILE, ONE), Entry(FILE, TWO), Entry(0o100755, ONE)


def write(tree: trees.Tree) -> bytes:
    oid = SHA1.oid(TREE, trees.encode(tree))
    STORE[oid] = dict(tree)
    return oid


def side(files: dict[bytes, Entry], *empty: bytes) -> Side:
    return Side(trees.edit(None, files, STORE.__getitem__, write), frozenset(empty))


def steps(present: Side, target: Side, **options) -> list[tuple[str, bytes]]:
    made = plan.make(present, target, STORE.__getitem__, **options)
    return [(step.action, step.path) for step in made.steps]


def test_nothing_to_do():
    same = side({b"a": A, b"d/f": B}, b"e")
    assert steps(same, same) == []


def test_each_kind_of_step():
    present = side({b"a": A, b"m": A, b"gone/f": A, b"l": A}, b"e")
    target = side({b"a": B, b"m": X, b"new/f": A, b"l": Entry(LINK, ONE)}, b"f")
    assert steps(present, target) == [
        ("delete", b"gone/f"),
        ("rmdir", b"gone"),
        ("rmdir", b"e"),
        ("chmod", b"m"),
        ("mkdir", b"f"),
        ("mkdir", b"new"),
        ("write", b"a"),
        ("link", b"l"),
        ("write", b"new/f"),
    ]


def test_a_file_becomes_a_directory_and_back():
    file, directory = side({b"d": A}), side({b"d/x/f": B})
    assert steps(file, directory) == [
        ("delete", b"d"),
        ("mkdir", b"d"),
        ("mkdir", b"d/x"),
        ("write", b"d/x/f"),
    ]
    assert steps(directory, file) == [
        ("delete", b"d/x/f"),
        ("rmdir", b"d/x"),
        ("rmdir", b"d"),
        ("write", b"d"),
    ]


def test_the_reverse_is_the_plan_of_the_way_back():
    one = side({b"d": A, b"a/b/c": A, b"m": X}, b"e/f", b"g")
    two = side({b"d/x/f": B, b"a/q": A, b"m": A}, b"g/h")
    there = plan.make(one, two, STORE.__getitem__)
    back = plan.make(two, one, STORE.__getitem__)
    assert there.reversed() == back
    assert there.reversed().reversed() == there


def test_directories_that_stay_are_left():
    present = side({b"d/f": A, b"d/g": A})
    assert steps(present, side({b"d/g": A})) == [("delete", b"d/f")]
    assert steps(present, side({}, b"d")) == [("delete", b"d/g"), ("delete", b"d/f")]
    assert steps(side({}, b"d/e"), side({}, b"d")) == [("rmdir", b"d/e")]


def test_only_what_is_selected():
    present, target = side({b"a/f": A, b"ab": A}, b"a/e"), side({b"ab": B}, b"c")
    chosen = steps(present, target, selects=plan.selection([b"a/"]))
    assert {path for _, path in chosen} == {b"a/f", b"a/e", b"a"}
    assert steps(present, target, selects=plan.selection([b"a"])) == chosen
    assert steps(present, target, selects=plan.selection([b"."])) == steps(
        present, target
    )


def test_what_a_sparse_checkout_omits_is_left():
    made = plan.make(side({b"a": A}), side({b"a": B}), STORE.__getitem__, sparse=[b"a"])
    assert made.steps == ()
    assert [left.path for left in made.left] == [b"a"]


@pytest.mark.parametrize("other", [None, A])
def test_nested_repositories_are_never_touched(other: Entry | None):
    files = {b"a": A} | ({b"n": other} if other else {})
    made = plan.make(
        side({b"a": A, b"n": Entry(GITLINK, ONE)}), side(files), STORE.__getitem__
    )
    assert [left.path for left in made.left] == [b"n"]
    assert all(step.before is None for step in made.steps)


@pytest.mark.parametrize(
    "name",
    [b"..", b".git", b".GIT", b"git~1", b".git ", b".g\xe2\x80\x8cit", b"x" * 256],
)
def test_unsafe_names_are_refused(name: bytes):
    bad = write({name: A})
    for tree in (bad, write({b"d": Entry(DIRECTORY, bad)})):
        with pytest.raises(ValueError):
            plan.make(Side(None), Side(tree), STORE.__getitem__)
    with pytest.raises(ValueError):
        plan.make(Side(None), Side(None, frozenset({name})), STORE.__getitem__)
