"""Steps that bring a checkpoint back."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping

from tests.model import plain
from tests.model.commands import record, same_words, untouched, words
from tests.model.model import (
    Captured,
    Facts,
    Node,
    ancestors,
    closure,
    differences,
    under,
)
from tests.model.outcome import (
    Outcome,
    disk_differences,
    lost,
    one_to_the_disk,
    restored,
)
from tests.model.plain import Stored
from tests.model.world import Line, Seen, Tree, Undo, World, check, name

NONE: Mapping[bytes, Node] = {}


def restore(
    world: World,
    tree: Tree,
    *,
    sel: str,
    how: str = "whole",
    paths: tuple[bytes, ...] = (),
    dry: bool = False,
) -> None:
    """`gitcp restore`: the whole, the files, the conversation, or some paths."""
    target = record(world, tree, sel)
    if target is None:
        return
    if paths and not any(
        path == one or path.startswith(one + b"/")
        for one in paths
        for path in target.captured.files
    ):
        return
    args: list[str | bytes] = ["restore", target.id, *paths]
    args += [f"--{how}"] if how != "whole" else []
    if dry:
        rehearse(world, tree, target, args, paths)
        return
    go_back(world, tree, target, [*args, "-y"], how=how, paths=paths)


def undo(world: World, tree: Tree) -> None:
    """`gitcp undo`, where the model knows to what."""
    undone = tree.undo
    if undone is None:
        return
    target = tree.repo.records[undone.id]
    go_back(world, tree, target, ["undo", "-y"], undone=undone)


def rollback(world: World, tree: Tree) -> None:
    """`gitcp rollback`."""
    target = world.newest(tree)
    if target is not None:
        go_back(world, tree, target, ["rollback", "-y"])


def fork(world: World, tree: Tree, *, sel: str, stay: bool = False) -> None:
    """`gitcp fork`: a new branch, with its files or without."""
    target = record(world, tree, sel)
    if target is None:
        return
    branch = f"f{world.step}"
    line = name(target)[0], branch
    if not stay:
        go_back(world, tree, target, ["fork", target.id, branch, "-y"], line=line)
        return
    before = world.look(tree)
    world.call(tree, "fork", target.id, branch, "--no-switch", "-y")
    untouched(world, tree, before)
    (new,) = world.news(tree.repo)
    check(name(new) == line, f"forked {name(new)}, not {line}")
    found = differences(new.captured, target.captured)
    check(not found, f"the fork holds other files: {found}")
    same_words(new, words(target))


def switch(world: World, tree: Tree, *, line: Line, files: bool) -> None:
    """`gitcp switch`, with files or without."""
    target = tree.repo.tip(line)
    if target is None:
        return
    if files:
        args = ["switch", "/".join(line), "--restore", "-y"]
        go_back(world, tree, target, [*args], line=line)
        return
    before = world.look(tree)
    world.call(tree, "switch", "/".join(line))
    untouched(world, tree, before)
    world.unchanged(tree.repo)
    tree.current = line
    tree.undo = None


def outcome_of(
    world: World,
    tree: Tree,
    before: Seen,
    target: Stored,
    undone: Undo | None,
    paths: tuple[bytes, ...],
) -> Outcome:
    """What must be on disk once a checkpoint is restored."""
    created = NONE if undone is None else undone.created
    going = before.captured.files.keys() - target.captured.files.keys()
    # Directories that were there before the restore that is undone filled them.
    filled = {
        above
        for path in created.keys() & before.captured.files.keys()
        for above in ancestors(path)
        if above not in created
    }
    dirs = before.captured.empty | before.captured.bare | filled
    spared = ignored_there(world, tree, target.captured, before.facts, going, dirs)
    outcome = restored(
        before.listing, before.facts, target.captured,
        spared=spared, created=created, only=paths or None,
        purged=undone.purged if undone is not None else (),
    )  # fmt: skip
    # Tracked by now, and ignored by the older rules: no document says.
    outcome.open |= {path for path in spared if path in before.facts.index}
    for path in filled & set(spared):
        outcome.after.setdefault(path, Node("dir"))
    dirs -= filled
    outcome.open |= {p for p in dirs if p in spared or target.captured.lists(p)}
    one_to_the_disk(outcome, before.listing, before.facts)
    return outcome


def ignored_there(
    world: World,
    tree: Tree,
    target: Captured,
    facts: Facts,
    paths: Collection[bytes],
    dirs: Collection[bytes] = (),
) -> frozenset[bytes]:
    """Those of some paths and directories that the rules of a checkpoint ignore."""
    files = {
        path: entry for path, entry in target.files.items()
        if path.rpartition(b"/")[2] == b".gitignore" and entry[0] != "120000"
    }  # fmt: skip
    texts = plain.blobs(tree.repo.top, [oid for _, oid in files.values()])
    return world.rules.ignored(
        dict(zip(files, texts, strict=True)),
        tree.repo.git_dir / "info" / "exclude",
        paths,
        dirs,
        folds=facts.folds,
    )


def go_back(
    world: World,
    tree: Tree,
    target: Stored,
    args: list[str | bytes],
    *,
    how: str = "whole",
    paths: tuple[bytes, ...] = (),
    undone: Undo | None = None,
    line: Line | None = None,
) -> None:
    """Runs a command that brings a checkpoint's files back, and looks at everything."""
    world.current(tree)
    before = world.look(tree)
    tips = {line: tree.repo.tip(line) for line in tree.repo.lines}
    files = how != "conversation"
    created = NONE if undone is None else undone.created
    outcome = outcome_of(world, tree, before, target, undone, paths)
    status, document = world.call(tree, *args, may=(0, 3, 18))
    made = world.news(tree.repo)
    saved = [one for one in made if one.trigger == "before-restore"]
    for one in saved:
        world.must_hold(one, before.captured, "before the restore")
        # It is saved where the work tree stood, with the words of that conversation.
        talk, decisions = words(tips.get(name(one)))
        same_words(one, (talk, decisions + tuple(tree.pending)))
        tree.pending = []
    done = [one for one in made if one.trigger == "restore"][-1:]
    replaced = saved[-1] if saved else None
    for one in done:
        replaced = tree.repo.records[one.document["replaced"]]
    if status == 18:
        check(bool(outcome.blocked | outcome.doubtful) and files,
              f"refused though nothing is in the way: {document}")  # fmt: skip
        untouched(world, tree, before)
        check(len(made) == len(saved), f"refused, and yet made {made}")
        return
    check(
        not outcome.blocked or not files, f"not refused: {outcome.blocked} in the way"
    )
    after = world.look(tree)
    if files:
        # What the restore brought that is undone goes, if it is as it was brought.
        own = {
            path for path, node in created.items()
            if before.listing.get(path) == node and before.facts.enclosing(path) is None
            and not (undone is not None and under(path, undone.purged))
        }  # fmt: skip
        others = {p: node for p, node in before.listing.items() if p not in own}
        found = lost(others, after.listing, before.captured)
        check(not found, "; ".join(found))
        found = disk_differences(outcome, after.listing)
        told = explain(before, target, outcome, after)
        check(not found, f"restored {target.id}: " + "; ".join(found) + told)
    else:
        untouched(world, tree, before)
    check(status == 0 or bool(outcome.doubtful | outcome.open), f"in part: {document}")
    finish(world, tree, before, after, target, made, saved, replaced, how, paths, line)


