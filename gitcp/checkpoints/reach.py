"""Reads checkpoints by number, from the branches that hold them."""

from collections.abc import Iterable, Iterator

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import BEFORE_GIT, ELSEWHERE, Assigned
from gitcp.names import decode, encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class Reach:
    """The branches of a repository, each walked as far as was requested.

    `damaged` names the branches that cannot be read.
    """

    def __init__(self, store: Store, *, known: bool = False) -> None:
        """`known` says that the entries were just read from branches: none is walked."""
        self._store = store
        self._known = known
        self._walks: dict[BranchKey, Iterator[Checkpoint]] = {}
        self._found: dict[BranchKey, dict[str, list[Checkpoint]]] = {}
        self._forks: dict[BranchKey, list[BranchKey]] = {}
        self.damaged: dict[BranchKey, CorruptError] = {}

    def find(self, entry: Assigned) -> Checkpoint | None:
        """Returns the checkpoint behind a number as its branch has it now, or None.

        It may be damaged; so may newer checkpoints on the branch.
        """
        if self._known:
            return self._store.checkpoint(entry.commit)
        # One that moved in from a folder without git may be in a fork beside its branch.
        forks = self._forks_of(entry.key) if entry.place == BEFORE_GIT else ()
        for key in (entry.key, *forks):
            checkpoint = self._on(key, entry)
            if checkpoint is not None:
                return checkpoint
        return None

    def _on(self, key: BranchKey, entry: Assigned) -> Checkpoint | None:
        found = self._found.setdefault(key, {})
        for checkpoint in found.get(entry.id, ()):
            if is_meant(checkpoint, entry):
                return checkpoint
        if key not in self._walks:
            self._walks[key] = self._walk(key)
        for checkpoint in self._walks[key]:
            found.setdefault(checkpoint.id, []).append(checkpoint)
            if checkpoint.id == entry.id and is_meant(checkpoint, entry):
                return checkpoint
        return stand_in(found.get(entry.id, ()), entry, self._store)

    def _forks_of(self, key: BranchKey) -> list[BranchKey]:
        if key not in self._forks:
            beside = encode(f"{decode(key.branch) or key.branch}~")
            self._forks[key] = [
                one
                for one in self._store.refs()
                if one.session == key.session and one.branch.startswith(beside)
            ]
        return self._forks[key]

    def _walk(self, key: BranchKey) -> Iterator[Checkpoint]:
        try:
            tip = self._store.standing(key).checkpoint
            if tip is not None:
                yield from self._store.line(tip)
        except CorruptError as exc:
            self.damaged[key] = exc


def is_meant(checkpoint: Checkpoint, entry: Assigned) -> bool:
    """Whether one with the id of an entry is that entry's: a stranger may have copied the id."""
    if entry.place == ELSEWHERE or checkpoint.commit == entry.commit:
        return True
    try:
        return checkpoint.origin.here
    except (CorruptError, FormatTooNewError):
        return False


def stand_in(
    alike: Iterable[Checkpoint], entry: Assigned, store: Store
) -> Checkpoint | None:
    """Returns which of those with the id of an entry is that entry's if no seal tells.

    It may be another user's of this repository, or the key may be lost. Then it is what the
    list of numbers says: a prune, which gives a checkpoint another commit, notes that there.
    """
    latest = store.numbers.find(entry.number)
    return next((one for one in alike if latest and one.commit == latest.commit), None)


def readable(reach: Reach, entry: Assigned) -> Checkpoint | None:
    """Returns the checkpoint behind a number; None if it is gone or damaged."""
    checkpoint = reach.find(entry)
    if checkpoint is not None:
        try:
            _ = checkpoint.manifest
        except (CorruptError, FormatTooNewError):
            return None
    return checkpoint
