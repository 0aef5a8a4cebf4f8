"""Finds the checkpoint before a message or prompt, by searching conversations."""

import datetime
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple, Self

from gitcp.clients import registry
from gitcp.clients.client import TURN_START
from gitcp.format import jsontext, log
from gitcp.format.layout import LogName
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# A shorter text fits too much.
SHORTEST = 4


def before_message(store: Store, tip: Checkpoint, ident: str) -> Checkpoint | None:
    """Returns the checkpoint of a line that holds the state before a message or prompt.

    That is the newest one whose conversation does not hold it yet, but for those made
    after it all the same: in the middle of a turn a commit or save may happen, and such
    a checkpoint has the files of then with the conversation of before.
    """
    if len(ident) < SHORTEST:
        return None
    for start in _ends(store, tip):
        place = _Place.of(start, ident)
        if place is not None:
            return _before(store, start, ident, place)
    return None


def _ends(store: Store, tip: Checkpoint) -> Iterator[Checkpoint]:
    """Yields the tip, and what each restore left behind: conversations end there."""
    yield tip
    left = False
    for checkpoint in store.line(tip):
        if left:
            yield checkpoint
        left = checkpoint.trailers.trigger == "restore"


def _before(
    store: Store, start: Checkpoint, ident: str, place: "_Place"
) -> Checkpoint | None:
    found: Checkpoint | None = None
    for checkpoint in store.line(start):
        held = place.held(checkpoint)
        if held is None:
            # Another conversation, or the same one before its client rewrote it.
            other = _Place.of(checkpoint, ident)
            if other is not None:
                place = other
                held = place.held(checkpoint)
        if held is not None and held > place.at:
            continue
        if checkpoint.trailers.trigger == TURN_START or place.made_before(checkpoint):
            return checkpoint
        # Made later, but nearest to it of what there is.
        found = checkpoint
    return found


class _Place(NamedTuple):
    """Where a message begins in a conversation, and since which checkpoint.

    `digests` are those of the conversation's beginnings, by their number of segments.
    """

    source: str
    at: int
    since: float | None
    digests: tuple[str, ...]

    @classmethod
    def of(cls, checkpoint: Checkpoint, ident: str) -> Self | None:
        said = checkpoint.manifest.conversation
        if said is None:
            return None
        name = LogName("conversation", said.source)
        read = checkpoint.objects
        pieces = list(
            map(read.blob, logs.segments(checkpoint.log_tree, name, read.tree))
        )
        raw = b"".join(pieces)
        if registry.known(said.kind):
            at = registry.client(said.kind).position(raw, ident)
        else:
            at = raw.find(f'"{ident}"'.encode())
        if at is None or at < 0:
            return None
        digests = accumulate(pieces, log.chain, initial=log.EMPTY_DIGEST)
        return cls(said.source, at, _time_of(raw, at), tuple(digests))

    def held(self, checkpoint: Checkpoint) -> int | None:
        """Returns how many bytes of this conversation a checkpoint holds.

        None where it holds none, or others than this conversation begins with.
        """
        name = LogName("conversation", self.source)
        meta = logs.meta(checkpoint.log_tree, name, checkpoint.objects)
        if meta is None or meta.segments >= len(self.digests):
            return None
        return meta.bytes if self.digests[meta.segments] == meta.digest else None

    def made_before(self, checkpoint: Checkpoint) -> bool:
        """Whether a checkpoint was made before the message, as far as that is known."""
        if self.since is None:
            return True
        created = datetime.datetime.fromisoformat(checkpoint.manifest.created)
        return created.timestamp() <= self.since


def _time_of(raw: bytes, at: int) -> float | None:
    """Returns when a message was written, if its record says so."""
    start = raw.rfind(b"\n", 0, at) + 1
    end = raw.find(b"\n", at)
    try:
        record = jsontext.decode(raw[start : end if end >= 0 else len(raw)])
        return datetime.datetime.fromisoformat(record["timestamp"]).timestamp()
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
