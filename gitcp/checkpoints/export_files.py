"""Writes a checkpoint's files into another directory (`restore --to`)."""

import os
from collections.abc import Sequence
from pathlib import Path

from gitcp.checkpoints.restore_plan import side
from gitcp.checkpoints.target_objects import bring_objects, check_objects
from gitcp.errors import (
    CorruptError,
    NotFoundError,
    PartialError,
    UnsafePathError,
    UsageError,
    WouldOverwriteError,
)
from gitcp.format.checkpoint import show_path
from gitcp.store.checkpoint import Checkpoint
from gitcp.trust.withheld import Bounds, withheld_from
from gitcp.worktree import apply, bulk, plan
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, Left, Side

_SHOWN = 5


def made(base: str, directory: str) -> Root:
    """Opens the directory at a path below `base`, and makes it if there is none.

    Raises:
        UsageError: the directory cannot be made or opened.
    """
    where = Path(os.path.join(base, directory))
    try:
        where.mkdir(parents=True, exist_ok=True)
        return Root(where)
    except OSError as exc:
        raise UsageError(
            f"{directory} cannot be used: {exc.strerror}", hint="name a new directory"
        ) from exc


def write_to(
    target: Checkpoint,
    directory: Root,
    paths: Sequence[bytes] = (),
    *,
    bounds: Bounds = Bounds(),  # noqa: B008  a value
    trust: bool = False,
) -> FilePlan:
    """Writes a checkpoint's files into an empty directory; see `plan_whole`.

    Raises:
        UnsafePathError: the checkpoint names a path that must not be written.
        WouldOverwriteError: the directory is not empty.
        NotFoundError: a path is not in the checkpoint.
        PartialError: some paths could not be written.
    """
    there = sorted(os.listdir(directory.fd))
    if there:
        raise WouldOverwriteError(
            "the directory is not empty",
            paths=there[:_SHOWN],
            hint="name an empty directory, or a new one",
        )
    steps = plan_whole(target, paths, bounds=bounds, trust=trust, check=False)
    try:
        left = write_whole(directory, target, steps)
    except CorruptError:
        take_back(directory, target, steps)
        raise
    refuse_left(left)
    return steps


def plan_whole(
    target: Checkpoint,
    paths: Sequence[bytes] = (),
    *,
    bounds: Bounds = Bounds(),  # noqa: B008  a value
    trust: bool = False,
    check: bool = True,
) -> FilePlan:
    """Returns the steps that write a checkpoint's files into an empty directory.

    What a checkpoint made elsewhere may not bring without asking is left out, unless
    `trust` is given; `bounds` is what the user has already. Without `check`, files that are
    written in bulk are read only once, when they are written; if one is damaged, the caller
    has to remove what was written.

    Raises:
        CorruptError: the checkpoint is damaged.
        UnsafePathError: the checkpoint names a path that must not be written.
        NotFoundError: a path is not in it.
    """
    for path in paths:
        if target.entry(path) is None and path not in target.empty_dirs:
            raise NotFoundError(
                f"{show_path(path)} is not in checkpoint {target.id}",
                hint=f"`gitcp files {target.number or target.id}` lists what it holds",
            )
    withhold = not trust and target.origin.files is not None
    try:
        steps = plan.make(
            Side(None),
            side(target),
            target.objects.files,
            selects=plan.selection(paths),
            withheld=withheld_from(target.objects, bounds) if withhold else None,
        )
    except ValueError as exc:
        raise UnsafePathError(
            f"checkpoint {target.id} must not be restored: {exc}",
            hint="nothing was written",
        ) from exc
    if check or not bulk.is_many(steps.steps):
        check_objects(target, steps)
    else:
        bring_objects(target, steps)
    return steps


def write_whole(directory: Root, target: Checkpoint, steps: FilePlan) -> list[Left]:
    """Carries out `plan_whole`; returns what could not be written.

    Raises:
        CorruptError: the checkpoint is damaged; some of it may have been written.
    """
    objects = target.objects
    try:
        return apply.apply(
            directory, steps, objects.content, token=target.id, streams=objects.contents
        )
    except CorruptError as exc:
        raise CorruptError(
            f"checkpoint {target.id} is damaged: {exc.message}",
            hint="nothing was written; `gitcp verify` shows what else is affected",
        ) from exc


def take_back(directory: Root, target: Checkpoint, steps: FilePlan) -> None:
    """Removes what `write_whole` has written so far."""
    back, stream = steps.reversed(), target.objects.content
    apply.apply(directory, back, stream, token=target.id, tolerant=True)


def refuse_left(left: Sequence[Left]) -> None:
    """Raises if some paths could not be written.

    Raises:
        PartialError: some paths could not be written.
    """
    if left:
        raise PartialError(
            f"{len(left)} paths could not be written",
            left=[f"{show_path(item.path)}: {item.reason}" for item in left],
            hint="another process writes there; choose another directory",
        )
