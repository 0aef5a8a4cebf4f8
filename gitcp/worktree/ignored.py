"""Applies the ignore rules of another state of the files."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.format import tree as trees
from gitcp.format.tree import EXECUTABLE, FILE, ReadTree
from gitcp.git.repository import Repository
from gitcp.worktree.files import Root
from gitcp.worktree.names import IGNORE_FILE, parents
from gitcp.worktree.private import PrivateGit


def ignored_at(
    tree: bytes | None,
    paths: Collection[bytes],
    read: ReadTree,
    stream: Callable[[bytes], Iterator[bytes]],
    repository: Repository,
) -> set[bytes]:
    """Returns those of the paths that the rules in a tree ignore.

    The path of a directory ends with a slash. Rules from outside the tree, such as the
    user's own, are those of now.

    Raises:
        StorageError: there is no room for the rules.
        GitFailedError: git failed.
    """
    if not paths:
        return set()
    from tempfile import TemporaryDirectory  # noqa: PLC0415  mostly nothing is asked

    private = PrivateGit(repository, repository.top or repository.git_dir)
    above = {b"", *(directory for path in paths for directory in parents(path))}
    with durable.storage("looking at the ignore rules of a checkpoint"):
        private.prepare()
        with TemporaryDirectory(dir=private.directory, prefix="rules-") as scratch:
            for directory in above:
                name = directory + b"/" + IGNORE_FILE if directory else IGNORE_FILE
                entry = trees.lookup(tree, name, read)
                if entry is None or entry.mode not in {FILE, EXECUTABLE}:
                    continue
                file = Path(scratch, os.fsdecode(name))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(b"".join(stream(entry.oid)))
            names = {path.rstrip(b"/"): path for path in paths}
            _make_directories(scratch, names)
            checker = private.ignore_checker(Path(scratch))
            try:
                return {names[name] for name in checker.ignored(sorted(names))}
            finally:
                checker.close()


def _make_directories(scratch: str, names: Mapping[bytes, bytes]) -> None:
    """Makes those of the paths that end with a slash; git has to see a directory.

    The slash alone also marks a directory, but then `/d/*` matches the directory `d`
    itself.
    """
    with Root(scratch) as root:
        for name in sorted(names):
            # An ignore file of the tree may be in its place.
            with suppress(NotADirectoryError):
                if names[name] != name:
                    root.make_directory(name)
