"""Storage for objects by path; replaces one only if it is as expected (compare-and-swap)."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


class Version(NamedTuple):
    """The version of an object's content, as the store names it."""

    e_tag: str | None
    version: str | None = None


class Entry(NamedTuple):
    """An object in a listing: its size in bytes, and its time by the store, in seconds.

    `e_tag` is None if the listing does not identify the content.
    """

    path: str
    size: int
    modified: float
    e_tag: str | None = None


class Place(Protocol):
    """An object store below one prefix; paths have `/` and no part that is empty or dots.

    Each method raises TransferError if the store cannot be reached, or refuses.
    """

    def list(self, below: str) -> Iterator[Entry]:
        """Yields the objects whose paths begin with `below`, which ends in `/`."""

    def read(self, path: str, at_most: int) -> tuple[bytes, Version] | None:
        """Returns an object of up to `at_most` bytes; None if it is not there."""

    def download(self, path: str, size: int, file: Path) -> bool:
        """Writes an object of this size to a new file; False if it is not there."""

    def upload(self, path: str, file: Path) -> None:
        """Stores a file at a path that no object has."""

    def swap(self, path: str, data: bytes, expect: Version | None) -> Version | None:
        """Stores an object if the present version is `expect` (None: there is no object).

        Returns the new version; None if the present version differs: nothing was stored.
        """

    def remove(self, path: str) -> None:
        """Removes an object, if it is there."""

    def now(self) -> float:
        """Returns the time in seconds, by the same clock as `Entry.modified`."""
