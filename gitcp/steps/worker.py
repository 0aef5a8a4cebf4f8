"""A worker of a batch: calls the function with one record after another."""

import multiprocessing
import os
import pickle
import secrets
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

from gitcp.errors import StepUnknownError
from gitcp.steps.batch_record import BatchRecord
from gitcp.steps.briefing import BriefedSteps

# Seconds between two checks whether the process of the batch is alive.
_LOOK = 1.0


class Outcome(NamedTuple):
    """The outcome of a chunk; positions count from its first record.

    After `error`, which the function raised, no further record was begun. `unknown` are
    records with an interrupted step that may or may not have taken effect.
    """

    results: list[tuple[int, Any]]
    unknown: list[tuple[int, StepUnknownError]]
    error: tuple[int, BaseException] | None = None


class Handed:
    """A chunk as it is handed to a worker: the function to call, and the records.

    `first` is the number of the first record, `process` is the process of the batch, and
    `briefing` is a pickled `Briefing`. It is one object, because Dask traverses lists and
    tuples element by element each time that it passes them on.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        first: int,
        records: Sequence[Any],
        briefing: bytes | None = None,
    ) -> None:
        self.function = function
        self.first = first
        self.records = records
        self.process = os.getpid()
        self.briefing = briefing

    def __dask_tokenize__(self) -> str:
        """Returns a new token each time: Dask treats calls with the same arguments as one."""
        return secrets.token_hex(8)


def work(handed: Handed) -> bytes:
    """Returns the pickled `Outcome` of a chunk."""
    is_alive = _end_with(handed.process)
    known = None
    if handed.briefing is not None:
        known = BriefedSteps(pickle.loads(handed.briefing))  # noqa: S301
    outcome = Outcome([], [])
    for place, one in enumerate(handed.records):
        with _busy:
            if not is_alive():
                # Another process will run the remaining records.
                os._exit(1)
            outcome = _call(
                *(handed.function, handed.first, place, one, outcome, known),
                beside=True,
            )
        if outcome.error is not None:
            break
    return _pickled(outcome)


def work_here(
    function: Callable[[Any], Any], first: int, records: Sequence[Any]
) -> Outcome:
    """Returns the outcome of a chunk in the process of the batch, in its thread."""
    outcome = Outcome([], [])
    for place, one in enumerate(records):
        outcome = _call(function, first, place, one, outcome, beside=False)
        if outcome.error is not None:
            break
    return outcome


def _call(
    function: Callable[[Any], Any],
    first: int,
    place: int,
    one: Any,
    outcome: Outcome,
    briefing: BriefedSteps | None = None,
    *,
    beside: bool,
) -> Outcome:
    try:
        with BatchRecord(first + place, briefing, beside=beside):
            outcome.results.append((place, function(one)))
    except StepUnknownError as exc:
        outcome.unknown.append((place, exc))
    except Exception as exc:  # noqa: BLE001  raised again in the process of the batch
        if beside:
            trace = "".join(traceback.format_exception(exc))
            exc.add_note(f"in worker {os.getpid()}, record {first + place}:\n{trace}")
        return outcome._replace(error=(place, exc))
    return outcome


def _pickled(outcome: Outcome) -> bytes:
    """Returns an outcome as bytes that can be read back.

    If the executor failed to pickle it, that would look like a lost worker, and the chunk
    would run again.
    """
    if outcome.error is not None:
        place, error = outcome.error
        outcome = outcome._replace(error=(place, _sendable(error)))
    try:
        return _dump(outcome)
    except Exception as exc:  # noqa: BLE001  whatever a class of the caller's raises
        place, error = outcome.results[0][0] if outcome.results else 0, _sendable(exc)
        error.add_note(
            "a result of the batch's function cannot be sent from its worker"
        )
        return _dump(Outcome([], [], (place, error)))


def _dump(value: Any) -> bytes:
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        # Dask and loky use it for functions, too. It handles classes of the caller's script.
        cloudpickle = sys.modules.get("cloudpickle")
        if cloudpickle is None:
            raise
        pickled: bytes = cloudpickle.dumps(value)
        return pickled


def _sendable(error: BaseException) -> BaseException:
    """Returns an exception that can be pickled and read back."""
    try:
        pickle.loads(_dump(error))  # noqa: S301  what was pickled the line before
    except Exception:  # noqa: BLE001  whatever a class of the caller's raises
        sendable = RuntimeError(f"{type(error).__qualname__}: {error}")
        for note in getattr(error, "__notes__", ()):
            sendable.add_note(note)
        return sendable
    return error


# --- the end of a worker whose parent was killed -----------------------------------------

_busy = threading.RLock()
# By the process id of this process, which may be a fork of one that is watched.
_watched: dict[int, Callable[[], bool]] = {}


def accompany(executor: Executor) -> None:
    """Makes the processes of a pool end if this process is killed.

    They wait for it for ever, with its output open, until they are handed a chunk. Those
    that run already learn of it by their next chunk.
    """
    process = sys.modules.get("concurrent.futures.process")
    if process is None or not isinstance(executor, process.ProcessPoolExecutor):
        return
    # A pool that was made has no public way to add to its initializer.
    if getattr(executor, "_initializer", _begin) is not _begin:
        given = os.getpid(), executor._initializer, executor._initargs  # noqa: SLF001
        executor._initializer, executor._initargs = _begin, given  # noqa: SLF001


def _begin(
    process: int, initializer: Callable[..., object] | None, arguments: tuple[Any, ...]
) -> None:
    """Initializes a worker that `process` started, as its pool was told to."""
    if initializer is not None:
        # It may fork, so it comes before the thread.
        initializer(*arguments)
    _end_with(process)


def _end_with(process: int) -> Callable[[], bool]:
    """Ends this process after the current record, once the process of the batch is gone.

    Workers of `ProcessPoolExecutor` wait for it for ever. They would continue with the
    chunks that it handed out, next to the program that was started in its place. Returns
    whether it is alive; always true in a worker that it did not start.
    """
    is_alive = _watched.get(os.getpid())
    if is_alive is None:
        parent = multiprocessing.parent_process()
        if parent is None or parent.pid != process:
            return lambda: True
        # What multiprocessing watches is open in the workers that were forked later, too;
        # but the parent of a worker may be a server, which forked it for the process.
        is_child = os.getppid() == process
        is_alive = (lambda: os.getppid() == process) if is_child else parent.is_alive
        _watched[os.getpid()] = is_alive
        threading.Thread(target=_watch, args=(is_alive,), daemon=True).start()
    return is_alive


def _watch(is_alive: Callable[[], bool]) -> None:
    pause = threading.Event()
    while is_alive():
        pause.wait(_LOOK)
    with _busy:
        os._exit(1)
