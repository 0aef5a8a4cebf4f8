"""`gitcp steps`: lists, shows, answers and repairs durable steps."""

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gitcp.cli.emit import Output, one_line, safe_line, safe_path
from gitcp.cli.options import command, place_of, yes_option
from gitcp.cli.render import count
from gitcp.errors import NotFoundError, UsageError
from gitcp.format import ledger as records
from gitcp.ledger.call import DONE, OPEN, STUCK, Call, show_call
from gitcp.project.workspace import open_workspace
from gitcp.steps import answers, lease
from gitcp.steps.engine import Engine

if TYPE_CHECKING:
    from gitcp.steps.repair import Affected

_COLORS = {
    "done": "green",
    "running": "cyan",
    "unknown": "red",
    "undo-failed": "red",
    "failed": "yellow",
}
# Names are padded to the longest name of up to 40 columns, and cut to 120.
_WIDEST, _LONGEST = 40, 120
_VERBS = ("list", "show", "answer", "affected", "repair")


def state_of(engine: Engine, call: Call) -> str:
    """Returns the state of a step, in the words of the JSON interface."""
    if call.state == OPEN:
        running = lease.is_running(
            engine.workspace.repository,
            engine.current.session,
            engine.current.branch,
            call.slot,
        )
        return "running" if running else "unknown"
    if call.state == STUCK:
        return "undo-failed"
    return "kept" if call.kept and call.state == DONE else call.state


def document(engine: Engine, call: Call) -> dict[str, Any]:
    """Returns a step in the form of the JSON interface."""
    intent, result = call.intent, call.result
    undo = intent.undo
    return {
        "id": call.id,
        "name": call.name,
        "call": call.slot.call,
        "scope": call.slot.scope,
        "effect": call.effect,
        "state": state_of(engine, call),
        "foreign": not engine.history.is_ours(call),
        "attempts": call.attempts,
        "began": intent.at,
        "ended": result.at if result is not None else None,
        "key": intent.key,
        "reads": list(intent.reads),
        "writes": sorted({*intent.writes, *(result.writes if result else ())}),
        "after": list(intent.after),
        "command": list(intent.command) or None,
        "undo": {
            "command": list(undo.command) or None,
            "function": undo.function or None,
        }
        if undo is not None
        else None,
        "before": intent.before or None,
        "left": (result.left or None) if result is not None else None,
        "error": call.error or None,
    }


def line(out: Output, engine: Engine, call: Call, width: int = 0) -> str:
    """Returns one line about a step."""
    state = state_of(engine, call)
    at = (call.result or call.intent).at[:19].replace("T", " ")
    name = one_line(show_call(call), _LONGEST)
    shown = out.style(f"{state:<11}", fg=_COLORS.get(state))
    where = "" if engine.history.is_ours(call) else "  elsewhere"
    return f"{name:<{width}}  {shown}  {call.effect:<12}  {at}{where}"


def ask_at_terminal(out: Output) -> Callable[[Call], str] | None:
    """Returns a function that asks about an interrupted step; None without a terminal."""
    if out.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(call: Call) -> str:
        name = safe_line(show_call(call))
        out.tell(
            f"The step {name} began at {call.intent.at} and was interrupted. gitcp"
            " does not know whether it took effect."
        )
        answer: str = click.prompt(
            "Is it done, has it failed, or should it run again with the same key?",
            type=click.Choice(["done", "failed", "again", "stop"]),
            default="stop",
            err=True,
        )
        return answer

    return ask


@command("steps")
@click.argument("words", nargs=-1, metavar="[list|show|answer|affected|repair] [NAME]")
@click.option(
    "-s", "--session", "session", metavar="SESSION[/BRANCH]", help="The session to use"
)
@click.option(
    "--call",
    "which",
    metavar="N|KEY",
    help="The call to use, if the step was called several times",
)
@click.option(
    "--result", metavar="JSON", help="With `answer NAME done`: the step's result"
)
@click.option(
    "--trust", is_flag=True, help="With `repair`: also undo steps that were pulled"
)
@yes_option
def steps_command(
    out: Output,
    words: tuple[str, ...],
    session: str | None,
    which: str | None,
    result: str | None,
    trust: bool,
    yes: bool,
) -> int:
    """List durable steps; show, resolve or repair one.

    `list` (the default) lists the steps of the branch. `show NAME` shows a step with its
    result and its records. `answer NAME done|failed|again` records what became of an
    interrupted step. `affected NAME` lists the steps that depend on a step. `repair NAME`
    undoes those, and runs them again if they are commands.
    """
    workspace = open_workspace(out.directory)
    engine = Engine(workspace, place_of(workspace, session))
    verb, *names = words or ("list",)
    if verb not in _VERBS:
        raise UsageError(
            f"{verb!a} is not one of {', '.join(_VERBS)}",
            hint="`gitcp steps show NAME` shows one step",
        )
    wanted = {"list": 0, "answer": 2}.get(verb, 1)
    if len(names) != wanted:
        raise UsageError(
            f"steps {verb} takes {count(wanted, 'word')} more",
            hint="try `gitcp help steps`",
        )
    if verb == "list":
        _list(out, engine)
        return 0
    found = _find(engine, names[0], which)
    call = found[-1]
    if verb == "show":
        _show(out, engine, call)
    elif verb == "answer":
        one = answers.choose(workspace, engine.current, found)
        _answer(out, engine, one, names[1], result)
    else:
        return _repair(out, engine, call, trust=trust, yes=yes, only=verb == "affected")
    return 0


