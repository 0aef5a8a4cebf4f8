"""Finds the turn that a checkpoint belongs to, and the messages of that turn."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from gitcp.checkpoints import turns
from gitcp.checkpoints.spoken_turns import SpokenTurn, dialogue
from gitcp.checkpoints.spoken_turns import turns as spoken_turns
from gitcp.clients.triggers import TURN_END, TURN_START
from gitcp.format.layout import LogName
from gitcp.project.workspace import Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store
from gitcp.store.surroundings import Surroundings

# No turn has more checkpoints, and no other work lies between two of them.
_FARTHEST = 1000


class Turn(NamedTuple):
    """A turn of an agent: its checkpoints, oldest first.

    `before` is the state of its work tree before the turn.
    """

    checkpoints: tuple[Checkpoint, ...]
    before: Checkpoint | None

    @property
    def end(self) -> Checkpoint:
        """The newest checkpoint of the turn."""
        return self.checkpoints[-1]


def turn_of(workspace: Workspace, checkpoint: Checkpoint) -> Turn | None:
    """Returns the turn that a checkpoint ends, or that it was made in; None for none.

    Raises:
        CorruptError: a checkpoint of it is damaged.
    """
    store = workspace.store
    trigger = checkpoint.trigger
    if trigger not in turns.INNER and trigger != TURN_END:
        return None
    end = checkpoint if trigger == TURN_END else _end(store, checkpoint)
    if end.trigger not in turns.ENDS:
        return None
    line = tuple(_line(store, end))[::-1]
    around = Surroundings(store.numbers, store.labels, store.checkpoint)
    return Turn(line, around.before_turn(line[0]))


def state_before(store: Store, checkpoint: Checkpoint) -> Checkpoint | None:
    """Returns the state of a checkpoint's work tree before that checkpoint, or None."""
    around = Surroundings(store.numbers, store.labels, store.checkpoint)
    return around.before(checkpoint)


def _line(store: Store, end: Checkpoint) -> Iterator[Checkpoint]:
    """Yields the checkpoints of the turn that one ends, newest first."""
    yield end
    for checkpoint in islice(store.line(end), 1, _FARTHEST):
        trigger = checkpoint.trigger
        inner = trigger in turns.INNER and checkpoint.branch == end.branch
        if inner:
            yield checkpoint
        if trigger in turns.BORDERS:
            return


def _end(store: Store, inner: Checkpoint) -> Checkpoint:
    """Returns the last checkpoint of the turn that one was made in; itself, if unknown."""
    last = inner
    if inner.number is None:
        return last
    for number in range(inner.number + 1, inner.number + _FARTHEST):
        entry = store.numbers.find(number)
        if entry is None:
            break
        if entry.key != inner.trailers.key:
            continue
        if entry.trigger in turns.BORDERS and entry.trigger != TURN_END:
            break
        if entry.trigger in turns.ENDS:
            found = store.checkpoint(entry.commit)
            if found is None:
                # After a prune, the rest of the turn cannot be told from what came after
                # it.
                break
            last = found
        if entry.trigger == TURN_END:
            break
    return last


def spoken_in(
    workspace: Workspace, checkpoint: Checkpoint, turn: Turn | None
) -> SpokenTurn | None:
    """Returns the last spoken turn in a checkpoint; if it ends a turn, that one.

    Raises:
        CorruptError: a segment of the conversation is missing or damaged.
    """
    held = checkpoint.manifest.conversation
    if held is None:
        return None
    if (
        turn is not None
        and turn.end.oid == checkpoint.oid
        and checkpoint.origin.logs is None
    ):
        store = workspace.store
        found = spoken_turns(new_records(store, turn.checkpoints[0], turn.end))
        asked = [each for each in found if each.prompt is not None]
        if asked:
            return asked[-1]
    return next(iter(dialogue(checkpoint).turns[-1:]), None)


def new_records(
    store: Store, begin: Checkpoint, end: Checkpoint, *, most: int | None = None
) -> bytes:
    """Returns the records that a turn added to the conversation that its end has.

    They include older ones that the client has rewritten meanwhile. With `most` it is only
    their end, in whole segments of so many bytes together, and at least one of them; none
    that is larger, if it was made elsewhere.

    Raises:
        CorruptError: a segment of the conversation is missing or damaged.
    """
    oids = new_segments(store, begin, end)
    if most is not None:
        oids = _last_of(end, oids, most)
    return b"".join(map(end.objects.blob, oids))


def _last_of(end: Checkpoint, oids: list[bytes], most: int) -> list[bytes]:
    kept: list[bytes] = []
    for oid in reversed(oids):
        most -= end.objects.header(oid)[1]
        if most < 0 and (kept or end.origin.logs is not None):
            break
        kept.append(oid)
    return kept[::-1]


def new_segments(store: Store, begin: Checkpoint, end: Checkpoint) -> list[bytes]:
    """Returns the ids of the segments that hold these records.

    Raises:
        CorruptError: a tree of the conversation is missing or damaged.
    """
    held = end.manifest.conversation
    assert held is not None
    first: Checkpoint | None = begin
    assert first is not None
    if first.trigger != TURN_START:
        # Its own records are the turn's.
        first = store.checkpoint(first.raw.parents[0]) if first.raw.parents else None
    name = LogName("conversation", held.source)
    oids = logs.segments(end.log_tree, name, end.objects.tree)
    before = first.manifest.conversation if first is not None else None
    if first is not None and before is not None and before.source == held.source:
        seen = logs.segments(first.log_tree, name, first.objects.tree)
        # A client that rewrites its file replaces segments, too.
        oids = oids[logs.in_common(seen, oids) :]
    return oids
