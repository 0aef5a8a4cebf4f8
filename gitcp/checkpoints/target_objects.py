"""Reads the objects that a restore would write: damage is found before the first write."""

import threading
from collections.abc import Iterable, Sequence
from functools import partial

from gitcp import progress
from gitcp.errors import CorruptError
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import GITLINK
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree import bulk
from gitcp.worktree.plan import FilePlan


def bring_objects(target: Checkpoint, steps: FilePlan) -> list[tuple[bytes, bytes]]:
    """Returns path and id of what would be written, and fetches what a remote has promised.

    Raises:
        TransferError: something is missing, and the remote that promised it is silent.
    """
    wanted = [
        (step.path, step.after.oid)
        for step in steps.steps
        if step.after is not None and step.after.mode not in {tree.DIRECTORY, GITLINK}
    ]
    target.objects.bring(oid for _, oid in wanted)
    return wanted


def check_objects(target: Checkpoint, steps: FilePlan) -> None:
    """Reads what would be written, so that damage is found before the first write.

    What a partial clone has left at its remote is fetched first.

    Raises:
        CorruptError: something is missing or damaged.
        TransferError: something is missing, and the remote that promised it is silent.
    """
    objects, wanted = target.objects, bring_objects(target, steps)
    parts = bulk.parts(wanted) if len(wanted) >= bulk.AT_LEAST else [wanted]
    stopped = threading.Event()
    report = progress.of("reading the checkpoint:")

    def read(part: Sequence[tuple[bytes, bytes]], share: int) -> None:
        oids = (oid for _, oid in part)
        many = share > 1 or len(part) >= bulk.AT_LEAST
        contents = objects.contents(oids) if many else map(objects.content, oids)
        for done, ((path, _), content) in enumerate(zip(part, contents, strict=True)):
            if stopped.is_set():
                return
            # One is enough to report: all have as much to do.
            if report is not None and part is parts[0]:
                report(done * share, len(wanted))
            _read_whole(target, path, content)

    tasks = [partial(read, part, len(parts)) for part in parts]
    bulk.at_once(tasks, stopped)


def _read_whole(target: Checkpoint, path: bytes, content: Iterable[bytes]) -> None:
    try:
        for _ in content:
            pass
    except CorruptError as exc:
        raise CorruptError(
            f"{show_path(path)} in checkpoint {target.id} is damaged: {exc.message}",
            hint="nothing was changed; `gitcp verify` shows what else is affected",
        ) from exc
