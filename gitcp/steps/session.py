"""The Python interface: what `gitcp.open` returns (docs/decisions/0011)."""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from gitcp.at_fork import computed
from gitcp.checkpoints import fork as forking
from gitcp.checkpoints import sessions as listing
from gitcp.checkpoints.finish_restore import Restored
from gitcp.checkpoints.selectors import select
from gitcp.checkpoints.session import BaseSession, undo
from gitcp.errors import NotFoundError, UsageError
from gitcp.ledger.call import Call
from gitcp.project.workspace import Current, Workspace, open_workspace
from gitcp.steps import batch_record, reopened
from gitcp.steps.batch import Batch
from gitcp.steps.model import StepOptions, options
from gitcp.store.checkpoint import Checkpoint

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from gitcp.steps.compensate import Compensated
    from gitcp.steps.engine import Engine
    from gitcp.steps.repair import Affected
    from gitcp.steps.runner import Declared

R = TypeVar("R")
T = TypeVar("T")


def open(  # noqa: A001  gitcp.open
    directory: str | os.PathLike[str] = ".", *, init: bool = False
) -> "Store":
    """Returns the store of the repository around a directory; writes nothing.

    In a folder without git that is its private store, outside of the folder. With `init`
    one is made if there is none, as `gitcp save --init` does it.

    Raises:
        NotARepositoryError: the directory is in no repository, and has no private store.
        UnsupportedRepositoryError: a kind that gitcp cannot serve.
    """
    if init:
        from gitcp.project import folders  # noqa: PLC0415  rarely needed

        folders.make_if_needed(directory)
    return Store(open_workspace(directory, lasting=True))


