"""The commit object of a checkpoint (docs/format.md, 3)."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from gitcp.format.layout import BranchKey
from gitcp.format.oid import SHA1
from gitcp.names import encode

WHO = b"gitcp <gitcp@localhost>"
_LATEST = 2**32 - 1
_TRAILER = re.compile(rb"Gitcp-([A-Z][a-z]+): ([!-~]+)")
_ID = re.compile(r"[0-9a-f]{12}")
_CONVERTED = b"Gitcp-Converted"


class Commit(NamedTuple):
    """The parts of a commit object that gitcp reads; oids are raw bytes."""

    tree: bytes
    parents: tuple[bytes, ...]
    committer: bytes
    message: bytes

    @property
    def epoch(self) -> int:
        """The committer's time in seconds, for display only; 0 if it is unreadable."""
        try:
            return int(self.committer.rsplit(b" ", 2)[1])
        except (IndexError, ValueError):
            return 0


class Trailers(NamedTuple):
    """The trailers of a checkpoint's commit; names are ref components."""

    id: str
    session: str
    branch: str
    seq: int
    trigger: str
    base: str | None = None
    label: str | None = None
    pruned: str | None = None
    # The commits that it was in repositories of another hash, oldest first.
    converted: tuple[str, ...] = ()

    @property
    def key(self) -> BranchKey:
        """The branch it was made on."""
        return BranchKey(self.session, self.branch)


def clamp(epoch: int) -> int:
    """Returns a time that fits into a commit."""
    return max(0, min(epoch, _LATEST))


def raw_commit(
    tree: bytes, parents: Iterable[bytes], epoch: int, message: bytes
) -> bytes:
    """Returns a raw commit object by gitcp, made at `epoch` (seconds, clamped)."""
    who = b"%b %d +0000" % (WHO, clamp(epoch))
    return join_commit(tree, parents, [b"author " + who, b"committer " + who], message)


def join_commit(
    tree: bytes, parents: Iterable[bytes], lines: Iterable[bytes], message: bytes
) -> bytes:
    """Returns a raw commit object; `lines` follow its parents: author, committer, ..."""
    head = [b"tree " + tree.hex().encode()]
    head += [b"parent " + parent.hex().encode() for parent in parents]
    return b"\n".join([*head, *lines]) + b"\n\n" + message


def encode_commit(
    tree: bytes,
    parent: bytes | None,
    epoch: int,
    trailers: Trailers,
    extra: tuple[tuple[str, str], ...] = (),
) -> bytes:
    """Returns the raw commit object. `epoch` is in seconds and clamped.

    `extra` are more trailers, names without `Gitcp-`, values printable ASCII.
    The message holds no text that a person wrote: `git show :/TEXT` searches the
    messages of all refs, and has to find the user's own commits, not checkpoints.
    """
    lines = [
        f"Gitcp-Checkpoint: {trailers.id}",
        f"Gitcp-Session: {trailers.session}",
        f"Gitcp-Branch: {trailers.branch}",
        f"Gitcp-Seq: {trailers.seq}",
        f"Gitcp-Trigger: {encode(trailers.trigger)}",
    ]
    if trailers.base is not None:
        lines.append(f"Gitcp-Base: {trailers.base}")
    if trailers.label is not None:
        lines.append(f"Gitcp-Label: {encode(trailers.label)}")
    lines += [f"Gitcp-{name}: {value}" for name, value in extra]
    message = f"gitcp {trailers.id}\n\n" + "\n".join(lines) + "\n"
    parents = () if parent is None else (parent,)
    return raw_commit(tree, parents, epoch, message.encode("ascii"))


def parse_commit(raw: bytes, size: int = SHA1.size) -> Commit:
    """Returns the parts of a raw commit object; ids are `size` bytes.

    Raises:
        ValueError: the bytes are not a commit.
    """
    head, _, message = raw.partition(b"\n\n")
    tree = b""
    committer = b""
    parents: list[bytes] = []
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree" and not tree:
            tree = bytes.fromhex(value.decode("ascii"))
        elif key == b"parent":
            parents.append(bytes.fromhex(value.decode("ascii")))
        elif key == b"committer":
            # Git ignores a `parent` line behind the committer.
            committer = value
            break
    if len(tree) != size:
        raise ValueError("no tree in commit")
    return Commit(tree, tuple(parents), committer, message)


