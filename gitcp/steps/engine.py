"""Runs a step: records intent and result, and decides about an interrupted one."""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from msgspec import UNSET, Raw
from msgspec.structs import replace

from gitcp.errors import (
    BusyError,
    GitcpError,
    StepChangedError,
    StepLoopError,
    StepUnknownError,
    StorageError,
    UsageError,
)
from gitcp.format.ledger import (
    ANSWER,
    FAILED,
    INTENT,
    LOCAL,
    RESULT,
    UNDOING,
    UNDONE,
    UNKNOWN,
    Record,
    Undo,
)
from gitcp.ledger.call import AGAIN as MAY_RUN_AGAIN
from gitcp.ledger.call import (
    DID_NOT,
    DONE,
    OPEN,
    RUN_AGAIN,
    STUCK,
    Call,
    StepSlot,
    show_call,
)
from gitcp.project.workspace import Current, Workspace
from gitcp.steps import answers, disputed, lease, observed, remains, results
from gitcp.steps.attempt import Attempt
from gitcp.steps.functions import importable
from gitcp.steps.history import History
from gitcp.steps.model import AGAIN, ASK, REPLAY, RETRY, Options, leaves_open

# Asks a person or a program for the answer about an interrupted step.
Ask = Callable[[Call], str]
_ERROR = 500


