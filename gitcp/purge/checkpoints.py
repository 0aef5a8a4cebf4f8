"""Purges a checkpoint: new blobs, trees, totals and message; same id."""

from collections.abc import Callable, Iterable

import msgspec

from gitcp.errors import CorruptError
from gitcp.format import checkpoint as manifests
from gitcp.format import layout, log, tree
from gitcp.format.checkpoint import LogTotals, Manifest, Skipped
from gitcp.format.commit import with_purged
from gitcp.format.layout import LogName
from gitcp.format.tree import DIRECTORY, FILE, GITLINK, Entry
from gitcp.git.transaction import Transaction
from gitcp.names import decode, encode
from gitcp.purge.chunked import ChunkedPurge
from gitcp.purge.langgraph import cover_event
from gitcp.purge.redact import Eraser
from gitcp.store import logs
from gitcp.store.builder import CheckpointBuilder
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.origin import Seals
from gitcp.store.rewrite import AS_IT_IS, NewContent

REASON = "purged"
_LABEL = b"Gitcp-Label: "


class NameHoldsValueError(CorruptError):
    """The name of a session or branch holds the value to purge."""


_How = Callable[[Eraser, bytes], bytes]


def _of_log(kind: str) -> _How:
    """Returns how to remove values from the segments of a log."""
    return Eraser.covered if kind == layout.GRAPH else Eraser.records


