"""What the commit of a checkpoint holds: its files, and where its logs are."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from gitcp.at_fork import computed
from gitcp.format import checkpoint as manifests
from gitcp.format import layout, tree
from gitcp.format.checkpoint import Skipped
from gitcp.format.commit import Commit, Trailers, trailers_of
from gitcp.format.tree import DIRECTORY, Change, Entry
from gitcp.git.objects import Objects


class Contents(ABC):
    """The trees of a checkpoint's commit, read on use."""

    def __init__(
        self, objects: Objects, oid: bytes, commit: Commit, trailers: Trailers
    ) -> None:
        self.objects = objects
        self.oid = oid
        self.raw = commit
        self.trailers = trailers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contents) and other.oid == self.oid

    def __hash__(self) -> int:
        return hash(self.oid)

    @property
    def commit(self) -> str:
        """The commit's id in hex."""
        return self.oid.hex()

    @abstractmethod
    def refuse_if_vast(self) -> None:
        """Raises if it came from elsewhere, and holds more than may be walked.

        Raises:
            TransferError: so it is; the hint says how to continue.
        """

    def _own(self, path: bytes) -> Entry | None:
        return tree.lookup(
            self.raw.tree, layout.RESERVED + b"/" + path, self.objects.tree
        )

    @computed
    def log_tree(self) -> bytes | None:
        """The oid of the tree that holds the logs."""
        entry = self._own(layout.LOG)
        return entry.oid if entry is not None and entry.mode == DIRECTORY else None

    @property
    def files_tree(self) -> bytes | None:
        """The oid of the root tree without `.gitcp`; None if there is no file.

        For callers that are going to walk it.

        Raises:
            TransferError: the checkpoint came from elsewhere and exceeds the size limit.
        """
        self.refuse_if_vast()
        self._learn(self.raw.tree)
        return self.files_oid

    @computed
    def files_oid(self) -> bytes | None:
        """The value of `files_tree`, for callers that only compare it or pass it on."""
        return self._files_of(self.raw.tree)

    @computed
    def chunk_lists(self) -> bytes | None:
        """The oid of the tree that lists the chunks of chunked files, if there are any."""
        return self._learn(self.raw.tree)

    def _learn(self, root: bytes) -> bytes | None:
        """Makes the chunked files of a root tree known; comparing does not need that."""
        return self.objects.chunked.learn_of(root)

    def _files_of(self, root: bytes) -> bytes | None:
        entries = dict(self.objects.tree(root))
        entries.pop(layout.RESERVED, None)
        return self.objects.pin(tree.encode(entries)) if entries else None

    @computed
    def empty_dirs(self) -> frozenset[bytes]:
        """The directories that were empty."""
        entry = self._own(layout.EMPTY_DIRS)
        if entry is None:
            return frozenset()
        return frozenset(manifests.decode_empty_dirs(self.objects.blob(entry.oid)))

    def skipped(self) -> list[Skipped]:
        """Returns what was not captured, with the reason.

        Raises:
            CorruptError: the list is damaged.
        """
        entry = self._own(layout.SKIPPED)
        if entry is None:
            return []
        return list(
            manifests.decode_skipped(
                self.objects.blob(entry.oid), f"checkpoint {self.trailers.id}"
            )
        )

    def files(self) -> Iterator[tuple[bytes, Entry]]:
        """Yields the path and entry of every file; of a chunked one its content's."""
        return tree.walk(self.files_tree, self.objects.files)

    def entry(self, path: bytes) -> Entry | None:
        """Returns the entry at a path of the files, or None; as `files`."""
        return tree.lookup(self.files_tree, path, self.objects.files)

    @computed
    def changes(self) -> tuple[Change, ...]:
        """The files that differ from the checkpoint before it on its line, by path.

        Of the first checkpoint these are all its files. Each has `path` (bytes), `status`
        (`added`, `modified` or `deleted`), and the entries `old` and `new`.

        Raises:
            CorruptError: a tree, or the checkpoint before it, is missing.
        """
        before: bytes | None = None
        if self.raw.parents:
            parent = self.objects.commit(self.raw.parents[0])
            if trailers_of(parent) is not None:
                self._learn(parent.tree)
                before = self._files_of(parent.tree)
        changes = tree.diff(before, self.files_tree, self.objects.files)
        return tuple(sorted(changes, key=lambda change: change.path))
