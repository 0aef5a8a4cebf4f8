"""Finds the checkpoints that led to a commit, through amends, rebases and squashes.

A checkpoint names the commit it was made at. A commit that was amended, rebased or
squashed is another one; which, is told by the log of rewritten commits, that every
session carries, and by what git writes into messages.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from gitcp.checkpoints.diff import new_entries
from gitcp.errors import CorruptError, GitFailedError
from gitcp.format import layout, tree
from gitcp.format.log import Decision, Rewrite, decode_rewrites
from gitcp.format.oid import PATTERN
from gitcp.format.tree import Change
from gitcp.names import encode
from gitcp.project import pending_rewrites
from gitcp.project.workspace import Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# Triggers of the checkpoints that are made because of a commit.
MADE_AT = frozenset({"commit", "merge"})
_OID = re.compile(PATTERN)
_TRAILER = re.compile(rb"^Gitcp-Checkpoint: ([0-9a-f]{12})$", re.MULTILINE)
# What `git merge --squash` and `git cherry-pick -x` put into a message.
_FROM = re.compile(
    rf"^(?:commit ({PATTERN})|\(cherry picked from commit ({PATTERN})\))$".encode(),
    re.MULTILINE,
)
_FARTHEST = 1_000


class Part(NamedTuple):
    """The checkpoints of one branch that led to a commit, oldest first.

    `before` is the last one that belongs to an earlier commit, or None.
    """

    before: Checkpoint | None
    checkpoints: tuple[Checkpoint, ...]

    @property
    def end(self) -> Checkpoint:
        """The checkpoint made at the commit."""
        return self.checkpoints[-1]


class CommitStory(NamedTuple):
    """All that led to a commit, oldest first; the last part's end stands for it.

    `replaces` are the commits that this one was made of. Where not `because`, no hook
    made a checkpoint at it: these are the first ones that were made on it later.
    """

    commit: str
    parts: tuple[Part, ...]
    replaces: tuple[str, ...]
    because: bool = True

    @property
    def chosen(self) -> Checkpoint:
        """The checkpoint with the whole conversation."""
        return self.parts[-1].end


def resolve(workspace: Workspace, text: str) -> str | None:
    """Returns the commit that git takes a text for, or None."""
    if text.startswith("-") or not text.isprintable():
        return None
    with suppress(GitFailedError, ValueError):
        output = workspace.repository.git(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}"
        )
        oid = output.decode("ascii", "replace").strip()
        return oid if _OID.fullmatch(oid) else None
    return None


def story_of(workspace: Workspace, commit: str) -> CommitStory | None:
    """Returns what is behind a commit, or None if there is nothing.

    Raises:
        CorruptError: a checkpoint on the way is damaged.
    """
    store = workspace.store
    tips = list(_tips(workspace))
    family = _family(workspace, commit, tips)
    named = set(_named(store, commit))
    parts: dict[bytes, Part] = {}
    for tip in tips:
        line = list(store.line(tip))
        line.reverse()
        firsts = {checkpoint.oid for checkpoint in _firsts(line)}
        for at, checkpoint in enumerate(line):
            trailers = checkpoint.trailers
            mine = checkpoint.oid in firsts and trailers.base in family
            if mine or trailers.id in named:
                own = {trailers.base, *family}
                parts.setdefault(checkpoint.oid, _part(line[: at + 1], own, firsts))
    because = [
        checkpoint for checkpoint in parts.values() if _is_because(checkpoint.end)
    ]
    # What was made because of it, before what happens to stand on it.
    ordered = sorted(
        because or parts.values(),
        key=lambda part: (
            part.end.trailers.base == commit,
            part.end.raw.epoch,
            part.end.seq,
        ),
    )
    if not ordered:
        return None
    if not because:
        # No line has a better claim than the one the work is on.
        current = {checkpoint.oid for checkpoint in store.line(tips[0])}
        ordered = [part for part in ordered if part.end.oid in current] or ordered
    replaces = tuple(sorted(family - {commit}))
    return CommitStory(commit, tuple(_apart(ordered)), replaces, bool(because))


def changed_by(parts: Iterable[Part]) -> list[Change]:
    """Returns what parts changed, each path once, by path."""
    changes: dict[bytes, Change] = {}
    for part in parts:
        end = part.end
        for change in tree.diff(files_before(part), end.files_tree, end.objects.tree):
            first = changes.get(change.path)
            changes[change.path] = change._replace(old=first.old) if first else change
    return [
        changes[path]
        for path in sorted(changes)
        if changes[path].old != changes[path].new
    ]


def files_before(part: Part) -> bytes | None:
    """Returns the tree of the files as a part found them; None for no files."""
    return part.before.files_tree if part.before else _before_base(part.end)


def _before_base(end: Checkpoint) -> bytes | None:
    """Returns the files before the commit that a session's first checkpoint came with."""
    with suppress(CorruptError):
        if end.trailers.base is not None and _is_because(end):
            base = end.objects.commit(bytes.fromhex(end.trailers.base))
            for parent in base.parents[:1]:
                return end.objects.commit(parent).tree
    return None


