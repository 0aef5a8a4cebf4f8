"""What a restore must leave behind on disk: pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal
from unicodedata import normalize

from tests.model.model import (
    LINK,
    RESERVED,
    Captured,
    Facts,
    Listing,
    Node,
    ancestors,
    capture,
    closure,
    under,
)


@dataclass
class Outcome:
    """What a restore must leave behind.

    `blocked`: what is in the way, so that it must be refused. `doubtful`: where the
    documents allow refusing as well as leaving. `open`: paths about which they say
    nothing; everything else must be exactly as in `after`.
    """

    after: dict[bytes, Node]
    blocked: set[bytes] = field(default_factory=set)
    doubtful: set[bytes] = field(default_factory=set)
    open: set[bytes] = field(default_factory=set)

    def exempt(self, path: bytes) -> bool:
        """Whether a path may be as it likes."""
        return any(
            path == other
            or path.startswith(other + b"/")
            or other.startswith(path + b"/")
            for other in self.open | self.doubtful
        )


def restored(
    listing: Listing,
    facts: Facts,
    target: Captured,
    *,
    spared: Collection[bytes] = (),
    created: Mapping[bytes, Node] | None = None,
    purged: Collection[bytes] = (),
    only: Collection[bytes] | None = None,
) -> Outcome:
    """What a restore of `target` must make of a work tree.

    `spared`: captured paths that the target's own ignore rules exclude. `created`:
    what the restore that is being undone brought. `purged`: paths that were purged since.
    `only`: the named paths, or all.
    """
    here = capture(listing, facts)

    def named(path: bytes) -> bool:
        return only is None or any(
            path == name or path.startswith(name + b"/") for name in only
        )

    wanted = {path: entry for path, entry in target.files.items() if named(path)}
    loose = _loose(listing, facts, here)
    created = {} if created is None else created
    # An undo removes what its restore brought, even if rules ignore it by now. It keeps
    # a directory in which something stays, and a purged file, which may be the last copy.
    loose -= {
        path for path, node in created.items()
        if listing.get(path) == node and facts.enclosing(path) is None
        and (node.kind == "dir" or not under(path, purged))
    }  # fmt: skip
    kept = {
        path
        for path in here.files.keys() - wanted.keys()
        if not named(path)
        or ((target.lists(path) or path in spared) and path not in created)
    }  # fmt: skip
    outcome = Outcome({}, open={*here.murky, *here.absent})
    outcome.doubtful |= closure(wanted) & here.absent
    outcome.doubtful |= {path for path in here.absent if under(path, wanted)}
    _place(outcome, wanted, listing, facts, here, loose)
    for path in kept:
        if path in listing:
            outcome.after[path] = listing[path]
    for path in loose:
        outcome.after[path] = listing[path]
    omitted = _omitted(listing, here) - wanted.keys()
    outcome.open |= {path for path in omitted if named(path)}
    for path in target.gitlinks.keys() | closure(target.gitlinks):
        # The target has it, although nothing in it comes back.
        if path in listing and listing[path].kind == "dir":
            outcome.after.setdefault(path, listing[path])
    empty = {path for path in target.empty if named(path)}
    _directories(outcome, empty, listing, here, target, named)
    _in_the_way(outcome, wanted, empty, kept, loose, facts)
    # Whether a checkpoint has an empty directory that a setting names no document says.
    unsure = {path for path in outcome.blocked & here.bare if path in facts.excluded}
    outcome.doubtful |= unsure
    outcome.blocked -= unsure
    return outcome


def one_to_the_disk(outcome: Outcome, listing: Listing, facts: Facts) -> None:
    """What stays, or may, under one spelling and must come under another, where case is none.

    A disk without case is taken to have no normalisation either (docs/limits.md).
    """
    spellings: dict[bytes, list[bytes]] = {}
    may_be = outcome.after.keys() | (outcome.open & listing.keys())
    for path in may_be if facts.folds else ():
        spellings.setdefault(_any_spelling(path, facts), []).append(path)
    outcome.doubtful |= {
        path for alike in spellings.values() for path in alike if len(alike) > 1
    }


def _any_spelling(path: bytes, facts: Facts) -> bytes:
    """The same for all names of a file, where case is none."""
    if not facts.folds:
        return path
    text = normalize("NFD", facts.folded(path).decode("utf-8", "surrogateescape"))
    return text.encode("utf-8", "surrogateescape")


def _omitted(listing: Listing, here: Captured) -> set[bytes]:
    """What a sparse checkout leaves out, submodules too."""
    return {*here.virtual, *(path for path in here.gitlinks if path not in listing)}


def _loose(listing: Listing, facts: Facts, here: Captured) -> set[bytes]:
    """What is on disk and in no checkpoint: all of it must stay.

    A directory in a nested repository stays for what is left in it, and goes with the last
    of the files that are tracked from outside. So does an ignored one with the last of those
    that a setting includes.
    """
    holding = closure(here.files)
    return {
        path
        for path, node in listing.items()
        if path not in here.files
        and (
            node.kind != "dir"
            or (facts.enclosing(path) is not None and path not in holding)
            or (path in facts.ignored and path not in holding)
            or path in facts.excluded
            or path == RESERVED
            or path.startswith(RESERVED + b"/")
        )
    }


def _place(
    outcome: Outcome,
    wanted: Mapping[bytes, tuple[str, str]],
    listing: Listing,
    facts: Facts,
    here: Captured,
    loose: Collection[bytes],
) -> None:
    vague = {
        _any_spelling(path, facts) for path in facts.vague
        if path in listing and listing[path].kind == "dir"
    }  # fmt: skip
    for path, (mode, oid) in wanted.items():
        entry = facts.index.get(path)
        absent = path not in listing and entry is not None and entry.sparse
        if absent and here.files.get(path) == (mode, oid):
            continue
        if absent:
            outcome.open.add(path)
        kind: Literal["link", "file"] = "link" if mode == LINK else "file"
        outcome.after[path] = Node(kind, mode, oid)
        if path in loose:
            node = listing[path]
            same = node.kind == kind and (node.mode, node.oid) == (mode, oid)
            (outcome.doubtful if same else outcome.blocked).add(path)
        if _any_spelling(path, facts) in vague:
            outcome.doubtful.add(path)
        inside = facts.enclosing(path)
        if inside is not None and here.files.get(path) != (mode, oid):
            outcome.doubtful.add(path)
            outcome.blocked.discard(path)


def _directories(
    outcome: Outcome,
    empty: set[bytes],
    listing: Listing,
    here: Captured,
    target: Captured,
    named: Callable[[bytes], bool],
) -> None:
    """Every directory that must be there in the end."""
    wanted = closure(outcome.after) | empty | closure(empty)
    for path in here.empty | here.bare:
        if path in listing and not named(path):
            wanted |= {path, *ancestors(path)}
    for path in wanted:
        outcome.after.setdefault(path, Node("dir"))
    # The documents do not say whether a directory stays from which nothing was taken.
    emptied = {p for p in here.bare if p in listing and p not in wanted}
    # Nor what becomes of one that only holds, in the end, what a sparse checkout leaves out.
    hollow = {
        path for path in closure(_omitted(listing, here))
        if path in listing and path not in wanted
    }  # fmt: skip
    outcome.open |= emptied | hollow
    # Nor of one that the target lists as not captured, a purged one.
    outcome.open |= {
        path for path, node in listing.items()
        if node.kind == "dir" and path not in wanted and target.lists(path)
    }  # fmt: skip


def _in_the_way(
    outcome: Outcome,
    wanted: Mapping[bytes, object],
    empty: Collection[bytes],
    kept: Collection[bytes],
    loose: Collection[bytes],
    facts: Facts,
) -> None:
    """What stays and is in the way of what must come."""
    dirs = closure(wanted) | set(empty) | closure(empty)
    outcome.doubtful |= {path for path in empty if facts.enclosing(path) is not None}
    for path in loose:
        hard = facts.enclosing(path) is None
        if path in dirs and outcome.after[path].kind != "dir":
            (outcome.blocked if hard else outcome.doubtful).add(path)
        for above in ancestors(path):
            if above in wanted:
                outcome.blocked.add(path)
    for path in kept:
        if path in dirs or any(above in wanted for above in ancestors(path)):
            outcome.doubtful.add(path)


def disk_differences(
    outcome: Outcome, listing: Listing, skip: Collection[bytes] = ()
) -> list[str]:
    """How a work tree differs from what a restore must have left; empty: it does not."""
    found = []
    for path in sorted(outcome.after.keys() | listing.keys()):
        if outcome.exempt(path) or path in skip:
            continue
        want, got = outcome.after.get(path), listing.get(path)
        if (want and want[:3]) != (got and got[:3]):
            found.append(f"on disk {path!r}: want {want}, got {got}")
    return found


def lost(before: Listing, after: Listing, here: Captured) -> list[str]:
    """What no checkpoint holds and a restore has nevertheless changed or removed."""
    return [
        f"lost {path!r}: was {node}, is {after.get(path)}"
        for path, node in before.items()
        if node.kind != "dir"
        and path not in here.files
        and not under(path, here.murky)
        and (after.get(path) or Node("dir"))[:3] != node[:3]
    ]
