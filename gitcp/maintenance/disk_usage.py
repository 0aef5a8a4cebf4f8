"""Measures the disk usage of gitcp."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.errors import CorruptError, FormatTooNewError, GitFailedError
from gitcp.format import layout
from gitcp.git.registry import pack_sizes
from gitcp.project import search_files
from gitcp.project.workspace import Workspace

_ALL = "refs/gitcp/*"
# Makes git ignore missing objects.
_INCOMPLETE = ("--missing=allow-any", "--ignore-missing")


class Usage(NamedTuple):
    """Bytes on disk.

    `packs` are the packs that gitcp wrote; some objects in them are also in git's own
    packs. `only` are the objects that no branch, tag or remote holds: about what deleting
    all sessions would free. `sessions` is the same for each session by itself; objects that
    two share count in both. `unreadable` names sessions with missing objects, which count
    nothing. `search` is the index of the search.
    """

    packs: int
    pack_count: int
    only: int
    scan: int
    sessions: dict[str, int]
    unreadable: tuple[str, ...] = ()
    search: int = 0


def usage(workspace: Workspace) -> Usage:
    """Returns the disk space that gitcp uses.

    Raises:
        GitFailedError: git failed; an object of the user's own may be missing.
    """
    packs = pack_sizes(workspace.repository)
    names: dict[str, str] = {}
    # git before 2.34 skips a ref whose commit is missing.
    lost: dict[str, str] = {}
    objects = workspace.repository.objects
    for key, oid in workspace.store.refs().items():
        session = key.session
        with suppress(CorruptError, FormatTooNewError):
            session, _ = workspace.store.names(key, oid)
        names.setdefault(key.session, session)
        if not objects.exists(bytes.fromhex(oid)):
            lost[key.session] = f"commit {oid} is missing"
    sessions: dict[str, int] = {}
    unreadable = []
    for component, name in sorted(names.items(), key=lambda item: item[1]):
        glob = f"{layout.SESSIONS}{component}/*"
        try:
            sessions[name] = _held(workspace, glob)
            reason = lost.get(component)
        except GitFailedError as exc:
            sessions[name] = _held_of_rest(workspace, glob)
            reason = exc.message
        if reason is not None:
            unreadable.append(f"{name} is not counted in full: {reason}")
    measure = _held_of_rest if unreadable else _held
    return Usage(
        sum(packs.values()),
        len(packs),
        measure(workspace, _ALL) if names else 0,
        _below(workspace.directory / "scan"),
        sessions,
        tuple(unreadable),
        _below(search_files.index_of(workspace.repository).parent),
    )


def held(workspace: Workspace) -> int:
    """Returns the size of the objects that only checkpoints hold, in bytes on disk.

    No branch, tag or remote holds them.

    Raises:
        GitFailedError: git failed; an object of the user's own may be missing.
    """
    return _held(workspace, _ALL, *_INCOMPLETE)


def _held_of_rest(workspace: Workspace, glob: str) -> int:
    """Like `_held`, without missing objects; 0 if git cannot walk the others either."""
    with suppress(GitFailedError):
        return _held(workspace, glob, *_INCOMPLETE)
    return 0


def _held(workspace: Workspace, glob: str, *options: str) -> int:
    """Returns the size of the objects that these refs hold and none of the user's refs does."""
    head, _ = workspace.repository.head()
    out = workspace.repository.git(
        "rev-list",
        "--disk-usage",
        *options,
        "--objects",
        f"--glob={glob}",
        "--not",
        "--branches",
        "--tags",
        "--remotes",
        *([head] if head else []),
    )
    return int(out)


class Walked(NamedTuple):
    """An object where a walk over trees first meets it: oid, path, kind, bytes on disk."""

    oid: str
    path: bytes
    kind: str
    size: int


def added(workspace: Workspace, trees: Sequence[str]) -> dict[str, int]:
    """Returns the bytes on disk that each tree adds to those before it and to git's branches.

    Missing objects add nothing.

    Raises:
        GitFailedError: git failed; a commit of the user's may be missing.
    """
    roots = set(trees)
    found: dict[str, int] = {}
    root = ""
    for one in walked(workspace, trees):
        root = one.oid if one.oid in roots else root
        found[root] = found.get(root, 0) + one.size
    return found


def walked(workspace: Workspace, trees: Sequence[str]) -> Iterator[Walked]:
    """Yields the objects of each tree that those before it and git's branches do not have.

    Each tree comes before the objects below it. Missing objects are left out.

    Raises:
        GitFailedError: git failed; a commit of the user's may be missing.
    """
    git = workspace.repository.git
    told = git(
        "for-each-ref",
        "--format=%(tree) %(*tree)",
        "refs/heads",
        "refs/remotes",
        "refs/tags",
    )
    head, _ = workspace.repository.head()
    known = set(told.decode().split()) | ({f"{head}^{{tree}}"} if head else set())
    asked = [*(f"^{one}" for one in sorted(known)), *trees]
    listed = git(
        "rev-list",
        "--objects",
        *_INCOMPLETE,
        "--stdin",
        data="\n".join([*asked, ""]).encode(),
    )
    lines = [line.partition(b" ") for line in listed.splitlines()]
    sizes = git(
        "cat-file",
        "--batch-check=%(objecttype) %(objectsize:disk)",
        "--buffer",
        data=b"".join(oid + b"\n" for oid, _, _ in lines),
    )
    for (oid, _, path), answer in zip(lines, sizes.splitlines(), strict=True):
        kind, size = answer.decode("ascii", "replace").split()
        if size.isdigit():
            yield Walked(oid.decode("ascii"), path, kind, int(size))


def _below(directory: Path) -> int:
    found = 0
    for place, _, files in os.walk(directory):
        for file in files:
            # Another gitcp process may be removing files there.
            with suppress(FileNotFoundError):
                found += os.lstat(os.path.join(place, file)).st_size
    return found
