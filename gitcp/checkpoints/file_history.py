"""The versions of one file, through the checkpoints of all work trees, restores and renames."""

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gitcp.checkpoints import diff
from gitcp.checkpoints.predecessors import oldest_first, predecessors
from gitcp.checkpoints.standing import RESTORE
from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format import tree
from gitcp.format.numbers import ELSEWHERE, Assigned
from gitcp.git.blame import Version
from gitcp.git.paths_at import blobs_at
from gitcp.git.repository import Repository
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

if TYPE_CHECKING:
    from gitcp.format.layout import BranchKey

# How many renames of a file are followed.
_RENAMES = 20
# Among more changes than this, a person would not recognize a rename.
_COMPARED = 2_000
# How many other work trees and pulled branches are searched for a line, newest first.
_OTHERS = 50


class FileVersion(NamedTuple):
    """A content that a file had, and the checkpoint it first appeared in.

    `path` is what the file was called there; `before` the state before that checkpoint in
    its work tree, None if there was none.
    """

    version: Version
    entry: Assigned
    path: bytes
    before: Assigned | None


class FileHistory:
    """The versions of files, as the checkpoints with numbers have them.

    Each version comes after those that it was made from.
    """

    def __init__(self, store: Store, repository: Repository) -> None:
        self._store = store
        self._repository = repository
        self.entries = oldest_first(store)
        self._by_id = {entry.id: at for at, entry in enumerate(self.entries)}
        self._before = list(predecessors(self.entries))
        self.versions: list[FileVersion] = []
        self._renames = 0

    def of(self, path: bytes, place: str) -> list[FileVersion]:
        """Returns what led to the content of a file in the newest checkpoint of a work tree.

        That content's version is the last one. Nothing if that checkpoint lacks the file.
        """
        places = [at for at, one in enumerate(self.entries) if one.place == place]
        if not places:
            return []
        self.versions = []
        self._renames = 0
        last = self._build(path, places[-1])[places[-1]]
        return [] if last is None else self._leading_to([last])[0]

    def among_others(
        self, path: bytes, place: str
    ) -> tuple[list[FileVersion], list[int]]:
        """Returns the versions that a file has in other work trees, and in what was pulled.

        Also returns where among them the version of each newest checkpoint is.
        """
        self.versions = []
        self._renames = 0
        newest: dict[BranchKey | str, int | None] = {}
        if any(one.place != place for one in self.entries):
            found = self._build(path, len(self.entries) - 1)
            for entry, version in zip(self.entries, found, strict=True):
                if entry.place != place:
                    line = entry.key if entry.place == ELSEWHERE else entry.place
                    newest.pop(line, None)
                    newest[line] = version
        tips = dict.fromkeys(one for one in newest.values() if one is not None)
        return self._leading_to(list(tips)[-_OTHERS:])

    def _leading_to(self, tips: list[int]) -> tuple[list[FileVersion], list[int]]:
        """Returns the versions that led to some versions, in order, and the positions of these."""
        wanted: set[int] = set()
        waiting = list(tips)
        while waiting:
            at = waiting.pop()
            if at not in wanted:
                wanted.add(at)
                waiting += self.versions[at].version.parents
        order = sorted(wanted)
        new = {old: at for at, old in enumerate(order)}
        versions = [
            self.versions[at]._replace(
                version=self.versions[at].version._replace(
                    parents=tuple(new[one] for one in self.versions[at].version.parents)
                )
            )
            for at in order
        ]
        return versions, [new[at] for at in tips]

    def _build(self, path: bytes, until: int) -> list[int | None]:
        """Returns the version of a path in each checkpoint up to one of them."""
        entries = self.entries[: until + 1]
        blobs = blobs_at(self._repository, [one.commit for one in entries], path)
        found: list[int | None] = []
        for at, (entry, blob) in enumerate(zip(entries, blobs, strict=True)):
            before = self._before[at]
            version: int | None = None
            if blob is not None:
                version = self._version(path, at, blob, found)
            elif (
                before is not None
                and found[before] is not None
                and not self._holds_files(entry)
            ):
                # A checkpoint of a conversation alone says nothing about files.
                version = found[before]
            found.append(version)
        return found

    def _version(
        self, path: bytes, at: int, blob: bytes, found: list[int | None]
    ) -> int:
        entry, before = self.entries[at], self._before[at]
        states = [] if before is None else [before]
        restored = self._restored(entry, at)
        if restored is not None:
            states.insert(0, restored)
        parents = [found[one] for one in states]
        for parent in parents:
            if parent is not None and self.versions[parent].version.blob == blob:
                return parent
        if not any(parent is not None for parent in parents) and before is not None:
            parents = [self._under_another_name(path, blob, at, before)]
        known = tuple(dict.fromkeys(one for one in parents if one is not None))
        for parent in known:
            if self.versions[parent].version.blob == blob:
                return parent
        state = None if before is None else self.entries[before]
        self.versions.append(FileVersion(Version(blob, known), entry, path, state))
        return len(self.versions) - 1

    def _restored(self, entry: Assigned, at: int) -> int | None:
        """Returns the checkpoint that a restore went back to."""
        if entry.trigger != RESTORE:
            return None
        checkpoint = self._checkpoint(entry)
        restored = checkpoint.manifest.restored_from if checkpoint else None
        found = self._by_id.get(restored) if restored is not None else None
        return found if found is not None and found < at else None

    def _under_another_name(
        self, path: bytes, blob: bytes, at: int, before: int
    ) -> int | None:
        """Returns the version that a file was renamed from, or None."""
        self._renames += 1
        if self._renames > _RENAMES:
            return None
        old, new = (self._checkpoint(self.entries[one]) for one in (before, at))
        if old is None or new is None:
            return None
        with suppress(CorruptError, TransferError):
            changes = list(tree.diff(old.files_tree, new.files_tree, new.objects.files))
            if len(changes) > _COMPARED:
                return None
            same = [
                change.path
                for change in changes
                if change.new is None
                and change.old is not None
                and change.old.oid == blob
            ]
            was = same[0] if same else diff.renames(changes, new).get(path)
            if was is not None:
                return self._build(was, before)[before]
        return None

    def _holds_files(self, entry: Assigned) -> bool:
        checkpoint = self._checkpoint(entry)
        return checkpoint is not None and checkpoint.holds_files

    def _checkpoint(self, entry: Assigned) -> Checkpoint | None:
        with suppress(CorruptError, FormatTooNewError):
            found = self._store.checkpoint(entry.commit)
            if found is not None:
                _ = found.manifest
            return found
        return None
