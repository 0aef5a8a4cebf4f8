"""`gitcp log`: lists the checkpoints of a branch."""

from collections.abc import Iterable, Iterator
from itertools import islice

import click

from gitcp import Checkpoint
from gitcp.checkpoints.selectors import split
from gitcp.cli import documents
from gitcp.cli.emit import Output, one_line, safe, unstyled
from gitcp.cli.options import command, left_out, reader
from gitcp.cli.render import changed, when, width
from gitcp.errors import CorruptError, FormatTooNewError, GitcpError
from gitcp.store.store import Store, require_tip


def _readable(
    checkpoints: Iterable[Checkpoint], unreadable: list[str]
) -> Iterator[Checkpoint]:
    """Yields the checkpoints of a line but for the damaged ones.

    Raises:
        CorruptError: the first one cannot be read at all.
        FormatTooNewError: a newer gitcp wrote one.
    """
    last = ""
    try:
        for checkpoint in checkpoints:
            last = checkpoint.id
            if _is_readable(checkpoint, unreadable, CorruptError):
                yield checkpoint
    except CorruptError as exc:
        if not last:
            raise
        unreadable.append(f"what came before {last} is left out: {exc}")


def _is_readable(
    checkpoint: Checkpoint, unreadable: list[str], *reasons: type[GitcpError]
) -> bool:
    """Whether it can be shown; if not for one of some reasons, that is noted."""
    try:
        _ = checkpoint.manifest
    except reasons as exc:
        unreadable.append(f"#{checkpoint.seq} {checkpoint.id} is left out: {exc}")
        return False
    return True


def _newest_first(store: Store, unreadable: list[str]) -> Iterator[Checkpoint]:
    """Yields every checkpoint once, newest first; a parent never before its child."""
    import heapq

    heap: list[tuple[tuple[int, ...], int, Checkpoint]] = []
    seen: set[bytes] = set()
    count = 0

    def push(checkpoint: Checkpoint | None) -> None:
        nonlocal count
        while checkpoint is not None and checkpoint.oid not in seen:
            seen.add(checkpoint.oid)
            if _is_readable(checkpoint, unreadable, CorruptError, FormatTooNewError):
                count += 1
                stamp = tuple(-ord(char) for char in checkpoint.manifest.created)
                heapq.heappush(heap, (stamp, count, checkpoint))
                return
            checkpoint = before(checkpoint)

    def before(checkpoint: Checkpoint) -> Checkpoint | None:
        try:
            parents = checkpoint.raw.parents
            return store.checkpoint(parents[0]) if parents else None
        except CorruptError as exc:
            unreadable.append(f"what came before {checkpoint.id} is left out: {exc}")
            return None

    from gitcp.checkpoints.fork import sessions

    for session in sessions(store, unreadable=unreadable.append):
        for branch in session.branches:
            push(branch.tip)
    while heap:
        _, _, checkpoint = heapq.heappop(heap)
        yield checkpoint
        push(before(checkpoint))


class _Graph:
    """Columns of a graph: one for each line that is still to be continued."""

    def __init__(self) -> None:
        self._columns: list[bytes] = []

    def row(self, checkpoint: Checkpoint) -> str:
        """Returns the marks for a checkpoint's line; `/` where a fork joins it."""
        mine = [at for at, oid in enumerate(self._columns) if oid == checkpoint.oid]
        if not mine:
            self._columns.append(checkpoint.oid)
            mine = [len(self._columns) - 1]
        marks = ["*" if at == mine[0] else "|" for at in range(len(self._columns))]
        if len(mine) > 1:
            marks = ["/" if at in mine[1:] else mark for at, mark in enumerate(marks)]
            self._columns = [
                oid for at, oid in enumerate(self._columns) if at not in mine[1:]
            ]
        if checkpoint.raw.parents:
            self._columns[mine[0]] = checkpoint.raw.parents[0]
        else:
            del self._columns[mine[0]]
        return " ".join(marks)


def _line(
    out: Output, checkpoint: Checkpoint, prefix: str, *, with_branch: bool
) -> str:
    manifest = checkpoint.manifest
    number = f"#{manifest.seq}"
    where = f"{manifest.session}/{manifest.branch} {number}" if with_branch else number
    trigger = "" if manifest.trigger == "manual" else f"[{one_line(manifest.trigger)}] "
    label = f"({one_line(manifest.label)}) " if manifest.label else ""
    if checkpoint.origin.files is not None:
        label = f"<{one_line(checkpoint.origin.files, 20)}> {label}"
    messages = f"{manifest.conversation.messages} msg" if manifest.conversation else ""
    left = (
        f"{prefix}{out.style(safe(f'{where:<6}'), fg='cyan')} "
        f"{out.style(manifest.id, fg='yellow')} {out.style(when(checkpoint), dim=True)} "
        f"{changed(checkpoint):<12} {messages:<8} "
    )
    room = max(20, width() - len(unstyled(left)) - len(trigger) - len(label))
    return (
        f"{left}{out.style(trigger, dim=True)}{out.style(label, fg='green')}"
        f"{one_line(manifest.note or '', room)}"
    ).rstrip()


@command("log")
@click.option("-n", "count", type=click.IntRange(min=1), help="Show at most N")
@click.option("-s", "where", metavar="SESSION[/BRANCH]", help="Of which branch")
@click.option("--all", "everything", is_flag=True, help="Of all sessions and branches")
@click.option("--graph", is_flag=True, help="Draw the lines")
def log_command(
    out: Output, count: int | None, where: str | None, everything: bool, graph: bool
) -> int:
    """List checkpoints, newest first."""
    workspace = reader(out)
    unreadable: list[str] = []
    store = workspace.store
    current = workspace.current()
    session, branch = (
        split(where, current) if where else (current.session, current.branch)
    )
    # No work tree is on any branch of a bare store.
    everything = everything or (workspace.bare and where is None)
    if everything:
        checkpoints = _newest_first(store, unreadable)
    elif where is None and store.tip(session, branch) is None:
        checkpoints = iter(())
    else:
        line = store.line(require_tip(store, session, branch))
        checkpoints = _readable(line, unreadable)
    shown = islice(checkpoints, count)
    if out.json:
        out.document(
            {
                "schema": "gitcp.log/1",
                "checkpoints": [
                    documents.checkpoint(checkpoint) for checkpoint in shown
                ],
                "unreadable": unreadable,
            }
        )
        return left_out(out, unreadable)
    columns = _Graph()
    empty = True
    for checkpoint in shown:
        empty = False
        prefix = f"{columns.row(checkpoint)}  " if graph or everything else ""
        with_branch = everything or checkpoint.manifest.branch != branch
        out.print(_line(out, checkpoint, prefix, with_branch=with_branch))
    if empty and not unreadable:
        out.note("no checkpoints yet; `gitcp save` makes one")
    return left_out(out, unreadable)
