"""Retention: decides which checkpoints stay, from all branches; pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from gitcp.format import layout
from gitcp.format.commit import trailer
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# Encoded session and branch.
Key = tuple[str, str]


class Rules(NamedTuple):
    """What to keep of each branch, besides what is never pruned.

    `last` newest checkpoints; those `within` seconds and all after them; labelled ones,
    if `labelled`. With `counted` false those that stay anyway do not count in `last`.
    """

    last: int = 0
    within: float | None = None
    labelled: bool = True
    counted: bool = True


class Line(NamedTuple):
    """The checkpoints of one branch, newest first; `ref` is where they were found."""

    ref: str
    key: Key
    checkpoints: tuple[Checkpoint, ...]


class Judged(NamedTuple):
    """The decision for one branch, newest first."""

    line: Line
    stay: tuple[Checkpoint, ...]
    go: tuple[Checkpoint, ...]


class Forest:
    """All checkpoints that branches reach, each on the one line it is counted on."""

    def __init__(self, store: Store, session: str | None = None) -> None:
        self._store = store
        found = store.refs() if session is None else store.refs_of(session)
        self._known: dict[bytes, Checkpoint | None] = {}
        self.tips = {
            f"{layout.SESSIONS}{session}/{branch}": ((session, branch), oid)
            for (session, branch), oid in found.items()
        }
        self.lines = self._lines()
        # Sessions that are threads of LangGraph, by component (docs/format.md, 15). What
        # may go of them only LangGraph's own index can tell.
        self.threads = {
            line.key[0] for line in self.lines if any(map(is_event, line.checkpoints))
        }

    def _line(self, commit: str) -> Iterator[Checkpoint]:
        oid: bytes | None = bytes.fromhex(commit)
        while oid is not None:
            if oid not in self._known:
                self._known[oid] = self._store.checkpoint(oid)
            found = self._known[oid]
            if found is None:
                return
            yield found
            oid = found.raw.parents[0] if found.raw.parents else None

    def _lines(self) -> list[Line]:
        """A fork's own checkpoints first, then what no line has of its own."""
        taken: set[bytes] = set()
        found: dict[tuple[str, Key], list[Checkpoint]] = {}
        for own in (True, False):
            for ref, (key, tip) in self.tips.items():
                for one in self._line(tip):
                    its = one.trailers.session, one.trailers.branch
                    if own and its != key:
                        break
                    if one.oid not in taken:
                        taken.add(one.oid)
                        found.setdefault((ref, its), []).append(one)
        return [Line(ref, key, tuple(ones)) for (ref, key), ones in found.items()]

    def refs(self, keys: Collection[Key] | None) -> list[str]:
        """Returns the refs to rewrite: all whose session has a line among `keys`."""
        sessions = None if keys is None else {session for session, _ in keys}
        return [
            ref
            for ref, (key, _) in self.tips.items()
            if sessions is None or key[0] in sessions
        ]

    def needed(self) -> set[str]:
        """Returns the ids that always stay.

        Tips; where forks start, on either side; and for each branch the last restore,
        what it brought and what it replaced: that is where `undo` goes.
        """
        ids: set[str] = set()
        for _, tip in self.tips.values():
            restored = False
            newer: Checkpoint | None = None
            for one in self._line(tip):
                if newer is None:
                    ids.add(one.id)
                elif newer.trailers[1:3] != one.trailers[1:3]:
                    ids |= {newer.id, one.id}
                if not restored and one.trailers.trigger == "restore":
                    restored = True
                    said = one.manifest
                    ids |= {one.id, said.replaced or "", said.restored_from or ""}
                newer = one
        return ids

    def judge(
        self,
        rules: Rules,
        keys: Collection[Key] | None,
        now: float,
        also: Iterable[str] = (),
    ) -> list[Judged]:
        """Returns what stays and what goes, for some branches or all.

        `also` are ids that stay for reasons of the caller's.
        """
        needed = self.needed() | set(also)
        judged = [
            Judged(line, line.checkpoints, ())
            if line.key[0] in self.threads
            else self._judge(line, rules, needed, now)
            for line in self.lines
            if keys is None or line.key in keys
        ]
        # One checkpoint may stand in two lines, after a fork during a pruning.
        staying = {one.id for each in judged for one in each.stay}
        return [
            Judged(
                each.line,
                tuple(one for one in each.line.checkpoints if one.id in staying),
                tuple(one for one in each.go if one.id not in staying),
            )
            for each in judged
        ]

    @staticmethod
    def _judge(line: Line, rules: Rules, needed: set[str], now: float) -> Judged:
        recent = 0
        if rules.within is not None:
            # Order is ancestry, not time: a clock that was set back prunes nothing.
            for number, one in enumerate(line.checkpoints, 1):
                if one.raw.epoch >= now - rules.within:
                    recent = number
        stay, go = [], []
        left = rules.last
        for number, one in enumerate(line.checkpoints, 1):
            anyway = one.id in needed or (
                rules.labelled and one.trailers.label is not None
            )
            if anyway or left > 0 or number <= recent:
                stay.append(one)
                left -= rules.counted or not anyway or number == 1
            else:
                go.append(one)
        return Judged(line, tuple(stay), tuple(go))


def is_event(found: Checkpoint) -> bool:
    """Whether a checkpoint belongs to a thread of LangGraph."""
    return (
        found.trailers.trigger in {"graph", "graph-writes"}
        and trailer(found.raw, "Graph") is not None
    )


def sizes(
    judged: Iterable[Judged], objects: Callable[[list[str]], Mapping[str, int]]
) -> dict[str, int]:
    """Returns how many bytes go with each checkpoint once all older ones are gone.

    Keyed by id. `objects` is given root trees, newest and needed ones first, and
    returns what each adds to those before it.
    """
    ordered: list[Checkpoint] = []
    for each in judged:
        ordered += each.stay
    waiting = [one for each in judged for one in each.go]
    waiting.sort(key=lambda one: (one.raw.epoch, one.seq), reverse=True)
    ordered += waiting
    added = objects([one.raw.tree.hex() for one in ordered])
    found: dict[str, int] = {}
    for one in ordered:
        found.setdefault(one.id, added.get(one.raw.tree.hex(), 0))
    return found
