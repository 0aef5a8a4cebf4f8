"""Calls a step's function: directly, as a decorator, or around a block; sync and async."""

import asyncio
import contextvars
import functools
import os
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, cast

from gitcp import at_fork
from gitcp.errors import StepTimeoutError, UsageError
from gitcp.ledger.call import StepSlot
from gitcp.steps.attempt import Attempt
from gitcp.steps.engine import Engine
from gitcp.steps.functions import (
    Function,
    bound,
    is_async,
    refuse_coroutine,
    refuse_generator,
)
from gitcp.steps.model import (
    KEY_PARAMETER,
    Options,
    Step,
    enter,
    leave,
    takes_key,
)

P = ParamSpec("P")
R = TypeVar("R")
_WAITING = 64


def run(
    engine: Engine,
    options: Options,
    function: Function,
    arguments: Sequence[Any],
    *,
    slot: StepSlot | None = None,
    command: Sequence[str] = (),
    directory: str = "",
) -> Any:
    """Runs a step, or returns its recorded result; see `Session.step`."""
    slot = slot or engine.history.next_slot(options)
    with engine.held(slot):
        begun = engine.begin(options, slot, arguments, command, directory)
        return _attempts(engine, begun, function, arguments)


def _attempts(
    engine: Engine, begun: Attempt, function: Function, arguments: Sequence[Any]
) -> Any:
    while not begun.replay:
        try:
            with _inside(engine, begun) as extra:
                value = _call(begun.options, function, arguments, extra)
                refuse_coroutine(begun.options, value)
        except BaseException as exc:
            pause = engine.failed(begun, exc)
            if pause is None:
                raise
        else:
            return engine.finish(begun, value)
        engine.sleep(pause)
        begun = engine.again(begun)
    return begun.value


async def arun(
    engine: Engine,
    options: Options,
    function: Function,
    arguments: Sequence[Any],
    slot: StepSlot,
) -> Any:
    """Runs a step whose function is a coroutine; the loop continues meanwhile.

    Records of steps that run concurrently are made durable together.
    """
    held, begun = await _begun(engine, options, slot, arguments)
    try:
        while not begun.replay:
            try:
                with _inside(engine, begun) as extra:
                    value = await _await(options, function(*arguments, **extra))
            except BaseException as exc:
                # Shielded, because a cancelled step has to be recorded, too.
                pause = await _shielded(engine.failed, begun, exc)
                if pause is None:
                    raise
            else:
                return await _shielded(engine.finish, begun, value)
            await asyncio.sleep(pause)
            begun = await _thread(engine.again, begun)
        return begun.value
    finally:
        held.close()


async def _begun(
    engine: Engine, options: Options, slot: StepSlot, arguments: Sequence[Any]
) -> tuple[ExitStack, Attempt]:
    """Begins a step without blocking the loop; closing the stack releases its lease."""
    held = ExitStack()

    def begin() -> Attempt:
        with ExitStack() as stack:
            stack.enter_context(engine.held(slot))
            begun = engine.begin(options, slot, arguments)
            held.push(stack.pop_all())
        return begun

    task = asyncio.ensure_future(_thread(begin))
    try:
        return held, await asyncio.shield(task)
    except asyncio.CancelledError:
        await _ended(task)
        with held:
            if task.exception() is None:
                await _shielded(engine.never_ran, task.result())
        raise


@functools.cache
def _threads(process: int) -> ThreadPoolExecutor:
    """Returns threads that wait for the disk: records that wait together share a commit.

    asyncio itself has only about as many threads as processors. A forked process gets its own.
    """
    del process
    return ThreadPoolExecutor(_WAITING, thread_name_prefix="gitcp-step")


async def _thread(function: Function, *arguments: Any) -> Any:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(
        _threads(os.getpid()), functools.partial(function, *arguments)
    )


async def _shielded(function: Function, *arguments: Any) -> Any:
    """Completes a record, even if the task is cancelled."""
    task = asyncio.ensure_future(_thread(function, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _ended(task)
        raise


async def _ended(task: asyncio.Future[Any]) -> None:
    """Waits for a task, no matter how often the wait is cancelled."""
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])


@contextmanager
def _inside(engine: Engine, begun: Attempt) -> Iterator[dict[str, Any]]:
    """Makes a step the running one, and yields its keyword arguments."""
    intent = begun.intent
    token = enter(Step(engine.current.session, intent.step, intent.key, intent.attempt))
    kept = at_fork.kept.set((*at_fork.kept.get(), begun.lease.fd))
    try:
        yield {KEY_PARAMETER: intent.key}
    finally:
        at_fork.kept.reset(kept)
        leave(token)


