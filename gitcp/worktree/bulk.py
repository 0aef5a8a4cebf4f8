"""Writes thousands of files: several workers, and one sync before any file gets its name.

First every file is written under its temporary name. Then the file systems are synced as a
whole, and only then the files get their names: after a power cut a path holds all of its
old content, or all of its new content.
"""

import os
import threading
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import pairwise
from typing import NamedTuple, TypeVar

from gitcp import progress
from gitcp.errors import CorruptError
from gitcp.format.checkpoint import show_path
from gitcp.worktree import one_step, replace
from gitcp.worktree.disks import Disks
from gitcp.worktree.files import Root
from gitcp.worktree.one_step import Held
from gitcp.worktree.plain import tree_mode
from gitcp.worktree.plan import WRITE, FileStep, Left
from gitcp.worktree.read import Written
from gitcp.worktree.replace import CHANGED, PreviousContent

T = TypeVar("T")

# From so many files on, one sync of everything takes less time than one for each.
AT_LEAST = 200
# None: as many as there are processors, up to a few.
WORKERS: int | None = None
_MOST = 4
# At most so many new files wait for their names, because the old ones take up room as well.
AT_ONCE = 10_000
# For the same reason a larger file is replaced alone.
ALONE = 8 * 1024 * 1024
_NOTHING = PreviousContent(None)

Streams = Callable[[Iterable[bytes]], Generator[Iterator[bytes], None, None]]


def parts(items: Sequence[T]) -> list[Sequence[T]]:
    """Splits items into one consecutive part for each worker."""
    count = max(1, min(workers(), len(items)))
    borders = [len(items) * number // count for number in range(count + 1)]
    return [items[one:two] for one, two in pairwise(borders)]


def at_once(tasks: Sequence[Callable[[], None]], stopped: threading.Event) -> None:
    """Does tasks in parallel, the first in this thread; raises an error that one of them raises.

    After an error it sets `stopped` and waits for the others.
    """
    errors: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as exc:  # noqa: BLE001  raised below
            errors.append(exc)
            stopped.set()

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks[1:]]
    try:
        for thread in threads:
            thread.start()
        tasks[0]()
    except BaseException:
        stopped.set()
        raise
    finally:
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    if errors:
        raise errors[0]


def is_many(steps: Iterable[FileStep]) -> bool:
    """Whether steps write so many files that they are written in bulk."""
    return sum(step.action == WRITE for step in steps) >= AT_LEAST


class BulkWriter:
    """Carries out those steps of a plan that write files.

    `streams` yields the content of many blobs; `token` names temporary files. `alone` are
    the steps to carry out one by one. `written` receives the files that were written, so
    that they need not be read again to be compared. `made` are directories that this
    restore has made.
    """

    def __init__(
        self,
        root: Root,
        streams: Streams,
        disks: Disks,
        *,
        token: str,
        tolerant: bool,
        written: Written | None,
        made: Container[bytes] = (),
    ) -> None:
        self.root = root
        self.streams = streams
        self.disks = disks
        self.token = token
        self.tolerant = tolerant
        self.written = {} if written is None else written
        self.made = made
        self.alone: list[FileStep] = []
        self.stopped = threading.Event()
        self._report = progress.of("writing files:")

    def write(self, steps: Sequence[FileStep]) -> list[Left]:
        """Writes the files; returns the paths that were not as expected.

        Raises:
            CorruptError: a blob cannot be read.
            OSError: the disk refused. No file stays under a temporary name.
        """
        left: list[Left] = []
        at = 0
        for end in _batches(steps):
            left += self._batch(steps[at:end], at, len(steps))
            at = end
        return left

    def _batch(self, steps: Sequence[FileStep], done: int, total: int) -> list[Left]:
        workers = [_Worker(self, part) for part in parts(steps)]

        def report() -> None:
            if self._report is not None:
                self._report(done + sum(one.done for one in workers), total)

        # One worker reports for all: two at once would mix their lines.
        workers[0].report = report
        try:
            at_once([one.stage for one in workers], self.stopped)
            self.disks.sync()
            at_once([one.place for one in workers], self.stopped)
        except BaseException:
            for one in workers:
                one.discard()
            raise
        finally:
            for one in workers:
                one.root.close()
        self.alone += [step for one in workers for step in one.alone]
        return [item for one in workers for item in one.left]


class _Staged(NamedTuple):
    """A complete file that waits under a temporary name."""

    step: FileStep
    temporary: bytes
    seen: PreviousContent
    stat: os.stat_result


