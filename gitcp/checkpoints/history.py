"""Lists what happened in a work tree: rows of its timeline, filtered, newest first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from gitcp.checkpoints import standing
from gitcp.checkpoints.beside import Beside, Span
from gitcp.checkpoints.conversation import tool_names
from gitcp.checkpoints.predecessors import PathChanges
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.sessions import branches
from gitcp.checkpoints.turns import Row, rows
from gitcp.checkpoints.whose import Parted, Whose, shared_out
from gitcp.clients.client import BEFORE_COMMAND, TURN_END
from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format import tree
from gitcp.format.layout import BranchKey, LogName
from gitcp.format.numbers import ELSEWHERE, Assigned
from gitcp.format.tree import Change, Entry, ReadTree
from gitcp.project.workspace import Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint, FileCounts
from gitcp.store.publish import described
from gitcp.store.store import Store, require_tip
from gitcp.store.surroundings import Surroundings

_BEFORE = "before: "
# Of a long turn the last ones are looked at.
_SEGMENTS = 8


class Scope(NamedTuple):
    """Whose checkpoints are listed: of this work tree, where nothing else is named.

    `everything` is the whole repository, `session` one session, with `branch` one line of it.
    """

    everything: bool = False
    session: str | None = None
    branch: str | None = None


class Filters(NamedTuple):
    """What a row must have to be listed; times as checkpoints hold them."""

    since: str | None = None
    until: str | None = None
    words: re.Pattern[str] | None = None
    text: bytes | None = None
    agent: str | None = None
    paths: tuple[bytes, ...] = ()


class Listed(NamedTuple):
    """A row with its newest checkpoint, and what the row changed.

    `beside` are the turns of other conversations that ran at the same time in its work tree.
    Then `changed` counts what is a whole turn's own; `unsure` is what may be theirs as well.
    `touched` is what it did to the paths that were asked for, None where there were none.
    """

    row: Row
    checkpoint: Checkpoint
    prompt: str | None
    changed: FileCounts
    beside: tuple[Span, ...] = ()
    touched: tuple[Change, ...] | None = None
    unsure: tuple[Change, ...] = ()

    @property
    def ids(self) -> list[str]:
        """The ids of the row's checkpoints, oldest first."""
        return [entry.id for entry in reversed(self.row.entries)]

    @property
    def before_commands(self) -> list[int]:
        """The numbers of those that were made inside a turn before a command, oldest first."""
        inner = self.row.entries[:0:-1]
        return [entry.number for entry in inner if entry.trigger == BEFORE_COMMAND]


class Found(NamedTuple):
    """What a scope holds, newest first; what has no number counts as 0.

    Entries that are `reached` were read from branches, others from the list of numbers: it
    may have what no branch leads to any more.
    """

    entries: list[Assigned]
    reached: bool = False


def find(workspace: Workspace, scope: Scope, unreadable: list[str]) -> Found:
    """Returns what a scope holds.

    Raises:
        NotFoundError: there is no such branch.
    """
    store = workspace.store
    if scope.branch is not None:
        assert scope.session is not None
        tip = require_tip(store, scope.session, scope.branch)
        line = [_entry(checkpoint) for checkpoint in store.line(tip)]
        return Found(line, reached=True)
    listed = list(store.numbers.newest_first())
    session = BranchKey.of(scope.session, "main").session if scope.session else None
    if scope.everything or session is not None or not listed:
        return Found(_of_all(workspace, listed, session, unreadable), reached=True)
    gone = store.numbers.fates().gone
    return Found(
        [
            entry
            for entry in standing.of_work_tree(workspace, listed)
            if entry.number not in gone
        ]
    )


def _of_all(
    workspace: Workspace,
    listed: list[Assigned],
    session: str | None,
    unreadable: list[str],
) -> list[Assigned]:
    """Returns every checkpoint that a branch reaches, or those of one session."""
    store = workspace.store
    known = {(entry.id, entry.key): entry for entry in listed}
    found: dict[bytes, Assigned] = {}
    refs = {
        key: oid
        for key, oid in store.refs().items()
        if session is None or key.session == session
    }
    for _, info in branches(store, refs, unreadable=unreadable.append):
        try:
            for checkpoint in store.line(info.tip):
                if checkpoint.oid in found:
                    break
                entry = _entry(checkpoint)
                number = known.get((entry.id, entry.key))
                found[checkpoint.oid] = (
                    number._replace(commit=entry.commit) if number else entry
                )
        except (CorruptError, FormatTooNewError) as exc:
            unreadable.append(f"what came before {info.tip.id} is left out: {exc}")
    order = {oid: at for at, oid in enumerate(found)}
    return [
        entry
        for oid, entry in sorted(
            found.items(),
            key=lambda one: (-one[1].number, _reversed(one[1].created), order[one[0]]),
        )
    ]