def _extra(function: Function, extra: dict[str, Any]) -> dict[str, Any]:
    return extra if takes_key(function) else {}


def _call(
    options: Options,
    function: Function,
    arguments: Sequence[Any],
    extra: dict[str, Any],
) -> Any:
    given = functools.partial(function, *arguments, **_extra(function, extra))
    if options.timeout is None:
        return given()
    outcome: list[Any] = []
    error: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(given())
        except BaseException as exc:  # noqa: BLE001  handed on to the caller
            error.append(exc)

    # A function cannot be stopped from outside; as a daemon it ends with this process.
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), daemon=True)
    thread.start()
    thread.join(options.timeout)
    if error:
        raise error[0]
    if not outcome:
        raise _too_long(options)
    return outcome[0]


async def _await(options: Options, given: Awaitable[Any]) -> Any:
    if options.timeout is None:
        return await given
    deadline = asyncio.timeout(options.timeout)
    try:
        async with deadline:
            return await given
    except TimeoutError as exc:
        if not deadline.expired():
            raise
        raise _too_long(options) from exc


def _too_long(options: Options) -> StepTimeoutError:
    return StepTimeoutError(
        f"the step {options.name!a} took longer than {options.timeout} s",
        hint="give it more time, or find out what it waits for",
    )


def start(
    engine: Engine, options: Options, function: Function, arguments: Sequence[Any]
) -> Any:
    """Runs a step; for a coroutine function, returns the coroutine to await."""
    if not is_async(function):
        return run(engine, options, function, arguments)
    # Number the call now, because tasks may be started in any order.
    slot = engine.history.next_slot(options)

    async def call(*given: Any, **extra: Any) -> Any:
        return await function(*given, **_extra(function, extra))

    return arun(engine, options, call, arguments, slot)


class Declared:
    """A step without its function yet: a decorator, or a context manager.

    In a `with` block, `pending` tells whether the block has to do the work. The block then
    assigns its result to `result`; `key` is the idempotency key.
    """

    def __init__(self, engine: Engine, options: Options) -> None:
        self._engine = engine
        self._options = options
        self._held = ExitStack()
        self._inside = ExitStack()
        self._begun: Attempt | None = None
        self.result: Any = None

    def __repr__(self) -> str:
        return f"<step {self._options.name!a}>"

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Returns a function whose calls are steps."""
        refuse_generator(self._options.name, function)
        if is_async(function):

            @functools.wraps(function)
            async def awaited(*arguments: P.args, **named: P.kwargs) -> Any:
                given = bound(function, arguments, named)
                return await start(self._engine, self._options, *given)

            # To its caller, a coroutine function is one whose call can be awaited.
            return cast("Callable[P, R]", awaited)

        @functools.wraps(function)
        def called(*arguments: P.args, **named: P.kwargs) -> R:
            given = bound(function, arguments, named)
            value: R = start(self._engine, self._options, *given)
            return value

        return called

    @property
    def pending(self) -> bool:
        """Whether the block has to do the step's work."""
        return not self._now().replay

    @property
    def key(self) -> str:
        """The idempotency key."""
        return self._now().intent.key

    def _now(self) -> Attempt:
        if self._begun is None:
            raise UsageError(
                f"the step {self._options.name!a} has not begun",
                hint="use it as `with session.step(...) as step:`",
            )
        return self._begun

    def __enter__(self) -> Self:
        slot = self._slot()
        with ExitStack() as stack:
            stack.enter_context(self._engine.held(slot))
            self._enter(self._engine.begin(self._options, slot, ()))
            self._held = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._held:
            if not self.pending:
                return
            self._inside.close()
            if error is None:
                self.result = self._engine.finish(self._now(), self.result)
            else:
                self._engine.failed(self._now(), error)

    async def __aenter__(self) -> Self:
        self._held, begun = await _begun(self._engine, self._options, self._slot(), ())
        self._enter(begun)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._held:
            if not self.pending:
                return
            self._inside.close()
            if error is None:
                finish = self._engine.finish
                self.result = await _shielded(finish, self._now(), self.result)
            else:
                await _shielded(self._engine.failed, self._now(), error)

    def _slot(self) -> StepSlot:
        if self._options.timeout is not None or self._options.retry.attempts > 1:
            raise UsageError(
                "a block can neither be stopped nor run again",
                hint="give the step a function, or leave timeout and retry out",
            )
        return self._engine.history.next_slot(self._options)

    def _enter(self, begun: Attempt) -> None:
        self._begun = begun
        self.result = begun.value
        if self.pending:
            self._inside.enter_context(_inside(self._engine, begun))
