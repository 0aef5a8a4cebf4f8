"""The declaration of a step: effect, undo, retries, and policy when interrupted."""

import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, Unpack

from gitcp.errors import UsageError
from gitcp.format.ledger import EFFECTS, IRREVERSIBLE, LOCAL, NONE, REVERSIBLE
from gitcp.names import check_text

Effect = Literal["none", "local", "reversible", "irreversible"]
RETRY, ASK, FAIL = "retry", "ask", "fail"
REFUSE, REPLAY, AGAIN = "refuse", "replay", "again"
_POLICIES = (RETRY, ASK, FAIL)
_CHANGES = (REFUSE, REPLAY, AGAIN)
KEY_PARAMETER = "idempotency_key"
_LOOPS = 100


class Retry(NamedTuple):
    """How often to try a step that raises, and how long to wait in between.

    The n-th wait is `wait * factor ** (n - 1)` seconds, at most `longest`. Only the
    exceptions in `on` are tried again.
    """

    attempts: int = 3
    wait: float = 1.0
    factor: float = 2.0
    longest: float = 60.0
    on: tuple[type[Exception], ...] = (Exception,)

    def pause(self, attempt: int, error: BaseException) -> float | None:
        """Returns the seconds to wait after a failed attempt; None to give up."""
        if attempt >= self.attempts or not isinstance(error, self.on):
            return None
        return float(min(self.longest, self.wait * self.factor ** (attempt - 1)))


class Codec(Protocol):
    """Converts results to JSON and back, if they are something else."""

    name: str

    def dump(self, value: Any) -> Any:
        """Returns the value as JSON: dicts, lists, text, numbers, booleans, None."""

    def load(self, value: Any) -> Any:
        """Returns the value that was dumped."""


class Step(NamedTuple):
    """The step that is running; a function gets it from `current_step()`.

    `key` is the same at each attempt: give it to a service that takes idempotency keys.
    """

    session: str
    name: str
    key: str
    attempt: int


_running: ContextVar[Step | None] = ContextVar("gitcp_step", default=None)


def current_step() -> Step:
    """Returns the step that is running.

    Raises:
        UsageError: no step is running.
    """
    step = _running.get()
    if step is None:
        raise UsageError(
            "no step is running here", hint="call it from the function of a step"
        )
    return step


def enter(step: Step) -> Any:
    """Makes a step the running one; returns a token for `leave`."""
    return _running.set(step)


def leave(token: Any) -> None:
    """Makes the previous step the running one again."""
    _running.reset(token)


class Options(NamedTuple):
    """The options that declare a step; see `Session.step`."""

    name: str
    effect: str
    undo: Callable[..., Any] | Sequence[str] | None = None
    retry: Retry = Retry(1)
    timeout: float | None = None
    key: str | None = None
    scope: str = ""
    unknown: str = ASK
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    codec: Codec | None = None
    changed: str = REFUSE
    loops: int | None = _LOOPS
    elsewhere: bool = True

    @property
    def outside(self) -> bool:
        """Whether the step reaches beyond the project."""
        return self.effect in {REVERSIBLE, IRREVERSIBLE}


class StepOptions(TypedDict, total=False):
    """The keyword arguments that declare a step; see `Session.step`."""

    effect: Effect | None
    undo: Callable[..., Any] | Sequence[str] | None
    retry: Retry | int | None
    timeout: float | None
    key: str | None
    scope: str
    unknown: str | None
    reads: Sequence[str]
    writes: Sequence[str]
    after: Sequence[str]
    codec: Codec | None
    changed: str
    loops: int | None
    elsewhere: bool


def options(name: str, **given: Unpack[StepOptions]) -> Options:
    """Returns checked options; defaults are the safest.

    Raises:
        UsageError: the options contradict each other.
    """
    _check_types(name, given)
    fields: dict[str, Any] = {**given}
    for paths in ("reads", "writes", "after"):
        fields[paths] = tuple(fields.get(paths, ()))
    if given.get("effect") is None:
        fields["effect"] = IRREVERSIBLE if given.get("undo") is None else REVERSIBLE
    if given.get("unknown") is None:
        fields["unknown"] = RETRY if fields["effect"] in {NONE, LOCAL} else ASK
    retry = given.get("retry")
    if not isinstance(retry, Retry):
        fields["retry"] = Retry(1 if retry is None else retry)
    step = Options(name, **fields)
    _check_meaning(step)
    return step


def _check_types(name: Any, given: StepOptions) -> None:
    # A caller may have written `session.step(fetch)`.
    if not name or not isinstance(name, str):
        raise UsageError("a step needs a name", hint='session.step("fetch", fetch)')
    retry = given.get("retry")
    for number in (given.get("timeout"), None if isinstance(retry, Retry) else retry):
        if number is not None and not isinstance(number, int | float):
            raise UsageError(
                f"{number!a} is not a number",
                hint="retry=3, retry=gitcp.Retry(…), timeout=30",
            )


def _check_meaning(step: Options) -> None:
    name, effect = step.name, step.effect
    check_text(name, "the step's name")
    for text in (step.key or "", step.scope, *step.reads, *step.writes, *step.after):
        check_text(text, "a text of the step")
    _one_of(effect, EFFECTS, "effect")
    if step.undo is not None and effect != REVERSIBLE:
        raise UsageError(
            f"the step {name!a} has an undo but the effect {effect!a}",
            hint="leave the effect out, or say effect='reversible'",
        )
    if step.undo is None and effect == REVERSIBLE:
        raise UsageError(
            f"the step {name!a} is reversible, but has no undo",
            hint="give it an undo, or say effect='irreversible'",
        )
    _one_of(step.unknown, _POLICIES, "unknown")
    _one_of(step.changed, _CHANGES, "changed")
    if step.changed == AGAIN and effect not in {NONE, LOCAL}:
        raise UsageError(
            f"the step {name!a} reaches outside: it is not run again for new arguments",
            hint="give each thing that is to be done once a key of its own",
        )
    if step.timeout is not None and step.timeout <= 0:
        raise UsageError("a timeout must be more than 0 seconds", hint="timeout=30")
    if step.retry.attempts < 1:
        raise UsageError("a step is tried at least once", hint="retry=3")


def _one_of(given: str, allowed: Sequence[str], what: str) -> None:
    if given not in allowed:
        raise UsageError(
            f"{what} is {given!a}", hint=f"it is one of: {', '.join(allowed)}"
        )


def takes_key(function: Callable[..., Any]) -> bool:
    """Whether a function takes the idempotency key."""
    try:
        return KEY_PARAMETER in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


class OutcomeUnknownError(Exception):
    """The called function or program was itself interrupted."""


# After these errors it is open whether the other side acted before the connection failed.
OPEN_ENDED = (
    TimeoutError,
    ConnectionResetError,
    ConnectionAbortedError,
    BrokenPipeError,
    EOFError,
    OutcomeUnknownError,
)


def leaves_open(options: Options, error: BaseException) -> bool:
    """Whether an exception leaves it open that the outside world changed."""
    if not options.outside:
        return False
    return isinstance(error, OPEN_ENDED) or not isinstance(error, Exception)
