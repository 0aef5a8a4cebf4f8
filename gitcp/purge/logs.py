"""Purges the logs of a checkpoint, and corrects their totals."""

from collections.abc import Callable

import msgspec

from gitcp.errors import CorruptError
from gitcp.format import layout, log, tree
from gitcp.format.checkpoint import LogTotals, Manifest
from gitcp.format.layout import LogName
from gitcp.format.tree import FILE, Entry
from gitcp.git.transaction import Transaction
from gitcp.purge.redact import Eraser
from gitcp.store import logs

How = Callable[[Eraser, bytes], bytes]


def _of_log(kind: str) -> How:
    """Returns how to remove values from the segments of a log."""
    return Eraser.covered if kind == layout.GRAPH else Eraser.records


class LogPurge:
    """Decides the new logs of one checkpoint after another.

    `blob` returns the purged form of a blob; `gone` collects objects that nothing needs any more.
    """

    def __init__(
        self,
        opened: Transaction,
        eraser: Eraser | None,
        blob: Callable[[bytes, How], bytes],
        gone: set[bytes],
    ) -> None:
        self._opened = opened
        self._objects = opened.objects
        self._eraser = eraser
        self._blob = blob
        self._gone = gone
        self._chains: dict[LogName, list[tuple[bytes, str, int, int]]] = {}
        # Blobs of this transaction, which cannot be read before they are stored.
        self._made: dict[bytes, bytes] = {}

    def tree(self, root: bytes | None) -> bytes | None:
        """Returns the tree of the logs, with corrected totals."""
        if root is None or self._eraser is None:
            return root
        changes: dict[bytes, Entry | None] = {}
        for kind in self._objects.tree(root):
            for component, source in logs.sources(root, kind.decode(), self._objects):
                changes |= self._source(kind, component, source)
        if not changes:
            return root
        self._gone.add(root)
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
        self._gone.add(source)
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

    def totals(self, said: Manifest, new_logs: bytes | None) -> Manifest:
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
