"""Finds the checkpoint with its turn, or the story of a commit, for `gitcp show`."""

from typing import NamedTuple

from gitcp import Checkpoint
from gitcp.checkpoints import diff
from gitcp.checkpoints.commit_lookup import (
    CommitStory,
    Part,
    changed_by,
    decided_in,
    files_before,
)
from gitcp.checkpoints.diff import FilesDiff
from gitcp.checkpoints.turn_of import Turn, state_before, turn_of
from gitcp.cli.parted_lines import Together, together
from gitcp.format.log import Decision
from gitcp.format.tree import Change
from gitcp.project.workspace import Workspace
from gitcp.worktree.plan import selection


def parent_of(workspace: Workspace, checkpoint: Checkpoint) -> Checkpoint | None:
    """Returns the checkpoint before a checkpoint on its branch."""
    parents = checkpoint.raw.parents
    return workspace.store.checkpoint(parents[0]) if parents else None


class Shown(NamedTuple):
    """What to show: a checkpoint, with its turn or with the checkpoints behind a commit.

    `parts` are compared: those of the turn if the checkpoint ends one. `changes` are those
    of the checkpoint alone, or of the commit.
    """

    checkpoint: Checkpoint
    behind: CommitStory | None
    turn: Turn | None
    parts: tuple[Part, ...]
    paths: tuple[bytes, ...]
    together: Together = Together()

    @property
    def ends_turn(self) -> bool:
        """Whether the checkpoint is the end of its turn, and so represents the turn."""
        return self.turn is not None and self.turn.end.oid == self.checkpoint.oid

    def changes(self) -> tuple[Change, ...]:
        """Returns the changes to the requested paths."""
        chosen = selection(self.paths)
        return tuple(one for one in changed_by(self.parts) if chosen(one.path))

    def decisions(self, workspace: Workspace) -> list[Decision]:
        """Returns the decisions; another session's log does not count as the log before."""
        return decided_in(
            part
            if self.behind
            else Part(parent_of(workspace, part.checkpoints[0]), part.checkpoints)
            for part in self.parts
        )

    def compared(self) -> tuple[FilesDiff, ...]:
        """Returns the changes line by line, without those known to be another turn's."""
        paths = self.paths
        if self.together.parted is not None:
            left_out = self.together.left_out
            kept = [one.path for one in self.changes() if not left_out(one.path)]
            if not kept:
                return ()
            paths = tuple(kept)
        return tuple(
            diff.since(part.before, files_before(part), part.end, paths)
            for part in self.parts
        )


def whole_of(workspace: Workspace, checkpoint: Checkpoint) -> Shown:
    """Returns what to show for a checkpoint: its whole turn, if it ends one.

    Raises:
        CorruptError: a checkpoint of the turn is damaged.
    """
    turn = turn_of(workspace, checkpoint)
    at_once = together(workspace, turn)
    if turn and at_once.parted and at_once.parted.before:
        turn = turn._replace(before=at_once.parted.before)
    if turn is not None and turn.end.oid == checkpoint.oid:
        part = Part(turn.before, turn.checkpoints)
    else:
        before = state_before(workspace.store, checkpoint)
        before = before or parent_of(workspace, checkpoint)
        part = Part(before, (checkpoint,))
    return Shown(checkpoint, None, turn, (part,), (), at_once)
