"""Matches ignore patterns with plain git."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.model.plain import run


class Rules:
    """Matches patterns of `.gitignore` with git, in a repository that has no others."""

    def __init__(self, where: Path) -> None:
        self.where = where
        where.mkdir()
        run(where, "init", "-q", "--template=", ".")
        self.file = where / ".git" / "patterns"

    def matching(
        self, patterns: Sequence[str], paths: Iterable[bytes], *, folds: bool
    ) -> frozenset[bytes]:
        """Those of some paths that some patterns name, by themselves or from above."""
        if not patterns:
            return frozenset()
        self.file.write_text("".join(f"{pattern}\n" for pattern in patterns))
        return self._check(paths, folds=folds, file=self.file)

    def ignored(
        self,
        files: dict[bytes, bytes],
        exclude: Path,
        paths: Iterable[bytes],
        directories: Iterable[bytes],
        *,
        folds: bool,
    ) -> frozenset[bytes]:
        """Those of some paths that the `.gitignore` files of another tree exclude."""
        for path in (*directories, *map(os.path.dirname, files)):
            (self.where / os.fsdecode(path)).mkdir(parents=True, exist_ok=True)
        for path, data in files.items():
            (self.where / os.fsdecode(path)).write_bytes(data)
        try:
            return self._check([*paths, *directories], folds=folds, file=exclude)
        finally:
            for place in self.where.iterdir():
                if place.is_dir() and place.name != ".git":
                    shutil.rmtree(place)
                elif place.is_file():
                    place.unlink()

    def _check(
        self, paths: Iterable[bytes], *, folds: bool, file: Path
    ) -> frozenset[bytes]:
        settings = ("-c", f"core.excludesFile={file}", "-c", f"core.ignoreCase={folds}")
        done = run(
            self.where, *settings, "check-ignore", "--no-index", "-z", "--stdin",
            data=b"".join(path + b"\0" for path in paths), status=1,
        )  # fmt: skip
        return frozenset(done.split(b"\0")[:-1])
