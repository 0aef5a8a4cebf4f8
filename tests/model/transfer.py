"""Steps that send sessions elsewhere, and look at what came there."""

from __future__ import annotations

import shutil

from tests.model import plain
from tests.model.commands import record
from tests.model.house import quiet
from tests.model.world import Repo, Tree, World, check

# In part, or nothing at all.
APART = (3, 12)


def push(world: World, tree: Tree) -> None:
    """`gitcp push`, and `gitcp pull` in a new repository: all is there as it was.

    Where even the newest checkpoint that the hub has was pruned here, the two lines
    have nothing in common that tells which is the older: such a branch is refused.
    """
    repo = tree.repo
    if not repo.records:
        return
    apart = {ref for ref, id_ in repo.sent.items() if id_ not in repo.records}
    quiet(
        world, tree, args=["push", "hub", "--pruned"], may=[0, *APART] if apart else [0]
    )
    there = arrive(world)
    plain.run(there.root, "remote", "add", "hub", str(world.home / "hub.git"))
    world.call(there, "pull", "hub")
    came = {ref: tip for ref, tip in plain.tips(there.root).items() if ref not in apart}
    wanted = {ref: tip for ref, tip in repo.tips.items() if ref not in apart}
    check(came == wanted, f"pulled {came}, not {wanted}")
    repo.sent |= {ref: plain.line(repo.top, tip)[-1][3] for ref, tip in wanted.items()}
    leave(there)


def export(world: World, tree: Tree, *, sel: str) -> None:
    """`gitcp export`, and `gitcp import` in a new repository."""
    chosen = record(world, tree, sel)
    if chosen is None:
        return
    file = str(world.home / f"{world.step}.bundle")
    quiet(world, tree, args=["export", chosen.id, "-o", file], may=[0])
    there = arrive(world)
    world.call(there, "import", file)
    came = plain.tips(there.root)
    head = f"refs/gitcp/s/{plain.component(chosen.document['session'])}/"
    wanted = {ref: tip for ref, tip in tree.repo.tips.items() if ref.startswith(head)}
    check(came == wanted, f"imported {came}, not {wanted}")
    leave(there)


def arrive(world: World) -> Tree:
    """A new repository to take something in."""
    root = world.base / f"there{world.step}"
    plain.run(world.base, "init", "-q", "-b", "main", str(root))
    return Tree(root, Repo(root / ".git", root), root, root / ".git")


def leave(there: Tree) -> None:
    """What came is whole; then it goes. Commits with one name hold the same."""
    plain.fsck(there.root, "--full", "--strict")
    shutil.rmtree(there.root)
