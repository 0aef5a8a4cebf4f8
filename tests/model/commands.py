"""Steps that run gitcp, and what must be so after each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection

from tests.model import plain
from tests.model.model import differences
from tests.model.plain import Stored
from tests.model.world import Seen, Tree, World, check, name

Words = tuple[dict[str, bytes], tuple[str, ...]]


def words(stored: Stored | None) -> Words:
    """Conversation and decisions of a checkpoint."""
    return (stored.talk, stored.decisions) if stored else ({}, ())


def untouched(
    world: World, tree: Tree, before: Seen, but: Collection[bytes] = ()
) -> None:
    """The files on disk are what they were, but for some."""
    after = plain.listing(tree.seen)
    found = [
        f"{path!r}: was {before.listing.get(path)}, is {after.get(path)}"
        for path in sorted((before.listing.keys() | after.keys()) - set(but))
        if before.listing.get(path) != after.get(path)
    ]
    check(not found, "the work tree has changed: " + "; ".join(found))


def same_words(stored: Stored, wanted: Words) -> None:
    """A checkpoint has the conversation and the decisions that it must have."""
    check(
        stored.talk == wanted[0],
        f"{stored.id} has the conversation {stored.talk}, not {wanted[0]}",
    )
    check(
        stored.decisions == wanted[1],
        f"{stored.id} has the decisions {stored.decisions}, not {wanted[1]}",
    )


def save(
    world: World,
    tree: Tree,
    *,
    say: int = 0,
    decide: int = 0,
    empty: bool = False,
    to: str | None = None,
    include: str | None = None,
    label: str | None = None,
    fresh: bool = False,
) -> None:
    """`gitcp save`, with all kinds of entries."""
    if fresh:
        world.note(tree, "rm -rf gitcp/scan")
        shutil.rmtree(scan_state(tree), ignore_errors=True)
    if to is not None:
        session, _, branch = to.partition("/")
        if (session, "main") not in tree.repo.lines:
            branch = "main"
        tree.current = session, branch or "main"
    line = world.current(tree)
    seen = world.look(tree, [include] if include else [])
    old = tree.repo.tip(line)
    talk, decisions = words(old)
    decisions += tuple(tree.pending)
    args = ["-m", f"step {world.step}"]
    data = None
    if say:
        rows = "".join(f'{{"role":"user","content":"{say}.{n}"}}\n' for n in range(3))
        data = rows.encode()
        args += ["--append", "-"]
    if decide:
        args += ["--decision", f"d{decide}", "--why", "so", "--tried", f"t{decide}"]
        decisions += (f"d{decide}", f"t{decide}")
    args += ["--allow-empty"] if empty else []
    args += ["-s", "/".join(line)] if to is not None else []
    args += ["--include", include] if include else []
    args += ["--label", f"{label}{world.step}"] if label else []
    document = world.call(tree, "save", *args, data=data)[1]
    untouched(world, tree, seen)
    made = world.news(tree.repo)
    tree.pending = []
    same = old is not None and not differences(seen.captured, old.captured)
    if old is not None and not document["created"]:
        check(not made, "a save that made nothing made a checkpoint")
        found = differences(seen.captured, old.captured)
        check(same, "there was something to save: " + "; ".join(found))
        check(not data and decisions == words(old)[1], "what was said was not saved")
        check(not empty, "--allow-empty saved nothing")
        check(document["checkpoint"]["id"] == old.id, "not the tip")
        return
    (new,) = made
    check(new.id == document["checkpoint"]["id"], f"{new.id} is not what save tells of")
    check(name(new) == line, f"saved to {name(new)}, not to {line}")
    world.must_hold(new, seen.captured, "saved")
    check(
        old is None or not same or bool(data) or decisions != words(old)[1] or empty
        or bool(label) or new.captured != old.captured,
        "a checkpoint was made though nothing changed",
    )  # fmt: skip
    said = {source: new.talk[source] for source in new.talk
            if new.talk[source] != talk.get(source)}  # fmt: skip
    if data:
        ((source, got),) = said.items()
        check(got == talk.get(source, b"") + data, f"{new.id} holds the words {got!r}")
    else:
        check(not said, f"{new.id} has words of no conversation: {said}")
    check(new.decisions == decisions, f"{new.id}: {new.decisions}, not {decisions}")


def scan_state(tree: Tree) -> str:
    """Where gitcp keeps what it may lose at any time (I7)."""
    where = plain.run(tree.root, "rev-parse", "--absolute-git-dir").decode().strip()
    return os.path.join(where, "gitcp", "scan")


def record(world: World, tree: Tree, sel: str) -> Stored | None:
    """The checkpoint with a tag, if this repository has it still."""
    return tree.repo.records.get(world.tags.get(sel, ""))
