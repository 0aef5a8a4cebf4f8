"""A draft: the checkpoint that an operation asks the store to append."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from gitcp.format.checkpoint import Skipped
from gitcp.format.log import Decision, Rewrite
from gitcp.store.checkpoint import Checkpoint

FORK = "fork"


class FilesState(NamedTuple):
    """The files of a draft: tree, empty directories, paths that were not captured.

    `lists` is the tree of the lists of chunked files. If `captured` is false, no files
    were read: the checkpoint holds logs only.
    """

    tree: bytes | None
    empty: frozenset[bytes] = frozenset()
    skipped: tuple[Skipped, ...] = ()
    captured: bool = True
    lists: bytes | None = None


def same_files(checkpoint: Checkpoint) -> FilesState:
    """Returns the files of a checkpoint for one that follows it."""
    return FilesState(
        checkpoint.files_oid,
        checkpoint.empty_dirs,
        tuple(checkpoint.skipped()),
        checkpoint.holds_files,
        checkpoint.chunk_lists,
    )


class GrownSource(NamedTuple):
    """The state of a source when records were added to it: its size and digest.

    If the tip holds something else by now, `reread` returns the whole source.
    """

    size: int
    digest: str
    reread: Callable[[], bytes]


class NewRecords(NamedTuple):
    """Records of a conversation to store: the `whole` source, or only new ones.

    `data` is lines of JSON; `kind` is `messages` or an agent's name. A source `beside`
    the conversation, such as a subagent's transcript, is stored but not named as the
    checkpoint's conversation.
    """

    data: bytes
    whole: bool
    kind: str = "messages"
    source: str = "main"
    agent_session: str | None = None
    beside: bool = False
    grown: GrownSource | None = None


class Draft(NamedTuple):
    """A checkpoint that is not made yet; its branch is named when it is appended.

    Without `files` those of the tip stay; if there is no tip it holds none.
    `logs_from` takes conversation, decisions, steps and position from another
    checkpoint instead of the tip; `fork_of` starts a new branch there. With `quiet`, new
    records or steps alone are not a reason for a checkpoint. `files_from` is the
    checkpoint whose files were copied without ever being in the work tree. A draft of
    what happened `elsewhere`, before gitcp was installed, does not record the present
    HEAD, and does not count as made in the work tree.
    """

    trigger: str = "manual"
    files: FilesState | None = None
    note: str | None = None
    label: str | None = None
    records: tuple[NewRecords, ...] = ()
    decisions: tuple[Decision, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    position: msgspec.Raw | None = None
    metadata: msgspec.Raw | None = None
    allow_empty: bool = False
    quiet: bool = False
    logs_from: Checkpoint | None = None
    restored_from: str | None = None
    replaced: str | None = None
    fork_of: Checkpoint | None = None
    files_from: Checkpoint | None = None
    id: str | None = None
    bases: tuple[bytes, ...] = ()
    elsewhere: bool = False


def fork_draft(start: Checkpoint) -> Draft:
    """Returns the draft of the first checkpoint of a branch that begins at another."""
    return Draft(
        trigger=FORK,
        files=same_files(start),
        note=fork_note(start),
        logs_from=start,
        allow_empty=True,
        fork_of=start,
        files_from=start,
        bases=(start.raw.tree,),
    )


def fork_note(start: Checkpoint) -> str:
    """Returns the note of the first checkpoint of a fork."""
    return f"forked from {start.session}/{start.branch}:{start.seq}"


class Saved(NamedTuple):
    """The result of an append; `rewritten` counts segments that a rewrite replaced."""

    checkpoint: Checkpoint
    created: bool
    rewritten: int = 0