def _find(engine: Engine, name: str, which: str | None) -> list[Call]:
    calls = [
        one
        for one in sorted(engine.history.live().values(), key=lambda one: one.intent.n)
        if name in {one.name, one.id, show_call(one)}
        and which in {None, one.slot.call, one.slot.call.removeprefix("key:")}
    ]
    if not calls:
        raise NotFoundError(
            f"there is no step {name!a} in {engine.current.session}/{engine.current.branch}",
            hint="`gitcp steps` lists them",
        )
    return calls


def _list(out: Output, engine: Engine) -> None:
    calls = sorted(engine.history.live().values(), key=lambda one: one.intent.n)
    if not calls:
        _refuse_unknown(engine)
    if out.json:
        out.document(
            {
                "schema": "gitcp.steps/1",
                "session": engine.current.session,
                "branch": engine.current.branch,
                "steps": [document(engine, one) for one in calls],
            }
        )
        return
    if not calls:
        out.note("no steps yet; `gitcp run --step NAME -- CMD` makes one")
    width = _width(calls)
    for call in calls:
        out.print(line(out, engine, call, width))


def _refuse_unknown(engine: Engine) -> None:
    """Refuses unknown names: a mistyped name must not look like a step that never ran."""
    session, branch = place = engine.current.session, engine.current.branch
    known = any(one.branch == branch for one in engine.ledger.records())
    if known or engine.workspace.store.tip(*place) is not None:
        return
    if engine.current != engine.workspace.current():
        raise NotFoundError(
            f"there is no {session}/{branch}, and no step was run in it",
            hint="`gitcp sessions` lists what there is",
        )


def _width(calls: Sequence[Call]) -> int:
    """Returns the width of the names' column; very long names exceed it."""
    widths = (len(one_line(show_call(one))) for one in calls)
    return max((one for one in widths if one <= _WIDEST), default=0)


def _show(out: Output, engine: Engine, call: Call) -> None:
    value = engine.ledger.value(call.result) if call.result is not None else None
    about = [one for one in engine.ledger.records() if one.id == call.id]
    if out.json:
        out.document(
            {
                "schema": "gitcp.step/1",
                "step": document(engine, call),
                "value": msgspec.Raw(value) if value is not None else None,
                "records": [records.document(one) for one in about],
            }
        )
        return
    fields = document(engine, call)
    out.print(line(out, engine, call))
    for name in ("id", "key", "attempts", "error", "before", "left"):
        if fields[name] is not None:
            out.print(f"  {name:<9} {safe_line(str(fields[name]))}")
    for name in ("reads", "writes", "after"):
        if fields[name]:
            out.print(f"  {name:<9} {', '.join(map(safe_path, fields[name]))}")
    if call.intent.command:
        out.print(f"  {'command':<9} {safe_line(shlex.join(call.intent.command))}")
    if call.intent.undo is not None:
        undo = call.intent.undo
        shown = (
            shlex.join(undo.command)
            or undo.function
            or "a function of the Python program"
        )
        out.print(f"  {'undo':<9} {safe_line(shown)}")
    if value is not None:
        out.print(f"  {'result':<9} {one_line(value.decode(), 200)}")
    for one in about:
        error = f"  {one_line(one.error)}" if one.error else ""
        out.print(f"  #{one.n:<8} {one.at[:19].replace('T', ' ')}  {one.kind}{error}")


def _answer(
    out: Output, engine: Engine, call: Call, answer: str, result: str | None
) -> None:
    value = None
    if result is not None:
        if answer != DONE:
            raise UsageError(
                "--result can only be given with `done`", hint="drop --result"
            )
        try:
            value = msgspec.json.decode(result.encode())
        except (msgspec.MsgspecError, UnicodeError) as exc:
            raise UsageError(
                f"--result is not JSON: {exc}", hint="quote it for the shell"
            ) from exc
    engine.answer(call, answer, value)
    now = engine.history.live()[call.slot]
    if out.json:
        out.document({"schema": "gitcp.step/1", "step": document(engine, now)})
    else:
        out.print(line(out, engine, now))


def _repair(
    out: Output, engine: Engine, call: Call, *, trust: bool, yes: bool, only: bool
) -> int:
    from gitcp.steps import command as commands
    from gitcp.steps import repair

    affected = repair.affected(engine, call)
    width = _width(affected.steps)
    lines = [line(out, engine, one, width) for one in affected.steps]
    lines += [f"refused: {safe_line(reason)}" for reason in affected.refused]
    if only:
        _show_affected(out, engine, affected, lines)
        return 0
    if not trust and not affected.refused:
        commands.refuse_foreign(engine, affected.steps)
    if not yes and not affected.refused:
        for text in lines:
            out.tell(text)
        out.confirm("Undo these, and run them again?", yes=yes)
    known = engine.history.live()
    done = repair.repair(engine, affected, trust=trust)
    runnable = [one for one in done if commands.is_command(engine.workspace, one)]
    ran = commands.again(
        Engine(engine.workspace, engine.current),
        runnable,
        known,
        out=sys.stderr.fileno() if out.json else sys.stdout.fileno(),
    )
    status = ran[-1].status if ran else 0
    if out.json:
        out.document(
            {
                "schema": "gitcp.repair/1",
                "taken_back": [document(engine, one) for one in done],
                "run": [document(engine, one.call) for one in ran if one.call],
                "exit": status,
            }
        )
        return status
    for one in done:
        out.print(f"undone: {safe_line(show_call(one))}")
    for again in ran:
        if again.call is not None:
            out.print(line(out, engine, again.call, width))
    if len(runnable) < len(done):
        out.note("the others run again when their program calls them")
    return status


def _show_affected(
    out: Output, engine: Engine, affected: "Affected", lines: Sequence[str]
) -> None:
    if out.json:
        out.document(
            {
                "schema": "gitcp.affected/1",
                "steps": [document(engine, one) for one in affected.steps],
                "refused": list(affected.refused),
            }
        )
        return
    for text in lines:
        out.print(text)
