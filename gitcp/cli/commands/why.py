"""`gitcp why`: names the turn that wrote each line of a file."""

import os
import re
from typing import TYPE_CHECKING, Any

import click

from gitcp.checkpoints.own_notes import note_of
from gitcp.cli import documents
from gitcp.cli.emit import Output, one_line, safe
from gitcp.cli.layout import age, fit, width
from gitcp.cli.options import command, path_inside, reader
from gitcp.cli.render import decision_line, title_of
from gitcp.errors import UsageError
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitcp.checkpoints.why import Line, Origin

_LINES = re.compile(r"(.+):([1-9]\d{0,8})(?:-([1-9]\d{0,8}))?", re.DOTALL)
# In place of a number, if no checkpoint has the line yet.
_NOWHERE = "-"


@command("why")
@click.argument("target", metavar="FILE[:LINE[-LINE]]")
def why_command(out: Output, target: str) -> None:
    """Show which turn wrote a line, and why.

    It prints each line of FILE with the number of the checkpoint in which the line first
    appeared. For each of these checkpoints it then shows the author, the prompt, the
    decisions made meanwhile, and the commit, if there is one. It follows restores and
    renames.
    """
    from gitcp.checkpoints.why import why

    workspace = reader(out, paged=True)
    if workspace.bare:
        raise UsageError(
            "there is no work tree here", hint="run it in the project, without -C"
        )
    path, lines = _target(out, workspace, target)
    found = why(workspace, path, lines)
    if out.json:
        out.document(
            {"schema": "gitcp.why/1", "lines": [_document(line) for line in found]}
        )
        return
    _show_lines(out, found)
    origins = {_name(line): line for line in found}
    commits: dict[str, set[str]] = {}
    for line in found:
        if line.commit is not None:
            commits.setdefault(_name(line), set()).add(line.commit[:12])
    for name in sorted(origins, key=lambda one: (one == _NOWHERE, len(one), one)):
        out.print()
        _show_origin(out, name, origins[name], sorted(commits.get(name, ())))
    if any(line.origin for line in found):
        out.note("")
        out.note("`gitcp show NUMBER` shows a turn")


def _target(
    out: Output, workspace: Workspace, text: str
) -> tuple[bytes, tuple[int, int] | None]:
    """Returns the named path and lines; a file's name may be `a:1`, too."""
    whole = path_inside(out, workspace.top, text)
    there = os.path.lexists(os.path.join(os.fsencode(workspace.top), whole))
    match = None if there else _LINES.fullmatch(text)
    if match is None:
        return whole, None
    first = int(match[2])
    return path_inside(out, workspace.top, match[1]), (first, int(match[3] or first))


def _name(line: "Line") -> str:
    if line.origin is None:
        return _NOWHERE
    return f"#{line.origin.entry.number}"


def _show_lines(out: Output, found: "Sequence[Line]") -> None:
    if not found:
        out.print("The file is empty")
        return
    columns = width()
    names = max(len(_name(line)) for line in found)
    digits = len(str(found[-1].number))
    for line in found:
        left = f"{_name(line):>{names}}  {line.number:>{digits}}  "
        room = None if columns is None else columns - len(left)
        text = safe(line.text.decode("utf-8", "backslashreplace").expandtabs(4))
        out.print(f"{out.style(left, fg='cyan')}{fit(text, room)}".rstrip())


def _show_origin(
    out: Output, name: str, line: "Line", commits: "Sequence[str]"
) -> None:
    origin = line.origin
    if origin is None:
        out.print(f"{name}  not in a checkpoint yet")
        return
    where = origin.checkpoint.origin.where
    mark = f"<{one_line(where, 20)}>  " if where else ""
    head = f"{name}  {age(origin.entry.created)}  {mark}{_who(origin)}"
    out.print(out.style(fit(head, width()), bold=True))
    for other in origin.beside:
        out.print(f"  or the turn #{other}, which ran at the same time")
    for entry in origin.decisions:
        out.print(decision_line(out, entry))
    if commits:
        out.print(f"  commit    {', '.join(commits)}")


def _who(origin: "Origin") -> str:
    """Returns the author of lines, if known, and the prompt."""
    if origin.by == "agent":
        who = title_of(origin.agent) if origin.agent else "an agent"
        return f'{who}  "{one_line(origin.prompt)}"' if origin.prompt else who
    about = one_line(note_of(origin.checkpoint))
    if origin.by == "hand":
        return f"by hand  {about}"
    what = "there before the first checkpoint" if origin.first else "author unknown"
    return f"{what}  {about}"


def _document(line: "Line") -> dict[str, Any]:
    origin = line.origin
    entry = origin.entry if origin is not None else None
    return {
        "line": line.number,
        "text": line.text.decode("utf-8", "backslashreplace"),
        "number": entry.number if entry is not None else None,
        "id": entry.id if entry is not None else None,
        "by": origin.by if origin is not None else "unknown",
        "commit": line.commit,
        "session": origin.checkpoint.session if origin is not None else None,
        "agent": origin.agent if origin is not None else None,
        "prompt": origin.prompt if origin is not None else None,
        "at": entry.created if entry is not None else None,
        "decisions": documents.decisions(origin.decisions if origin else ()),
        "beside": list(origin.beside) if origin is not None else [],
    }
