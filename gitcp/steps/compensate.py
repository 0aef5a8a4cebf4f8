"""Compensation: undoes steps, newest first, each undo recorded before and after."""

import asyncio
import contextvars
import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from gitcp.checkpoints.restore_plan import own
from gitcp.errors import CompensationError, GitcpError, NotFoundError
from gitcp.format.checkpoint import show_path
from gitcp.format.ledger import (
    FAILED,
    IRREVERSIBLE,
    KEPT,
    LOCAL,
    UNDO_FAILED,
    UNDOING,
    UNDONE,
)
from gitcp.git.command import collect
from gitcp.ledger.call import DONE, STUCK, Call, show_call
from gitcp.names import quoted
from gitcp.steps import answers, observed, remains, results
from gitcp.steps.engine import Engine
from gitcp.steps.model import KEY_PARAMETER, Step, enter, leave, takes_key
from gitcp.steps.rewind import behind
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree import apply, journal, leftovers
from gitcp.worktree.files import Root
from gitcp.worktree.plan import Left

_SHOWN = 5
_TOLD = 500


class Compensated(NamedTuple):
    """The result of a compensation: the steps undone, and those kept.

    `left` are paths that undone steps declare as written but that no checkpoint holds,
    because they are ignored or too large: they stay as the step left them.
    """

    undone: tuple[Call, ...]
    kept: tuple[Call, ...]
    left: tuple[str, ...] = ()


def plan(engine: Engine, to: Checkpoint | None) -> list[Call]:
    """Returns the steps since a checkpoint, newest first, also those without an effect.

    Without `to`: the steps since the newest checkpoint.
    """
    current = engine.current
    to = to or engine.workspace.store.tip(current.session, current.branch)
    live = engine.history.live()
    if to is None:
        calls = [call for call in live.values() if call.standing]
    else:
        to = own(engine.workspace, to)
        since = behind(engine.workspace, current, to)
        calls = [*since.outside, *since.inside]
    return sorted(
        (call for call in calls if not call.kept), key=lambda call: call.n, reverse=True
    )


def compensate(
    engine: Engine, calls: Sequence[Call], *, keep: Sequence[str], trust: bool
) -> Compensated:
    """Undoes steps in the given order and stops at the first that cannot be undone.

    Raises:
        CompensationError: a step cannot be undone, or its undo failed.
        NotFoundError: a step to keep does not exist; nothing was undone.
    """
    # After an interrupted compensation, a step kept already is no longer in `calls`.
    known = engine.history.live().values()
    strange = set(keep) - {call.name for call in known} - {call.id for call in known}
    if strange:
        # A typing error would undo the step that the user wanted to keep.
        raise NotFoundError(
            f"there is no step {min(strange)!a} to keep: nothing was undone",
            hint="`gitcp steps` lists them",
        )
    undone: list[Call] = []
    kept: list[Call] = []
    standing: list[str] = []
    for number, call in enumerate(calls):
        if call.name in keep or call.id in keep:
            engine.ledger.append(engine.history.about(KEPT, call))
            kept.append(call)
            continue
        try:
            with engine.held(call.slot):
                now = engine.history.call(call.slot)
                # Another process may have undone it meanwhile.
                if now is None or now.id != call.id or now.state == UNDONE:
                    continue
                undo(engine, now, trust=trust)
                if now.effect == LOCAL:
                    standing += observed.uncaptured(
                        engine.workspace, engine.current, now
                    )
        except GitcpError as exc:
            left = [show_call(call) for call in calls[number:]]
            raise CompensationError(
                f"the step {show_call(call)!a} was not undone: {exc.message}",
                left=left,
                hint=exc.hint,
            ) from exc
        undone.append(call)
    return Compensated(tuple(undone), tuple(kept), tuple(dict.fromkeys(standing)))


def undo(engine: Engine, call: Call, *, trust: bool) -> None:
    """Undoes one step; the caller holds its lease.

    Raises:
        GitcpError: the step cannot be undone, or the undo failed.
    """
    work = _prepare(engine, call, trust=trust)
    engine.ledger.append(
        engine.history.about(
            UNDOING, call, key=f"undo:{call.intent.key}", by="compensation"
        )
    )
    try:
        work()
    except Exception as exc:
        message = exc.message if isinstance(exc, GitcpError) else f"{exc}"
        text = f"{type(exc).__qualname__}: {message}"[:_TOLD]
        text = text.encode("utf-8", "backslashreplace").decode()
        engine.ledger.append(engine.history.about(UNDO_FAILED, call, error=text))
        if isinstance(exc, GitcpError):
            raise
        raise CompensationError(
            f"its undo failed: {text}", hint="fix the cause, then undo again"
        ) from exc
    engine.ledger.append(engine.history.about(UNDONE, call))