def trailer(commit: Commit, name: str) -> str | None:
    """Returns the value of one trailer, or None."""
    return pairs(commit).get(name)


def relink(
    raw: bytes,
    *,
    tree: bytes,
    parent: bytes | None,
    message: bytes,
) -> bytes:
    """Returns a raw commit with another tree, parent and message, otherwise as it was."""
    head, _, _ = raw.partition(b"\n\n")
    kept = [
        line
        for line in head.split(b"\n")
        if not line.startswith((b"tree ", b"parent "))
    ]
    return join_commit(tree, () if parent is None else (parent,), kept, message)


def with_pruned(message: bytes, before: str) -> bytes:
    """Returns a checkpoint's message that says which one was before it and is pruned.

    That is said once: a later pruning of more leaves it as it is.
    """
    if b"\nGitcp-Pruned: " in message.rstrip(b"\n").rpartition(b"\n\n")[2]:
        return message
    return message.rstrip(b"\n") + f"\nGitcp-Pruned: {before}\n".encode()


def unpruned(message: bytes) -> bytes:
    """Returns a checkpoint's message as it was before anything was pruned."""
    body, _, last = message.rstrip(b"\n").rpartition(b"\n")
    return body + b"\n" if last.startswith(b"Gitcp-Pruned: ") else message


def with_purged(message: bytes, was: str) -> bytes:
    """Returns a checkpoint's message that says which commit it stands for."""
    return _with_line(message, b"Gitcp-Purged", was)


def with_converted(message: bytes, was: str) -> bytes:
    """Returns a message that says which commit it was in a repository of another hash.

    The user's commit that it was based on is not there any more, and not named.
    """
    head, gap, last = message.rstrip(b"\n").rpartition(b"\n\n")
    kept = [line for line in last.split(b"\n") if not line.startswith(b"Gitcp-Base: ")]
    return _with_line(head + gap + b"\n".join(kept) + b"\n", _CONVERTED, was)


def _with_line(message: bytes, name: bytes, was: str) -> bytes:
    """Returns a message with one more trailer; what a pruning said last stays last."""
    kept = unpruned(message)
    pruned = message[len(kept) :] if message != kept else b""
    return kept.rstrip(b"\n") + b"\n%b: %b\n" % (name, was.encode()) + pruned


def purged(commit: Commit) -> frozenset[str]:
    """Returns the commits that a checkpoint stands for since they were purged."""
    return frozenset(_ids(commit, b"Gitcp-Purged"))


def converted(commit: Commit) -> tuple[str, ...]:
    """Returns the commits that one was in repositories of another hash, oldest first."""
    return tuple(_ids(commit, _CONVERTED))


def _ids(commit: Commit, name: bytes) -> Iterator[str]:
    last = commit.message.rstrip(b"\n").rpartition(b"\n\n")[2]
    start = name + b": "
    for line in last.split(b"\n"):
        if line.startswith(start):
            yield line.removeprefix(start).decode("ascii", "replace")


def pairs(commit: Commit) -> dict[str, str]:
    """Returns the trailers of gitcp in a message, by their names without `Gitcp-`."""
    last = commit.message.rstrip(b"\n").rpartition(b"\n\n")[2]
    return {
        match[1].decode(): match[2].decode()
        for match in map(_TRAILER.fullmatch, last.split(b"\n"))
        if match
    }


def trailers_of(commit: Commit) -> Trailers | None:
    """Returns the trailers of a checkpoint, or None for any other commit."""
    if not commit.committer.startswith(WHO + b" "):
        return None
    trailers = pairs(commit)
    if "Encrypted" in trailers:
        # It only stands for one, and cannot be read as one (docs/format.md, 19).
        return None
    try:
        ident, seq = trailers["Checkpoint"], int(trailers["Seq"])
        if not _ID.fullmatch(ident) or seq < 1:
            return None
        return Trailers(
            id=ident,
            session=trailers["Session"],
            branch=trailers["Branch"],
            seq=seq,
            trigger=trailers.get("Trigger", ""),
            base=trailers.get("Base"),
            label=trailers.get("Label"),
            pruned=trailers.get("Pruned"),
            converted=converted(commit) if "Converted" in trailers else (),
        )
    except (KeyError, ValueError):
        return None
