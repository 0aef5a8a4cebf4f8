"""Reports the disk space of each turn and path, and which paths to exclude."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import GitcpError
from gitcp.format import layout
from gitcp.format.chunked import ChunkedName
from gitcp.maintenance.disk_usage import walked
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.retention import RetentionGraph

# How many turns and paths are shown.
_TURNS = 10
_PATHS = 10
# An untracked path is worth a hint if it has this share of all bytes, and at least so many.
_SHARE = 0.1
_LEAST = 1 << 20
_OWN = layout.RESERVED + b"/"
_LISTS = _OWN + layout.CHUNKS + b"/"
_SPECIAL = re.compile(rb"([\\*?\[])")


class PathCost(NamedTuple):
    """The bytes on disk of all versions of one path, and how many versions there are."""

    path: bytes
    bytes: int
    versions: int


class TurnCost(NamedTuple):
    """The bytes that one checkpoint added to those before it; the path with most, if any."""

    checkpoint: Checkpoint
    bytes: int
    most: PathCost | None


class Exclusion(NamedTuple):
    """A pattern for `gitcp.exclude`, and the bytes that matching files take now."""

    pattern: bytes
    bytes: int


class Breakdown(NamedTuple):
    """The newest turns, newest first; the largest paths; what to exclude, largest first.

    `own` are the bytes of conversations, decisions and records.
    """

    turns: tuple[TurnCost, ...]
    paths: tuple[PathCost, ...]
    own: int
    exclude: tuple[Exclusion, ...]


class _Piece(NamedTuple):
    turn: str
    path: bytes
    size: int
    versions: int


def breakdown(workspace: Workspace) -> Breakdown:
    """Returns the use of the space that checkpoints hold and git does not.

    If turns share an object, it counts for the oldest one. Missing objects count nothing.

    Raises:
        GitFailedError: git failed.
    """
    found: dict[str, Checkpoint] = {}
    graph = RetentionGraph(workspace.store)
    every = [one for line in graph.lines for one in line.checkpoints]
    for one in sorted(every, key=lambda one: (one.raw.epoch, one.seq)):
        found.setdefault(one.raw.tree.hex(), one)
    if not found:
        return Breakdown((), (), 0, ())
    by_turn: dict[str, Counter[bytes]] = {}
    sizes: Counter[bytes] = Counter()
    versions: Counter[bytes] = Counter()
    for piece in _pieces(workspace, list(found)):
        by_turn.setdefault(piece.turn, Counter())[piece.path] += piece.size
        sizes[piece.path] += piece.size
        versions[piece.path] += piece.versions
    own = sum(size for path, size in sizes.items() if _is_own(path))
    files = {path: size for path, size in sizes.items() if not _is_own(path)}
    largest = sorted(files, key=lambda path: (-files[path], path))[:_PATHS]
    turns = [
        _turn(one, by_turn.get(tree, Counter()))
        for tree, one in list(found.items())[-_TURNS:]
    ]
    return Breakdown(
        tuple(reversed(turns)),
        tuple(PathCost(path, files[path], versions[path]) for path in largest),
        own,
        tuple(_exclusions(workspace, files, sum(sizes.values()))),
    )


def _is_own(path: bytes) -> bool:
    return path.startswith(_OWN) or not path


def _turn(one: Checkpoint, added: Mapping[bytes, int]) -> TurnCost:
    files = {path: size for path, size in added.items() if not _is_own(path)}
    most = max(files, key=files.__getitem__, default=None)
    total = sum(added.values())
    return TurnCost(
        one, total, None if most is None else PathCost(most, files[most], 1)
    )


def _pieces(workspace: Workspace, trees: list[str]) -> Iterator[_Piece]:
    """Yields the objects that each tree adds; chunks and lists under their file's path."""
    form = workspace.repository.form
    roots = set(trees)
    turn = ""
    listed: dict[bytes, list[tuple[str, int]]] = {}
    pointers: dict[str, bytes] = {}
    blobs: dict[str, bytes] = {}
    for oid, path, kind, size in walked(workspace, trees):
        if oid in roots:
            turn = oid
        if path.startswith(_LISTS):
            name = path.removeprefix(_LISTS).partition(b"/")[0]
            if name not in listed:
                parsed = ChunkedName.parse(name)
                if parsed is not None:
                    pointers[form.oid("blob", parsed.pointer).hex()] = name
            listed.setdefault(name, []).append((turn, size))
            continue
        if kind == "blob" and path and not path.startswith(_OWN):
            blobs[oid] = path
            yield _Piece(turn, path, size, 1)
        else:
            # Directories count as gitcp's own data, not as that of a file in them.
            yield _Piece(turn, b"", size, 0)
    named = {name: blobs[oid] for oid, name in pointers.items() if oid in blobs}
    for name, sizes in listed.items():
        for turn, size in sizes:
            yield _Piece(turn, named.get(name, b""), size, 0)


def _exclusions(
    workspace: Workspace, files: Mapping[bytes, int], total: int
) -> Iterator[Exclusion]:
    """Yields patterns for paths that git does not track.

    If git tracks nothing in a directory, the pattern is for the whole directory.
    """
    tracked: set[bytes] = set()
    head, _ = workspace.repository.head()
    if head:
        with suppress(GitcpError):
            git = workspace.repository.git
            for path in git("ls-tree", "-r", "-z", "--name-only", head).split(b"\0"):
                tracked.update((path, *_parents(path)))
    sizes: Counter[bytes] = Counter()
    for path, size in files.items():
        if path not in tracked:
            above = next((one for one in _parents(path) if one not in tracked), None)
            sizes[path if above is None else above + b"/"] += size
    for path, size in sizes.most_common():
        if size < max(_LEAST, total * _SHARE):
            return
        yield Exclusion(b"/" + _SPECIAL.sub(rb"\\\1", path), size)


def _parents(path: bytes) -> Iterable[bytes]:
    """Yields the directories above a path, the topmost first."""
    at = path.find(b"/")
    while at >= 0:
        yield path[:at]
        at = path.find(b"/", at + 1)