def _reversed(time: str) -> tuple[int, ...]:
    return tuple(-ord(char) for char in time)


def _entry(checkpoint: Checkpoint) -> Assigned:
    return described(checkpoint, ELSEWHERE)._replace(number=checkpoint.number or 0)


def listing(
    workspace: Workspace,
    found: Found,
    filters: Filters,
    unreadable: list[str],
    *,
    full: bool,
) -> Iterator[Listed]:
    """Yields rows that pass the filters; with `full` each checkpoint is a row.

    What cannot be read is left out, and noted in `unreadable`.

    Raises:
        CorruptError: nothing is left but what cannot be read.
        FormatTooNewError: a newer gitcp wrote the newest one.
    """
    store = workspace.store
    reach = Reach(store, known=found.reached)
    nothing = True
    around = Surroundings(store.numbers, store.labels, store.checkpoint)
    together = Beside(store)
    whose = Whose(store, together)
    newest = next((entry.number for entry in store.numbers.newest_first()), 0)
    folded = (Row((each,)) for each in found.entries) if full else rows(found.entries)
    changes = PathChanges(store, workspace.repository, filters.paths)
    for row in folded:
        if filters.since is not None and row.last.created < filters.since:
            continue
        if filters.until is not None and row.first.created > filters.until:
            continue
        if not changes.may_touch(row):
            continue
        checkpoint = _read(reach, row.last, unreadable, newest)
        if checkpoint is None:
            continue
        first = readable(reach, row.first) or checkpoint
        nothing = False
        before = around.before_turn(first)
        overlapping = tuple(together.of(row.last))
        # Of a checkpoint alone all is shown that changed since the one before it.
        parted = _parts(whose, row) if overlapping and not full else None
        before = (parted and parted.before) or before
        touched = _touched(checkpoint, before, filters.paths, parted)
        if touched != () and _passes(
            store, checkpoint, before, filters, touched, parted
        ):
            prompt = prompt_of(checkpoint) if row.is_turn and not full else None
            changed, unsure = shared_out(parted, before, checkpoint)
            yield Listed(
                *(row, checkpoint, prompt, changed, overlapping, touched, unsure)
            )
    if nothing:
        for damage in reach.damaged.values():
            raise damage


def _parts(whose: Whose, row: Row) -> Parted | None:
    """Returns whose the changes of a row are; None where that cannot be told."""
    with suppress(CorruptError, FormatTooNewError, TransferError):
        return whose.of(row.last)
    return None


def _read(
    reach: Reach, entry: Assigned, unreadable: list[str], newest: int
) -> Checkpoint | None:
    known = set(reach.damaged)
    checkpoint = reach.find(entry)
    for key, damage in reach.damaged.items():
        if key not in known:
            unreadable.append(f"{key.session}/{key.branch} is left out: {damage}")
    if checkpoint is None:
        return None
    name = f"#{entry.number} {entry.id}" if entry.number else entry.id
    try:
        _ = checkpoint.manifest
    except FormatTooNewError as exc:
        if entry.number == newest:
            raise
        unreadable.append(f"{name} is left out: {exc}")
        return None
    except CorruptError as exc:
        unreadable.append(f"{name} is left out: {exc}")
        return None
    return checkpoint


def prompt_of(checkpoint: Checkpoint) -> str | None:
    """Returns what a turn was asked, as its checkpoint has it."""
    note = checkpoint.note
    if note is None or checkpoint.trigger == TURN_END:
        return note
    at = note.find(_BEFORE)
    return note[at + len(_BEFORE) :] if at >= 0 else note


def _passes(
    store: Store,
    checkpoint: Checkpoint,
    before: Checkpoint | None,
    filters: Filters,
    touched: tuple[Change, ...] | None,
    parted: Parted | None,
) -> bool:
    held = checkpoint.manifest.conversation
    if filters.agent is not None and (held is None or held.kind != filters.agent):
        return False
    if filters.words is not None and not _says(store, checkpoint, filters.words):
        return False
    if filters.text is None:
        return True
    with suppress(CorruptError, TransferError):
        return _has_text(checkpoint, before, touched, filters.text, parted)
    return False


