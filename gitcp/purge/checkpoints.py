"""Purges a checkpoint: new blobs, trees, totals and message; same id."""

from collections.abc import Callable, Iterable

import msgspec

from gitcp.errors import CorruptError
from gitcp.format import checkpoint as manifests
from gitcp.format import layout, tree
from gitcp.format.checkpoint import Manifest, Skipped
from gitcp.format.commit import with_purged
from gitcp.format.tree import DIRECTORY, FILE, GITLINK, Entry
from gitcp.git.transaction import Transaction
from gitcp.names import decode, encode
from gitcp.purge.chunked import ChunkedPurge
from gitcp.purge.langgraph import cover_event
from gitcp.purge.logs import How, LogPurge
from gitcp.purge.redact import Eraser
from gitcp.store.builder import CheckpointBuilder, without_seal
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.origin import Seals
from gitcp.store.rewrite import AS_IT_IS, NewContent
from gitcp.trust.trusted_remotes import Pulled

REASON = "purged"
# Trailers with a text of the user's.
_TEXTS = frozenset({b"Gitcp-Label", b"Gitcp-Trigger"})


class NameHoldsValueError(CorruptError):
    """The name of a session or branch holds the value to purge."""


class Purger:
    """Decides the new content of one checkpoint after another.

    Every object is read once, no matter how many checkpoints hold it. `noted` returns the
    other commits of a checkpoint that remotes have: those from before a prune. `pulled` are
    the commits that a pull has brought.
    """

    def __init__(
        self,
        opened: Transaction,
        seals: Seals,
        eraser: Eraser | None,
        paths: Iterable[bytes],
        noted: Callable[[Checkpoint], Iterable[str]],
        pulled: Pulled,
    ) -> None:
        self._opened = opened
        self._objects = opened.objects
        self._builder = CheckpointBuilder(opened, seals)
        self._eraser = eraser
        self._chunked = ChunkedPurge(opened, eraser)
        self._paths = frozenset(paths)
        self._noted = noted
        self._pulled = pulled
        self._blobs: dict[tuple[bytes, How], bytes] = {}
        self._trees: dict[tuple[bytes, bytes], bytes | None] = {}
        self._moved: set[bytes] = set()
        # Objects that nothing needs any more after the purge.
        self.gone: set[bytes] = set()
        self._logs = LogPurge(opened, eraser, self._blob, self.gone)
        self.changed: dict[str, Checkpoint] = {}
        self.files: set[bytes] = set()
        # Checkpoints that stay unchanged, with the reason, by their ids.
        self.damaged: dict[str, tuple[Checkpoint, str]] = {}

    @property
    def replaced(self) -> frozenset[bytes]:
        """The commits that have a new form."""
        return frozenset(self._moved)

    def change(self, found: Checkpoint) -> NewContent:
        """Returns the new content of a checkpoint; a damaged one keeps its content."""
        try:
            return self._change(found)
        except NameHoldsValueError:
            raise
        except CorruptError as exc:
            self.damaged[found.id] = found, exc.message
            return self._unchanged(found, found.raw.message)

    def _unchanged(self, found: Checkpoint, message: bytes) -> NewContent:
        if not self._is_on_moved(found):
            return AS_IT_IS
        # Its parent changed, and so its commit: a remote may have the old one.
        self._moved.add(found.oid)
        return NewContent(message=self._standing_for(found, message))

    def _is_on_moved(self, found: Checkpoint) -> bool:
        return not self._moved.isdisjoint(found.raw.parents)

    def _may_be_copied(self, found: Checkpoint) -> bool:
        """Whether the record of a checkpoint may be a stranger's beside one's own seal.

        The seal of 0.1.0 does not cover it. Only the note of the pull shows that, and it
        names the old commit.
        """
        origin = found.origin
        return origin.here and not origin.whole and found.commit in self._pulled

    def _change(self, found: Checkpoint) -> NewContent:
        root = self._objects.tree(found.raw.tree)
        own = root.get(layout.RESERVED)
        files = {name: entry for name, entry in root.items() if name != layout.RESERVED}
        inner = dict(self._objects.tree(own.oid)) if own is not None else {}
        lists = inner.pop(layout.CHUNKS, None)
        self._chunked.look(lists)
        left = self._entries(files, b"")
        message = self._message(found.raw.message)
        log_entry = inner.get(layout.LOG)
        logs_tree = log_entry.oid if log_entry is not None else None
        new_logs = self._logs.tree(logs_tree)
        raw = self._objects.blob(inner[layout.CHECKPOINT].oid)
        said = self._manifest(raw, found)
        dropped = self._dropped(files, left)
        origin = found.origin
        copied = self._may_be_copied(found)
        if (
            left == files
            and new_logs == logs_tree
            and message == found.raw.message
            and said == found.manifest
            and self._same(inner)
        ):
            if not copied or not self._is_on_moved(found):
                return self._unchanged(found, message)
        else:
            self.changed[found.id] = found
        if copied:
            said, origin = without_seal(said, origin)
        self._moved.add(found.oid)
        self.gone |= {found.oid, found.raw.tree, inner[layout.CHECKPOINT].oid}
        files_tree = self._opened.add_tree(left) if left else None
        chunks = self._chunked.left(lists, files_tree, self._paths)
        self.gone |= self._chunked.gone
        skipped = self._skipped(found, dropped)
        made = self._inner(inner, new_logs, chunks)
        if skipped:
            blob = self._opened.add_blob(manifests.encode_skipped(skipped))
            made[layout.SKIPPED] = Entry(FILE, blob)
        said = self._logs.totals(said, new_logs)
        said = msgspec.structs.replace(
            said,
            files=msgspec.structs.replace(
                said.files, tree=files_tree.hex() if files_tree else None
            ),
            skipped=len(skipped),
        )
        top, _ = self._builder.tree(said, left, made, (found.raw.tree,), origin)
        # If the manifest did not change, the new one is the same object.
        reserved = self._opened.tree(top)[layout.RESERVED]
        self.gone.discard(self._opened.tree(reserved.oid)[layout.CHECKPOINT].oid)
        return NewContent(tree=top, message=self._standing_for(found, message))

    def _standing_for(self, found: Checkpoint, message: bytes) -> bytes:
        """Returns a message that names the commits that the new one replaces."""
        for commit in (*self._noted(found), found.commit):
            message = with_purged(message, commit)
        return message

    # --- files ---------------------------------------------------------------------

    def _entries(self, entries: tree.Tree, prefix: bytes) -> dict[bytes, Entry]:
        made: dict[bytes, Entry] = {}
        for name, entry in entries.items():
            path = prefix + name
            if path in self._paths:
                self.gone |= self._all_below(entry)
                self.files.add(path)
                continue
            new: Entry | None = entry
            if entry.mode == DIRECTORY:
                # Unless a path below it is purged, a tree's location does not matter.
                key = entry.oid, path if self._below(path) else b""
                if key not in self._trees:
                    before = self._objects.tree(entry.oid)
                    after = self._entries(before, path + b"/")
                    self._trees[key] = self._left(entry.oid, before, after)
                left = self._trees[key]
                new = Entry(DIRECTORY, left) if left is not None else None
            elif entry.mode != GITLINK:
                new = Entry(entry.mode, self._blob(entry.oid, Eraser.erased))
                if new != entry:
                    self.files.add(path)
            if new is not None:
                made[self._name(name)] = new
        return made

    def _left(self, oid: bytes, before: tree.Tree, after: tree.Tree) -> bytes | None:
        """Returns the tree that is left of one; None if nothing is."""
        if after == before:
            return oid
        self.gone.add(oid)
        return self._opened.add_tree(after) if after else None

    def _all_below(self, entry: Entry) -> set[bytes]:
        if entry.mode == DIRECTORY:
            return tree.below(entry.oid, self._objects.tree)
        return set() if entry.mode == GITLINK else {entry.oid}

    def _below(self, path: bytes) -> bool:
        return any(one.startswith(path + b"/") for one in self._paths)

    def _name(self, name: bytes) -> bytes:
        return self._eraser.erased(name) if self._eraser is not None else name

    def _blob(self, oid: bytes, how: How) -> bytes:
        if self._eraser is None:
            return oid
        if oid in self._chunked.pointers:
            return self._chunked.pointers[oid]
        key = oid, how
        if key not in self._blobs:
            data = self._objects.blob(oid)
            made = how(self._eraser, data)
            if made == data:
                self._blobs[key] = oid
            else:
                self.gone.add(oid)
                self._blobs[key] = self._opened.add_blob(made)
        return self._blobs[key]

    def _dropped(self, before: tree.Tree, after: tree.Tree) -> set[bytes]:
        """Returns the purged paths that were in these files before, and are not now."""
        return {
            path
            for path in self._paths
            if _there(before, path, self._objects.tree)
            and not _there(after, path, self._opened.tree)
        }

    # --- what gitcp wrote ------------------------------------------------------------

    def _own(self, name: bytes, entry: Entry) -> Entry:
        # Entries in the list of empty directories end with NUL, so no value spans two.
        how = {layout.EVENT: cover_event, layout.WRITES: Eraser.covered}
        return Entry(entry.mode, self._blob(entry.oid, how.get(name, Eraser.erased)))

    def _inner(
        self, inner: tree.Tree, new_logs: bytes | None, chunks: Entry | None
    ) -> dict[bytes, Entry]:
        made = {
            name: self._own(name, entry)
            for name, entry in inner.items()
            if name not in {layout.CHECKPOINT, layout.LOG, layout.SKIPPED}
        }
        if new_logs is not None:
            made[layout.LOG] = Entry(DIRECTORY, new_logs)
        if chunks is not None:
            made[layout.CHUNKS] = chunks
        return made

    def _same(self, inner: tree.Tree) -> bool:
        return all(
            self._own(name, entry) == entry
            for name, entry in inner.items()
            if name not in {layout.CHECKPOINT, layout.LOG}
        )

    def _skipped(self, found: Checkpoint, dropped: set[bytes]) -> list[Skipped]:
        listed = [Skipped(self._name(path), why) for path, why in found.skipped()]
        return listed + [Skipped(path, REASON) for path in sorted(dropped)]

    def _manifest(self, raw: bytes, found: Checkpoint) -> Manifest:
        if self._eraser is None:
            return found.manifest
        made = manifests.decode_manifest(
            self._eraser.records(raw.replace(b"\n", b" ")), f"checkpoint {found.id}"
        )
        if (made.session, made.branch, made.id) != (
            found.session,
            found.branch,
            found.id,
        ):
            name = self._name(f"{found.session}/{found.branch}".encode()).decode()
            raise NameHoldsValueError(
                f"the name of {name} holds the value to purge",
                hint="names cannot be purged: push only other sessions, or prune this"
                " one",
            )
        return made

    def _message(self, message: bytes) -> bytes:
        if self._eraser is None:
            return message
        note, gap, trailers = message.rpartition(b"\n\n")
        lines = []
        for line in trailers.split(b"\n"):
            name, colon, value = line.partition(b": ")
            if name in _TEXTS:
                component = value.decode("ascii", "replace")
                text = decode(component) or component
                erased = self._eraser.erased(text.encode()).decode()
                if erased != text:
                    value = encode(erased).encode()
            lines.append(name + colon + value)
        return self._eraser.erased(note) + gap + b"\n".join(lines)


def _there(entries: tree.Tree, path: bytes, read: tree.ReadTree) -> bool:
    *parents, name = path.split(b"/")
    for parent in parents:
        entry = entries.get(parent)
        if entry is None or entry.mode != DIRECTORY:
            return False
        entries = read(entry.oid)
    return name in entries
