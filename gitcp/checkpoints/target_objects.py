"""Reads the objects that a restore would write: damage is found before the first write."""

import threading
from collections.abc import Container, Iterable, Sequence
from functools import partial

from gitcp import progress
from gitcp.errors import CorruptError
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.format.tree import GITLINK
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree import bulk
from gitcp.worktree.kept_contents import KeptContents
from gitcp.worktree.plan import WRITE, FilePlan


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


def check_objects(
    target: Checkpoint,
    steps: FilePlan,
    kept: KeptContents | None = None,
    *,
    unread: Container[bytes] = frozenset(),
) -> None:
    """Reads what would be written, so that damage is found before the first write.

    What a partial clone has left at its remote is fetched first. Of many files `kept` is
    given the contents, for those who write them. The paths `unread` are read later.

    Raises:
        CorruptError: something is missing or damaged.
        TransferError: something is missing, and the remote that promised it is silent.
    """
    objects, brought = target.objects, bring_objects(target, steps)
    wanted = [one for one in brought if one[0] not in unread]
    parts = bulk.parts(wanted) if len(wanted) >= bulk.AT_LEAST else [wanted]
    # Links are not among them, and what is chunked is not one blob.
    writes = {
        step.path
        for step in (steps.steps if kept is not None else ())
        if step.action == WRITE and step.after and step.after.oid not in objects.chunked
    }
    stopped = threading.Event()
    report = progress.of("reading the checkpoint:")

    def read(part: Sequence[tuple[bytes, bytes]], share: int) -> None:
        oids = (oid for _, oid in part)
        many = share > 1 or len(part) >= bulk.AT_LEAST
        contents = objects.contents(oids) if many else map(objects.content, oids)
        keeping = kept if many else None
        for done, ((path, oid), content) in enumerate(zip(part, contents, strict=True)):
            if stopped.is_set():
                return
            # One is enough to report: all have as much to do.
            if report is not None and part is parts[0]:
                report(done * share, len(wanted))
            data = _read_whole(target, path, content)
            if keeping is not None and data is not None and path in writes:
                keeping.add(oid, data)

    tasks = [partial(read, part, len(parts)) for part in parts]
    bulk.at_once(tasks, stopped)


def _read_whole(
    target: Checkpoint, path: bytes, content: Iterable[bytes]
) -> bytes | None:
    """Reads a content to its end; returns it if it came in one piece."""
    only: bytes | None = None
    try:
        for number, piece in enumerate(content):
            only = None if number else piece
    except CorruptError as exc:
        raise CorruptError(
            f"{show_path(path)} in checkpoint {target.id} is damaged: {exc.message}",
            hint="nothing was changed; `gitcp verify` shows what else is affected",
        ) from exc
    return only