def _says(store: Store, checkpoint: Checkpoint, words: re.Pattern[str]) -> bool:
    """Whether a note, a label, or a reason that is new in a checkpoint matches."""
    texts = [checkpoint.note or "", checkpoint.label or ""]
    with suppress(CorruptError):
        for entry in checkpoint.decisions()[_inherited(store, checkpoint) :]:
            texts += [entry.text, entry.why or ""]
    return any(words.search(text) for text in texts)


def _inherited(store: Store, checkpoint: Checkpoint) -> int:
    """Returns how many reasons a checkpoint has from the one before it."""
    parents = checkpoint.raw.parents
    parent = store.checkpoint(parents[0]) if parents else None
    if parent is None or parent.manifest.decisions is None:
        return 0
    return parent.manifest.decisions.entries


def _touched(
    checkpoint: Checkpoint,
    before: Checkpoint | None,
    paths: tuple[bytes, ...],
    parted: Parted | None,
) -> tuple[Change, ...] | None:
    """Returns what changed at some paths and below them; None where none is asked for.

    What is known to be another turn's is left out.
    """
    if not paths:
        return None
    read = checkpoint.objects.tree
    old = before.files_tree if before is not None else None
    new = checkpoint.files_tree
    found: dict[bytes, Change] = {}
    if old != new:
        with suppress(CorruptError, TransferError):
            for path in paths:
                sides = tree.lookup(old, path, read), tree.lookup(new, path, read)
                found |= {each.path: each for each in _differing(path, *sides, read)}
    others = parted.others if parted is not None else {}
    return tuple(each for each in found.values() if each.path not in others)


def _differing(
    path: bytes, old: Entry | None, new: Entry | None, read: ReadTree
) -> Iterator[Change]:
    """Yields what differs at a path, and below it where it is a folder."""
    if old == new:
        return
    old_folder, new_folder = (
        entry.oid if entry is not None and entry.mode == tree.DIRECTORY else None
        for entry in (old, new)
    )
    old_file, new_file = None if old_folder else old, None if new_folder else new
    if old_file or new_file:
        yield Change(path, old_file, new_file)
    yield from tree.diff(old_folder, new_folder, read, path + b"/")


def _has_text(
    checkpoint: Checkpoint,
    before: Checkpoint | None,
    touched: tuple[Change, ...] | None,
    text: bytes,
    parted: Parted | None,
) -> bool:
    """Whether a text occurs in a file more or less often than before."""
    changes: Iterable[Change] = touched or ()
    if touched is None:
        old = before.files_tree if before is not None else None
        changes = tree.diff(old, checkpoint.files_tree, checkpoint.objects.tree)
    for change in changes:
        if parted is not None and change.path in parted.others:
            continue
        count = [
            checkpoint.objects.blob(entry.oid).count(text)
            if entry is not None and entry.mode != tree.GITLINK
            else 0
            for entry in (change.old, change.new)
        ]
        if count[0] != count[1]:
            return True
    return False


def first_prompt(store: Store, checkpoint: Checkpoint) -> str | None:
    """Returns what a conversation began with, as far as checkpoints have it."""
    first = store.numbers.first_of(checkpoint.trailers.session)
    if first is None:
        return prompt_of(checkpoint)
    with suppress(CorruptError, FormatTooNewError):
        found = store.checkpoint(first.commit)
        if found is not None:
            return prompt_of(found)
    return prompt_of(checkpoint)


def tools_of(store: Store, listed: Listed) -> list[str]:
    """Returns the tools that a turn used, with how often: `Editx2`."""
    checkpoint = listed.checkpoint
    held = checkpoint.manifest.conversation
    if held is None or not listed.row.is_turn:
        return []
    name = LogName("conversation", held.source)
    try:
        first = store.checkpoint(listed.row.first.commit) or checkpoint
        parent = store.checkpoint(first.raw.parents[0]) if first.raw.parents else None
        before = parent.manifest.conversation if parent is not None else None
        seen = before.segments if before and before.source == held.source else 0
        oids = logs.segments(checkpoint.log_tree, name, checkpoint.objects.tree)[seen:]
        raw = b"".join(map(checkpoint.objects.blob, oids[-_SEGMENTS:]))
    except (CorruptError, FormatTooNewError):
        return []
    counts = Counter(tool_names(raw))
    return [f"{tool}x{n}" if n > 1 else tool for tool, n in counts.most_common()]
