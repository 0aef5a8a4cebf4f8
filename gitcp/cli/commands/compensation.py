"""`gitcp undo --effects`: undoes the effects of steps outside the project."""

from typing import Any

from gitcp.checkpoints.selectors import select
from gitcp.cli.commands.steps import document, line
from gitcp.cli.emit import Output, safe_line, safe_path
from gitcp.errors import NothingToDoError
from gitcp.ledger.call import show_call
from gitcp.project.workspace import Workspace
from gitcp.steps import compensate
from gitcp.steps.engine import Engine


def undo_effects(
    out: Output,
    workspace: Workspace,
    to: str | None,
    *,
    keep: tuple[str, ...],
    trust: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Undoes the effects of steps since a checkpoint, newest first."""
    engine = Engine(workspace, workspace.current())
    target = select(workspace, to) if to is not None else None
    calls = compensate.plan(engine, target)
    if not calls and not dry_run:
        raise NothingToDoError(
            "no step has run since then", hint="--to SEL goes further back"
        )
    lines = []
    for call in calls:
        kept = {call.name, call.id} & set(keep)
        lines.append(f"  {'leave' if kept else 'undo':<6} {line(out, engine, call)}")
    if dry_run:
        if out.json:
            out.document(_document(engine, [document(engine, each) for each in calls]))
        else:
            for text in lines:
                out.print(text)
        return
    if not yes:
        for text in lines:
            out.tell(text)
    out.confirm("Undo these, in this order?", yes=yes)
    done = compensate.compensate(engine, calls, keep=keep, trust=trust)
    if out.json:
        fields = _document(engine, [document(engine, each) for each in calls])
        fields["undone"] = [each.id for each in done.undone]
        fields["kept"] = [each.id for each in done.kept]
        fields["left"] = list(done.left)
        out.document(fields)
        return
    for call in done.undone:
        out.print(f"undone  {safe_line(show_call(call))}")
    for call in done.kept:
        out.print(f"kept    {safe_line(show_call(call))}")
    for path in done.left:
        out.warn(
            f"{safe_path(path)} is in no checkpoint and was left as the step left it"
        )


def _document(engine: Engine, steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schema": "gitcp.undo-effects/1",
        "session": engine.current.session,
        "branch": engine.current.branch,
        "steps": steps,
        "undone": [],
        "kept": [],
        "left": [],
    }
