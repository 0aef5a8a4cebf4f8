"""Collects what the tools of one turn may have changed, and between which checkpoints."""

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gitcp.checkpoints import conversation
from gitcp.checkpoints.beside import Span, read
from gitcp.checkpoints.first_line import before_command
from gitcp.checkpoints.spoken_turns import prompt_in
from gitcp.checkpoints.tool_calls import Call, Calls, calls
from gitcp.clients import registry
from gitcp.clients.triggers import BEFORE_COMMAND, TURN_END, TURN_START
from gitcp.errors import GitcpError
from gitcp.format.layout import LogName
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

_EVER = float("inf")


class Trace(NamedTuple):
    """The paths that a turn's tools edited, with what they wrote, and when its other tools ran.

    Each of `ran` is a part of the timeline: after the checkpoint with one number, and until
    the one with another. Within it any file may have been changed.
    """

    edited: Mapping[bytes, frozenset[bytes]]
    ran: tuple[tuple[float, float], ...]

    def may_have_changed(self, path: bytes, after: int, until: int) -> bool:
        """Whether a file may have been changed by the turn between two checkpoints."""
        return path in self.edited or any(
            start < until and end > after for start, end in self.ran
        )


class _Point(NamedTuple):
    """A checkpoint of the turn, with what is new in its conversation since the one before."""

    number: int
    checkpoint: Checkpoint
    calls: Calls


class _Made(NamedTuple):
    call: Call
    at: int


def trace(store: Store, span: Span) -> Trace:
    """Returns the trace of a turn; where its conversation says too little, all is possible."""
    anything = Trace({}, ((span.after, _EVER),))
    if store.numbers.place != span.last.place:
        # Paths in it are those of another work tree.
        return anything
    with suppress(GitcpError):
        points = _points(store, span)
        if points is not None:
            return _traced(store, span, points)
    return anything


def _points(store: Store, span: Span) -> list[_Point] | None:
    """Returns the checkpoints in which the turn's own records arrived, the oldest first.

    None if they cannot be told from older ones.
    """
    entries = span.row.entries[::-1]
    first = read(store, entries[0])
    if first is None:
        return None
    before: Checkpoint | None = first
    if entries[0].trigger == TURN_START:
        entries = entries[1:]
    else:
        before = store.checkpoint(first.raw.parents[0]) if first.raw.parents else None
    points: list[_Point] = []
    for entry in entries:
        checkpoint = read(store, entry)
        found = _new_calls(before, checkpoint, first=not points) if checkpoint else None
        if checkpoint is None or found is None:
            return None
        points.append(_Point(entry.number, checkpoint, found))
        before = checkpoint
    return points


def _new_calls(
    before: Checkpoint | None, after: Checkpoint, *, first: bool
) -> Calls | None:
    """Returns the calls that a checkpoint has more than another; None if that is unknown.

    At the `first` checkpoint of a turn those before its prompt are left out.
    """
    held = after.manifest.conversation
    was = before.manifest.conversation if before is not None else None
    if held is None or (was is not None and was.source != held.source):
        return None
    name = LogName("conversation", held.source)
    now = logs.segments(after.log_tree, name, after.objects.tree)
    known: list[bytes] = []
    if before is not None and was is not None:
        known = logs.segments(before.log_tree, name, before.objects.tree)
    same = logs.in_common(known, now)
    messages = _messages(b"".join(map(after.objects.blob, now[same:])))
    replaced = _messages(b"".join(map(after.objects.blob, known[same:])))
    if messages is None or replaced is None:
        return None
    if known[same:]:
        # The client has rewritten the end of its file: what was there before is no news.
        found, old = calls(messages), {call.ident for call in calls(replaced).made}
        news = [call for call in found.made if call.ident not in old]
        return None if None in old else found._replace(made=news)
    asked = [at for at, one in enumerate(messages) if prompt_in(one)] if first else []
    if len(asked) > 1 and not known:
        # A conversation that was copied brings its older turns along.
        return None
    return calls(messages[asked[0] :] if asked else messages)


