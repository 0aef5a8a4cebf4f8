"""Lines of `gitcp-numbers`: which number a checkpoint has (docs/format.md, 22)."""

import re
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gitcp.format.layout import BranchKey
from gitcp.format.oid import SHA1, SHA256

# Where a checkpoint was made: in the main work tree, or not here, or in the folder of the
# main work tree before it had a repository. Any other place is the encoded name of a linked
# work tree, which none of these can be.
MAIN_TREE = "."
ELSEWHERE = "-"
BEFORE_GIT = "~"

_COMMIT = f"(?:{SHA1.pattern}|{SHA256.pattern})"

_ASSIGNED = re.compile(
    rf"\+ ([1-9]\d{{0,14}}) ([0-9a-f]{{12}}) ({_COMMIT}) ([!-.0-~]+)/([!-.0-~]+)"
    r" ([!-~]+) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z) ([!-~]*)"
)
_REWRITTEN = rb"\n(= (\d+) ([0-9a-f]{40,64}) [0-9a-f]{8})(?=\n)"
_NAMED = rb"(?m)^[+=] [0-9]+ (?:[0-9a-f]{12} )?(%b) .*$" % _COMMIT.encode("ascii")
# A line that assigns has so many words. Split behind its commit it has five parts; one that
# moves has four.
_WORDS = 9
_ASSIGNS, _MOVES = 5, 4
# Sets of characters would take four times as long.
_OUTLINE = r"\n\+ ([^ ]+) .{12} [^ ]+ ([^ ]+) ([^ ]+) ([^ ]+) ([^ ]+) "
_MOVED = rf"= ([1-9]\d{{0,14}}) ({_COMMIT})"
_GONE = r"- ([1-9]\d{0,14}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)"


class Assigned(NamedTuple):
    """A number, and the checkpoint that has it for ever.

    `commit` is the checkpoint's commit when this was written, `place` where it was made,
    `created` its time, `trigger` why it was made, as a ref component.
    """

    number: int
    id: str
    commit: str
    key: BranchKey
    place: str
    created: str
    trigger: str


class Moved(NamedTuple):
    """The checkpoint of a number has another commit now: it was rewritten."""

    number: int
    commit: str


class Gone(NamedTuple):
    """The checkpoint of a number was pruned at a time."""

    number: int
    at: str


NumberLine = Assigned | Moved | Gone
# Of a line that assigns: the number, `SESSION/BRANCH`, the place, the time, the trigger.
Outline = tuple[str, str, str, str, str]


class Fates(NamedTuple):
    """The numbers whose checkpoint was pruned; and the commit of each that was rewritten."""

    gone: set[int]
    moved: dict[int, str]


def age(entry: Assigned) -> tuple[bool, int]:
    """Returns what entries of one work tree are sorted by, the oldest first.

    What was made before there was a repository may have got its number later.
    """
    return entry.place != BEFORE_GIT, entry.number


def places(own: str) -> tuple[str, ...]:
    """Returns the places of what was made in a work tree, its own the first."""
    return (own, BEFORE_GIT) if own == MAIN_TREE else (own,)


def encode_line(line: NumberLine) -> bytes:
    """Returns a line with its checksum, and the newline."""
    if isinstance(line, Assigned):
        session, branch = line.key
        text = (
            f"+ {line.number} {line.id} {line.commit} {session}/{branch}"
            f" {line.place} {line.created} {line.trigger}"
        )
    elif isinstance(line, Moved):
        text = f"= {line.number} {line.commit}"
    else:
        text = f"- {line.number} {line.at}"
    raw = text.encode("ascii")
    return b"%b %08x\n" % (raw, zlib.crc32(raw))


def is_whole(raw: bytes) -> bool:
    """Whether a line without its newline is as it was written."""
    content, _, checksum = raw.rpartition(b" ")
    return b"%08x" % zlib.crc32(content) == checksum


def decode_line(raw: bytes) -> NumberLine | None:
    """Returns what a line without its newline says; None if it is damaged."""
    if not is_whole(raw):
        return None
    try:
        text = raw.rpartition(b" ")[0].decode("ascii")
    except UnicodeDecodeError:
        return None
    if match := _ASSIGNED.fullmatch(text):
        number, ident, commit, session, branch, place, created, trigger = match.groups()
        key = BranchKey(session, branch)
        return Assigned(int(number), ident, commit, key, place, created, trigger)
    if match := re.fullmatch(_MOVED, text):
        return Moved(int(match[1]), match[2])
    if match := re.fullmatch(_GONE, text):
        return Gone(int(match[1]), match[2])
    return None


def decode_assigned(raw: bytes) -> Iterator[Assigned]:
    """Yields what whole lines assign, in their order; others are left out."""
    make = Assigned._make
    # Lines differ little in these words, and matching all of each takes twice the time.
    keys: dict[tuple[str, str, str], BranchKey] = {}
    for line in raw.split(b"\n"):
        words = line.decode("latin-1").split(" ")
        if len(words) != _WORDS or not is_whole(line):
            continue
        _, number, ident, commit, name, place, created, trigger, _ = words
        key = keys.get((name, place, trigger))
        if key is None or not number.isdecimal():
            read = decode_line(line)
            if not isinstance(read, Assigned):
                continue
            key = keys[name, place, trigger] = read.key
        yield make((int(number), ident, commit, key, place, created, trigger))


def outlines(raw: bytes) -> list[Outline]:
    """Returns what lines assign, newest first, in a tenth of the time; none is checked.

    It is good enough to count by: a damaged line may be among them. `raw` begins with a
    newline.
    """
    found: list[Outline] = re.findall(_OUTLINE, raw.decode("latin-1"))
    found.reverse()
    return found


def fates(raw: bytes) -> Fates:
    """Returns which numbers' checkpoints were pruned or rewritten; see `outlines`."""
    gone, moved = set(), {}
    # Mostly nothing was, and to look for two letters takes no time.
    if b"\n- " in raw:
        gone = {int(number) for number in re.findall(rb"\n- (\d+) ", raw)}
    if b"\n= " in raw:
        moved = {
            int(number): to.decode()
            for line, number, to in re.findall(_REWRITTEN, raw)
            if is_whole(line)
        }
    return Fates(gone, moved)


def unnamed(raw: bytes, commits: Iterable[str]) -> set[str]:
    """Returns which commits no whole line names."""
    lines: dict[bytes, bytes] = {}
    for line in raw.split(b"\n"):
        words = line.split(b" ", _ASSIGNS - 1)
        if len(words) >= _MOVES:
            lines[words[3 if len(words) == _ASSIGNS else 2]] = line
    left = {commit.encode("ascii") for commit in commits}
    # Most often each has a line, which is whole; this look takes half the time.
    left = {one for one in left if one not in lines or not is_whole(lines[one])}
    if not left:
        return set()
    for match in re.finditer(_NAMED, raw):
        if match[1] in left and is_whole(match[0]):
            left.discard(match[1])
    return {commit.decode("ascii") for commit in left}
