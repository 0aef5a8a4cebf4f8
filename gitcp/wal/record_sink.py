"""Collects the objects of one record of a write-ahead log while it is built."""

from gitcp.format import tree as trees
from gitcp.format.oid import ObjectFormat
from gitcp.git.objects import BLOB, COMMIT, TREE
from gitcp.git.pack import entry


class RecordSink:
    """Takes the objects of a record; leaves out those that the log has.

    `logged` are the log's, as entries of a pack by oid.
    """

    # A file that is needed for a moment has to go elsewhere.
    scratch = None

    def __init__(self, logged: dict[bytes, bytes], form: ObjectFormat) -> None:
        self._form = form
        self._logged = logged
        self.objects: dict[bytes, bytes] = {}

    def _add(self, kind: str, data: bytes) -> bytes:
        oid = self._form.oid(kind, data)
        if oid not in self._logged and oid not in self.objects:
            self.objects[oid] = entry(kind, data)
        return oid

    def add_blob(self, data: bytes) -> bytes:
        """Adds a blob and returns its oid."""
        return self._add(BLOB, data)

    def add_tree(self, entries: trees.Tree) -> bytes:
        """Adds a tree and returns its oid."""
        return self._add(TREE, trees.encode(entries))

    def add_commit(self, raw: bytes) -> bytes:
        """Adds a commit and returns its oid."""
        return self._add(COMMIT, raw)

    def complete(self, root: bytes, bases: tuple[bytes | None, ...]) -> None:
        """Does nothing: a tree that is added is stored, files are in git before that."""
