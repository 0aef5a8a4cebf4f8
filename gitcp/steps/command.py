"""Runs a command as a step: `gitcp run --step`."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from gitcp import at_fork
from gitcp.errors import StepTimeoutError, UsageError
from gitcp.git.command import Watched, tee
from gitcp.ledger.call import Call, show_call
from gitcp.ledger.state import StepsBySlot
from gitcp.project.workspace import Workspace
from gitcp.steps import runner
from gitcp.steps.engine import Engine
from gitcp.steps.model import (
    Effect,
    Options,
    OutcomeUnknownError,
    current_step,
    options,
)

_KEPT = 4 * 1024
# The exit statuses that shells pass on for a program that a signal ended.
_SIGNALLED = range(129, 129 + 64)


class CommandFailedError(Exception):
    """The command of a step ended with an exit status other than 0."""

    def __init__(self, status: int, output: str) -> None:
        super().__init__(f"exit status {status}{f': {output}' if output else ''}")
        self.status = status


class CommandKilledError(CommandFailedError, OutcomeUnknownError):
    """A signal ended the command of a step, so its effect until then is not known."""


class StepCommandRun(NamedTuple):
    """The result of a step's command: its exit status, and whether it was run now."""

    status: int
    replayed: bool
    call: Call | None


def run(
    engine: Engine,
    declared: Options,
    words: Sequence[str],
    *,
    directory: Path,
    out: int = 1,
) -> StepCommandRun:
    """Runs a command as a step, unless it is recorded as done.

    The command finds the idempotency key in `GITCP_STEP_KEY`.

    Raises:
        GitcpError: as for a step; see `Session.step`.
    """
    workspace = engine.workspace
    inside = os.path.relpath(os.path.realpath(directory), workspace.top)
    called: list[bool] = []

    def work(*arguments: str) -> Any:
        called.append(True)
        step = current_step()
        done = tee(
            arguments,
            cwd=directory,
            keep=_KEPT,
            out=out,
            env={"GITCP_STEP": step.name, "GITCP_STEP_KEY": step.key},
            timeout=declared.timeout,
            # The command may outlive this process, and the step runs as long as it does.
            keep_open=at_fork.kept.get(),
        )
        if done.timed_out:
            raise StepTimeoutError(
                f"{declared.name} took longer than {declared.timeout} s and was stopped",
                hint="`gitcp steps` shows its state",
            )
        if done.status in _SIGNALLED:
            raise CommandKilledError(done.status, _end(done))
        if done.status:
            raise CommandFailedError(done.status, _end(done))
        return {"exit": 0, "output": _end(done)}

    slot = engine.history.next_slot(declared)
    # The time-out stops the command itself, not a thread around it.
    untimed = declared._replace(timeout=None)
    try:
        runner.run(
            engine, untimed, work, words, slot=slot, command=words, directory=inside
        )
    except CommandFailedError as exc:
        return StepCommandRun(
            exc.status, replayed=False, call=engine.history.call(slot)
        )
    return StepCommandRun(0, replayed=not called, call=engine.history.call(slot))


def _end(done: Watched) -> str:
    both = (done.out, done.err)
    texts = [part.decode("utf-8", "replace").strip() for part in both]
    return "\n".join(filter(None, texts))[-_KEPT:]


def again(
    engine: Engine, steps: Sequence[Call], known: StepsBySlot, *, out: int = 1
) -> list[StepCommandRun]:
    """Runs the commands of repaired steps again, in order; stops at one that fails.

    `known` are the branch's steps before the repair.
    """
    results = []
    for call in steps:
        where = engine.workspace.top / call.intent.directory
        declared = _declared(call, known)
        result = run(engine, declared, call.intent.command, directory=where, out=out)
        results.append(result)
        if result.status:
            break
    return results


def _declared(call: Call, known: StepsBySlot) -> Options:
    """Returns the options that a recorded step was declared with."""
    intent = call.intent
    return options(
        call.name,
        effect=cast("Effect", intent.effect),
        undo=intent.undo.command if intent.undo else None,
        key=intent.key if call.slot.call.startswith("key:") else None,
        scope=call.slot.scope,
        unknown=intent.policy,
        reads=intent.reads,
        writes=intent.writes,
        after=[other.name for other in known.values() if other.id in intent.after],
    )


def refuse_foreign(engine: Engine, steps: Sequence[Call]) -> None:
    """Raises if a command that would be run again was recorded elsewhere.

    Raises:
        UsageError: such a command was recorded elsewhere.
    """
    for call in steps:
        if call.intent.command and not engine.history.is_ours(call):
            raise UsageError(
                f"the command of {show_call(call)!a} was recorded elsewhere, and"
                f" gitcp does not run it without --trust: {line(call)!a}",
                hint="nothing was changed; `--trust` runs it",
            )


def line(call: Call) -> str:
    """Returns the command of a step, quoted for a shell."""
    return shlex.join(call.intent.command)


def is_command(workspace: Workspace, call: Call) -> bool:
    """Whether a step is a command that can be run again from here."""
    return (
        bool(call.intent.command) and (workspace.top / call.intent.directory).is_dir()
    )
