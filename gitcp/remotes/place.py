"""Storage for objects by path; replaces one only if it is as expected (compare-and-swap)."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class Version(NamedTuple):
    """Which content an object has, in the store's own words."""

    e_tag: str | None
    version: str | None = None


class Entry(NamedTuple):
    """An object in a listing: its size in bytes, and the store's time, in seconds.

    `e_tag` is None if a listing does not tell one content from another.
    """

    path: str
    size: int
    modified: float
    e_tag: str | None = None


class Place(Protocol):
    """An object store below one prefix; paths have `/` and no part that is empty or dots.

    Each method raises TransferError where the store cannot be reached, or refuses.
    """

    def list(self, below: str) -> Iterator[Entry]:
        """Yields the objects whose paths begin with `below`, which ends in `/`."""

    def read(self, path: str, at_most: int) -> tuple[bytes, Version] | None:
        """Returns an object of at most so many bytes; None if it is not there."""

    def download(self, path: str, size: int, file: Path) -> bool:
        """Writes an object of this size to a new file; False if it is not there."""

    def upload(self, path: str, file: Path) -> None:
        """Stores a file at a path that no object has."""

    def swap(self, path: str, data: bytes, expect: Version | None) -> Version | None:
        """Stores an object if what is there is as expected (None: nothing is there).

        Returns the new version; None if something else is there, and nothing was stored.
        """

    def remove(self, path: str) -> None:
        """Removes an object; one that is gone is fine."""

    def now(self) -> float:
        """Returns the time by the clock that `Entry.modified` is of, in seconds."""
