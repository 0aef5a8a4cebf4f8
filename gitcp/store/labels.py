"""Labels that checkpoints got after they were made (docs/format.md, 23).

A label does not rewrite a commit, so pushed commits stay valid. Labels are in a file that
only grows; the last line about a checkpoint counts.
"""

import os
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING

from gitcp import durable
from gitcp.errors import StorageError
from gitcp.format.labels import LabelLine, decode_label, encode_label
from gitcp.git.repository import Repository
from gitcp.names import encode

if TYPE_CHECKING:
    from gitcp.format.layout import BranchKey
    from gitcp.store.checkpoint import Checkpoint

NAME = "labels.jsonl"
# The limit of the file, in bytes: people typed it.
_LARGEST = 16 << 20


class Labels:
    """The labels given later in one repository; each look sees what other processes added."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._path = repository.store_dir / NAME
        self._file: tuple[int, int, int] | None = None
        self._given: dict[tuple[str, BranchKey], LabelLine] = {}

    def given(self, checkpoint: "Checkpoint") -> LabelLine | None:
        """Returns the last line about a checkpoint; None: its label is its own."""
        self._look()
        if not self._given:
            return None
        return self._given.get((checkpoint.id, checkpoint.trailers.key))

    def label_of(self, checkpoint: "Checkpoint") -> str | None:
        """Returns the label of a checkpoint: the one given last, or its own."""
        line = self.given(checkpoint)
        return checkpoint.manifest.label if line is None else line.label

    def component_of(self, checkpoint: "Checkpoint") -> str | None:
        """Returns the same as a ref component, without reading the checkpoint's content."""
        line = self.given(checkpoint)
        if line is None:
            return checkpoint.trailers.label
        return None if line.label is None else encode(line.label)

    def write(
        self, labels: Iterable[tuple["Checkpoint", str | None]], now: str
    ) -> None:
        """Gives labels to checkpoints, or takes them, durably and all together.

        Raises:
            StorageError: the disk refused.
        """
        lines = [
            LabelLine(one.id, "/".join(one.trailers.key), now, label)
            for one, label in labels
        ]
        data = b"".join(map(encode_label, lines))
        if not data:
            return
        with durable.storage("labelling a checkpoint"):
            self._repository.make_directory(self._path.parent)
            new = not self._path.exists()
            if not new and not self._ends_whole():
                # A process was killed while it wrote this line: ignore it.
                data = b"\n" + data
            durable.append(self._path, data)
            durable.sync_file(self._path)
            if new:
                durable.sync_directory(self._path.parent)

    def _ends_whole(self) -> bool:
        with self._path.open("rb") as file:
            if not file.seek(0, os.SEEK_END):
                return True
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def _look(self) -> None:
        """Reads the file if it changed since the last look."""
        with durable.storage("reading labels"):
            try:
                status = self._path.lstat()
            except FileNotFoundError:
                self._file, self._given = None, {}
                return
            file = status.st_ino, status.st_size, status.st_mtime_ns
            if file == self._file:
                return
            if not stat.S_ISREG(status.st_mode):
                raise StorageError(
                    f"{self._path} is not a regular file",
                    hint="move it away; gitcp creates a new one",
                )
            with self._path.open("rb") as opened:
                raw = opened.read(_LARGEST)
        self._given = {
            (line.id, line.key): line
            for line in map(decode_label, raw.split(b"\n"))
            if line is not None
        }
        self._file = file
