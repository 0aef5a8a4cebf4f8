"""Retention: decides which checkpoints stay, from all branches; pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format import layout
from gitcp.format.commit import trailer
from gitcp.format.numbers import Assigned
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# Encoded session and branch.
Key = layout.BranchKey


class RetentionRules(NamedTuple):
    """What to keep of each branch, besides what is never pruned.

    `last` newest checkpoints; those `within` seconds and all after them; labelled ones,
    if `labelled`. If `counted` is false, checkpoints that stay anyway do not count in
    `last`. If `apart`, `last` checkpoints made here stay, and as many made elsewhere.
    """

    last: int = 0
    within: float | None = None
    labelled: bool = True
    counted: bool = True
    apart: bool = False


class BranchLine(NamedTuple):
    """The checkpoints of one branch, newest first; `ref` is where they were found."""

    ref: str
    key: Key
    checkpoints: tuple[Checkpoint, ...]


class RetentionDecision(NamedTuple):
    """The decision for one branch, newest first."""

    line: BranchLine
    stay: tuple[Checkpoint, ...]
    go: tuple[Checkpoint, ...]


class RetentionGraph:
    """All checkpoints that branches reach, each on the one line where it counts.

    `damaged` has the branches, by ref, of which something cannot be read that decides
    what stays, with the reason. Such a branch stays as it is. The content of a
    checkpoint decides nothing, unless it is the last restore: `undo` goes to the
    checkpoint that it names.
    """

    def __init__(self, store: Store, session: str | None = None) -> None:
        self._store = store
        tips = store.refs() if session is None else store.refs_of(session)
        self._known: dict[bytes, Checkpoint | None] = {}
        self.damaged: dict[str, str] = {}
        self.tips = {key.ref: (key, oid) for key, oid in tips.items()}
        self.lines = self._lines()
        # Sessions that are threads of LangGraph, by component (docs/format.md, 15). Only
        # LangGraph's own index can tell which of them may go.
        self.threads = {
            line.key[0] for line in self.lines if any(map(is_event, line.checkpoints))
        }

    def _line(self, ref: str, commit: str) -> Iterator[Checkpoint]:
        oid: bytes | None = bytes.fromhex(commit)
        while oid is not None:
            if oid not in self._known:
                try:
                    self._known[oid] = self._store.checkpoint(oid)
                except CorruptError as exc:
                    self.damaged[ref] = exc.message
                    return
            checkpoint = self._known[oid]
            if checkpoint is None:
                return
            yield checkpoint
            oid = checkpoint.raw.parents[0] if checkpoint.raw.parents else None

    def _lines(self) -> list[BranchLine]:
        """A fork's own checkpoints come first, then those that no line owns."""
        taken: set[bytes] = set()
        owned: dict[tuple[str, Key], list[Checkpoint]] = {}
        for own in (True, False):
            for ref, (key, tip) in self.tips.items():
                for checkpoint in self._line(ref, tip):
                    trailers = checkpoint.trailers
                    own_key = Key(trailers.session, trailers.branch)
                    if own and own_key != key:
                        break
                    if checkpoint.oid not in taken:
                        taken.add(checkpoint.oid)
                        owned.setdefault((ref, own_key), []).append(checkpoint)
        return [BranchLine(ref, key, tuple(ones)) for (ref, key), ones in owned.items()]

    def refs(self, keys: Collection[Key] | None) -> list[str]:
        """Returns the refs to rewrite: all of the sessions with a line among `keys`.

        Not those of damaged branches.
        """
        sessions = None if keys is None else {session for session, _ in keys}
        return [
            ref
            for ref, (key, _) in self.tips.items()
            if (sessions is None or key[0] in sessions) and ref not in self.damaged
        ]

    def needed(self) -> set[str]:
        """Returns the ids that always stay.

        Tips; where forks start, on either side; and for each branch and each work tree
        the last restore, what it brought and what it replaced: `undo` goes there.
        """
        ids: set[str] = set()
        last = {one.id for one in self._last_of_work_trees()}
        for ref, (_, tip) in self.tips.items():
            restored = False
            newer: Checkpoint | None = None
            for checkpoint in self._line(ref, tip):
                if newer is None:
                    ids.add(checkpoint.id)
                elif newer.trailers[1:3] != checkpoint.trailers[1:3]:
                    ids |= {newer.id, checkpoint.id}
                is_restore = checkpoint.trailers.trigger == "restore"
                if is_restore and (not restored or checkpoint.id in last):
                    restored = True
                    ids |= self._restored(ref, checkpoint)
                newer = checkpoint
        return ids

    def _last_of_work_trees(self) -> Iterable[Assigned]:
        """Returns the last restore of each work tree; several may share a branch."""
        last: dict[str, Assigned] = {}
        for entry in self._store.numbers.newest_first("restore"):
            last.setdefault(entry.place, entry)
        return last.values()

    def _restored(self, ref: str, restore: Checkpoint) -> set[str]:
        """Returns the ids of a restore, of what it brought and of what it replaced."""
        try:
            manifest = restore.manifest
        except (CorruptError, FormatTooNewError) as exc:
            self.damaged[ref] = f"its last restore {restore.id}: {exc.message}"
            return {restore.id}
        return {restore.id, manifest.replaced or "", manifest.restored_from or ""}

    def judge(
        self,
        rules: RetentionRules,
        keys: Collection[Key] | None,
        now: float,
        also: Iterable[str] = (),
    ) -> list[RetentionDecision]:
        """Returns what stays and what goes, for some branches or all.

        `also` are ids that stay for reasons of the caller's.
        """
        needed = self.needed() | set(also)
        judged = [
            RetentionDecision(line, line.checkpoints, ())
            if line.key[0] in self.threads
            or not self.damaged.keys().isdisjoint({line.ref, line.key.ref})
            else self._judge(line, rules, needed, now)
            for line in self.lines
            if keys is None or line.key in keys
        ]
        # One checkpoint may stand in two lines, after a fork during a pruning.
        staying = {checkpoint.id for decision in judged for checkpoint in decision.stay}
        return [
            RetentionDecision(
                decision.line,
                tuple(
                    checkpoint
                    for checkpoint in decision.line.checkpoints
                    if checkpoint.id in staying
                ),
                tuple(
                    checkpoint
                    for checkpoint in decision.go
                    if checkpoint.id not in staying
                ),
            )
            for decision in judged
        ]

    @staticmethod
    def _judge(
        line: BranchLine, rules: RetentionRules, needed: set[str], now: float
    ) -> RetentionDecision:
        recent = 0
        if rules.within is not None:
            # Order is ancestry, not time: a clock that was set back prunes nothing.
            for number, checkpoint in enumerate(line.checkpoints, 1):
                if checkpoint.raw.epoch >= now - rules.within:
                    recent = number
        stay, go = [], []
        left = {True: rules.last, False: rules.last}
        for number, checkpoint in enumerate(line.checkpoints, 1):
            anyway = checkpoint.id in needed or (
                rules.labelled and checkpoint.label_component is not None
            )
            own = not rules.apart or made_here(checkpoint)
            if anyway or left[own] > 0 or number <= recent:
                stay.append(checkpoint)
                left[own] -= rules.counted or not anyway or number == 1
            else:
                go.append(checkpoint)
        return RetentionDecision(line, tuple(stay), tuple(go))


def made_here(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint was made here; not if it cannot be read."""
    try:
        return checkpoint.origin.here
    except (CorruptError, FormatTooNewError):
        return False


def is_event(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint belongs to a thread of LangGraph."""
    return (
        checkpoint.trailers.trigger in {"graph", "graph-writes"}
        and trailer(checkpoint.raw, "Graph") is not None
    )


def sizes(
    judged: Iterable[RetentionDecision],
    objects: Callable[[list[str]], Mapping[str, int]],
) -> dict[bytes, int]:
    """Returns how many bytes go with each checkpoint once all older ones are gone.

    Keyed by root tree. `objects` is given root trees, newest and needed ones first, and
    returns what each adds to those before it.
    """
    ordered: list[Checkpoint] = []
    for decision in judged:
        ordered += decision.stay
    waiting = [checkpoint for decision in judged for checkpoint in decision.go]
    waiting.sort(
        key=lambda checkpoint: (checkpoint.raw.epoch, checkpoint.seq), reverse=True
    )
    ordered += waiting
    added = objects([checkpoint.raw.tree.hex() for checkpoint in ordered])
    return {one.raw.tree: added.get(one.raw.tree.hex(), 0) for one in ordered}
