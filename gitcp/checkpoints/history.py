"""Lists what happened in a work tree: rows of its timeline, filtered, newest first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from gitcp.checkpoints.beside import Beside, Span
from gitcp.checkpoints.conversation import tool_names
from gitcp.checkpoints.predecessors import PathChanges
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.scopes import Found
from gitcp.checkpoints.turns import Row, rows
from gitcp.checkpoints.whose import Parted, Whose, shared_out
from gitcp.clients.triggers import BEFORE_COMMAND, TURN_END, TURN_START
from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format import tree
from gitcp.format.layout import LogName
from gitcp.format.numbers import Assigned
from gitcp.format.tree import Change, Entry, ReadTree
from gitcp.project.workspace import Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint, FileCounts
from gitcp.store.store import Store
from gitcp.store.surroundings import Surroundings

_BEFORE = "before: "
# How many segments of a long turn are searched, the last ones.
_SEGMENTS = 8


class Filters(NamedTuple):
    """What a row needs to be listed; times have the form that checkpoints hold."""

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
    `touched` is what it did to the paths that were requested, None if there were none.
    With `by_hand` it is not a turn, but what had changed by hand before a turn began.
    `before` is the state that the row is compared with, `parted` whose its changes are,
    where others ran too.
    """

    row: Row
    checkpoint: Checkpoint
    prompt: str | None
    changed: FileCounts
    beside: tuple[Span, ...] = ()
    touched: tuple[Change, ...] | None = None
    unsure: tuple[Change, ...] = ()
    by_hand: bool = False
    before: Checkpoint | None = None
    parted: Parted | None = None

    @property
    def ids(self) -> list[str]:
        """The ids of the row's checkpoints, oldest first."""
        return [entry.id for entry in reversed(self.row.entries)]

    @property
    def before_commands(self) -> list[int]:
        """The numbers of those that were made inside a turn before a command, oldest first."""
        inner = self.row.entries[:0:-1]
        return [entry.number for entry in inner if entry.trigger == BEFORE_COMMAND]


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
    lister = Lister(workspace, found, filters, unreadable, full=full)
    folded = (Row((each,)) for each in found.entries) if full else rows(found.entries)
    for row in folded:
        yield from lister.of(row)
    if lister.nothing:
        for damage in lister.damaged:
            raise damage


class Lister:
    """Reads rows of a timeline in any order, each as it is listed.

    `nothing` says that no checkpoint could be read so far.
    """

    def __init__(
        self,
        workspace: Workspace,
        found: Found,
        filters: Filters,
        unreadable: list[str],
        *,
        full: bool,
    ) -> None:
        store = workspace.store
        self._store = store
        self._filters = filters
        self._unreadable = unreadable
        self._full = full
        self._reach = Reach(store, known=found.reached)
        self._around = Surroundings(store.numbers, store.labels, store.checkpoint)
        self._together = Beside(store)
        self._whose = Whose(store, self._together)
        self._newest = next((one.number for one in store.numbers.newest_first()), 0)
        self._changes = PathChanges(store, workspace.repository, filters.paths)
        self.nothing = True

    @property
    def damaged(self) -> list[CorruptError]:
        """Why branches cannot be read."""
        return list(self._reach.damaged.values())

    def of(self, row: Row) -> Iterator[Listed]:
        """Yields the row, and the changes made by hand before it, if they pass the filters.

        Raises:
            FormatTooNewError: a newer gitcp wrote the newest checkpoint.
        """
        filters, store, full = self._filters, self._store, self._full
        if filters.since is not None and row.last.created < filters.since:
            return
        if filters.until is not None and row.first.created > filters.until:
            return
        if not self._changes.may_touch(row):
            return
        checkpoint = _read(self._reach, row.last, self._unreadable, self._newest)
        if checkpoint is None:
            return
        self.nothing = False
        first = readable(self._reach, row.first) or checkpoint
        pair = first, checkpoint
        for part, end, before, parted in _parts_of(
            row, pair, self._around, self._whose, full=full
        ):
            touched = _touched(end, before, filters.paths, parted)
            if touched == () or not _passes(
                store, end, before, filters, touched, parted
            ):
                continue
            by_hand = part is not row
            a_turn = row.is_turn and not full and not by_hand
            changed, unsure = shared_out(parted, before, end)
            beside = tuple(self._together.of(part.last))
            prompt = prompt_of(end) if a_turn else None
            yield Listed(
                *(part, end, prompt, changed, beside, touched, unsure, by_hand),
                *(before, parted),
            )


# A row, its newest checkpoint, the state before it, and whose its changes are.
_Part = tuple[Row, Checkpoint, Checkpoint | None, Parted | None]


def _parts_of(
    row: Row,
    ends: tuple[Checkpoint, Checkpoint],
    around: Surroundings,
    whose: Whose,
    *,
    full: bool,
) -> Iterator[_Part]:
    """Yields a row, whose first and last `ends` are; and what was done by hand before it.

    That is what differed as the turn began; while other turns ran, it may be theirs.
    """
    first, end = ends
    parted: Parted | None = None
    # Of a checkpoint alone all is shown that changed since the one before it.
    if not full:
        with suppress(CorruptError, FormatTooNewError, TransferError):
            parted = whose.of(row.last)
    earlier = around.before(first)
    if parted is not None:
        yield row, end, parted.before or around.before_turn(first), parted
    elif full or first == end or first.trailers.trigger != TURN_START:
        yield row, end, earlier or around.before_turn(first), None
    else:
        yield row, end, first, None
        if earlier is not None and earlier.files_oid != first.files_oid:
            yield Row((row.first,)), first, earlier, None


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


def _count(content: Iterable[bytes], text: bytes) -> int:
    """Counts a text in pieces of a content, over their edges too."""
    found = 0
    rest = b""
    for piece in content:
        rest += piece
        found += rest.count(text)
        # Nothing is counted twice: an occurrence is longer than this rest.
        at = rest.rfind(text) + len(text) if text in rest else 0
        rest = rest[max(at, len(rest) - len(text) + 1) :]
    return found


def _touched(
    checkpoint: Checkpoint,
    before: Checkpoint | None,
    paths: tuple[bytes, ...],
    parted: Parted | None,
) -> tuple[Change, ...] | None:
    """Returns what changed at some paths and below them; None if none is requested.

    What is known to be another turn's is left out.
    """
    if not paths:
        return None
    read = checkpoint.objects.files
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
        changes = tree.diff(old, checkpoint.files_tree, checkpoint.objects.files)
    for change in changes:
        if parted is not None and change.path in parted.others:
            continue
        count = [
            _count(checkpoint.objects.content(entry.oid), text)
            if entry is not None and entry.mode != tree.GITLINK
            else 0
            for entry in (change.old, change.new)
        ]
        if count[0] != count[1]:
            return True
    return False


def first_prompt(store: Store, checkpoint: Checkpoint) -> str | None:
    """Returns the first prompt of a conversation, if checkpoints hold it."""
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