def explain(before: Seen, target: Stored, outcome: Outcome, after: Seen) -> str:
    """What is known of the paths that are not as they must be."""
    rows = []
    for path in sorted(outcome.after.keys() | after.listing.keys()):
        want, got = outcome.after.get(path), after.listing.get(path)
        if (want and want[:3]) == (got and got[:3]) or outcome.exempt(path):
            continue
        facts = before.facts
        marks = [
            word
            for word, true in (
                ("tracked", path in facts.index),
                ("ignored", path in facts.ignored),
                ("excluded", path in facts.excluded),
                ("captured", path in before.captured.files),
                ("empty", path in before.captured.empty),
                ("bare", path in before.captured.bare),
                ("in the target", path in target.captured.files),
                ("empty in the target", path in target.captured.empty),
                ("listed by the target", target.captured.lists(path)),
            )
            if true
        ]
        rows.append(f"\n  {path!r} was {before.listing.get(path)}, {', '.join(marks)}")
    return "".join(rows)


def finish(
    world: World,
    tree: Tree,
    before: Seen,
    after: Seen,
    target: Stored,
    made: list[Stored],
    saved: list[Stored],
    replaced: Stored | None,
    how: str,
    paths: tuple[bytes, ...],
    line: Line | None,
) -> None:
    """Looks at the checkpoints that a restore made."""
    was = world.current(tree)
    new = [one for one in made if one not in saved]
    check(len(new) == 1 and len(saved) <= 1, f"a restore made {len(made)} checkpoints")
    (done,) = new
    wanted_files = after.captured
    if done.trigger == "fork":
        # No file had to change: the branch begins with the checkpoint as it was.
        untouched(world, tree, before)
        wanted_files = target.captured
    else:
        check(replaced is not None, "nothing was saved before the restore")
        assert replaced is not None
        world.must_hold(replaced, before.captured, "the state before the restore")
    world.must_hold(done, wanted_files, "the restore")
    wanted = words(replaced if how == "files" or paths else target)
    same_words(done, wanted)
    # Only a fork and a switch move the person; a conversation goes on where it was.
    tree.current = line or was
    lines = {was, name(target), *([name(replaced)] if replaced is not None else [])}
    lines = {line} if line is not None else lines
    check(name(done) in lines, f"restored to {name(done)}, not one of {lines}")
    tree.undo = None
    if done.trigger == "restore":
        tree.restore = done.id
    if line is None and how != "conversation":
        created = {
            path: node for path, node in after.listing.items()
            if path not in before.listing
            or (node.kind == "dir") != (before.listing[path].kind == "dir")
        }  # fmt: skip
        if before.facts.folds:
            # What the disk lists under another spelling is not what the restore wrote.
            own = {*target.captured.files, *target.captured.empty}
            created = {p: created[p] for p in created.keys() & (own | closure(own))}
        assert replaced is not None
        tree.undo = Undo(was, replaced.id, created)


