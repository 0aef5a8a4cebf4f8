"""Steps that were recorded here as done, and that records from elsewhere would let run again.

Everyone who may push can add records to a ledger. What they say of a step is a report; a step
with an effect outside does not run a second time because of it, unless the user says so.
"""

from collections.abc import Callable, Iterable

from gitcp.errors import StepUnknownError
from gitcp.format.ledger import UNDOING, Record
from gitcp.ledger.call import DONE, OPEN, STUCK, Call, after, show_call
from gitcp.ledger.log import Ledger
from gitcp.project.workspace import Current, Workspace
from gitcp.steps import answers
from gitcp.steps.model import AGAIN, RETRY, Options

_STANDING = frozenset({OPEN, DONE, UNDOING, STUCK})


def standing_here(
    ledger: Ledger,
    branch: str,
    calls: Iterable[Call],
    reported: Call | None,
    inherited: Callable[[Call], bool],
) -> Call | None:
    """Returns the last step of a slot as this repository recorded it, if its effect stands.

    `calls` are all that ever had the slot, `reported` the one that has it now. `inherited` says
    whether the branch has a step from before its fork.
    """
    last: Call | None = None
    for call in calls:
        mine: Call | None = None
        for record in call.told:
            if is_ours(ledger, record):
                mine = after(mine, record)
        if mine is None or not (
            mine.intent.branch == branch
            or (reported is not None and reported.id == mine.id)
            or inherited(mine)
        ):
            continue
        if last is None or last.intent.at <= mine.intent.at:
            last = mine
    stands = last is not None and last.outside and last.state in _STANDING
    return last if stands else None


def refuse(
    workspace: Workspace,
    current: Current,
    own: Call | None,
    reported: Call | None,
    options: Options,
    given: str,
) -> None:
    """Raises if a step is about to run whose effect stands, as far as is known here.

    `own` is the step as this repository recorded it, `reported` as the ledger has it.

    Raises:
        StepUnknownError: only records from elsewhere say that it may run again.
    """
    if own is None:
        return
    begun = own.intent.input
    if own.state == DONE and options.changed == AGAIN and given and begun != given:
        return
    if own.state == OPEN and options.unknown == RETRY:
        return
    hint = (
        "find out whether its effect still exists, then answer:"
        f" `{answers.command(workspace, current, reported or own, whole=True)}`"
    )
    if reported is None and own.intent.branch != current.branch:
        # These records hide all that the branch had before its fork.
        hint = f"it ran on {own.intent.branch!a}; to run it here, too, give it another name or key"
    raise StepUnknownError(
        f"the step {show_call(own)!a} is recorded here as {own.state}, and only records"
        " from elsewhere say that it may run again",
        hint=hint,
        slot=own.slot,
    )


def is_ours(ledger: Ledger, record: Record) -> bool:
    """Whether a record was written here, with the value that it has now.

    Raises:
        CorruptError: the value is missing.
        BusyError: another process kept the write-ahead log.
    """
    large = ledger.value(record) if record.size else None
    return ledger.signet.is_ours(record, large)
