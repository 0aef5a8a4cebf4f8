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
# Has git walk over what is missing.
_INCOMPLETE = ("--missing=allow-any", "--ignore-missing")


class Usage(NamedTuple):
    """Bytes on disk.

    `packs` are the packs that gitcp wrote; they hold copies of some objects that git
    has elsewhere as well. `only` is what no branch, tag or remote holds: about what
    deleting all sessions would free. `sessions` is the same for each by itself; what
    two share counts in both. `unreadable` says of which sessions objects are missing, and
    counted as nothing. `search` is the index of the search.
    """

    packs: int
    pack_count: int
    only: int
    scan: int
    sessions: dict[str, int]
    unreadable: tuple[str, ...] = ()
    search: int = 0


def usage(workspace: Workspace) -> Usage:
    """Returns what gitcp takes on disk.

    Raises:
        GitFailedError: git failed; an object of the user's own may be missing.
    """
    packs = pack_sizes(workspace.repository)
    names: dict[str, str] = {}
    # git before 2.34 passes over a ref whose commit is missing.
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
    """Returns what checkpoints hold and no branch, tag or remote does, in bytes on disk.

    Raises:
        GitFailedError: git failed; an object of the user's own may be missing.
    """
    return _held(workspace, _ALL, *_INCOMPLETE)


def _held_of_rest(workspace: Workspace, glob: str) -> int:
    """Returns what `_held` does, of what is there; 0 if git cannot walk that either."""
    with suppress(GitFailedError):
        return _held(workspace, glob, *_INCOMPLETE)
    return 0


def _held(workspace: Workspace, glob: str, *options: str) -> int:
    """Returns the size of what refs hold and none of the user's does."""
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
    """An object that a walk over trees meets first: oid, path, kind, bytes on disk."""

    oid: str
    path: bytes
    kind: str
    size: int


def added(workspace: Workspace, trees: Sequence[str]) -> dict[str, int]:
    """Returns what each tree adds on disk to those before it and to what git holds.

    What is missing adds nothing.

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
    """Yields what each tree has that those before it and git's branches have not.

    Each tree comes before what is below it. What is missing is left out.

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
            # Another gitcp may be at work there.
            with suppress(FileNotFoundError):
                found += os.lstat(os.path.join(place, file)).st_size
    return found
