"""Finds the checkpoint before a message or prompt, by searching conversations."""

import datetime
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple, Self, TypeGuard

from gitcp.checkpoints.precedence import Precedence
from gitcp.clients import records, registry
from gitcp.clients.triggers import TURN_START
from gitcp.format import jsontext, log
from gitcp.format.layout import LogName
from gitcp.store import log_lines, logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# A shorter text matches too often.
SHORTEST = 4
# How much of the lines that mention an id is read in a conversation made elsewhere.
_MENTIONED = 8 * 1024 * 1024


def before_message(store: Store, tip: Checkpoint, ident: str) -> Checkpoint | None:
    """Returns the checkpoint of a line that holds the state before a message or prompt.

    That is the newest one whose conversation does not hold it yet. A checkpoint made
    after the message does not count, even if its conversation lacks the message: a
    commit or save in the middle of a turn has the files of that moment, with the
    conversation of the turn before.
    """
    if len(ident) < SHORTEST:
        return None
    for start in _ends(store, tip):
        mention = _Place.of(start, ident)
        if mention is not None:
            return _before(store, start, ident, mention)
    return None


def _ends(store: Store, tip: Checkpoint) -> Iterator[Checkpoint]:
    """Yields the tip, and the checkpoint before each restore: conversations end there.

    The user's newest comes first. A stranger's on top may quote a prompt of the user's.
    """
    rank = Precedence(store)
    line = store.line(tip) if rank.can_own() else ()
    mine = next(filter(rank.is_own, line), None)
    if mine is not None:
        yield mine
    if mine != tip:
        yield tip
    left = False
    for checkpoint in store.line(tip):
        if left:
            yield checkpoint
        left = checkpoint.trailers.trigger == "restore"


def _before(
    store: Store, start: Checkpoint, ident: str, mention: "_Place"
) -> Checkpoint | None:
    nearest: Checkpoint | None = None
    for checkpoint in store.line(start):
        held = mention.held(checkpoint)
        if held is None:
            # Another conversation, or the same one before its client rewrote it.
            other = _Place.of(checkpoint, ident)
            if other is not None:
                mention = other
                held = mention.held(checkpoint)
        if held is not None and held > mention.at:
            continue
        if checkpoint.trailers.trigger == TURN_START or mention.made_before(checkpoint):
            return nearest if _is_fork(nearest, checkpoint) else checkpoint
        # It was made later, but no other is nearer.
        nearest = checkpoint
    return nearest


def _is_fork(later: Checkpoint | None, checkpoint: Checkpoint) -> TypeGuard[Checkpoint]:
    """Whether a later checkpoint is where the message's own branch leaves a checkpoint.

    It holds the same state, though gitcp learned of the fork after the message.
    """
    return (
        later is not None
        and later.manifest.forked_from == checkpoint.id
        and later.manifest.files.tree == checkpoint.manifest.files.tree
    )


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
        conversation = checkpoint.manifest.conversation
        if conversation is None:
            return None
        foreign = checkpoint.origin.logs is not None
        if foreign:
            checkpoint.refuse_if_vast()
        read = _Read(checkpoint, conversation.source)
        longest = log_lines.LONGEST_FOREIGN if foreign else None
        mentions = _Mentions()
        for block in log_lines.blocks(read.chunks(), longest):
            if not foreign or len(mentions.lines) < _MENTIONED:
                mentions.look(block, ident)
        at = mentions.position(conversation.kind, ident)
        if at is None:
            return None
        since = _time_of(mentions.line(at))
        return cls(conversation.source, mentions.start(at), since, tuple(read.digests))

    def held(self, checkpoint: Checkpoint) -> int | None:
        """Returns how many bytes of this conversation a checkpoint holds.

        None if it holds none, or if this conversation begins with other bytes.
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


class _Read:
    """A conversation in pieces, and the digests of its beginnings up to where it was read."""

    def __init__(self, checkpoint: Checkpoint, source: str) -> None:
        self._objects = checkpoint.objects
        name = LogName("conversation", source)
        self._segments = logs.segments(
            checkpoint.log_tree, name, checkpoint.objects.tree
        )
        self.digests = [log.EMPTY_DIGEST]

    def chunks(self) -> Iterator[bytes]:
        for oid in self._segments:
            link = log.Link(self.digests[-1])
            for chunk in self._objects.stream(oid):
                link.add(chunk)
                yield chunk
            self.digests.append(link.digest)


class _Mentions:
    """The lines of a conversation that have an id in them, one after the other."""

    def __init__(self) -> None:
        self.lines = bytearray()
        # Where each begins here, and where in the conversation.
        self._here: list[int] = []
        self._there: list[int] = []

    def look(self, block: log_lines.Block, ident: str) -> None:
        for start, line in records.mentions(block.data, ident):
            self._here.append(len(self.lines))
            self._there.append(block.start + start)
            self.lines += line + b"\n"

    def position(self, kind: str, ident: str) -> int | None:
        """Returns where the message begins among these lines, None if it is not."""
        if registry.known(kind):
            return registry.client(kind).position(bytes(self.lines), ident)
        return 0 if self._here else None

    def start(self, at: int) -> int:
        """Returns where in the conversation the line at a place begins."""
        return self._there[bisect_right(self._here, at) - 1]

    def line(self, at: int) -> bytes:
        end = self.lines.index(b"\n", at)
        return bytes(self.lines[self.lines.rfind(b"\n", 0, at) + 1 : end])


def _time_of(line: bytes) -> float | None:
    """Returns when a message was written, if its record says so."""
    try:
        record = jsontext.decode(line)
        return datetime.datetime.fromisoformat(record["timestamp"]).timestamp()
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