def _prepare(engine: Engine, call: Call, *, trust: bool) -> Callable[[], None]:
    """Returns the function that undoes a step, after checking that nothing is missing.

    Raises:
        GitcpError: the step cannot be undone.
    """
    if call.state not in {DONE, STUCK, UNDOING}:
        if not call.outside or call.state == FAILED:
            return _nothing
        raise CompensationError(
            "it was interrupted, and whether it took effect is not known",
            hint="find out what happened, then answer:"
            f" `{answers.command(engine.workspace, engine.current, call)}`",
        )
    if call.effect == LOCAL:
        if not trust and not engine.history.is_ours(call):
            raise CompensationError(
                "its changes to files were recorded elsewhere, and gitcp does not"
                " undo them without --trust",
                hint="look at it with `gitcp steps show`; `--trust` undoes them",
            )
        return _files(engine, call)
    if call.effect == IRREVERSIBLE:
        raise CompensationError(
            "it is irreversible",
            hint=f"correct it by hand, then use `--keep {quoted(call.name)}`",
        )
    if not call.outside:
        return _nothing
    given = call.intent.undo
    known = engine.undos.get(call.id) or engine.undos.get(call.name)
    if known is not None:
        return lambda: _call(engine, call, known)
    if (
        given is not None
        and not trust
        and not engine.ledger.signet.is_our_undo(call.intent)
    ):
        raise CompensationError(
            "its undo was recorded in another repository, and gitcp does not run"
            " it without --trust",
            hint="look at it with `gitcp steps show`; `--trust` runs it",
        )
    if given is not None and given.command:
        return lambda: _command(engine, call, given.command, given.directory)
    if given is not None and given.function:
        function = _import(given.function)
        return lambda: _call(engine, call, function)
    raise CompensationError(
        "this process does not know its undo",
        hint=f"call session.register_undo({call.name!r}, …) in the program that has it",
    )


def _nothing() -> None:
    """Does nothing, for a step without an effect."""


def _files(engine: Engine, call: Call) -> Callable[[], None]:
    workspace = engine.workspace
    back = observed.taking_back(workspace, engine.current, call)
    stream = workspace.repository.objects.content
    token = remains.token(call)

    def look(root: Root) -> None:
        _refuse(call, apply.conflicts(root, back))

    def work() -> None:
        with workspace.locked():
            journal.refuse_if_open(workspace.directory)
            with workspace.root() as root:
                look(root)
                _refuse(call, apply.apply(root, back, stream, token=token))

    with workspace.locked(), workspace.root() as root:
        journal.refuse_if_open(workspace.directory)
        # A killed undo may have left files under temporary names.
        _refuse(call, leftovers.settle(root, back, stream, token))
        look(root)
    return work


def _refuse(call: Call, paths: Sequence[Left]) -> None:
    if not paths:
        return
    names = [show_path(path.path) for path in paths]
    raise CompensationError(
        "not as the step left it:"
        f" {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}",
        left=names,
        hint=f"`gitcp diff {call.intent.before}` shows the differences; `--keep"
        f" {quoted(call.name)}` leaves the files as they are",
    )


def _command(engine: Engine, call: Call, words: Sequence[str], directory: str) -> None:
    where = Path(os.path.join(engine.workspace.top, directory))
    result = engine.ledger.value(call.result).decode() if call.result else "null"
    environment = {
        **os.environ,
        "GITCP_STEP": call.name,
        "GITCP_STEP_KEY": f"undo:{call.intent.key}",
        "GITCP_STEP_RESULT": result,
    }
    done = collect(words, cwd=where, env=environment)
    if done.status:
        output = done.output[-_TOLD:].decode("utf-8", "replace").strip()
        raise CompensationError(
            f"its undo ended with exit status {done.status}"
            f"{f': {output}' if output else ''}",
            hint="fix the cause, then undo again",
        )


def _call(engine: Engine, call: Call, function: Callable[..., Any]) -> None:
    key = f"undo:{call.intent.key}"
    value = None
    if call.result is not None:
        # The codec belongs to the program: an undo gets the JSON that the codec made.
        value = results.load(engine.ledger.value(call.result), None)
    extra = {KEY_PARAMETER: key} if takes_key(function) else {}
    token = enter(Step(engine.current.session, call.name, key, 1))
    try:
        _to_the_end(function(value, **extra))
    finally:
        leave(token)


def _to_the_end(outcome: Any) -> None:
    """Waits for the result of an undo that is a coroutine function."""
    if inspect.isgenerator(outcome) or inspect.isasyncgen(outcome):
        raise CompensationError(
            "its undo is a generator: calling it did nothing",
            hint="give it a plain function, or a coroutine function",
        )
    if not inspect.isawaitable(outcome):
        return

    async def wait() -> None:
        await outcome

    # If a loop is running in this thread, it cannot wait here, so use another thread.
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="gitcp-undo") as thread:
        thread.submit(context.run, asyncio.run, wait()).result()


def _import(spec: str) -> Callable[..., Any]:
    module, _, name = spec.partition(":")
    try:
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as exc:
        raise CompensationError(
            f"its undo {spec} cannot be found here: {exc}",
            hint="run `session.compensate()` in the program that has it,"
            " or put it on PYTHONPATH",
        ) from exc
    undo_function: Callable[..., Any] = target
    return undo_function
