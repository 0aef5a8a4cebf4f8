"""Finds chunked files by their pointers, and reassembles them from chunks."""

from collections.abc import Callable, Iterator

from gitcp.format import chunked, layout, tree
from gitcp.format.chunked import ChunkedName
from gitcp.format.oid import ObjectFormat
from gitcp.format.tree import DIRECTORY, Entry, ReadTree, Tree

# The name of a file, and the tree that lists its chunks.
_List = tuple[ChunkedName, bytes]


class ChunkedFiles:
    """The known chunked files of a repository, by the id of their whole content.

    A checkpoint adds its own when its files are requested. That reads no content: a
    pointer's content follows from the name of the list. So a checkpoint made elsewhere may
    name a content of the user's, and list other chunks: if lists of one content differ, it is
    read until one is sound.
    """

    def __init__(
        self, read: ReadTree, form: ObjectFormat, is_sound: Callable[[_List], bool]
    ) -> None:
        self._read = read
        self._form = form
        self._is_sound = is_sound
        self._lists: dict[bytes, _List] = {}
        self._others: dict[bytes, list[_List]] = {}
        self._contents: dict[bytes, bytes] = {}

    def __contains__(self, content: bytes) -> bool:
        return content in self._lists

    def learn(self, lists: bytes) -> None:
        """Adds the files that a tree `.gitcp/chunks` lists.

        Raises:
            CorruptError: the tree is missing or damaged.
        """
        for path, entry in self._read(lists).items():
            name = ChunkedName.parse(path)
            if name is None or entry.mode != DIRECTORY:
                continue
            known = self._lists.get(name.content)
            if known is None:
                self.add(name, entry.oid)
            elif known != (name, entry.oid):
                others = self._others.setdefault(name.content, [])
                if (name, entry.oid) not in others:
                    others.append((name, entry.oid))
                self._note_pointer(name)

    def learn_of(self, root: bytes) -> bytes | None:
        """Adds the files that the root tree of a checkpoint lists; returns `.gitcp/chunks`."""
        entry = tree.lookup(root, layout.RESERVED + b"/" + layout.CHUNKS, self._read)
        if entry is None or entry.mode != DIRECTORY:
            return None
        self.learn(entry.oid)
        return entry.oid

    def add(self, name: ChunkedName, root: bytes) -> None:
        """Adds a file, by its list, which counts from now on."""
        self._lists[name.content] = name, root
        self._others.pop(name.content, None)
        self._note_pointer(name)

    def _note_pointer(self, name: ChunkedName) -> None:
        self._contents[self._form.oid("blob", name.pointer)] = name.content

    def _list(self, content: bytes) -> _List:
        """Returns the list of a known file: the first sound one, if lists differ."""
        others = self._others.pop(content, None)
        if others:
            for one in (self._lists[content], *others):
                if self._is_sound(one):
                    self._lists[content] = one
                    break
        return self._lists[content]

    def name(self, content: bytes) -> ChunkedName:
        """Returns the name of a known file."""
        return self._list(content)[0]

    def root(self, content: bytes) -> bytes:
        """Returns the tree that lists the chunks of a file that is known."""
        return self._list(content)[1]

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