class Store:
    """The checkpoints of one project."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __repr__(self) -> str:
        return f"<gitcp.Store {str(self._workspace.top)!r}>"

    def session(self, name: str, branch: str = "main") -> "Session":
        """Returns a session by its name, which may be any text. The first save creates it."""
        if not name or not branch:
            raise UsageError("a session needs a name", hint="pass a name")
        return Session(self._workspace, name, branch)

    def sessions(self) -> list["Session"]:
        """Returns the existing sessions, each on its `main` or first branch."""
        return [
            Session(self._workspace, session.name, session.branches[0].name)
            for session in listing.sessions(self._workspace.store)
        ]

    def checkpoint(self, selector: str) -> Checkpoint:
        """Returns a checkpoint by selector, as on the command line.

        Raises:
            NotFoundError, AmbiguousError: the selector matches no checkpoint, or several.
        """
        return select(self._workspace, selector)

    def undo(self) -> Restored:
        """Undoes the last restore in this work tree; a second call restores again.

        Raises:
            NothingToDoError: nothing was restored.
            WouldOverwriteError: something that no checkpoint holds is in the way.
            EffectsStandError: a step reached outside since.
            PartialError: done, but files changed meanwhile and were left alone.
        """
        return undo(self._workspace)


class Session(BaseSession):
    """One thread of work, on one of its branches.

    One object is one run. A step that is called twice in a run is two steps; in the next
    run the first call is the first step again.
    """

    @computed
    def _engine(self) -> "Engine":
        from gitcp.steps.engine import Engine  # noqa: PLC0415  on use

        return Engine(self._workspace, Current(self.name, self.branch))

    def fork(self, checkpoint: Checkpoint | str, name: str) -> "Branch":
        """Makes a new branch at a checkpoint; files stay as they are.

        The checkpoint may be a selector, as for `plan_restore`.

        Raises:
            UsageError: the name is taken.
            NotFoundError, AmbiguousError: the selector matches no checkpoint, or several.
        """
        chosen = self._chosen(checkpoint)
        forking.fork_only(self._workspace.store, chosen, name)
        return Branch(self._workspace, chosen.session, name)

    @overload
    def step(
        self, name: str, function: None = None, /, **given: Unpack[StepOptions]
    ) -> "Declared": ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[..., R],
        /,
        *arguments: Any,
        **given: Unpack[StepOptions],
    ) -> R: ...
    def step(
        self,
        name: str,
        function: Callable[..., Any] | None = None,
        /,
        *arguments: Any,
        **given: Unpack[StepOptions],
    ) -> Any:
        """Runs a function once and remembers its result, across restarts.

        Its intent is durable before the call and its result after it. If the ledger has
        a result, `step` returns that and does not call the function. Without a function
        it returns a decorator, which is a context manager too. The caller has to await the
        result of a coroutine function.

        Args:
            name: the name of the step; name and number of the call identify it.
            function: called with `arguments`, and with `idempotency_key` if it has a
                parameter of that name.
            arguments: passed to `function`.
            effect: `none`, `local` (files of the project), `reversible` or
                `irreversible`; with an undo `reversible`, else `irreversible`.
            undo: called with the step's result, and with `idempotency_key`, and awaited
                if it is a coroutine function; or the words of a command.
            retry: how often to try if the function raises; a number or a `Retry`.
            timeout: seconds. A plain function continues in its thread after that.
            key: identifies this call, instead of its number; it is the idempotency key
                as well.
            scope: a name for a run of a job: in another scope every step is a new one.
            unknown: what to do if it was interrupted: `retry` with the same key
                (the default if it does not reach outside), `ask` or `fail`.
            reads: paths that it reads; gitcp does not observe reads, and relies on these.
            writes: paths that it writes; without them, every changed path counts as its own.
            after: names of steps that it depends on.
            codec: converts its result to JSON and back.
            changed: what to do if it is recorded with other arguments: `refuse`,
                `replay` what is recorded, or run it `again` (not if it reaches outside).
            loops: how often it may begin with the same arguments; None: without a limit.
            elsewhere: whether a result that was recorded elsewhere, and was pulled, counts.

        Raises:
            StepUnknownError: the step was interrupted, and the user has to say what became of it.
            StepChangedError, StepLoopError: see `changed` and `loops`.
            StepTimeoutError: see `timeout`.
            UsageError: its result is not JSON or does not count, or the options make no sense.
            BusyError: another process is running it.
        """
        from gitcp.steps.functions import refuse_generator  # noqa: PLC0415  on use
        from gitcp.steps.runner import Declared, start  # noqa: PLC0415  on use

        declared = options(name, **given)
        if function is None:
            return Declared(self._engine, declared)
        refuse_generator(name, function)
        if not callable(function):
            raise UsageError(
                f"the step {name!a} was given no function but {function!a}",
                hint='session.step("fetch", fetch, url)',
            )
        return start(self._engine, declared, function, arguments)

    def batch(
        self,
        records: Iterable[T],
        *,
        every: int | None = None,
        seconds: float | None = None,
        note: str | None = None,
        executor: "Executor | Callable[[], Executor] | None" = None,
    ) -> Batch[T]:
        """Returns a batch over records that resumes after the last saved position.

        It saves each `every` records or `seconds`, and at the end. `records` must yield
        the same records in the same order each time.

        Args:
            records: anything that can be iterated over.
            every: save after so many records.
            seconds: save after so much time.
            note: the note of the checkpoints.
            executor: where `Batch.map` calls its function: a `concurrent.futures.Executor`,
                which stays open, or a function that makes one. If the death of a worker
                breaks the executor, as in a process pool, only the function can continue.

        Raises:
            UsageError: the position that the session has saved is not a batch's.
        """
        return Batch(
            self,
            records,
            every=every,
            seconds=seconds,
            note=note,
            executor=executor,
            engine=lambda: self._engine,
        )

    def on_unknown(self, ask: Callable[[Call], str] | None) -> None:
        """Sets the function that answers for interrupted steps with the policy `ask`.

        The function returns `done` (the step happened, and has no result), `failed` (it did
        not happen) or `again` (run it once more, with the same key). With any other value the
        step raises. For a worker of a batch, the process of the batch calls the function.
        """
        self._engine.ask = None if ask is None else batch_record.not_in_workers(ask)

    def __reduce__(self) -> tuple[Any, ...]:
        return reopened.reopen, (reopened.sent(self),)

    def steps(self) -> list[Call]:
        """Returns the steps of this branch, oldest first."""
        return sorted(
            self._engine.history.live().values(), key=lambda call: call.intent.n
        )

    def answer(
        self,
        name: str,
        said: str,
        value: Any = None,
        *,
        call: str = "",
        scope: str = "",
    ) -> None:
        """Resolves a step that was interrupted: `done`, `failed` or `again`.

        `call` is its key, or the number of the call, if several of the name were interrupted.

        Raises:
            NotFoundError: there is no such step.
            AmbiguousError: several of the name were interrupted.
            UsageError: the step was not interrupted.
        """
        from gitcp.steps import answers  # noqa: PLC0415  on use

        engine = self._engine
        calls = self._named(name, call, scope)
        chosen = answers.choose(engine.workspace, engine.current, calls)
        engine.answer(chosen, said, value)

    def _named(self, name: str, call: str = "", scope: str = "") -> list[Call]:
        calls = [
            known
            for known in self.steps()
            if known.name == name
            and known.slot.scope == scope
            and call in {"", known.slot.call, known.slot.call.removeprefix("key:")}
        ]
        if not calls:
            raise NotFoundError(
                f"there is no step {name!a} in {self.name}/{self.branch}",
                hint="`gitcp steps` lists them",
            )
        return calls

    def register_undo(self, name: str, undo: Callable[..., Any]) -> None:
        """Sets how to undo steps of a name, if their own undo is not known in this process.

        A function that is not at the top of a module cannot be found by another process.
        """
        self._engine.undos[name] = undo

    def compensate(
        self,
        to: Checkpoint | None = None,
        *,
        keep: Sequence[str] = (),
        trust: bool = False,
    ) -> "Compensated":
        """Undoes what steps did since a checkpoint, newest first.

        Without `to`: since the newest checkpoint. Each undo is recorded before and after,
        so that an interrupted one continues. Files are put back only if they
        are as the step left them. `keep` names steps to keep. `trust` also runs
        undos that came with a pull.

        Raises:
            CompensationError: a step cannot be undone, or its undo failed: no earlier step was
                touched. `left` lists the steps that were not undone.
            NotFoundError: there is no step of a name in `keep`.
        """
        from gitcp.steps import compensate  # noqa: PLC0415  on use

        return compensate.compensate(
            self._engine,
            compensate.plan(self._engine, to),
            keep=tuple(keep),
            trust=trust,
        )

    def affected(self, name: str, *, call: str = "", scope: str = "") -> "Affected":
        """Returns a step and those that depend on it; writes nothing.

        Raises:
            NotFoundError: there is no such step.
        """
        from gitcp.steps import repair  # noqa: PLC0415  on use

        return repair.affected(self._engine, self._named(name, call, scope)[-1])

    def repair(self, affected: "Affected", *, trust: bool = False) -> list[Call]:
        """Undoes the affected steps, so that only they run again.

        Raises:
            UsageError: another step has used a result that would be undone.
            CompensationError: an undo failed.
        """
        from gitcp.steps import repair  # noqa: PLC0415  on use

        return repair.repair(self._engine, affected, trust=trust)


class Branch(Session):
    """A session on a branch of its own, as `Session.fork` makes it."""