def _messages(raw: bytes) -> list[dict[str, Any]] | None:
    """Returns the messages in some records; None if a record repeats older ones."""
    for _, value in conversation.records(raw):
        patch = value.get("$set") if isinstance(value, dict) else None
        listed = patch.get("messages") if isinstance(patch, dict) else None
        for message in listed if isinstance(listed, list) else ():
            if isinstance(message, dict) and message.get("toolCalls"):
                return None
    # What a client notes for itself may repeat what was said and called before.
    return [one for one in conversation.messages(raw) if not conversation.is_noted(one)]


def _traced(store: Store, span: Span, points: list[_Point]) -> Trace:
    """Returns what the records of a turn say.

    Slot n lies before point n: between the number before it, or the turn's beginning, and
    its own.
    """
    bounds: list[float] = [span.after, *(point.number for point in points)]
    made: list[_Made] = []
    answered: dict[str, int] = {}
    failed: set[str] = set()
    for slot, point in enumerate(points, 1):
        found = point.calls
        made += [_Made(call, slot) for call in found.made]
        for ident in found.answered:
            answered.setdefault(ident, slot)
        failed |= found.failed
    places = _Places(store, points)
    edited: dict[bytes, frozenset[bytes]] = {}
    ran: list[tuple[float, float]] = []
    for one in made:
        call = one.call
        if call.paths:
            if call.ident in failed:
                continue
            known = [places.inside(path) for path in call.paths]
            if all(known):
                texts = frozenset(one.encode("utf-8", "replace") for one in call.texts)
                for path in itertools.chain(*known):
                    edited[path] = edited.get(path, frozenset()) | texts
                continue
        start = _start(one, made, answered, points)
        end = answered.get(call.ident or "", len(points) + 1)
        if call.ident is None:
            end = one.at
        until = bounds[end] if end < len(bounds) and not call.lasts else _EVER
        ran.append((bounds[start - 1], until))
    if span.last.trigger != TURN_END:
        # What it did since is in no checkpoint.
        ran.append((span.last.number, _EVER))
    return Trace(edited, tuple(ran))


def _start(
    one: _Made, made: list[_Made], answered: dict[str, int], points: list[_Point]
) -> int:
    """Returns the first slot in which a call may have run.

    A client may write a call down after it has begun, so that is the slot before the one it
    was found in. But if a checkpoint was made before just this command, it ran after that.
    """
    start = max(1, one.at - 1)
    if one.call.command is None:
        return start
    note = before_command(one.call.command)
    for slot in (one.at, one.at - 1):
        if slot < 1:
            continue
        point = points[slot - 1].checkpoint
        if point.trigger != BEFORE_COMMAND or note not in (point.note or ""):
            continue
        alike = [
            other
            for other in made
            if other.at <= slot + 1
            and answered.get(other.call.ident or "", slot + 1) > slot
            and other.call.command is not None
            and before_command(other.call.command) == note
        ]
        if len(alike) == 1:
            return slot + 1
    return start


class _Places:
    """Turns the paths that tools were given into paths of the work tree."""

    def __init__(self, store: Store, points: list[_Point]) -> None:
        self._top = store.repository.top or Path("/")
        self._points = points
        self._began_in: str | None = None

    def inside(self, path: str) -> list[bytes]:
        """Returns what a path may be called in the work tree; nothing if it lies outside."""
        if not os.path.isabs(path):
            where = self._directory()
            if where is None:
                return []
            path = os.path.join(where, path)
        top = str(self._top)
        real = os.path.join(
            os.path.realpath(os.path.dirname(path)), os.path.basename(path)
        )
        return [
            os.fsencode(spelled[len(base) + 1 :])
            for spelled in dict.fromkeys((os.path.normpath(path), real))
            for base in dict.fromkeys((top, os.path.realpath(top)))
            if spelled.startswith(f"{base}/")
        ]

    def _directory(self) -> str | None:
        """Returns where the conversation took place."""
        if self._began_in is None and self._points:
            checkpoint = self._points[-1].checkpoint
            held = checkpoint.manifest.conversation
            if held is None or not registry.known(held.kind):
                return None
            beginning = next(_segments(checkpoint, held.source), b"")
            self._began_in = registry.client(held.kind).directory(beginning)
        return self._began_in


def _segments(checkpoint: Checkpoint, source: str) -> Iterator[bytes]:
    name = LogName("conversation", source)
    objects = checkpoint.objects
    oids = logs.segments(checkpoint.log_tree, name, objects.tree)
    return (objects.blob(oid) for oid in oids)
