"""Decides which upkeep is due: packs to merge, or `gitcp.maxSize` to keep to.

A background process does it, which `after_save` starts (`auto_gc`): an agent waits for its
hooks, and merging may take a minute.
"""

from contextlib import suppress
from typing import NamedTuple

import msgspec

from gitcp import durable
from gitcp.git.background import start_gitcp
from gitcp.git.registry import AT_MOST, Registry, pack_sizes
from gitcp.git.repository import Repository
from gitcp.project.workspace import Workspace

# How many new packs there are at least between two runs.
_BETWEEN = AT_MOST // 2
# If gitcp stays above the limit, try again after so many seconds, or after it has grown by
# this factor.
_AGAIN = 24 * 60 * 60.0
_GROWN = 1.1
_NOTE = "upkeep.json"
_LOCK = "upkeep.lock"


class UpkeepNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """Measurements of earlier runs; derived data, except `prunes`.

    `prunes`: the first checkpoint here was made by a gitcp that keeps to `maxSize`. `left`
    packs remained after the last run. A run merges at most `largest` bytes, because more
    took too long. At `at`, in seconds since 1970, checkpoints held `held` bytes and gitcp's
    packs had `packs` bytes. `removed` checkpoints were pruned for their size, the last ones
    at `removed_at`.
    """

    prunes: bool = False
    left: int = 0
    largest: int | None = None
    held: int = 0
    packs: int = 0
    at: float = 0.0
    removed: int = 0
    removed_at: str = ""


class Size(NamedTuple):
    """The approximate size of gitcp's data and its limit, in bytes.

    `prunes`: gitcp prunes beyond the limit.
    """

    used: int
    limit: int
    prunes: bool

    @property
    def over(self) -> bool:
        """Whether the size exceeds the limit."""
        return 0 < self.limit < self.used


def read_note(repository: Repository) -> UpkeepNote:
    """Returns the note of earlier runs; an empty one if it cannot be read."""
    with suppress(OSError, msgspec.MsgspecError):
        raw = (repository.store_dir / _NOTE).read_bytes()
        return msgspec.json.decode(raw, type=UpkeepNote)
    return UpkeepNote()


def write_note(repository: Repository, note: UpkeepNote) -> None:
    """Writes the note. If it is lost, gitcp measures again, or does not prune."""
    with suppress(OSError):
        path = repository.store_dir / _NOTE
        durable.replace(path, msgspec.json.encode(note))


def begin(repository: Repository) -> None:
    """Notes that the first checkpoint of a repository was just made.

    A number is given only once, so no older gitcp has made checkpoints in this repository.
    """
    write_note(repository, msgspec.structs.replace(read_note(repository), prunes=True))


def forget(repository: Repository) -> None:
    """Forgets the measurements, after `gitcp gc` has changed sizes and merged large packs."""
    note = read_note(repository)
    if note != UpkeepNote():
        write_note(
            repository,
            UpkeepNote(note.prunes, removed=note.removed, removed_at=note.removed_at),
        )


def size(workspace: Workspace) -> Size:
    """Returns gitcp's size and its limit, based on the last run's measurements."""
    note = read_note(workspace.repository)
    return _size(workspace, note, sum(pack_sizes(workspace.repository).values()))


def _size(workspace: Workspace, note: UpkeepNote, packs: int) -> Size:
    from gitcp.project import config  # noqa: PLC0415  not at each save

    limit = workspace.settings.max_size
    # Before the first measurement, count the packs; git's gc may have taken over some.
    used = note.held + max(0, packs - note.packs) if note.at else packs
    if not 0 < limit < used:
        return Size(used, limit, note.prunes)
    given = config.get(workspace.repository, "maxSize").origin != "default"
    return Size(used, limit, note.prunes or given)


def start_if_due(workspace: Workspace) -> None:
    """Starts a run in the background, if one is due and none is running."""
    repository = workspace.repository
    note = read_note(repository)
    if not (_merging_due(repository, note) or size_due(workspace, note)):
        return
    held = upkeep_lock(repository)
    if held is None:
        return
    durable.unlock(held)
    start_gitcp("-C", str(workspace.top), "gc", "--auto", "--quiet")


def upkeep_lock(repository: Repository) -> int | None:
    """Takes the lock that a run holds; None if a run has it.

    Raises:
        StorageError: the disk refused.
    """
    return durable.try_lock(repository.store_dir / _LOCK)


def _merging_due(repository: Repository, note: UpkeepNote) -> bool:
    count = len(Registry(repository).names())
    return count > AT_MOST and count >= note.left + _BETWEEN


def size_due(workspace: Workspace, note: UpkeepNote) -> bool:
    """Whether gitcp is over its limit, and it is time to try to change that."""
    found = _size(workspace, note, sum(pack_sizes(workspace.repository).values()))
    if not found.over:
        return False
    passed = workspace.store.time() - note.at
    return not 0 <= passed < _AGAIN or found.used > note.held * _GROWN


def told(found: Size) -> str:
    """Returns why gitcp is over its limit, in one sentence, for `status` and `doctor`."""
    if found.prunes:
        return "what remains is newer than 30 days, labelled, not automatic, or made elsewhere"
    return (
        "gitcp was used here before this limit existed, so it removes nothing"
        " until you set `gitcp config maxSize`"
    )
