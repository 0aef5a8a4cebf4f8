"""The pages of the right pane: changes, conversation, reasons, paths not captured."""

from collections.abc import Iterator, Sequence

from gitcp import Checkpoint
from gitcp.checkpoints import diff
from gitcp.checkpoints.diff import FilesDiff
from gitcp.checkpoints.history import prompt_of
from gitcp.checkpoints.own_notes import note_of
from gitcp.checkpoints.selectors import select
from gitcp.checkpoints.spoken_turns import dialogue
from gitcp.cli.emit import Output, safe, safe_line, safe_path
from gitcp.cli.file_lines import stat_lines
from gitcp.cli.layout import age
from gitcp.cli.picker.lines import (
    BLANK,
    Line,
    Page,
    Part,
    Place,
    line,
    styled,
    styled_lines,
)
from gitcp.cli.picker.patches import laid_out
from gitcp.cli.picker.views import REASONS, SKIPPED, TALK, View
from gitcp.cli.render import (
    SIGNS,
    count,
    decision_line,
    provenance,
    title_of,
    withheld_lines,
)
from gitcp.cli.shown import Shown, whole_of
from gitcp.cli.turn_lines import answer_lines, prompt_lines, tool_lines, turn_header
from gitcp.format.checkpoint import left_out_of
from gitcp.format.tree import Change
from gitcp.project.workspace import Workspace

# If more files than this changed, only their names are listed, and one is compared at a time.
_COMPARED = 100
_PROMPT = 4


def ink() -> Output:
    """Returns an output with styles, for functions that lay out lines."""
    out = Output()
    out.color = True
    return out


def page(workspace: Workspace, view: View) -> Iterator[Page]:
    """Yields a page, and then the same page with more content.

    Raises:
        NotFoundError: the checkpoint is gone.
        CorruptError: a part of the checkpoint is damaged.
    """
    checkpoint = select(workspace, view.number or "last")
    if view.other is not None:
        yield from _between(workspace, view, checkpoint)
    elif view.tab == TALK:
        yield from _talk(workspace, checkpoint, view)
    elif view.tab == REASONS:
        yield from _reasons(workspace, checkpoint, view)
    elif view.tab == SKIPPED:
        yield from _not_captured(workspace, checkpoint)
    elif view.now or view.number is None:
        yield from _against_now(workspace, checkpoint, view)
    else:
        yield from _changes(workspace, checkpoint, view)


def _head(checkpoint: Checkpoint, room: int) -> list[Line]:
    """Returns lines with the name of the state, and the prompt."""
    name = f"#{checkpoint.number}" if checkpoint.number else checkpoint.id
    held = checkpoint.manifest.conversation
    client = title_of(held.kind) if held is not None else ""
    why = checkpoint.trigger if checkpoint.trigger != "turn-end" else ""
    facts = [age(checkpoint.manifest.created), client, why]
    told = "  ".join(safe(fact) for fact in facts if fact)
    lines = [Line((Part(name, "number"), Part(f"  {told}", "dim")))]
    for text in provenance(ink(), checkpoint):
        lines += styled_lines(text, room)
    turn = checkpoint.trigger == "turn-end"
    said = prompt_of(checkpoint) if turn else note_of(checkpoint)
    asked = [styled(one) for one in prompt_lines(ink(), said or "", room)]
    return [*lines, *asked[:_PROMPT], *([line("> …", "dim")] * (len(asked) > _PROMPT))]


def _between(workspace: Workspace, view: View, old: Checkpoint) -> Iterator[Page]:
    """Yields the diff of two marked states, the older one first."""
    assert view.other is not None
    new = select(workspace, view.other)
    paths = [view.path] if view.path is not None else []
    found = diff.between(old, new, paths)
    head = f"#{old.number} → #{new.number}: {count(len(found.files), 'file')} differ"
    yield Page([line(head, "bold"), BLANK, *_compared([found])])


def _changes(
    workspace: Workspace, checkpoint: Checkpoint, view: View
) -> Iterator[Page]:
    """Yields the changes of a turn: the files at once, their lines after that."""
    shown = whole_of(workspace, checkpoint)
    if view.path is not None:
        shown = shown._replace(paths=(view.path,))
    changed = [one for one in shown.changes() if shown.together.own(one.path)]
    head = _head(checkpoint, view.room)
    what = "since the turn before" if shown.ends_turn else "since the state before"
    head += [BLANK, line(f"{count(len(changed), 'file')} changed {what}", "bold")]
    yield Page([*head, *map(_file, changed)])
    if len(changed) > _COMPARED:
        hint = line("  Enter shows the lines of a file", "dim")
        yield Page([*head, hint, *map(_file, changed)])
        return
    if changed:
        yield Page([*head, *_compared(shown.compared()), *_theirs(shown)])


