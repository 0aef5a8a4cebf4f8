"""The steps from one tree to another, as pure data.

Nothing here touches the disk; `apply` carries a plan out, forwards or backwards.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import NamedTuple

from gitcp.format import tree as trees
from gitcp.format.safety import path_problem
from gitcp.format.tree import DIRECTORY, GITLINK, LINK, Entry, ReadTree

GIT_DIRECTORY = "part of a git directory"
WRITE, DELETE, CHMOD = "write", "delete", "chmod"
LINK_TO, MAKE_DIR, REMOVE_DIR = "link", "mkdir", "rmdir"


class FileStep(NamedTuple):
    """One path: its entry before and after the step, None for nothing."""

    action: str
    path: bytes
    before: Entry | None
    after: Entry | None


class Left(NamedTuple):
    """A path that a restore leaves as it is, and why."""

    path: bytes
    reason: str


class Side(NamedTuple):
    """The files of one state: the tree, and its empty directories."""

    tree: bytes | None
    empty: frozenset[bytes] = frozenset()


class FilePlan(NamedTuple):
    """The steps in a safe order, and the paths that are left alone."""

    steps: tuple[FileStep, ...]
    left: tuple[Left, ...]

    def reversed(self) -> "FilePlan":
        """Returns the plan that goes back."""
        back = [_step(step.path, step.after, step.before) for step in self.steps]
        return FilePlan(tuple(in_order(back)), self.left)


def only(plan: FilePlan, paths: Container[bytes]) -> FilePlan:
    """Returns the part of a plan that concerns some paths."""
    return FilePlan(tuple(step for step in plan.steps if step.path in paths), ())


Selects = Callable[[bytes], bool]
# Returns why a path must not change from one entry to another; None if it may.
Withheld = Callable[[bytes, Entry | None, Entry | None], str | None]


def everything(path: bytes) -> bool:
    """Selects every path."""
    del path
    return True


def selection(paths: Sequence[bytes]) -> Selects:
    """Returns a selector of the given paths and everything below them."""
    if not paths:
        return everything
    exact = {path.strip(b"/") for path in paths}

    def selects(path: bytes) -> bool:
        if path in exact or b"" in exact or b"." in exact:
            return True
        at = path.find(b"/")
        while at >= 0:
            if path[:at] in exact:
                return True
            at = path.find(b"/", at + 1)
        return False

    return selects


def make(
    present: Side,
    target: Side,
    read: ReadTree,
    *,
    selects: Selects = everything,
    sparse: Iterable[bytes] = (),
    own: frozenset[bytes] = frozenset(),
    withheld: Withheld | None = None,
) -> FilePlan:
    """Returns the steps from one state of the files to another.

    `sparse` are the paths that a sparse checkout leaves out, `own` the git directories
    of this repository: neither they nor anything below them changes.

    Raises:
        ValueError: the target names a path that must not be written; its text says
            which and why.
    """

    def is_own(path: bytes) -> bool:
        return bool(own) and (path in own or not own.isdisjoint(_above(path)))

    steps: list[FileStep] = []
    left: list[Left] = []
    outside = frozenset(sparse)
    touched, needed = set[bytes](), set[bytes]()
    for change in trees.diff(present.tree, target.tree, read):
        path, old, new = change
        if not selects(path):
            continue
        problem = path_problem(path) if new is not None else None
        if problem:
            raise ValueError(f"{path!a} {problem}")
        if path in outside:
            left.append(Left(path, "outside the sparse checkout"))
            continue
        if GITLINK in {_mode(old), _mode(new)}:
            left.append(Left(path, "nested-repository"))
            old, new = _unless_nested(old), _unless_nested(new)
        if old == new:
            continue
        held = _held(path, old, new, GIT_DIRECTORY if is_own(path) else withheld)
        if held is not None:
            left.append(Left(path, held))
            continue
        steps.append(_step(path, old, new))
        if new is None:
            _add_above(touched, path)
        elif old is None:
            _add_above(needed, path)
    steps += _directory_steps(
        present,
        target,
        read,
        lambda path: selects(path) and not is_own(path),
        touched=touched,
        needed=needed,
    )
    return FilePlan(tuple(in_order(steps)), tuple(left))


def _held(
    path: bytes, old: Entry | None, new: Entry | None, rule: Withheld | str | None
) -> str | None:
    """Returns why a change is left out: the reason of a rule, or the reason for all."""
    return rule(path, old, new) if callable(rule) else rule


def _mode(entry: Entry | None) -> int | None:
    return None if entry is None else entry.mode


def _unless_nested(entry: Entry | None) -> Entry | None:
    return None if _mode(entry) == GITLINK else entry


def _step(path: bytes, old: Entry | None, new: Entry | None) -> FileStep:
    if old is not None and old.mode == DIRECTORY:
        return FileStep(REMOVE_DIR, path, old, None)
    if new is not None and new.mode == DIRECTORY:
        return FileStep(MAKE_DIR, path, None, new)
    if new is None:
        return FileStep(DELETE, path, old, None)
    if new.mode == LINK:
        return FileStep(LINK_TO, path, old, new)
    if old is not None and old.oid == new.oid and old.mode != LINK:
        return FileStep(CHMOD, path, old, new)
    return FileStep(WRITE, path, old, new)


def removal(path: bytes, entry: Entry) -> FileStep:
    """Returns the step that removes what a path holds."""
    return _step(path, entry, None)


_A_DIRECTORY = Entry(DIRECTORY, b"")


def _directory_steps(
    present: Side,
    target: Side,
    read: ReadTree,
    selects: Selects,
    *,
    touched: set[bytes],
    needed: set[bytes],
) -> list[FileStep]:
    """Returns the directories to make and to remove.

    Directories that hold files get steps of their own, too, because the reversed plan
    has to remove them.
    """
    holding = {
        id(side): side.empty | {above for path in side.empty for above in _above(path)}
        for side in (present, target)
    }

    def has(side: Side, path: bytes) -> bool:
        if path in holding[id(side)]:
            return True
        entry = trees.lookup(side.tree, path, read)
        return entry is not None and entry.mode in {DIRECTORY, GITLINK}

    for path in target.empty - present.empty:
        if selects(path):
            problem = path_problem(path)
            if problem:
                raise ValueError(f"{path!a} {problem}")
            needed |= {path, *_above(path)}
    for path in present.empty - target.empty:
        if selects(path):
            touched |= {path, *_above(path)}
    steps = [
        _step(path, None, _A_DIRECTORY)
        for path in needed
        if has(target, path) and not has(present, path)
    ]
    removed = [
        _step(path, _A_DIRECTORY, None)
        for path in touched
        if selects(path) and not has(target, path) and has(present, path)
    ]
    return steps + removed


def _add_above(directories: set[bytes], path: bytes) -> None:
    """Adds the directories above a path, unless an earlier path in the same directory has."""
    if path.rpartition(b"/")[0] not in directories:
        directories.update(_above(path))


def _above(path: bytes) -> Iterable[bytes]:
    at = path.rfind(b"/")
    while at > 0:
        yield path[:at]
        at = path.rfind(b"/", 0, at)


# What comes first in any plan.
FIRST = frozenset({DELETE, REMOVE_DIR, CHMOD})
_ORDER = {DELETE: 0, REMOVE_DIR: 1, CHMOD: 2, MAKE_DIR: 3, LINK_TO: 4, WRITE: 4}


def in_order(steps: Iterable[FileStep]) -> list[FileStep]:
    """Returns steps in a safe order: removals deepest first, then from the top down."""
    down = {DELETE, REMOVE_DIR}
    removing = [step for step in steps if step.action in down]
    making = [step for step in steps if step.action not in down]
    removing.sort(key=lambda step: step.path, reverse=True)
    removing.sort(key=lambda step: _ORDER[step.action])
    making.sort(key=lambda step: (_ORDER[step.action], step.path))
    return removing + making
