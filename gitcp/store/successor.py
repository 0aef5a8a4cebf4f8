"""Makes a draft into the checkpoint that follows a tip (docs/format.md, 3 to 6)."""

from typing import NamedTuple

import msgspec

from gitcp import notices
from gitcp.errors import CorruptError
from gitcp.format import checkpoint as manifests
from gitcp.format import layout, log, tree
from gitcp.format.checkpoint import (
    Base,
    Conversation,
    Files,
    LogTotals,
    Manifest,
    Skipped,
    timestamp,
)
from gitcp.format.layout import LogName
from gitcp.format.tree import DIRECTORY, FILE, Entry
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.store import logs
from gitcp.store.builder import (
    BranchSlot,
    Built,
    Carried,
    CheckpointBuilder,
    Circumstances,
    TreeContent,
)
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, FilesState, same_files
from gitcp.store.origin import Origin, Seals


class LedgerPosition(NamedTuple):
    """How far a session's ledger has come: its last number, and the commit that has it."""

    effects: int = 0
    ledger: str = ""


class Successor:
    """One attempt to make the checkpoint of a draft on a given tip."""

    def __init__(
        self,
        repository: Repository,
        transaction: Transaction,
        seals: Seals,
        draft: Draft,
        tip: Checkpoint | None,
        ledger: LedgerPosition,
    ) -> None:
        self._repository = repository
        self._transaction = transaction
        self._builder = CheckpointBuilder(transaction, seals)
        self._draft = draft
        self._tip = tip
        self._before = tip or draft.fork_of
        self._logs_of = draft.logs_from or self._before
        self._ledger = ledger
        self._metas: dict[LogName, log.Meta] = {}
        self._head = _head(repository)
        # Segments of the conversation that this checkpoint replaces.
        self.rewritten = 0

    def build(self, session: str, branch: str, now: float) -> Built | None:
        """Adds the checkpoint to the transaction; None if nothing has changed."""
        draft, before, logs_of = self._draft, self._before, self._logs_of
        log_tree = self._write_logs(logs_of.log_tree if logs_of else None, now)
        files = draft.files or _files_of(before)
        if not draft.allow_empty and self._is_unchanged(files, log_tree):
            return None
        slot = BranchSlot(
            session,
            branch,
            self._tip.seq + 1 if self._tip else 1,
            before.oid if before else self._anchor(),
            draft.fork_of.id if draft.fork_of else None,
        )
        head, name = self._head.commit, self._head.branch
        if draft.elsewhere:
            head = name = None
        operation = self._repository.operation()
        at = Circumstances(
            now,
            Base(head, _unicode(name), operation) if head or name else None,
            _unicode(self._repository.setting("user.name")),
            *self._ledger,
        )
        content = self._content(files, log_tree)
        return self._builder.build(draft, slot, content, self._carried(), at)

    def _is_unchanged(self, files: FilesState, log_tree: bytes | None) -> bool:
        draft, before = self._draft, self._before
        return (
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

    def _anchor(self) -> bytes | None:
        seen = self._head.tree and not self._draft.elsewhere
        anchor = self._repository.anchor() if seen else None
        return bytes.fromhex(anchor) if anchor else None

    def _is_quiet(self) -> bool:
        return self._draft.quiet and not self._draft.decisions

    def _ledger_stayed(self, before: Manifest) -> bool:
        # If two ledgers were joined, their numbers alone do not tell.
        same = before.ledger in {"", self._ledger.ledger}
        return same and before.effects == self._ledger.effects

    def _write_logs(self, old: bytes | None, now: float) -> bytes | None:
        writer = logs.Writer(self._transaction, old)
        changes: dict[bytes, Entry | None] = {}

        def take(name: LogName, appended: logs.Appended | None) -> None:
            if appended is not None:
                changes.update(appended.changes)
                self._metas[name] = appended.meta
                self.rewritten += appended.rewritten

        for records in self._draft.records:
            name = LogName("conversation", records.source)
            whole = records.data if records.whole else None
            if records.grown is not None:
                held = logs.meta(old, name, self._transaction.objects)
                same = held and (held.bytes, held.digest) == records.grown[:2]
                whole = None if same else records.grown.reread()
            write = writer.append if whole is None else writer.replace
            data = records.data if whole is None else whole
            take(name, write(name, data, records.kind, records.agent_session))
        if self._draft.decisions:
            at = timestamp(now)
            lines = [
                log.encode_decision(
                    entry if entry.at else msgspec.structs.replace(entry, at=at)
                )
                for entry in self._draft.decisions
            ]
            data = b"".join(lines)
            take(layout.DECISIONS, writer.append(layout.DECISIONS, data, "decisions"))
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
        data = b"".join(map(log.encode_rewrite, entries))
        writer = logs.Writer(self._transaction, root)
        added = writer.append(layout.REWRITES, data, "rewrites")
        if added is not None:
            changes.update(added.changes)

    def _content(self, files: FilesState, log_tree: bytes | None) -> TreeContent:
        add = self._transaction.add_blob
        own = {}
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
        if files.lists is not None:
            own[layout.CHUNKS] = Entry(DIRECTORY, files.lists)
        bases = [self._before.raw.tree] if self._before else []
        bases += self._draft.bases
        if self._draft.logs_from is not None:
            bases.append(self._draft.logs_from.raw.tree)
        if self._head.tree is not None:
            bases.append(self._head.tree)
        return TreeContent(
            self._transaction.tree(files.tree) if files.tree else {},
            own,
            self._count(files),
            len(files.skipped),
            self._origin(log_tree),
            tuple(bases),
        )

    def _origin(self, log_tree: bytes | None) -> Origin:
        """Returns the origin of the new checkpoint's files and logs.

        Files from the work tree count as the user's, whatever their author; records made
        elsewhere stay so in every checkpoint that holds them.
        """
        files_of, logs_of = self._draft.files_from, self._logs_of
        if self._draft.files is None:
            files_of = self._before
        return Origin(
            files_of.origin.files if files_of else None,
            logs_of.origin.logs if logs_of and log_tree is not None else None,
        )

    def _count(self, files: FilesState) -> Files:
        before = self._before
        counts = {"added": 0, "modified": 0, "deleted": 0}
        same = before is not None and before.files_oid == files.tree
        old = files.tree if same else before.files_tree if before else None
        if old is None and files.tree is not None:
            counts["added"] = tree.count(files.tree, self._transaction.tree)
        else:
            for change in tree.diff(old, files.tree, self._transaction.tree):
                counts[change.status] += 1
        oid = files.tree.hex() if files.tree else None
        return Files(oid, **counts, captured=files.captured)

    def _carried(self) -> Carried:
        before = self._logs_of
        carried = Carried.of(before.manifest if before else None)
        if before is not None and before.log_tree is None:
            # A stranger's record may name logs, or a task, that no log of it holds.
            carried = Carried(position=carried.position, metadata=carried.metadata)
        tasks = [entry.text for entry in self._draft.decisions if entry.kind == "task"]
        return carried._replace(
            conversation=self._conversation() or carried.conversation,
            decisions=self._totals(layout.DECISIONS) or carried.decisions,
            task=tasks[-1] if tasks else carried.task,
        )

    def _conversation(self) -> Conversation | None:
        beside = {records.source for records in self._draft.records if records.beside}
        written = [
            meta
            for name, meta in self._metas.items()
            if name.log == "conversation" and name.source not in beside
        ]
        if not written:
            return None
        meta = written[0]
        return Conversation(
            meta.name,
            meta.kind,
            meta.messages,
            meta.bytes,
            meta.segments,
            meta.digest,
            meta.agent_session,
        )

    def _totals(self, name: LogName) -> LogTotals | None:
        meta = self._metas.get(name)
        if meta is None:
            return None
        return LogTotals(meta.messages, meta.bytes, meta.segments, meta.digest)


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
        # Checkpoints are needed most when the project is damaged.
        notices.tell(
            f"HEAD is damaged ({exc.message}), so checkpoints are made without"
            " their base commit; `git fsck` shows more"
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
