"""Finds the checkpoints to list: of a work tree, a session or branch, or the repository."""

from collections.abc import Iterator
from typing import NamedTuple

from gitcp.checkpoints import standing
from gitcp.checkpoints.sessions import branches
from gitcp.checkpoints.turns import count_rows
from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.checkpoint import IMPORT
from gitcp.format.layout import BranchKey
from gitcp.format.numbers import BEFORE_GIT, ELSEWHERE, Assigned
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.publish import described


class Scope(NamedTuple):
    """Which checkpoints to list: those of this work tree, unless something else is named.

    `everything` is the whole repository, `session` one session, with `branch` one line of it.
    An `imported` conversation is listed only on request, or if its session is named.
    """

    everything: bool = False
    imported: bool = False
    session: str | None = None
    branch: str | None = None


class Found(NamedTuple):
    """The checkpoints of a scope, newest first; one without a number counts as 0.

    Entries that are `reached` were read from branches, others from the list of numbers: it
    may include checkpoints that no branch reaches any more. Each iteration reads that list
    again, and only as far as needed.
    """

    entries: "list[Assigned] | _OfWorkTree"
    reached: bool = False

    def count_older(self, number: int, *, full: bool) -> int:
        """Returns how many rows, or checkpoints, are older than a number."""
        entries: list[tuple[BranchKey | str, str]]
        if isinstance(self.entries, _OfWorkTree):
            entries = self.entries.outlines(below=number)
        else:
            entries = [
                (entry.key, entry.trigger)
                for entry in self.entries
                if entry.number < number
            ]
        return len(entries) if full else count_rows(entries)


class _OfWorkTree:
    """The checkpoints of a work tree, from the list of numbers, without pruned ones."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._numbers = workspace.store.numbers
        self._gone = self._numbers.fates().gone

    def __iter__(self) -> Iterator[Assigned]:
        for entry in standing.of_work_tree(self._workspace):
            if entry.number not in self._gone:
                yield entry

    def outlines(self, *, below: int) -> list[tuple[BranchKey | str, str]]:
        """Returns the branch and trigger of each checkpoint older than a number."""
        places, (session, branch) = standing.belonging(self._workspace)
        current = f"{session}/{branch}"
        gone = {str(number) for number in self._gone}
        last = self._numbers.find(below)
        all_newer = last is not None and last.place == BEFORE_GIT
        newer: list[tuple[BranchKey | str, str]] = []
        older: list[tuple[BranchKey | str, str]] = []
        for number, key, place, _, trigger in self._numbers.outlines():
            if (place not in places and key != current) or number in gone:
                continue
            is_below = number.isdecimal() and int(number) < below
            if place == BEFORE_GIT:
                if is_below or not all_newer:
                    older.append((key, trigger))
            elif is_below and not all_newer:
                newer.append((key, trigger))
        return newer + older


def find(workspace: Workspace, scope: Scope, unreadable: list[str]) -> Found:
    """Returns what a scope holds.

    Raises:
        NotFoundError: there is no such branch.
    """
    store = workspace.store
    if scope.branch is not None:
        assert scope.session is not None
        tip = store.require_tip(scope.session, scope.branch)
        line = [_entry(checkpoint) for checkpoint in store.line(tip)]
        return Found(line, reached=True)
    session = BranchKey.of(scope.session, "main").session if scope.session else None
    numbered = next(store.numbers.newest_first(), None) is not None
    if scope.everything or session is not None or not numbered:
        entries = _of_all(workspace, session, unreadable)
        if session is None:
            entries = _without_imports(entries, imported=scope.imported)
        return Found(entries, reached=True)
    if scope.imported:
        imports = store.numbers.newest_first(IMPORT)
        return Found(
            _without_imports([*_OfWorkTree(workspace), *imports], imported=True)
        )
    return Found(_OfWorkTree(workspace))


def _without_imports(entries: list[Assigned], *, imported: bool) -> list[Assigned]:
    """Returns entries without the imported ones, or with these sorted in by their times.

    The others stay in their order, whatever the clocks said.
    """
    others = [one for one in entries if one.trigger != IMPORT]
    if not imported:
        return others
    taken_in = {one.number: one for one in entries if one.trigger == IMPORT}
    by_time = sorted(taken_in.values(), key=lambda one: one.created)
    merged: list[Assigned] = []
    for entry in others:
        while by_time and by_time[-1].created > entry.created:
            merged.append(by_time.pop())
        merged.append(entry)
    return merged + by_time[::-1]


def _of_all(
    workspace: Workspace,
    session: str | None,
    unreadable: list[str],
) -> list[Assigned]:
    """Returns every checkpoint that a branch reaches, or those of one session."""
    store = workspace.store
    known = {(entry.id, entry.key): entry for entry in store.numbers.newest_first()}
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
                # The list of numbers says this already; the commit need not be read.
                number = known.get((checkpoint.id, checkpoint.trailers.key))
                found[checkpoint.oid] = (
                    number._replace(commit=checkpoint.commit)
                    if number
                    else _entry(checkpoint)
                )
        except (CorruptError, FormatTooNewError) as exc:
            unreadable.append(
                f"the checkpoints before {info.tip.id} are left out: {exc}"
            )
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
