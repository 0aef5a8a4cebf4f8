"""Lists candidates for shell completion: checkpoints, sessions, paths."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from gitcp.checkpoints import numbered
from gitcp.checkpoints.branch_index import listed
from gitcp.checkpoints.own_notes import note_of, note_of_tip
from gitcp.errors import CorruptError, FormatTooNewError, GitcpError
from gitcp.format.tree import DIRECTORY
from gitcp.names import decode
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

# As many as a screen holds; a user who types a digit sees others.
_SHOWN = 30
# Labels are looked for among so many of the newest.
_LOOKED_AT = 1000


class Candidate(NamedTuple):
    """A word that completes the input, and its meaning, on one line."""

    word: str
    about: str = ""


def checkpoints(workspace: Workspace, beginning: str) -> Iterator[Candidate]:
    """Yields selectors that begin like a text: numbers, ids, labels, and of a branch."""
    if ":" in beginning:
        yield from _on_branch(workspace, beginning)
        return
    numbered.with_numbers(workspace)
    shown = 0
    labels: list[Candidate] = []
    numbers = workspace.store.numbers
    for assigned in islice(numbers.newest_first(), _LOOKED_AT):
        number = str(assigned.number)
        wanted = number.startswith(beginning) and shown < _SHOWN
        by_id = len(beginning) > 1 and assigned.id.startswith(beginning)
        if numbers.gone(assigned.number) is not None:
            continue
        with suppress(CorruptError, FormatTooNewError):
            checkpoint = workspace.store.checkpoint(assigned.commit)
            if checkpoint is None:
                continue
            if wanted:
                shown += 1
                yield Candidate(number, _about(checkpoint))
            elif by_id:
                yield Candidate(assigned.id, _about(checkpoint))
            label = decode(checkpoint.label_component or "")
            if label and label.startswith(beginning):
                labels.append(Candidate(label, _about(checkpoint)))
    yield from (one for one in [Candidate("last", "the newest checkpoint"), *labels])
    if beginning and not beginning.isdigit():
        yield from (
            Candidate(f"{one.word}:", one.about)
            for one in sessions(workspace, beginning)
        )


def sessions(workspace: Workspace, beginning: str) -> Iterator[Candidate]:
    """Yields sessions that begin like a text, and branches; the newest first."""
    branches = listed(workspace.store, unreadable=lambda _: None)
    for one in sorted(branches, key=lambda each: each.created, reverse=True):
        name = one.session if one.branch == "main" else f"{one.session}/{one.branch}"
        about = note_of_tip(workspace.store, one)
        if name.startswith(beginning):
            yield Candidate(name, about)
        elif f"{one.session}/{one.branch}".startswith(beginning):
            yield Candidate(f"{one.session}/{one.branch}", about)


def names_in(checkpoint: Checkpoint, directory: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yields the names in a directory of a checkpoint, and whether each is one itself."""
    root = checkpoint.files_tree
    if directory:
        entry = checkpoint.entry(directory)
        root = entry.oid if entry is not None and entry.mode == DIRECTORY else None
    if root is not None:
        for name, entry in checkpoint.objects.tree(root).items():
            yield name, entry.mode == DIRECTORY


def _on_branch(workspace: Workspace, beginning: str) -> Iterator[Candidate]:
    where, _, what = beginning.rpartition(":")
    session, _, branch = where.partition("/")
    with suppress(GitcpError):
        tip = workspace.store.tip(session, branch or "main")
        found = workspace.store.line(tip) if tip is not None else ()
        fitting = (one for one in found if str(one.seq).startswith(what))
        for checkpoint in islice(fitting, _SHOWN):
            yield Candidate(f"{where}:{checkpoint.seq}", _about(checkpoint))
    yield Candidate(f"{where}:last", "the newest checkpoint")


def _about(checkpoint: Checkpoint) -> str:
    note = note_of(checkpoint).strip().partition("\n")[0]
    return note or checkpoint.trigger
