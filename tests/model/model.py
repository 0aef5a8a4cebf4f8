"""What a checkpoint must hold, and what a restore must leave behind: pure.

The input is what the directory listing and git itself say about a work tree. Nothing
here reads a disk or knows gitcp; paths are bytes, separated by "/".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

FILE, EXECUTABLE, LINK, GITLINK = "100644", "100755", "120000", "160000"
RESERVED = b".gitcp"
NESTED = frozenset({"nested-repository", "submodule"})
UNSETTLED = "changed-while-reading"


class Node(NamedTuple):
    """One name in a directory listing; `oid` is git's name for a blob of its bytes."""

    kind: Literal["file", "link", "dir", "other"]
    mode: str = ""
    oid: str = ""
    size: int = 0


Listing = Mapping[bytes, Node]


class Tracked(NamedTuple):
    """One entry of the user's own index."""

    mode: str
    oid: str
    sparse: bool


@dataclass(frozen=True)
class Facts:
    """What git and its settings say about the paths of a work tree.

    `nested` maps the directories that are repositories of their own to their HEAD.
    `ignored` and `excluded` name paths of the listing, without what the index tracks;
    `included` those that `gitcp.include` names. `folds`: `core.ignorecase`. `links`: the
    submodules of HEAD's commit. `vague`: empty directories that the rules exclude and in which the
    index has files. `ruled_out`: nested repositories that the rules exclude, tracked or
    not.
    """

    index: Mapping[bytes, Tracked] = field(default_factory=dict)
    nested: Mapping[bytes, str | None] = field(default_factory=dict)
    ignored: frozenset[bytes] = frozenset()
    included: frozenset[bytes] = frozenset()
    excluded: frozenset[bytes] = frozenset()
    limit: int = 100 << 20
    folds: bool = False
    links: Mapping[bytes, str] = field(default_factory=dict)
    vague: frozenset[bytes] = frozenset()
    ruled_out: frozenset[bytes] = frozenset()

    def folded(self, path: bytes) -> bytes:
        """A path as git compares it."""
        return fold(path, folds=self.folds)

    def enclosing(self, path: bytes) -> bytes | None:
        """The outermost nested repository that a path is or lies in."""
        for above in (*ancestors(path), path):
            if above in self.nested:
                return above
        return None


@dataclass(frozen=True)
class Captured:
    """What a checkpoint holds of a work tree, or must hold.

    `empty` must be listed as empty; `bare` may be as well: directories whose whole
    content is not captured. `virtual` are files that a sparse checkout leaves out,
    `absent` submodules that are empty directories.
    """

    files: Mapping[bytes, tuple[str, str]]
    gitlinks: Mapping[bytes, str]
    empty: frozenset[bytes]
    skipped: Mapping[bytes, str]
    bare: frozenset[bytes] = frozenset()
    virtual: frozenset[bytes] = frozenset()
    murky: frozenset[bytes] = frozenset()
    absent: frozenset[bytes] = frozenset()

    def lists(self, path: bytes) -> bool:
        """Whether a path is, or lies in, one that is listed as not captured."""
        listed = {name for name, why in self.skipped.items() if why != UNSETTLED}
        return under(path, listed)


def fold(path: bytes, *, folds: bool) -> bytes:
    """What a path has in common with its other spellings, where names have no case."""
    if not folds:
        return path
    text = path.decode("utf-8", "surrogateescape").casefold()
    return text.encode("utf-8", "surrogateescape")


def ancestors(path: bytes) -> Iterator[bytes]:
    """The directories that a path lies in, from the top."""
    for at, byte in enumerate(path):
        if byte == 0x2F:
            yield path[:at]


def closure(paths: Iterable[bytes]) -> set[bytes]:
    """All the directories that some paths lie in."""
    return {above for path in paths for above in ancestors(path)}


def below(path: bytes, paths: Iterable[bytes]) -> list[bytes]:
    """Those of some paths that lie in a directory."""
    return [other for other in paths if other.startswith(path + b"/")]


def under(path: bytes, tops: Collection[bytes]) -> bool:
    """Whether a path is one of some, or lies in one."""
    return any(above in tops for above in (*ancestors(path), path))


