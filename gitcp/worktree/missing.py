"""Finds the missing directories that a plan creates with everything below them.

Nothing can be in the way there, so git can write them under a temporary name.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gitcp.format.tree import Entry
from gitcp.worktree import bulk, replace, spelling
from gitcp.worktree.plan import MAKE_DIR, WRITE, FilePlan, FileStep

# The expected names of a directory: an entry for a file, None for a directory.
Names = dict[bytes, Entry | None]


class Missing(NamedTuple):
    """A missing directory: its path, and its steps, parents first.

    Steps for links and chunked files below it are left out.
    """

    path: bytes
    directories: tuple[FileStep, ...]
    files: tuple[FileStep, ...]

    def temporary(self, token: str) -> bytes:
        """Returns the temporary path at which it is written."""
        above, slash, name = self.path.rpartition(b"/")
        return above + slash + replace.temporary_name(token, name)

    def bare(self) -> set[bytes]:
        """Returns the directories that have no file below them."""
        holding = {b"", self.path}
        for step in self.files:
            above = step.path.rpartition(b"/")[0]
            while above not in holding:
                holding.add(above)
                above = above.rpartition(b"/")[0]
        return {step.path for step in self.directories} - holding

    def names(self) -> dict[bytes, Names]:
        """Returns the expected names of each directory, by its final path."""
        found: dict[bytes, Names] = {step.path: {} for step in self.directories}
        for step in self.directories[1:]:
            above, _, name = step.path.rpartition(b"/")
            found[above][name] = None
        for step in self.files:
            above, _, name = step.path.rpartition(b"/")
            found[above][name] = step.after
        return found


def missing_directories(
    plan: FilePlan, chunked: Callable[[bytes], bool]
) -> tuple[Missing, ...]:
    """Returns the missing directories of a plan that hold many files.

    Directories with the same parent are counted together. `chunked` says whether git
    has a content in chunks.
    """
    made = [step for step in plan.steps if step.action == MAKE_DIR]
    if not made or not bulk.is_many(plan.steps):
        return ()
    paths = {step.path for step in made}
    # An existing path has to be removed first.
    taken = {step.path for step in plan.steps if step.before is not None}
    tops: dict[bytes, bytes] = {}
    directories: dict[bytes, list[FileStep]] = defaultdict(list)
    files: dict[bytes, list[FileStep]] = defaultdict(list)
    for step in sorted(made, key=lambda step: step.path):
        above = step.path.rpartition(b"/")[0]
        top = tops.get(above) if above in paths else step.path
        if top is not None and step.path not in taken:
            tops[step.path] = top
            directories[top].append(step)
    for step in plan.steps:
        if step.action == WRITE and step.before is None and step.after is not None:
            top = tops.get(step.path.rpartition(b"/")[0])
            if top is not None and not chunked(step.after.oid):
                files[top].append(step)
    found = [Missing(top, tuple(directories[top]), tuple(files[top])) for top in files]
    if spelling.twins(step.path for step in plan.steps):
        return ()
    return _many_together(found)


def _many_together(found: Iterable[Missing]) -> tuple[Missing, ...]:
    beside: dict[bytes, list[Missing]] = defaultdict(list)
    for one in found:
        beside[one.path.rpartition(b"/")[0]].append(one)
    return tuple(
        one
        for group in beside.values()
        if sum(len(one.files) for one in group) >= bulk.AT_LEAST
        for one in group
    )


def paths_of(missing: Iterable[Missing]) -> set[bytes]:
    """Returns the paths of all steps of some missing directories."""
    return {step.path for one in missing for step in (*one.directories, *one.files)}