def decided_in(parts: Iterable[Part]) -> list[Decision]:
    """Returns the entries that parts added to their decision logs."""
    entries = [entry for part in parts for entry in new_entries(part.before, part.end)]
    return list(dict.fromkeys(entries))


def _is_because(checkpoint: Checkpoint) -> bool:
    return checkpoint.trailers.trigger in MADE_AT


def _apart(parts: list[Part]) -> Iterator[Part]:
    """Yields parts without what is in a later one as well."""
    for at, part in enumerate(parts):
        later = {
            checkpoint.oid
            for other in parts[at + 1 :]
            for checkpoint in other.checkpoints
        }
        if part.end.oid not in later:
            yield part


def _tips(workspace: Workspace) -> Iterator[Checkpoint]:
    """Yields the newest checkpoint of each branch; of the current one at first."""
    store = workspace.store
    current = workspace.current()
    mine = (encode(current.session), encode(current.branch))
    refs = store.refs()
    for key in sorted(refs, key=lambda each: each != mine):
        with suppress(CorruptError):
            tip = store.checkpoint(refs[key])
            if tip is not None:
                yield tip


def _firsts(line: list[Checkpoint]) -> Iterator[Checkpoint]:
    """Yields, of a line that begins with its oldest, those that came with a new base.

    And those that a hook made because of a commit.
    """
    last: str | None = None
    for checkpoint in line:
        trailers = checkpoint.trailers
        if trailers.base != last or _is_because(checkpoint):
            yield checkpoint
        last = trailers.base


def _part(line: list[Checkpoint], own: set[str | None], firsts: set[bytes]) -> Part:
    """Returns what led to the last of a line.

    It began where another commit was made: at the first checkpoint on another base.
    """
    taken: list[Checkpoint] = []
    for checkpoint in reversed(line):
        if taken and checkpoint.trailers.base not in own and checkpoint.oid in firsts:
            return Part(checkpoint, tuple(taken[::-1]))
        taken.append(checkpoint)
    return Part(None, tuple(taken[::-1]))


def _family(workspace: Workspace, commit: str, tips: Iterable[Checkpoint]) -> set[str]:
    """Returns a commit and all the commits known to be rewritten into it."""
    origins: dict[str, list[str]] = {}
    for entry in _rewrites(workspace, tips):
        origins.setdefault(entry.new, []).append(entry.old)
    family = {commit}
    waiting = [commit]
    while waiting and len(family) < _FARTHEST:
        newer = waiting.pop()
        older = [*origins.get(newer, ()), *_told(workspace.store, newer)]
        for oid in older:
            if oid not in family:
                family.add(oid)
                waiting.append(oid)
    return family


def _rewrites(workspace: Workspace, tips: Iterable[Checkpoint]) -> Iterator[Rewrite]:
    """Yields what the sessions know of rewritten commits; theirs share their logs."""
    yield from pending_rewrites.waiting(workspace.directory)
    read = workspace.repository.objects.tree
    seen: set[bytes] = set()
    for tip in tips:
        entry = tree.lookup(tip.log_tree, layout.REWRITES.log.encode(), read)
        if entry is not None and entry.oid not in seen:
            seen.add(entry.oid)
            with suppress(CorruptError):
                yield from decode_rewrites(
                    logs.content(tip.log_tree, layout.REWRITES, tip.objects)
                )


def _message(store: Store, commit: str) -> bytes:
    with suppress(CorruptError):
        return store.repository.objects.commit(bytes.fromhex(commit)).message
    # It may be another clone's, or gone.
    return b""


def _told(store: Store, commit: str) -> list[str]:
    """Returns the commits that a message says it was made of."""
    named = _FROM.findall(_message(store, commit))
    return [(squashed or picked).decode() for squashed, picked in named]


def _named(store: Store, commit: str) -> list[str]:
    """Returns the checkpoints that a message names in a trailer."""
    return [ident.decode() for ident in _TRAILER.findall(_message(store, commit))]