def capture(listing: Listing, facts: Facts) -> Captured:
    """What a checkpoint of a work tree must hold."""
    files: dict[bytes, tuple[str, str]] = {}
    gitlinks: dict[bytes, str] = {}
    skipped: dict[bytes, str] = {}
    tracked = {facts.folded(name) for name in facts.index}
    murky: set[bytes] = set()
    for path, node in listing.items():
        known = facts.folded(path) in tracked
        inside = facts.enclosing(path)
        # The setting names files; what is no file is not even listed where it is ignored.
        named = path in facts.included and node.kind != "other"
        left_out = path in facts.ignored and not named and not known
        if path in facts.excluded and inside == path:
            # The setting names files; of repositories with such a name no document speaks.
            murky.add(path)
        if path in facts.excluded or left_out:
            continue
        if inside is not None and inside != path and not known:
            continue
        if path == RESERVED or path.startswith(RESERVED + b"/"):
            skipped[RESERVED] = "reserved-name"
        elif inside == path and path in facts.ruled_out and not known:
            # Named by `gitcp.include`, of which no document speaks.
            murky.add(path)
        elif inside == path:
            head = facts.nested[path]
            entry = facts.index.get(path)
            submodule = entry is not None and entry.mode == GITLINK
            skipped[path] = "submodule" if submodule else "nested-repository"
            if head is not None:
                gitlinks[path] = head
        elif node.kind == "other":
            skipped[path] = "special-file"
        elif node.kind == "file" and node.size > facts.limit:
            skipped[path] = "too-large"
        elif node.kind != "dir":
            files[path] = node.mode, node.oid
    virtual = _virtual(listing, facts)
    files.update({p: entry for p, entry in virtual.items() if entry[0] != GITLINK})
    gitlinks |= {p: oid for p, (mode, oid) in virtual.items() if mode == GITLINK}
    absent = _absent(listing, facts, files.keys() | gitlinks.keys())
    gitlinks |= {path: facts.links[path] for path in absent}
    skipped |= dict.fromkeys(absent, "submodule")
    # A tree holds files at a path, or the HEAD of a repository.
    full = closure(files)
    gitlinks = {path: head for path, head in gitlinks.items() if path not in full}
    empty, bare = _empty(listing, facts, files.keys() | gitlinks.keys())
    unsure = frozenset(murky)
    empty, bare = empty - unsure - absent, bare | unsure
    omitted = frozenset(virtual.keys() & files.keys())
    return Captured(files, gitlinks, empty, skipped, bare, omitted, unsure, absent)


def _virtual(listing: Listing, facts: Facts) -> dict[bytes, tuple[str, str]]:
    """What a sparse checkout leaves out counts as being as the index has it."""
    found = {}
    for path, entry in facts.index.items():
        way = [listing.get(above, Node("dir")).kind for above in ancestors(path)]
        if (
            entry.sparse
            and not (entry.mode == GITLINK and facts.enclosing(path))
            and path not in listing
            and all(kind == "dir" for kind in way)
            and path not in facts.excluded
        ):
            found[path] = entry.mode, entry.oid
    return found


def _absent(
    listing: Listing, facts: Facts, held: Collection[bytes]
) -> frozenset[bytes]:
    """Submodules of HEAD's commit that are directories with nothing captured in them.

    A child that is not captured for another reason than the ignore rules is one, too.
    """
    full = closure(held)
    hidden = facts.ignored | facts.vague
    children = {
        path.rpartition(b"/")[0]: True for path in listing if not under(path, hidden)
    }
    return frozenset(
        path
        for path in facts.links
        if path in listing
        and listing[path].kind == "dir"
        and path not in full
        and path not in children
        and not under(path, hidden)
        and path not in facts.excluded
        and facts.enclosing(path) is None
    )


def _empty(
    listing: Listing, facts: Facts, held: Collection[bytes]
) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """The directories that must, and those that may, be listed as empty."""
    full = closure(held)
    parents = closure(listing)
    empty: set[bytes] = set()
    bare: set[bytes] = set()
    for path, node in listing.items():
        if node.kind != "dir" or path in full or path == RESERVED:
            continue
        if path in facts.excluded or path in facts.ignored:
            # Settings name files; of empty directories with such a name no document
            # speaks.
            if path in facts.included or path not in facts.ignored:
                bare.add(path)
            continue
        if facts.enclosing(path) is not None or path.startswith(RESERVED + b"/"):
            continue
        (bare if path in parents or path in facts.vague else empty).add(path)
    return frozenset(empty), frozenset(bare)


def differences(wanted: Captured, stored: Captured) -> list[str]:
    """How a stored checkpoint differs from what it must hold; empty: it does not."""
    murky = wanted.murky | stored.murky

    def clear(given: Mapping[bytes, str]) -> dict[bytes, str]:
        return {path: what for path, what in given.items() if not under(path, murky)}

    def files(given: Captured) -> dict[bytes, tuple[str, str]]:
        return {p: entry for p, entry in given.files.items() if not under(p, murky)}

    found = _compare("file", files(wanted), files(stored))
    found += _compare("nested HEAD", clear(wanted.gitlinks), clear(stored.gitlinks))
    found += [f"empty directory missing: {p!r}" for p in wanted.empty - stored.empty]
    surplus = stored.empty - wanted.empty - wanted.bare
    found += [f"no empty directory: {p!r}" for p in surplus if not under(p, murky)]
    return found + _compare(
        "not captured", alike(clear(wanted.skipped)), alike(clear(stored.skipped))
    )


def alike(skipped: Mapping[bytes, str]) -> dict[bytes, str]:
    """Reasons without those that come later, and one for all nested repositories."""
    return {
        path: "nested-repository" if why in NESTED else why
        for path, why in skipped.items()
        if why not in {UNSETTLED, "purged"}
    }


def _compare(
    what: str, wanted: Mapping[bytes, object], got: Mapping[bytes, object]
) -> list[str]:
    return [
        f"{what} {path!r}: want {wanted.get(path)}, got {got.get(path)}"
        for path in sorted(wanted.keys() | got.keys())
        if wanted.get(path) != got.get(path)
    ]