class Engine:
    """Runs the steps of one branch, for one run of a program.

    `ask` decides on interrupted steps; without it they raise.
    """

    def __init__(
        self,
        workspace: Workspace,
        current: Current,
        *,
        ask: Ask | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.workspace = workspace
        self.current = current
        self.ask = ask
        self.sleep = sleep
        self.history = History(workspace, current)
        self.ledger = self.history.ledger
        self.undos: dict[str, Callable[..., Any]] = {}
        self._leases: dict[StepSlot, lease.Lease] = {}

    @contextmanager
    def held(self, slot: StepSlot) -> Iterator[lease.Lease]:
        """Holds a step for this process."""
        self.workspace.refresh()
        with lease.held(
            self.workspace.repository,
            self.current.session,
            self.current.branch,
            slot,
            timeout=self.workspace.settings.lock_timeout,
        ) as held:
            self._leases[slot] = held
            try:
                yield held
            finally:
                del self._leases[slot]

    # --- before -------------------------------------------------------------------

    def begin(
        self,
        options: Options,
        slot: StepSlot,
        arguments: Sequence[Any],
        command: Sequence[str] = (),
        directory: str = "",
    ) -> Attempt:
        """Returns the recorded result, or records the intent; the lease is held.

        Raises:
            StepUnknownError: the step was interrupted, and its policy is to ask or to fail.
            StepChangedError: the step is recorded with other arguments.
            StepLoopError: the step began too often.
        """
        given = results.digest(arguments)
        call = self.history.call(slot)
        if call is not None and call.state == OPEN:
            call = self._resolve_interrupted(call, options)
        if call is not None and call.state == DONE:
            changed = given and call.intent.input and given != call.intent.input
            if not (changed and options.changed == AGAIN):
                return self._replay(call, options, changed=bool(changed))
            call = None
        if call is not None and call.state in {UNDOING, STUCK}:
            raise StepUnknownError(
                f"the step {show_call(call)!a} is being undone",
                hint="`gitcp undo --effects` finishes it",
            )
        if call is not None and (
            call.state == UNDONE or (call.outside and given != call.intent.input)
        ):
            if call.state == MAY_RUN_AGAIN:
                raise self._other_arguments(call)
            # It did not happen or was undone: begin a new step, with another key.
            call = None
        if options.outside:
            own, said = self.history.standing_here(slot)
            disputed.refuse(self.workspace, self.current, own, said, options, given)
        self._guard(options, slot, given, looked=True)
        intent = replace(
            self._intent(options, slot, call),
            input=given,
            command=tuple(command),
            directory=directory,
        )
        intent = replace(intent, undo=self._undo(options, intent))
        if options.effect == LOCAL:
            self._leases[slot].beat()
        return Attempt(call, options, self.history.note(intent), self._leases[slot])

    def _intent(self, options: Options, slot: StepSlot, call: Call | None) -> Record:
        """Returns the intent of the next attempt of `call`, or of the first one."""
        key = call.intent.key if call is not None else secrets.token_hex(16)
        return Record(
            0,
            "",
            INTENT,
            self.current.branch,
            id=call.id if call is not None else secrets.token_hex(6),
            step=slot.name,
            scope=slot.scope,
            call=slot.call,
            attempt=call.attempts + 1 if call is not None else 1,
            key=options.key or key,
            effect=options.effect,
            policy=options.unknown,
            reads=options.reads,
            writes=options.writes,
            after=self._after(options),
            before=self._before(options, call),
        )

    def again(self, begun: Attempt) -> Attempt:
        """Records the intent of the next attempt of the same step."""
        slot = StepSlot(begun.intent.scope, begun.intent.step, begun.intent.call)
        self._guard(begun.options, slot, begun.intent.input)
        intent = replace(begun.intent, attempt=begun.intent.attempt + 1)
        return begun._replace(intent=self.history.note(intent))

    def _resolve_interrupted(self, call: Call, options: Options) -> Call:
        """Decides on a step that began, has no result, and that no process is running."""
        files = call.effect == LOCAL and self.ledger.signet.is_ours(call.intent)
        if not call.error:
            noted = "it was interrupted before its result was recorded"
            record = self.history.about(UNKNOWN, call, error=noted)
            if files:
                record = remains.tell(
                    self.workspace,
                    self.current,
                    call,
                    self.history.live(),
                    self._leases[call.slot].died,
                    record,
                )
            self.history.note(record)
        if options.unknown == RETRY:
            if files:
                mine = filter(self.ledger.signet.is_ours, self.ledger.records())
                remains.put_back(self.workspace, self.current, call, list(mine))
            return call._replace(state=MAY_RUN_AGAIN)
        if options.unknown == ASK and self.ask is not None:
            answer = self.ask(call)
            if answer not in {DONE, RUN_AGAIN, DID_NOT}:
                raise self._outcome_unknown(call)
            self._settle(call, answer, None)
            return self.history.live()[call.slot]
        raise self._outcome_unknown(call)

    def _outcome_unknown(self, call: Call) -> StepUnknownError:
        here = self.ledger.signet.is_ours(call.intent)
        return answers.unknown(self.workspace, self.current, call, here=here)

    def answer(self, call: Call, answer: str, value: Any = None) -> None:
        """Resolves an interrupted step.

        `done` with its result, `failed` (it had no effect), or `again` (run it once more,
        with the same key).

        Raises:
            UsageError: the step is not open.
        """
        self.history.live()
        own, _ = self.history.standing_here(call.slot)
        if call.state not in {OPEN, MAY_RUN_AGAIN} and (
            own is None or call.state in {DONE, UNDOING, STUCK}
        ):
            raise UsageError(
                f"the step {show_call(call)!a} is {call.state}: it needs no answer",
                hint="`gitcp steps` lists those that were interrupted",
            )
        if lease.is_running(
            self.workspace.repository,
            self.current.session,
            self.current.branch,
            call.slot,
        ):
            name = show_call(call)
            raise BusyError(f"the step {name!a} is running", hint="wait for it to end")
        # What lets a step run again has to be said of the one that stands here.
        self._settle(call if answer == DONE else own or call, answer, value)

    def _settle(self, call: Call, answer: str, value: Any) -> None:
        if answer == DONE:
            raw = results.dump(value, None, "the result")
            self.history.note(
                self.history.about(RESULT, call, value=Raw(raw), by="answer")
            )
        elif answer in {RUN_AGAIN, DID_NOT}:
            self.history.note(self.history.about(ANSWER, call, answer=answer))
        else:
            raise UsageError(
                f"{answer!a} is not an answer", hint="it is one of: done, failed, again"
            )

    def _replay(self, call: Call, options: Options, *, changed: bool) -> Attempt:
        if changed and options.changed != REPLAY:
            raise self._other_arguments(call)
        if not options.elsewhere:
            self.history.refuse_elsewhere(call)
        if callable(options.undo):
            # This process can undo it now, too.
            self.undos[call.id] = options.undo
        result = call.result
        assert result is not None
        if result.value is UNSET and not result.size:
            raise UsageError(
                f"the step {show_call(call)!a} is done, but {result.error}",
                hint="it does not run again; use a codec that makes its results JSON",
            )
        codec = options.codec
        if result.codec and (codec is None or codec.name != result.codec):
            raise UsageError(
                f"the result of {show_call(call)!a} was made JSON by {result.codec!a}",
                hint=f"give the step the codec {result.codec!a}",
            )
        value = results.load(self.ledger.value(result), codec)
        held = self._leases[call.slot]
        return Attempt(call, options, call.intent, held, replay=True, value=value)

    def _other_arguments(self, call: Call) -> StepChangedError:
        return StepChangedError(
            f"the step {show_call(call)!a} was recorded with other arguments",
            hint="give the new call its own name or key; changed='replay' uses the"
            " recorded result anyway",
        )

    def _guard(
        self, options: Options, slot: StepSlot, given: str, *, looked: bool = False
    ) -> None:
        times = self.history.times(slot, given, looked=looked)
        if options.loops is not None and times >= options.loops:
            raise StepLoopError(
                f"the step {options.name!a} began {times} times with the same arguments",
                hint="it may be an endless loop; `loops=` allows more calls",
            )

    def _after(self, options: Options) -> tuple[str, ...]:
        """Returns the ids of the steps that a step declares it depends on."""
        if not options.after:
            return ()
        ids = []
        live = self.history.live()
        for name in options.after:
            named = [call for slot, call in live.items() if slot.name == name]
            if not named:
                raise UsageError(
                    f"{options.name!a} depends on {name!a}, which was not run",
                    hint="name a step that comes before it",
                )
            ids += [call.id for call in named]
        return tuple(ids)

    def _before(self, options: Options, call: Call | None) -> str:
        if options.effect != LOCAL:
            tip = self.workspace.store.tip(self.current.session, self.current.branch)
            return tip.id if tip is not None else ""
        known = call is not None and self.ledger.signet.is_ours(call.intent)
        if call is not None and known and call.intent.before and call.effect == LOCAL:
            # Files that it left half-written are not those from before the step.
            return call.intent.before
        note = f"before step {options.name}"
        return observed.checkpoint(self.workspace, self.current, note).id

    def _undo(self, options: Options, intent: Record) -> Undo | None:
        given = options.undo
        if given is None:
            return None
        if callable(given):
            self.undos[intent.id] = given
            undo = Undo(function=importable(given))
        else:
            undo = Undo(command=tuple(given), directory=intent.directory)
        sealed = self.ledger.signet.seal_undo(replace(intent, undo=undo))
        return replace(undo, seal=sealed)

    # --- after --------------------------------------------------------------------

    def finish(self, begun: Attempt, value: Any) -> Any:
        """Records a result, durably, and returns it as every later run will see it.

        Raises:
            UsageError: JSON cannot hold it; the step is still recorded as done if it
                reached outside. Or the step has forked this process.
            StorageError: the result could not be recorded; the step counts as interrupted.
        """
        begun.refuse_elsewhere()
        options, codec = begun.options, begun.options.codec
        record = begun.record(RESULT, codec=codec.name if codec else "")
        try:
            raw = results.dump(value, codec, f"the result of {options.name!a}")
        except GitcpError as exc:
            if options.outside:
                self.history.note(replace(record, error=exc.message, codec=""))
            else:
                self.history.note(begun.record(FAILED, error=exc.message))
            raise
        record = replace(record, value=Raw(raw))
        if options.effect == LOCAL:
            record = self._left(begun, record)
        try:
            self.history.note(record)
        except (StorageError, BusyError) as exc:
            raise type(exc)(
                f"the step {options.name!a} was run, but its result was not recorded:"
                f" {exc.message}",
                hint="it counts as interrupted and does not run again until you answer",
            ) from exc
        return results.load(raw, codec)

    def _left(self, begun: Attempt, record: Record) -> Record:
        """Adds the files as the step left them; a failure here is no reason to run it again."""
        try:
            before = observed.find(self.workspace, self.current, begun.intent.before)
            left = observed.checkpoint(
                self.workspace, self.current, f"step {begun.options.name}"
            )
            paths = observed.written(before, left, begun.options.writes)
        except GitcpError as exc:
            return replace(record, error=f"its files were not captured: {exc.message}")
        return replace(record, left=left.id, writes=tuple(paths))

    def failed(self, begun: Attempt, error: BaseException) -> float | None:
        """Records that an attempt raised; returns seconds to wait, None to give up."""
        if begun.elsewhere:
            return None
        text = f"{type(error).__qualname__}: {error}"[:_ERROR]
        text = text.encode("utf-8", "backslashreplace").decode()
        options = begun.options
        if leaves_open(options, error):
            self.history.note(begun.record(UNKNOWN, error=text))
            if options.unknown != RETRY:
                return None
        else:
            self.history.note(begun.record(FAILED, error=text))
        return options.retry.pause(begun.intent.attempt - begun.earlier, error)

    def never_ran(self, begun: Attempt) -> None:
        """Records that an attempt ended before its function was called."""
        if not begun.replay and not begun.elsewhere:
            self.history.note(
                begun.record(FAILED, error="it was cancelled before it ran")
            )
