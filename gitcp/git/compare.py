"""Compares trees in a temporary repository.

Everything stays in git's own objects: no name in a tree becomes a path on a disk.
"""

import functools
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gitcp.format import tree
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import Changes
from gitcp.git import process
from gitcp.git.aside import borrow, make_bare
from gitcp.git.objects import BLOB, TREE
from gitcp.git.pack import PackWriter

_OPTIONS = (
    "--find-renames",
    # Among more files than this, only those with equal content count as renamed.
    "-l1000",
    "--no-color",
    # No program runs, and the files' own attributes do not apply.
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=none",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--abbrev=7",
)
_SETTINGS = (
    "-c",
    "core.quotePath=false",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "core.bigFileThreshold=16m",
)
# Settings that decide which lines count as changed, and how many are shown around them.
_WISHES = {
    "algorithm": "--diff-algorithm={}",
    "context": "--unified={}",
    "interhunkcontext": "--inter-hunk-context={}",
}
# What `git diff-tree --stdin` prints before each pair of trees.
_PAIR = re.compile(rb"(?:^|(?<=[\n\0]))[0-9a-f]{40,64} [0-9a-f]{40,64}\n")


class Comparison:
    """Trees of blobs, to be compared."""

    def __init__(self, directory: Path, form: ObjectFormat) -> None:
        self._directory = directory
        self._packs = directory / "objects" / "pack"
        self._made: dict[bytes, tree.Tree] = {}
        self._pack = PackWriter(directory, form)

    def add(self, data: bytes) -> bytes:
        """Adds a blob and returns its oid."""
        return self._pack.add(BLOB, data)

    def holding(self, entries: Changes) -> bytes:
        """Adds the tree that holds these paths, and returns its oid."""
        oid = tree.edit(None, entries, self._made.__getitem__, self._write)
        return oid or self._write({})

    def _write(self, entries: tree.Tree) -> bytes:
        oid = self._pack.add(TREE, tree.encode(entries))
        self._made[oid] = entries
        return oid

    def flush(self) -> None:
        """Makes what was added readable; nothing can be added after it."""
        written = self._pack.close()
        if written is not None:
            pack, index, name = written
            pack.rename(self._packs / f"{name}.pack")
            index.rename(self._packs / f"{name}.idx")

    def run(self, old: bytes, new: bytes, *options: str) -> bytes:
        """Returns what `git diff` prints of two trees."""
        return process.run(
            [*_SETTINGS, "diff", *_OPTIONS, *options, old.hex(), new.hex(), "--"],
            cwd=self._directory,
            env={"GIT_DIR": os.fspath(self._directory)},
        )

    def run_each(
        self, pairs: Sequence[tuple[bytes, bytes]], *options: str
    ) -> list[bytes]:
        """Returns what `git diff` prints of each of many pairs of trees.

        One process compares them all.
        """
        if not pairs:
            return []
        wanted = b"".join(
            b"%b %b\n" % (old.hex().encode(), new.hex().encode()) for old, new in pairs
        )
        printed = process.run(
            [
                *(*_SETTINGS, "diff-tree", "--stdin", "-r", *_OPTIONS),
                *(*self._wished, *options),
            ],
            cwd=self._directory,
            env={"GIT_DIR": os.fspath(self._directory)},
            data=wanted,
        )
        return _PAIR.split(printed)[1:]

    @functools.cached_property
    def _wished(self) -> list[str]:
        """The user's settings for `git diff`, which `diff-tree` does not read."""
        names = "|".join(_WISHES)
        lines = process.run(
            ["config", "--get-regexp", f"^diff\\.({names})$"],
            cwd=self._directory,
            env={"GIT_DIR": os.fspath(self._directory)},
            accept=(0, 1),
        )
        found = dict(
            line.partition(" ")[::2]
            for line in lines.decode("utf-8", "replace").splitlines()
        )
        return [
            _WISHES[name.removeprefix("diff.")].format(value)
            for name, value in found.items()
            if value.isalnum()
        ]


@contextmanager
def comparison(
    form: ObjectFormat, borrowed: Path | None = None
) -> Iterator[Comparison]:
    """Opens a repository to compare in; it may borrow a directory of objects."""
    with tempfile.TemporaryDirectory(prefix="gitcp-diff-") as name:
        place = Path(name)
        make_bare(place, form)
        if borrowed is not None:
            borrow(place, borrowed)
        yield Comparison(place, form)
