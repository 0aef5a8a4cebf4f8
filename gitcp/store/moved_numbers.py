"""Imports the numbers of a private store whose checkpoints are moved here."""

from contextlib import suppress

from gitcp import durable
from gitcp.format.numbers import BEFORE_GIT, MAIN_TREE, Assigned
from gitcp.git.repository import Repository
from gitcp.store.numbers import LOCK, NAME, Numbers


def take_over(
    repository: Repository, theirs: Repository, *, timeout: float
) -> list[tuple[Assigned, int]]:
    """Gives the checkpoints of another repository numbers here, before they are moved here.

    If this repository has assigned no number yet, they keep their numbers and places.
    Otherwise they get new numbers, and those of the folder get another place: the
    timeline lists them before what was made since. Returns each entry of the other
    list, and its number here, oldest first.

    Raises:
        BusyError: another process kept a list of numbers.
        StorageError: the disk refused; none has a new number.
    """
    _copy(repository, theirs, timeout)
    before = Numbers(theirs)
    gone = before.fates().gone
    listed = [
        before.find(entry.number) or entry
        for entry in before.newest_first()
        if entry.number not in gone
    ][::-1]
    numbers = Numbers(repository).assign(
        entry._replace(place=BEFORE_GIT) if entry.place == MAIN_TREE else entry
        for entry in listed
    )
    return list(zip(listed, numbers, strict=True))


def _copy(repository: Repository, theirs: Repository, timeout: float) -> None:
    """Copies the list of numbers, unless there is one."""
    target = repository.common_dir / NAME
    with durable.storage("taking over the numbers"), suppress(FileNotFoundError):
        repository.make_directory(repository.store_dir)
        with durable.locked(
            repository.store_dir / LOCK,
            what=f"the list of numbers in {repository.common_dir}",
            timeout=timeout,
        ):
            if not target.exists():
                durable.replace(target, (theirs.common_dir / NAME).read_bytes())
