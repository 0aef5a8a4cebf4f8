"""Builds the objects of one checkpoint on a given tip (docs/format.md, 3 to 6)."""

import secrets
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from gitcp import notices
from gitcp.errors import CorruptError
from gitcp.format import checkpoint as manifests
from gitcp.format import layout, log, tree
from gitcp.format.checkpoint import (
    NULL,
    Base,
    Conversation,
    Files,
    LogTotals,
    Manifest,
    Skipped,
    timestamp,
)
from gitcp.format.commit import Trailers, encode_commit
from gitcp.format.layout import FORMAT, LogName
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.names import encode
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, FilesState, same_files
from gitcp.store.origin import Origin, Seals
from gitcp.store.summary import summary


def count_records(data: bytes) -> int:
    """Returns the number of lines, a torn last one included."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))


class Build:
    """One attempt to build a checkpoint on a given tip."""

    def __init__(
        self,
        repository: Repository,
        transaction: Transaction,
        draft: Draft,
        tip: Checkpoint | None,
        now: float,
        seals: Seals,
        reached: Callable[[str], tuple[int, str]],
    ) -> None:
        self._repository = repository
        self._transaction = transaction
        self._draft = draft
        self._tip = tip
        self._before = tip or draft.fork_of
        self._now = now
        self._seals = seals
        self._reached = reached
        self._metas: dict[LogName, log.Meta] = {}
        self._rewritten = 0
        self._effects, self._ledger = self._ledger_then()
        self._head = _head(repository)

    def run(self) -> tuple[bytes, int] | None:
        """Returns the new commit's oid and segments rewritten; None if no change."""
        draft, before = self._draft, self._before
        logs_of = draft.logs_from or before
        old_log = logs_of.log_tree if logs_of else None
        log_tree = self._write_logs(old_log)
        files = draft.files or _files_of(before)
        unchanged = (
            before is not None
            and before is self._tip
            and (log_tree == before.log_tree or self._is_quiet())
            and files.tree == before.files_oid
            and files.empty == before.empty_dirs
            and _lasting(files.skipped) == _lasting(before.skipped())
            and files.captured == before.holds_files
            and draft.position is None
            and draft.metadata is None
            and draft.label is None
            and (draft.quiet or self._ledger_stayed(before.manifest))
        )
        if unchanged and not draft.allow_empty:
            return None
        parent = before.oid if before else None
        if parent is None:
            anchor = self._repository.anchor() if self._head.tree else None
            parent = bytes.fromhex(anchor) if anchor else None
        manifest = self._manifest(files, logs_of, log_tree)
        root = self._root(files, log_tree, manifest)
        head = manifest.base.commit if manifest.base else None
        bases = [before.raw.tree] if before else []
        bases += draft.bases
        if draft.logs_from is not None:
            bases.append(draft.logs_from.raw.tree)
        if self._head.tree is not None:
            bases.append(self._head.tree)
        self._transaction.complete(root, tuple(bases))
        raw = encode_commit(
            root,
            parent,
            int(self._now),
            Trailers(
                manifest.id,
                encode(draft.session),
                encode(draft.branch),
                manifest.seq,
                draft.trigger,
                head,
                draft.label,
            ),
        )
        return self._transaction.add_commit(raw), self._rewritten

    def _is_quiet(self) -> bool:
        return self._draft.quiet and not self._draft.decisions

    def _ledger_then(self) -> tuple[int, str]:
        """Returns how far the session's ledger has come in the state to be saved."""
        if self._draft.fork_of is not None:
            said = self._draft.fork_of.manifest
            return said.effects, said.ledger
        return self._reached(self._draft.session)

    def _ledger_stayed(self, before: Manifest) -> bool:
        # Where two lines were joined the numbers alone do not tell.
        same = before.ledger in {"", self._ledger}
        return same and before.effects == self._effects

    def _write_logs(self, old: bytes | None) -> bytes | None:
        writer = logs.Writer(self._transaction, old)
        changes: dict[bytes, Entry | None] = {}

        def take(name: LogName, appended: logs.Appended | None) -> None:
            if appended is not None:
                changes.update(appended.changes)
                self._metas[name] = appended.meta
                self._rewritten += appended.rewritten

        for records in self._draft.records:
            name = LogName("conversation", records.source)
            whole = records.data if records.whole else None
            if records.grown is not None:
                held = logs.meta(old, name, self._transaction.objects)
                same = held and (held.bytes, held.digest) == records.grown[:2]
                whole = None if same else records.grown.reread()
            if whole is not None:
                take(
                    name,
                    writer.replace(
                        name,
                        whole,
                        kind=records.kind,
                        count=count_records,
                        agent_session=records.agent_session,
                    ),
                )
            else:
                take(
                    name,
                    writer.append(
                        name,
                        records.data,
                        kind=records.kind,
                        records=count_records(records.data),
                        agent_session=records.agent_session,
                    ),
                )
        if self._draft.decisions:
            at = timestamp(self._now)
            lines = [
                log.encode_decision(
                    entry if entry.at else msgspec.structs.replace(entry, at=at)
                )
                for entry in self._draft.decisions
            ]
            take(
                layout.DECISIONS,
                writer.append(
                    layout.DECISIONS,
                    b"".join(lines),
                    kind="decisions",
                    records=len(lines),
                ),
            )
        self._write_rewrites(changes)
        return tree.edit(
            old, changes, self._transaction.tree, self._transaction.add_tree
        )

    def _write_rewrites(self, changes: dict[bytes, Entry | None]) -> None:
        """Adds to the log of rewritten commits, which a restore never rewinds."""
        read = self._transaction.tree
        name = layout.REWRITES.log.encode()
        kept = tree.lookup(self._before.log_tree if self._before else None, name, read)
        if self._draft.logs_from is not None and kept is not None:
            changes[name] = kept
        entries = self._draft.rewrites
        if not entries:
            return
        root = self._before.log_tree if self._before else None
        added = logs.Writer(self._transaction, root).append(
            layout.REWRITES,
            b"".join(map(log.encode_rewrite, entries)),
            kind="rewrites",
            records=len(entries),
        )
        if added is not None:
            changes.update(added.changes)

    def _origin(self, logs_of: Checkpoint | None, log_tree: bytes | None) -> Origin:
        """Returns what of the new checkpoint was not made here.

        Files that come from the work tree are the user's by then, whatever their author;
        records that were made elsewhere stay so for as long as they are carried on.
        """
        files_of = self._draft.files_from
        if self._draft.files is None:
            files_of = self._before
        return Origin(
            files_of.origin.files if files_of else None,
            logs_of.origin.logs if logs_of and log_tree is not None else None,
        )

    def _manifest(
        self, files: FilesState, logs_of: Checkpoint | None, log_tree: bytes | None
    ) -> Manifest:
        draft, before = self._draft, self._before
        carried = logs_of.manifest if logs_of else None
        head, branch = self._head.commit, self._head.branch
        operation = self._repository.operation()
        tasks = [entry.text for entry in draft.decisions if entry.kind == "task"]
        ident = draft.id or secrets.token_hex(6)
        sealed = self._seals.make(
            ident,
            files.tree,
            log_tree,
            self._origin(logs_of, log_tree),
            self._transaction.scratch,
        )
        return Manifest(
            format=FORMAT,
            id=ident,
            session=draft.session,
            branch=draft.branch,
            seq=self._tip.seq + 1 if self._tip else 1,
            created=timestamp(self._now),
            trigger=draft.trigger,
            note=draft.note,
            label=draft.label,
            author=_unicode(self._repository.setting("user.name")),
            base=Base(head, _unicode(branch), operation) if head or branch else None,
            position=draft.position or (carried.position if carried else NULL),
            metadata=draft.metadata or (carried.metadata if carried else NULL),
            files=self._count(files, before),
            conversation=self._conversation(carried),
            decisions=self._totals(
                layout.DECISIONS, carried.decisions if carried else None
            ),
            steps=self._totals(layout.STEPS, carried.steps if carried else None),
            task=tasks[-1] if tasks else (carried.task if carried else None),
            skipped=len(files.skipped),
            restored_from=draft.restored_from,
            replaced=draft.replaced,
            forked_from=draft.fork_of.id if draft.fork_of else None,
            origin=sealed,
            effects=self._effects,
            ledger=self._ledger,
        )

    def _count(self, files: FilesState, before: Checkpoint | None) -> Files:
        counts = {"added": 0, "modified": 0, "deleted": 0}
        same = before is not None and before.files_oid == files.tree
        old = files.tree if same else before.files_tree if before else None
        for change in tree.diff(old, files.tree, self._transaction.tree):
            counts[change.status] += 1
        oid = files.tree.hex() if files.tree else None
        return Files(oid, **counts, captured=files.captured)

    def _conversation(self, carried: Manifest | None) -> Conversation | None:
        beside = {records.source for records in self._draft.records if records.beside}
        written = [
            name
            for name in self._metas
            if name.log == "conversation" and name.source not in beside
        ]
        if not written:
            return carried.conversation if carried else None
        meta = self._metas[written[0]]
        return Conversation(
            meta.name,
            meta.kind,
            meta.messages,
            meta.bytes,
            meta.segments,
            meta.digest,
            meta.agent_session,
        )

    def _totals(self, name: LogName, carried: LogTotals | None) -> LogTotals | None:
        meta = self._metas.get(name)
        if meta is None:
            return carried
        return LogTotals(meta.messages, meta.bytes, meta.segments, meta.digest)

    def _root(
        self, files: FilesState, log_tree: bytes | None, manifest: Manifest
    ) -> bytes:
        add = self._transaction.add_blob
        own = {
            layout.CHECKPOINT: Entry(FILE, add(manifests.encode_manifest(manifest))),
            layout.SUMMARY: Entry(FILE, add(summary(manifest, self._draft.decisions))),
        }
        if files.skipped:
            own[layout.SKIPPED] = Entry(
                FILE, add(manifests.encode_skipped(files.skipped))
            )
        if files.empty:
            own[layout.EMPTY_DIRS] = Entry(
                FILE, add(manifests.encode_empty_dirs(files.empty))
            )
        if log_tree is not None:
            own[layout.LOG] = Entry(DIRECTORY, log_tree)
        root = dict(self._transaction.tree(files.tree)) if files.tree else {}
        root[layout.RESERVED] = Entry(DIRECTORY, self._transaction.add_tree(own))
        return self._transaction.add_tree(root)


class _Head(NamedTuple):
    """The user's HEAD; where its commit or tree is damaged, only its branch."""

    commit: str | None
    tree: bytes | None
    branch: str | None


def _head(repository: Repository) -> _Head:
    head, branch = repository.head()
    if head is None:
        return _Head(None, None, branch)
    objects = repository.objects
    try:
        root = objects.commit(bytes.fromhex(head)).tree
        objects.tree(root)
    except CorruptError as exc:
        # A damaged project is when checkpoints are needed most.
        notices.tell(
            f"HEAD is damaged ({exc.message}): checkpoints are made without the commit"
            " that they are based on; `git fsck` says more"
        )
        return _Head(None, None, branch)
    return _Head(head, root, branch)


def _files_of(before: Checkpoint | None) -> FilesState:
    if before is None:
        return FilesState(None, captured=False)
    return same_files(before)


def _lasting(skipped: tuple[Skipped, ...] | list[Skipped]) -> set[Skipped]:
    """A file that would not settle is not a reason for a checkpoint by itself."""
    return {entry for entry in skipped if entry.reason != "changed-while-reading"}


def _unicode(text: str | None) -> str | None:
    """Names in git are bytes; checkpoint.json holds Unicode."""
    if text is None:
        return None
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