def rehearse(
    world: World,
    tree: Tree,
    target: Stored,
    args: list[str | bytes],
    paths: tuple[bytes, ...],
) -> None:
    """`--dry-run` changes nothing, and plans what a restore would do."""
    before = world.look(tree)
    outcome = outcome_of(world, tree, before, target, None, paths)
    status, document = world.call(tree, *args, "--dry-run", may=(0, 18))
    untouched(world, tree, before)
    world.unchanged(tree.repo)
    if status or outcome.blocked or "--conversation" in args:
        return
    planned = {
        step["path"].encode("utf-8", "surrogateescape") for step in document["plan"]
        if step["action"] not in {"mkdir", "rmdir"} and "path_b64" not in step
    }  # fmt: skip
    changing = {
        path for path in before.listing.keys() | outcome.after.keys()
        if (before.listing.get(path, DIRECTORY)[:3]
            != outcome.after.get(path, DIRECTORY)[:3])
    }  # fmt: skip
    wrong = {p for p in planned ^ changing if not outcome.exempt(p) and p.isascii()}
    check(not wrong, f"--dry-run plans {planned}, not {changing}")


DIRECTORY = Node("dir")


def elsewhere(world: World, tree: Tree, *, sel: str) -> None:
    """`restore --to` writes a checkpoint's files somewhere else, and nothing here."""
    target = record(world, tree, sel)
    if target is None:
        return
    before = world.look(tree)
    to = world.base / f"to{world.step}"
    world.call(tree, "restore", target.id, "--to", to, may=(0, 3))
    untouched(world, tree, before)
    world.unchanged(tree.repo)
    outcome = restored({}, Facts(), target.captured)
    found = disk_differences(outcome, plain.listing(to))
    shutil.rmtree(to)
    check(not found, f"{target.id} elsewhere: " + "; ".join(found))
