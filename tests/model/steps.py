"""Chooses steps at random, and carries them out."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.model import back, commands, edits, house, plain, transfer
from tests.model.world import LIMIT, Tree, World

Make = Callable[[Random, World, Tree], dict[str, Any] | None]

NAMES = [b"a", b"b", b"A", b"d/a", b"d/b", b"d/e/a", b"D/a", b"e", b"e/a", b"sp ace",
         b"x.ign", b"d/x.ign", b"keep.ign", b"build/o", b"\xc3\xa9", b"e\xcc\x81"]  # fmt: skip
DIRECTORIES = [b"d", b"d/e", b"e", b"f/g", b"a", b"build", b"o.ign"]
TARGETS = [b"a", b"d", b"nowhere", b"../outside", b".", b"d/a"]
RULE_FILES = [b".gitignore", b".gitignore", b"d/.gitignore", b"info/exclude"]
SETTINGS: list[tuple[str, list[str | None]]] = [
    ("gitcp.include", ["*.ign", "/build/o", None, None]),
    ("gitcp.exclude", ["/sp*", "b", None, None]),
    ("gitcp.maxFileSize", [str(LIMIT), "5000"]),
    ("core.fileMode", ["true"]),
    ("core.autocrlf", ["true", None]),
]
COMMIT = [["add", "-A"], ["commit", "-q", "-m", "step"]]
GIT: list[list[list[str]]] = [
    COMMIT, COMMIT, COMMIT,
    [["add", "-A"]],
    [["add", "-f", "x.ign", "keep.ign"]],
    [["rm", "-q", "-r", "--cached", "--ignore-unmatch", "a", "d"]],
    [["checkout", "-q", "-B", "back", "HEAD~1"]],
    [["checkout", "-q", "-f", "-B", "back2", "HEAD~1"]],
    [["checkout", "-q", "-f", "--", "."]],
    [["reset", "-q", "--hard"]],
    [["clean", "-q", "-f", "-d"]],
    [["stash", "push", "-q", "-u"]],
    [["stash", "pop", "-q"]],
    [["stash", "push", "-q", "-u"], ["checkout", "-q", "-B", "here", "side"],
     ["stash", "pop", "-q"]],
    [*COMMIT, ["merge", "-q", "--no-edit", "main"]],
    [["merge", "-q", "--no-edit", "side"]],
    [["merge", "--abort"]],
    [*COMMIT, ["rebase", "-q", "main"]],
    [["rebase", "--abort"]],
    [["gc", "-q", "--prune=now"]],
    [["repack", "-a", "-d", "-q"]],
    [["pack-refs", "--all", "--prune"]],
    [["sparse-checkout", "set", "--cone", "d"]],
    [["sparse-checkout", "set", "--no-cone", "/a", "/d/a"]],
    [["sparse-checkout", "disable"]],
    [["sparse-checkout", "disable"]],
    [["update-index", "--refresh"]],
    [["reflog", "expire", "--expire=now", "--all"]],
]  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One step of a run; its number stays when others are left out."""

    number: int
    op: str
    tree: str
    args: dict[str, Any]

    def line(self) -> str:
        """The step as one line of JSON."""
        return json.dumps([self.number, self.op, self.tree, encode(self.args)])

    @classmethod
    def parse(cls, text: str) -> Step:
        """What `line` wrote."""
        number, op, tree, args = json.loads(text)
        return cls(number, op, tree, decode(args))


def encode(value: Any) -> Any:
    """Bytes as JSON can hold them."""
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, dict):
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value


def decode(value: Any) -> Any:
    """What `encode` made."""
    if isinstance(value, dict):
        if value.keys() == {"bytes"}:
            return value["bytes"].encode("latin-1")
        return {key: decode(item) for key, item in value.items()}
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    return value


def fixed(**choices: list[Any]) -> Make:
    """Arguments that are chosen without looking at anything."""
    return lambda rng, world, tree: {k: rng.choice(v) for k, v in choices.items()}


def tag(rng: Random, world: World, tree: Tree) -> str | None:
    """The tag of a checkpoint of this repository, rather a new one."""
    tags = [t for t, id_ in world.tags.items() if id_ in tree.repo.records]
    if not tags:
        return None
    return rng.choice(tags[-6:] if rng.random() < 0.6 else tags)


def on_disk(**choices: list[Any]) -> Make:
    """The same for a step with a path, rather one that is there."""

    def make(rng: Random, world: World, tree: Tree) -> dict[str, Any] | None:
        found = sorted(plain.listing(tree.seen)) if rng.random() < 0.8 else NAMES
        found = [p for p in found if b"/.git" not in p and not p.startswith(b".git")]
        more = {key: rng.choice(values) for key, values in choices.items()}
        return {"path": rng.choice(found), **more} if found else None

    return make


def picked(**choices: list[Any]) -> Make:
    """The same for a step with a checkpoint."""

    def make(rng: Random, world: World, tree: Tree) -> dict[str, Any] | None:
        sel = tag(rng, world, tree)
        more = {key: rng.choice(values) for key, values in choices.items()}
        return None if sel is None else {"sel": sel, **more}

    return make


def some_paths(rng: Random, world: World, tree: Tree) -> dict[str, Any] | None:
    sel = tag(rng, world, tree)
    if sel is None:
        return None
    held = sorted(tree.repo.records[world.tags[sel]].captured.files)
    choices = held + [path.rpartition(b"/")[0] for path in held if b"/" in path]
    if not choices:
        return None
    paths = tuple(rng.sample(choices, min(len(choices), rng.randint(1, 2))))
    return {"sel": sel, "paths": paths}