class Purger:
    """Decides the new content of one checkpoint after another.

    Every object is read once, no matter how many checkpoints hold it. `noted` returns the
    other commits of a checkpoint that remotes have: those from before a prune.
    """

    def __init__(
        self,
        opened: Transaction,
        seals: Seals,
        eraser: Eraser | None,
        paths: Iterable[bytes],
        noted: Callable[[Checkpoint], Iterable[str]] = lambda _: (),
    ) -> None:
        self._opened = opened
        self._objects = opened.objects
        self._builder = CheckpointBuilder(opened, seals)
        self._eraser = eraser
        self._chunked = ChunkedPurge(opened, eraser)
        self._paths = frozenset(paths)
        self._noted = noted
        self._blobs: dict[tuple[bytes, _How], bytes] = {}
        self._trees: dict[tuple[bytes, bytes], bytes | None] = {}
        self._chains: dict[LogName, list[tuple[bytes, str, int, int]]] = {}
        # Blobs of this transaction, which cannot be read before they are stored.
        self._made: dict[bytes, bytes] = {}
        self._moved: set[bytes] = set()
        # Objects that nothing needs any more after the purge.
        self.gone: set[bytes] = set()
        self.changed: dict[str, Checkpoint] = {}
        self.files: set[bytes] = set()
        # Checkpoints that stay unchanged, with the reason, by their ids.
        self.damaged: dict[str, tuple[Checkpoint, str]] = {}

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
        if not self._moved.intersection(found.raw.parents):
            return AS_IT_IS
        # Its parent changed, and so its commit: a remote may have the old one.
        self._moved.add(found.oid)
        return NewContent(message=self._standing_for(found, message))

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
        new_logs = self._logs(logs_tree)
        raw = self._objects.blob(inner[layout.CHECKPOINT].oid)
        said = self._manifest(raw, found)
        dropped = self._dropped(files, left)
        if (
            left == files
            and new_logs == logs_tree
            and message == found.raw.message
            and said == found.manifest
            and self._same(inner)
        ):
            return self._unchanged(found, message)
        self._moved.add(found.oid)
        self.changed[found.id] = found
        self.gone |= {found.oid, found.raw.tree, inner[layout.CHECKPOINT].oid}
        files_tree = self._opened.add_tree(left) if left else None
        chunks = self._chunked.left(lists, files_tree, self._paths)
        self.gone |= self._chunked.gone
        made = {
            name: self._own(name, entry)
            for name, entry in inner.items()
            if name not in {layout.CHECKPOINT, layout.LOG, layout.SKIPPED}
        }
        if new_logs is not None:
            made[layout.LOG] = Entry(DIRECTORY, new_logs)
        if chunks is not None:
            made[layout.CHUNKS] = chunks
        skipped = self._skipped(found, dropped)
        if skipped:
            blob = self._opened.add_blob(manifests.encode_skipped(skipped))
            made[layout.SKIPPED] = Entry(FILE, blob)
        said = self._totals(said, new_logs)
        said = msgspec.structs.replace(
            said,
            files=msgspec.structs.replace(
                said.files, tree=files_tree.hex() if files_tree else None
            ),
            skipped=len(skipped),
        )
        top, _ = self._builder.tree(said, left, made, (found.raw.tree,), found.origin)
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
            new = self._entry(entry, path)
            if new is not None:
                made[self._name(name)] = new
            if new is not None and new.oid != entry.oid and entry.mode != DIRECTORY:
                self.files.add(path)
        return made

    def _entry(self, entry: Entry, path: bytes) -> Entry | None:
        if entry.mode == GITLINK:
            return entry
        if entry.mode != DIRECTORY:
            return Entry(entry.mode, self._blob(entry.oid, Eraser.erased))
        # Unless a path below it is purged, the location of a tree does not matter.
        key = entry.oid, path if self._below(path) else b""
        if key not in self._trees:
            before = self._objects.tree(entry.oid)
            after = self._entries(before, path + b"/")
            if after == before:
                self._trees[key] = entry.oid
            else:
                self.gone.add(entry.oid)
                self._trees[key] = self._opened.add_tree(after) if after else None
        oid = self._trees[key]
        return None if oid is None else Entry(DIRECTORY, oid)

    def _all_below(self, entry: Entry) -> set[bytes]:
        if entry.mode == DIRECTORY:
            return tree.below(entry.oid, self._objects.tree)
        return set() if entry.mode == GITLINK else {entry.oid}

    def _below(self, path: bytes) -> bool:
        return any(one.startswith(path + b"/") for one in self._paths)

    def _name(self, name: bytes) -> bytes:
        return self._eraser.erased(name) if self._eraser is not None else name

    def _blob(self, oid: bytes, how: "_How") -> bytes:
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
            if line.startswith(_LABEL):
                component = line.removeprefix(_LABEL).decode("ascii", "replace")
                label = decode(component) or component
                erased = self._eraser.erased(label.encode()).decode()
                kept = line if erased == label else _LABEL + encode(erased).encode()
                lines.append(kept)
            else:
                lines.append(line)
        return self._eraser.erased(note) + gap + b"\n".join(lines)

    # --- logs ------------------------------------------------------------------------

    def _logs(self, root: bytes | None) -> bytes | None:
        """Returns the tree of the logs, with corrected totals."""
        if root is None or self._eraser is None:
            return root
        changes: dict[bytes, Entry | None] = {}
        for kind in self._objects.tree(root):
            for component, source in logs.sources(root, kind.decode(), self._objects):
                changes |= self._source(kind, component, source)
        if not changes:
            return root
        self.gone.add(root)
        return tree.edit(root, changes, self._opened.tree, self._opened.add_tree)

    def _source(
        self, kind: bytes, component: str, source: bytes
    ) -> dict[bytes, Entry | None]:
        prefix = kind + b"/" + component.encode() + b"/"
        changes: dict[bytes, Entry | None] = {}
        for path, entry in tree.walk(source, self._objects.tree):
            if path == layout.META:
                continue
            made = self._blob(entry.oid, _of_log(kind.decode()))
            if made != entry.oid:
                changes[prefix + path] = Entry(entry.mode, made)
        if not changes:
            return changes
        self.gone.add(source)
        meta = logs.meta_of(source, self._objects)
        if meta is None:
            raise CorruptError(
                f"{prefix.decode()} has no meta.json", hint="run `gitcp verify`"
            )
        segments = [
            entry.oid
            for path, entry in sorted(tree.walk(source, self._objects.tree))
            if path != layout.META
        ]
        digest, size, lost = self._chain(LogName(kind.decode(), meta.name), segments)
        meta = msgspec.structs.replace(
            meta, digest=digest, bytes=size, messages=meta.messages - lost
        )
        raw = log.encode_meta(meta)
        blob = self._opened.add_blob(raw)
        self._made[blob] = raw
        changes[prefix + layout.META] = Entry(FILE, blob)
        return changes

    def _chain(self, name: LogName, segments: list[bytes]) -> tuple[str, int, int]:
        """Returns the new digest and size of a source, and how many lines it lost."""
        known = self._chains.setdefault(name, [])
        same = 0
        for one, oid in zip(known, segments, strict=False):
            if one[0] != oid:
                break
            same += 1
        del known[same:]
        for oid in segments[same:]:
            _, digest, size, lost = (
                known[-1] if known else (b"", log.EMPTY_DIGEST, 0, 0)
            )
            data = self._objects.blob(oid)
            how = _of_log(name.log)
            made = how(self._eraser, data) if self._eraser is not None else data
            known.append(
                (
                    oid,
                    log.chain(digest, made),
                    size + len(made),
                    lost + data.count(b"\n") - made.count(b"\n"),
                )
            )
        _, digest, size, lost = known[-1] if known else (b"", log.EMPTY_DIGEST, 0, 0)
        return digest, size, lost

    def _totals(self, said: Manifest, new_logs: bytes | None) -> Manifest:
        """Corrects the totals in the manifest, from those of the sources."""

        def meta(name: LogName) -> log.Meta | None:
            entry = tree.lookup(
                new_logs, name.path + b"/" + layout.META, self._opened.tree
            )
            if entry is None:
                return None
            return log.decode_meta(self._stored(entry.oid), "a source")

        changes: dict[str, object] = {}
        talk = said.conversation
        if talk is not None:
            found = meta(LogName("conversation", talk.source))
            # The manifest may name an older state of the source.
            if found is not None and found.segments == talk.segments:
                changes["conversation"] = msgspec.structs.replace(
                    talk,
                    messages=found.messages,
                    bytes=found.bytes,
                    digest=found.digest,
                )
        for field, name in (("decisions", layout.DECISIONS), ("steps", layout.STEPS)):
            found = meta(name)
            if found is not None and getattr(said, field) is not None:
                changes[field] = LogTotals(
                    found.messages, found.bytes, found.segments, found.digest
                )
        return msgspec.structs.replace(said, **changes)

    def _stored(self, oid: bytes) -> bytes:
        found = self._made.get(oid)
        return found if found is not None else self._objects.blob(oid)


def _there(entries: tree.Tree, path: bytes, read: tree.ReadTree) -> bool:
    *parents, name = path.split(b"/")
    for parent in parents:
        entry = entries.get(parent)
        if entry is None or entry.mode != DIRECTORY:
            return False
        entries = read(entry.oid)
    return name in entries
