"""The list of packs that gitcp made, one name a line: a hint for merging.

Such a file is only a hint: git alone merges a pack that is in no list. So after a power
cut or an edit by hand, gitcp reads the lines that make sense.
"""

import os
import re
from contextlib import suppress

from gitcp import durable
from gitcp.format.oid import PATTERN
from gitcp.git.repository import Repository

PACKS = "packs"
# Packs of unreachable objects that git may still rely on.
KEPT = "packs-kept"
# More packs than that are merged.
AT_MOST = 20
_NAME = rf"(?m)^pack-{PATTERN}$".encode()


def pack_sizes(repository: Repository) -> dict[str, int]:
    """Returns the size of each pack of gitcp's that stands."""
    directory = repository.common_dir / "objects" / "pack"
    found = {}
    for name in (
        *Registry(repository).names(),
        *Registry(repository, KEPT).names(),
    ):
        try:
            found[name] = os.stat(f"{directory}/{name}.pack").st_size
        except FileNotFoundError:
            continue
    return found


class Registry:
    """One of these lists."""

    def __init__(self, repository: Repository, name: str = PACKS) -> None:
        self._path = repository.store_dir / name

    def names(self) -> list[str]:
        """Returns the names, in the order in which they were added."""
        try:
            raw = self._path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return []
        return [name.decode("ascii") for name in re.findall(_NAME, raw)]

    def add(self, name: str) -> None:
        """Adds a pack; it need not survive a power cut.

        Raises:
            OSError: the disk refused.
        """
        line = f"{name}\n".encode()
        try:
            durable.append(self._path, line)
        except IsADirectoryError:
            self._move_away()
            durable.append(self._path, line)

    def forget(self, without: set[str]) -> None:
        """Removes names; a name that is added meanwhile may be lost.

        Such a pack is then git's alone to merge: it is in use all the same.
        """
        names = self.names()
        if without.isdisjoint(names):
            return
        left = "".join(f"{name}\n" for name in names if name not in without)
        durable.replace(self._path, left.encode(), sync=False)

    def _move_away(self) -> None:
        """Moves a directory of this name out of the way; what is in it stays."""
        with suppress(FileNotFoundError):
            self._path.rename(f"{self._path}.{os.urandom(4).hex()}")