class _Worker:
    """Writes one part of the files; shares no data with others, so it needs no lock."""

    def __init__(self, writer: BulkWriter, steps: Sequence[FileStep]) -> None:
        self.root = writer.root.another()
        self.left: list[Left] = []
        self.alone: list[FileStep] = []
        self.done = 0
        self.report: Callable[[], None] = lambda: None
        self._writer = writer
        self._steps = steps
        self._staged: list[_Staged] = []
        self._named = 0
        # The last directory, and whether the sync of whole file systems covers it.
        self._directory: bytes | None = None
        self._covered = False
        # Its content, if this restore made it.
        self._names: set[bytes] | None = None

    def stage(self) -> None:
        """Writes every file under its temporary name."""
        oids = (step.after.oid for step in self._steps if step.after is not None)
        with closing(self._writer.streams(oids)) as contents:
            for step, content in zip(self._steps, contents, strict=False):
                if self._writer.stopped.is_set():
                    return
                self.report()
                self._attempt(step, lambda: self._stage(step, content))  # noqa: B023
                self.done += 1

    def place(self) -> None:
        """Gives every file its name."""
        self.root.forget()
        for staged in self._staged:
            if self._writer.stopped.is_set():
                return
            self._attempt(staged.step, lambda: self._place(staged))  # noqa: B023
            self._named += 1
        self.root.forget()

    def discard(self) -> None:
        """Removes files that still have a temporary name."""
        self.root.forget()
        for staged in self._staged[self._named :]:
            with suppress(OSError):
                fd, _ = self.root.parent(staged.step.path)
                os.unlink(staged.temporary, dir_fd=fd)

    def _attempt(self, step: FileStep, task: Callable[[], str | None]) -> None:
        try:
            problem = task()
        except (NotADirectoryError, FileNotFoundError):
            # Another process moves directories while we work.
            self.root.forget()
            self._directory = None
            problem = CHANGED
        except CorruptError as exc:
            if not self._writer.tolerant:
                where = show_path(step.path)
                raise CorruptError(f"{where}: {exc.message}", hint=exc.hint) from exc
            problem = f"its content cannot be read: {exc.message}"
        except OSError as exc:
            # The temporary file that it names would mean nothing to the user.
            exc.filename = step.path
            raise
        if problem is not None:
            self.left.append(Left(step.path, problem))

    def _stage(self, step: FileStep, content: Iterator[bytes]) -> str | None:
        above, _, name = step.path.rpartition(b"/")
        if above != self._directory and above in self._writer.made:
            self._enter(above)
        free = self._names is not None and above == self._directory
        if free and step.before is None and name not in (self._names or ()):
            seen = _NOTHING
        else:
            seen = one_step.look(self.root, step)
        held = one_step.compare(seen, step)
        if held is not Held.BEFORE or step.after is None:
            return CHANGED if held is Held.OTHER else None
        if seen.stat is not None and seen.stat.st_size > ALONE:
            self.alone.append(step)
            return None
        fd = self._enter(above)
        temporary = replace.temporary_name(self._writer.token, name)
        status = one_step.write(
            fd, temporary, step.after, content, seen.stat, sync=not self._covered
        )
        self._staged.append(_Staged(step, temporary, seen, status))
        return None

    def _enter(self, directory: bytes) -> int:
        """Returns a directory, which is made if it is missing."""
        fd = self.root.make_directory(directory)
        if directory != self._directory:
            self._directory, self._covered = directory, self._writer.disks.note(fd)
            # One listing of an empty directory costs less than one stat for each file.
            is_made = directory in self._writer.made
            self._names = set(map(os.fsencode, os.listdir(fd))) if is_made else None
        return fd

    def _place(self, staged: _Staged) -> str | None:
        step, temporary, seen, status = staged
        fd, name = self.root.parent(step.path)
        token = self._writer.token
        problem = one_step.give_name(fd, temporary, step, seen, token)
        if problem is None and step.after is not None:
            now = os.stat(name, dir_fd=fd, follow_symlinks=False)
            same = tree_mode(now) == step.after.mode and now.st_size <= ALONE
            # A larger file may be captured in another form.
            if same and replace.is_as_written(now, status):
                self._writer.written[step.path] = step.after, now
        return problem


def _batches(steps: Sequence[FileStep]) -> Iterator[int]:
    """Yields where each batch ends."""
    replaced = 0
    for at, step in enumerate(steps):
        if replaced == AT_ONCE:
            yield at
            replaced = 0
        replaced += step.before is not None
    yield len(steps)


def workers() -> int:
    """Returns how many workers there are to be."""
    if WORKERS is not None:
        return WORKERS
    try:
        here = len(os.sched_getaffinity(0))
    except AttributeError:
        here = os.cpu_count() or 1
    return min(here, _MOST)