def any_line(rng: Random, world: World, tree: Tree) -> dict[str, Any] | None:
    lines = sorted(tree.repo.lines)
    if not lines:
        return None
    return {"line": rng.choice(lines), "files": rng.random() < 0.6}


def saving(rng: Random, world: World, tree: Tree) -> dict[str, Any]:
    some = {
        "say": world.step if rng.random() < 0.3 else 0,
        "decide": world.step if rng.random() < 0.2 else 0,
        "empty": rng.random() < 0.1,
        "fresh": rng.random() < 0.1,
        "label": "L" if rng.random() < 0.1 else None,
        "include": rng.choice(["*.ign", "/build/o"]) if rng.random() < 0.05 else None,
        "to": rng.choice(["other", "Main"]) if rng.random() < 0.04 else None,
    }
    return {key: value for key, value in some.items() if value}


def held_path(rng: Random, world: World, tree: Tree) -> dict[str, Any] | None:
    """A path that some checkpoint holds."""
    some = some_paths(rng, world, tree)
    if some is None or some["paths"][0].endswith(b".gitignore"):
        return None
    return {"path": some["paths"][0]}


def settings(rng: Random, world: World, tree: Tree) -> dict[str, Any]:
    """A setting of gitcp's that decides what is captured."""
    key, values = rng.choice(SETTINGS)
    return {"key": key, "value": rng.choice(values)}


# How often, how it is chosen, and what does it.
OPS: dict[str, tuple[int, Make, Callable[..., Any]]] = {
    "write": (12, fixed(path=NAMES, what=list(edits.CONTENTS), x=[False, False, True]),
              edits.write),
    "touch_up": (10, on_disk(byte=[0x41, 0x42, 0x0A]), edits.touch_up),
    "append": (4, on_disk(), edits.append),
    "chmod": (3, on_disk(x=[False, True]), edits.chmod),
    "rename": (5, on_disk(to=NAMES, back=[False, True]),
               edits.rename),
    "symlink": (3, fixed(path=NAMES, to=TARGETS), edits.symlink),
    "hardlink": (2, on_disk(to=NAMES), edits.hardlink),
    "mkdir": (3, fixed(path=DIRECTORIES), edits.mkdir),
    "delete": (5, on_disk(), edits.delete),
    "wreck": (1, fixed(every=[0, 1, 2]), edits.wreck),
    "fifo": (1, fixed(path=[b"pipe", b"d/pipe"]), edits.fifo),
    "rules": (4, fixed(path=RULE_FILES, what=list(edits.RULES)), edits.rules),
    "save": (16, saving, commands.save),
    "restore": (8, picked(), back.restore),
    "restore_files": (1, picked(how=["files"]), back.restore),
    "restore_words": (1, picked(how=["conversation"]), back.restore),
    "restore_paths": (3, some_paths, back.restore),
    "dry_run": (2, picked(dry=[True]), back.restore),
    "elsewhere": (2, picked(), back.elsewhere),
    "undo": (6, fixed(), back.undo),
    "rollback": (2, fixed(), back.rollback),
    "fork": (2, picked(stay=[False, False, True]), back.fork),
    "switch": (2, any_line, back.switch),
    "decide": (1, lambda rng, world, tree: {"number": world.step}, house.decide),
    "git": (14, lambda rng, world, tree: {"commands": rng.choice(GIT)}, edits.git),
    "configure": (1, settings, edits.configure),
    "nested": (2, fixed(path=[b"nest", b"d", b"d/e", b"n.ign"], commit=[True, False]),
               edits.nested),
    "unnest": (1, fixed(path=[b"nest", b"d", b"d/e", b"n.ign"]), edits.unnest),
    "submodule": (1, fixed(path=["sub", "d/sub"]), edits.submodule),
    "prune": (1, fixed(keep=[1, 3, 10], dry=[False, False, True]), house.prune),
    "purge": (1, held_path, house.purge),
    "gc": (1, fixed(), house.collect),
    "verify": (1, fixed(), house.verify),
    "push": (1, fixed(), transfer.push),
    "export": (1, picked(), transfer.export),
    "run": (2, fixed(fails=[False, True], back=[False, True]), house.run),
    "agent": (5, fixed(agent=list(house.IDS), event=["UserPromptSubmit", "Stop"]),
              house.agent),
}  # fmt: skip


def choose(rng: Random, world: World, number: int) -> Step:
    """The next step, as the seed has it."""
    world.step = number
    while True:
        tree = rng.choice(sorted(world.trees))
        names = list(OPS)
        (op,) = rng.choices(names, [OPS[one][0] for one in names])
        args = OPS[op][1](rng, world, world.trees[tree])
        if args is not None:
            return Step(number, op, tree, args)


def carry_out(world: World, step: Step) -> None:
    """Does one step, and checks what must hold after each."""
    world.step = step.number
    world.script.append(f"# {step.number}: {step.op}")
    tree = world.trees.get(step.tree)
    if tree is None:
        return
    known = {id_ for one in world.trees.values() for id_ in one.repo.records}
    OPS[step.op][2](world, tree, **step.args)
    news = tree.repo.records.keys() - known
    if any(tree.repo.records[id_].trigger == "restore" for id_ in news):
        # Agents at work since before know nothing of it until their next prompt.
        tree.overtaken |= tree.at_work
        tree.at_work = set()
    for one in {id(one.repo): one.repo for one in world.trees.values()}.values():
        world.unchanged(one)
    made = [id_ for one in world.trees.values() for id_ in one.repo.records]
    for at, id_ in enumerate(dict.fromkeys(i for i in made if i not in known)):
        world.tags[f"{step.number}.{at}"] = id_