def _theirs(shown: Shown) -> Iterator[Line]:
    """Yields changes during the turn that may be another turn's."""
    from gitcp.cli.parted_lines import parted_lines

    for text in parted_lines(ink(), shown.changes(), shown.together):
        for row in text.split("\n"):
            yield styled(row)


def _against_now(
    workspace: Workspace, checkpoint: Checkpoint, view: View
) -> Iterator[Page]:
    """Yields the differences of the present files to a checkpoint's."""
    name = f"#{checkpoint.number}" if checkpoint.number else checkpoint.id
    head = [line(f"now, against {name}", "bold")]
    if view.number is not None:
        head = [*_head(checkpoint, view.room), BLANK, *head]
    yield Page([*head, line("  comparing …", "dim")])
    paths = [view.path] if view.path is not None else []
    found = diff.with_worktree(workspace, checkpoint, paths)
    if not found.files:
        yield Page([*head, line("  nothing has changed since", "dim")])
        return
    yield Page([*head, *_compared([found])])


def _file(change: Change) -> Line:
    sign = SIGNS[change.status]
    parts = Part(f"  {sign} ", sign), Part(safe_path(change.path))
    return Line(parts, Place(change.path))


def _compared(compared: Sequence[FilesDiff]) -> Iterator[Line]:
    """Yields a line for each file, and then the changes in the files."""
    out = ink()
    for each in compared:
        files = [file for file in each.files if file.renamed_to is None]
        for file, text in zip(files, stat_lines(out, each.files), strict=True):
            yield styled(text, Place(file.change.path))
    for each in compared:
        yield BLANK
        yield from laid_out(out, each.patch)


def _talk(workspace: Workspace, checkpoint: Checkpoint, view: View) -> Iterator[Page]:
    """Yields the conversation, which begins at its last turn."""
    if checkpoint.manifest.conversation is None:
        yield Page([line("this checkpoint has no conversation", "dim")])
        return
    found = dialogue(checkpoint)
    out, lines, start = ink(), list[Line](), 0
    if checkpoint.origin.logs is not None:
        where = safe(checkpoint.origin.logs)
        lines += [line(f"pulled from {where}: not your conversation", "bold")]
    tops = [str(workspace.top), *([found.directory] if found.directory else [])]
    for number, turn in enumerate(found.turns, 1):
        lines += [BLANK] if lines else []
        start = len(lines)
        lines.append(styled(turn_header(out, number, turn)))
        lines += map(styled, prompt_lines(out, turn.prompt or "", view.room))
        if turn.tools and view.tools:
            lines += map(styled, tool_lines(out, turn.tools, tops, view.room))
        elif turn.tools:
            lines.append(line(f"  * {count(len(turn.tools), 'tool call')}", "dim"))
        lines += map(styled, answer_lines(turn.answer, view.room))
    if not found.turns:
        lines.append(line("nothing was said yet", "dim"))
    yield Page(lines, start)


def _reasons(
    workspace: Workspace, checkpoint: Checkpoint, view: View
) -> Iterator[Page]:
    """Yields the decision log, the newest first, with entries of this turn at the top."""
    out = ink()
    new = whole_of(workspace, checkpoint).decisions(workspace)
    older = checkpoint.decisions()
    older = older[: len(older) - len(new)] if older[-len(new) :] == new else older
    lines: list[Line] = []
    for heading, entries in (("in this turn", new), ("before", older)):
        if entries:
            lines += [*([BLANK] if lines else []), line(heading, "bold")]
        for entry in reversed(entries):
            lines += styled_lines(decision_line(out, entry), view.room)
    yield Page(lines or [line("no reasons recorded", "dim")])


def _not_captured(workspace: Workspace, checkpoint: Checkpoint) -> Iterator[Page]:
    """Yields the paths that a checkpoint did not capture, and those a restore would withhold."""
    lines = [
        Line((Part(f"  {safe_path(path)}"), Part(f"  {safe_line(reason)}", "dim")))
        for path, reason in left_out_of(checkpoint.skipped())
    ]
    if checkpoint.origin.foreign:
        from gitcp.sync.preview import foretold

        lines += map(line, withheld_lines(foretold(workspace, checkpoint), 200))
    yield Page(lines or [line("everything was captured", "dim")])
