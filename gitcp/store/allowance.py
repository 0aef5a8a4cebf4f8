"""The size limit for checkpoints made elsewhere, checked before one is walked or written."""

from collections.abc import Callable
from contextlib import suppress

from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format.extent import Extent, Extents, held
from gitcp.git.objects import size_of
from gitcp.git.repository import Repository
from gitcp.store.contents import Contents
from gitcp.store.origin import Origin

# The defaults of the settings (gitcp.project.settings).
USUAL = Extent(500 << 10, 4 << 30)


class Allowance:
    """Measures what a checkpoint made elsewhere holds beyond the user's own HEAD.

    A pull measures, too. But checkpoints may come by plain git, and HEAD and the
    settings may have changed since.
    """

    def __init__(self, repository: Repository, limit: Extent | None = USUAL) -> None:
        """None stands for no limit, to recover what is left of a damaged repository."""
        self._repository = repository
        self.limit = limit
        self._extents = Extents(repository.objects.tree, self._size_of)
        self._fit: set[bytes] = set()

    def check(self, contents: Contents, origin: Callable[[], Origin]) -> None:
        """Raises if a checkpoint from elsewhere holds more than may be walked.

        The origin is read only if it matters; one that cannot be read counts as
        elsewhere.

        Raises:
            TransferError: the checkpoint exceeds the limit.
            CorruptError: a tree in it is missing or damaged.
        """
        if self.limit is None or contents.oid in self._fit:
            return
        files, logs = True, True
        with suppress(CorruptError, FormatTooNewError):
            made = origin()
            files, logs = made.files is not None, made.logs is not None
        if files:
            # This comes first, because the lists say what pointers stand for.
            self._measure(contents, self.limit, contents.chunk_lists, None)
            self._measure(contents, self.limit, contents.files_oid, self.base())
        if logs:
            self._measure(contents, self.limit, contents.log_tree, None)
        self._fit.add(contents.oid)

    def _measure(
        self,
        contents: Contents,
        limit: Extent,
        root: bytes | None,
        base: bytes | None,
    ) -> None:
        try:
            extent = self._extents.beyond(root, base)
        except ValueError as exc:
            raise CorruptError(
                f"checkpoint {contents.trailers.id} must not be used: {exc}",
                hint="it was made elsewhere; do not use it",
            ) from exc
        if not extent.within(limit):
            raise TransferError(
                f"checkpoint {contents.trailers.id}, which was made elsewhere,"
                f" {held(extent, limit)}",
                hint="if you trust it, raise that setting with `git config`; otherwise"
                " use another branch: `gitcp sessions` lists them",
            )

    def base(self) -> bytes | None:
        """Returns the tree of the user's own commit; None if there is none to read."""
        commit, _ = self._repository.head()
        with suppress(CorruptError):
            if commit is not None:
                return self._repository.objects.commit(bytes.fromhex(commit)).tree
        return None

    def _size_of(self, oid: bytes) -> int:
        with suppress(CorruptError):
            objects = self._repository.objects
            return size_of(objects, objects.chunked.meant_by(oid))
        # The code that reads it reports that it is missing.
        return 0
