"""Finds which objects are still stored although gitcp no longer needs them."""

from collections.abc import Iterable
from typing import NamedTuple

from gitcp.git.repository import Repository, open_objects


class Staying(NamedTuple):
    """Objects that are there: `held` are those that git reaches, `unneeded` the others."""

    held: set[bytes]
    unneeded: set[bytes]


def staying(repository: Repository, oids: Iterable[bytes]) -> Staying:
    """Returns which of some objects are still there, in packs or loose.

    Raises:
        GitFailedError: git cannot walk what it reaches.
    """
    objects = open_objects(repository.common_dir, repository.form)
    there = {oid for oid in oids if objects.exists(oid)}
    if not there:
        return Staying(set(), set())
    reached = repository.git(
        "rev-list",
        "--objects",
        "--missing=allow-any",
        "--all",
        "--reflog",
        "--indexed-objects",
    )
    held = {
        bytes.fromhex(line.split(maxsplit=1)[0].decode())
        for line in reached.splitlines()
    }
    return Staying(there & held, there - held)
