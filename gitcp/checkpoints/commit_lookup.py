"""Finds the checkpoints that led to a commit, through amends, rebases and squashes.

A checkpoint names the commit it was made at. An amend, a rebase or a squash makes
another commit. Which one it made, gitcp reads from the log of rewritten commits, which
every session has, and from what git writes into commit messages.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

from gitcp.checkpoints.diff import new_entries
from gitcp.checkpoints.precedence import Precedence
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
    """All checkpoints that led to a commit, oldest first; the end of the last part represents it.

    `replaces` are the commits that this one was made of. `made` says when the last
    checkpoint was made: `at` the commit. If no hook made one there, it is the first
    made `after` it if that still has the commit's files, else the last `before` it.
    `chosen` is the checkpoint with the whole conversation, one's own if there is one that
    fits as well. `rival` is one's own that fits less well than a stranger's, who may claim
    to have made it at any commit.
    """

    commit: str
    parts: tuple[Part, ...]
    replaces: tuple[str, ...]
    made: Literal["at", "before", "after"]
    chosen: Checkpoint
    rival: Checkpoint | None = None


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
    """Returns the checkpoints that led to a commit, or None if there are none.

    Raises:
        CorruptError: a checkpoint on the way is damaged.
    """
    store = workspace.store
    tips = list(_tips(workspace))
    if not tips:
        return None
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
    look = _Look(store, commit, tips, family, named)
    story = look.story(list(parts.values()))
    if story is None or look.is_own(story.chosen):
        return story
    ours = look.story(
        [part for part in parts.values() if look.is_own(part.end)], look.is_own
    )
    if ours is None:
        return story
    if ours.made == story.made:
        return story._replace(chosen=ours.chosen)
    return story._replace(rival=ours.chosen)


class _Look:
    """Chooses among the parts that may have led to one commit."""

    def __init__(
        self,
        store: Store,
        commit: str,
        tips: list[Checkpoint],
        family: set[str],
        named: set[str],
    ) -> None:
        self._store = store
        self._commit = commit
        self._tips = tips
        self._family = family
        self._named = named
        self._rank = Precedence(store)

    def is_own(self, checkpoint: Checkpoint) -> bool:
        """Whether its files and its base are the user's own, or from whom the user trusts."""
        return self._rank.is_own(checkpoint) and not (
            checkpoint.origin.here and checkpoint.origin.files is not None
        )

    def story(
        self, parts: list[Part], fits: Callable[[Checkpoint], bool] = lambda _: True
    ) -> CommitStory | None:
        """Returns the story that parts tell, and of others only checkpoints that fit."""
        commit, replaces = self._commit, tuple(sorted(self._family - {self._commit}))
        made_at = [
            part
            for part in parts
            if _is_because(part.end) or part.end.trailers.id in self._named
        ]
        ordered = sorted(
            made_at or parts,
            key=lambda part: (
                part.end.trailers.base == commit,
                part.end.raw.epoch,
                part.end.seq,
            ),
        )
        if not made_at:
            # The branch that the work is on comes first.
            current = {each.oid for each in self._store.line(self._tips[0])}
            ordered = [part for part in ordered if part.end.oid in current] or ordered
            same = [part for part in ordered if _has_files(part.end, commit)]
            before = None if same else self._last_before(fits)
            if before is not None:
                return CommitStory(commit, (before,), replaces, "before", before.end)
            ordered = same or ordered
        if not ordered:
            return None
        made: Literal["at", "after"] = "at" if made_at else "after"
        chosen = ordered[-1].end
        return CommitStory(commit, tuple(_apart(ordered)), replaces, made, chosen)

    def _last_before(self, fits: Callable[[Checkpoint], bool]) -> Part | None:
        """Returns what was last made on the parent of a commit before the commit was, or None."""
        parents: dict[str, int] = {}
        for oid in self._family:
            # It may be another clone's, or gone.
            with suppress(CorruptError):
                made = self._store.repository.objects.commit(bytes.fromhex(oid))
                for parent in made.parents[:1]:
                    parents[parent.hex()] = max(
                        made.epoch, parents.get(parent.hex(), 0)
                    )
        found: list[Part] = []
        for tip in self._tips:
            line = list(self._store.line(tip))
            for at, checkpoint in enumerate(line):
                base = checkpoint.trailers.base
                if (
                    base in parents
                    and checkpoint.raw.epoch <= parents[base]
                    and fits(checkpoint)
                ):
                    oldest_first = line[at:][::-1]
                    firsts = {first.oid for first in _firsts(oldest_first)}
                    found.append(_part(oldest_first, {base, *self._family}, firsts))
                    break
        return max(
            found, key=lambda part: (part.end.raw.epoch, part.end.seq), default=None
        )


def _has_files(checkpoint: Checkpoint, commit: str) -> bool:
    """Whether a checkpoint has all the files of a commit as they are there."""
    objects = checkpoint.objects
    with suppress(CorruptError):
        committed = objects.commit(bytes.fromhex(commit)).tree
        changes = tree.diff(committed, checkpoint.files_tree, objects.tree)
        return all(change.old is None for change in changes)
    return False


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
    """Yields the parts whose end is not in a later part as well."""
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
    """Yields the checkpoints of a history that have a new base; `line` is oldest first.

    Also those that a hook made because of a commit.
    """
    last: str | None = None
    for checkpoint in line:
        trailers = checkpoint.trailers
        if trailers.base != last or _is_because(checkpoint):
            yield checkpoint
        last = trailers.base


def _part(line: list[Checkpoint], own: set[str | None], firsts: set[bytes]) -> Part:
    """Returns the part that led to the last checkpoint of a history.

    The part begins after another commit: after the first checkpoint on another base.
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
    """Yields the records of rewritten commits in all sessions; forks share them."""
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
    """Returns the commits from which a commit was made, according to its message."""
    named = _FROM.findall(_message(store, commit))
    return [(squashed or picked).decode() for squashed, picked in named]


def _named(store: Store, commit: str) -> list[str]:
    """Returns the checkpoints that a message names in a trailer."""
    return [ident.decode() for ident in _TRAILER.findall(_message(store, commit))]
