"""Finds chunked files by their pointers, and reassembles them from chunks."""

from collections.abc import Iterator

from gitcp.format import chunked, layout, tree
from gitcp.format.chunked import ChunkedName
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import DIRECTORY, Entry, ReadTree, Tree


class ChunkedFiles:
    """The known chunked files of a repository, by the id of their whole content.

    A checkpoint adds its own when its files are requested. That reads no content: a
    pointer's content follows from the name of the list.
    """

    def __init__(self, read: ReadTree, form: ObjectFormat) -> None:
        self._read = read
        self._form = form
        self._lists: dict[bytes, tuple[ChunkedName, bytes]] = {}
        self._contents: dict[bytes, bytes] = {}

    def __contains__(self, content: bytes) -> bool:
        return content in self._lists

    def learn(self, lists: bytes) -> None:
        """Adds the files that a tree `.gitcp/chunks` lists; the last list of a file counts.

        Raises:
            CorruptError: the tree is missing or damaged.
        """
        for path, entry in self._read(lists).items():
            name = ChunkedName.parse(path)
            if name is not None and entry.mode == DIRECTORY:
                self.add(name, entry.oid)

    def learn_of(self, root: bytes) -> bytes | None:
        """Adds the files that the root tree of a checkpoint lists; returns `.gitcp/chunks`."""
        entry = tree.lookup(root, layout.RESERVED + b"/" + layout.CHUNKS, self._read)
        if entry is None or entry.mode != DIRECTORY:
            return None
        self.learn(entry.oid)
        return entry.oid

    def add(self, name: ChunkedName, root: bytes) -> None:
        """Adds a file, by its list."""
        self._lists[name.content] = name, root
        self._contents[self._form.oid("blob", name.pointer)] = name.content

    def name(self, content: bytes) -> ChunkedName:
        """Returns the name of a known file."""
        return self._lists[content][0]

    def root(self, content: bytes) -> bytes:
        """Returns the tree that lists the chunks of a file that is known."""
        return self._lists[content][1]

    def chunks(self, content: bytes) -> Iterator[bytes]:
        """Yields the ids of the chunks of a file that is known, in order.

        Raises:
            CorruptError: the list is damaged.
        """
        return chunked.read_list(self.root(content), self._read)

    def stored(self, entry: Entry) -> Entry:
        """Returns an entry as a stored tree has it: with a pointer, if the file is chunked."""
        if entry.oid not in self._lists:
            return entry
        pointer = self._form.oid("blob", self.name(entry.oid).pointer)
        return Entry(entry.mode, pointer)

    def meant(self, entries: Tree) -> Tree:
        """Returns a tree with the ids of whole files in place of pointers."""
        if not self._contents or self._contents.keys().isdisjoint(
            entry.oid for entry in entries.values()
        ):
            return entries
        return {
            name: Entry(entry.mode, self._contents.get(entry.oid, entry.oid))
            for name, entry in entries.items()
        }

    def meant_by(self, oid: bytes) -> bytes:
        """Returns the id of the content that a pointer stands for, or the id as it is."""
        return self._contents.get(oid, oid)
