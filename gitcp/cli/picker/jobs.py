"""Reads the repository in a thread, in small steps; visible content comes first."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from gitcp.cli.options import reading_in
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace, open_workspace

Steps = Callable[[Workspace], Iterator[Any]]
# The picker's drawing thread calls the functions that a reading thread passes.
Post = Callable[[Callable[[], None]], None]


class Job:
    """Work in steps, and the receiver of their results; a later job replaces it in its slot."""

    def __init__(
        self, rank: int, steps: Steps, got: Callable[[Any], None], failed: "Failed"
    ) -> None:
        self.rank = rank
        self.steps = steps
        self.got = got
        self.failed = failed
        self.dropped = False
        self.running: Iterator[Any] | None = None


Failed = Callable[[GitcpError], None]


class Jobs:
    """A thread with a workspace of its own, so that drawing never waits.

    Of several jobs the one with the lowest rank takes its next step. A job requested in a
    slot replaces the job that was there.
    """

    def __init__(self, directory: str, *, bare: bool = False) -> None:
        self._directory = directory
        self._bare = bare
        self._waiting = threading.Condition()
        self._jobs: dict[str, Job] = {}
        self._closed = False
        self._post: Post | None = None
        self._early: list[Callable[[], None]] = []
        self.crash: BaseException | None = None
        self._crashed: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def deliver_to(self, post: Post, crashed: Callable[[], None]) -> None:
        """Delivers all results, those so far and those to come."""
        with self._waiting:
            self._post, self._crashed = post, crashed
            early, self._early = self._early, []
            failed = self.crash is not None
        for each in early:
            post(each)
        if failed:
            post(crashed)

    def ask(
        self,
        slot: str,
        steps: Steps,
        got: Callable[[Any], None],
        *,
        failed: Failed,
        rank: int = 1,
    ) -> None:
        """Requests work; calls `got` with the result of each step that has one."""
        job = Job(rank, steps, got, failed)
        with self._waiting:
            self._drop(slot)
            self._jobs[slot] = job
            self._waiting.notify()

    def drop(self, slot: str) -> None:
        """Drops the job in a slot."""
        with self._waiting:
            self._drop(slot)

    def _drop(self, slot: str) -> None:
        before = self._jobs.pop(slot, None)
        if before is not None:
            before.dropped = True

    @property
    def idle(self) -> bool:
        """Whether no job is running."""
        with self._waiting:
            return not self._jobs

    def close(self) -> None:
        """Ends the thread after its present step, and waits for its end."""
        with self._waiting:
            self._closed = True
            self._jobs.clear()
            self._waiting.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            workspace: Workspace | None = None
            while (found := self._next()) is not None:
                slot, job = found
                if workspace is None:
                    try:
                        workspace = open_workspace(self._directory, bare=self._bare)
                    except GitcpError as exc:
                        self._end(slot, job)
                        self._hand(job, job.failed, exc)
                        continue
                self._step(workspace, slot, job)
        except BaseException as exc:  # noqa: BLE001  told where it can be seen
            self.crash = exc
            if self._crashed is not None and self._post is not None:
                self._post(self._crashed)

    def _next(self) -> tuple[str, Job] | None:
        with self._waiting:
            while not self._jobs and not self._closed:
                self._waiting.wait()
            if self._closed:
                return None
            return min(self._jobs.items(), key=lambda item: item[1].rank)

    def _step(self, workspace: Workspace, slot: str, job: Job) -> None:
        try:
            with reading_in(workspace):
                if job.running is None:
                    job.running = job.steps(workspace)
                result = next(job.running)
        except StopIteration:
            self._end(slot, job)
        except GitcpError as exc:
            self._end(slot, job)
            self._hand(job, job.failed, exc)
        else:
            # By None a job only lets other jobs take a step.
            if result is not None:
                self._hand(job, job.got, result)

    def _end(self, slot: str, job: Job) -> None:
        with self._waiting:
            if self._jobs.get(slot) is job:
                del self._jobs[slot]

    def _hand(self, job: Job, to: Callable[[Any], None], what: Any) -> None:
        def hand() -> None:
            if not job.dropped:
                to(what)

        with self._waiting:
            post = self._post
            if post is None:
                self._early.append(hand)
        if post is not None:
            post(hand)
