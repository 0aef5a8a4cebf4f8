"""`gitcp show`: prints one checkpoint."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from gitcp import Checkpoint
from gitcp.checkpoints import diff
from gitcp.checkpoints.commit_lookup import CommitStory, Part, files_before
from gitcp.checkpoints.conversation import as_markdown, last_spoken
from gitcp.checkpoints.history import prompt_of
from gitcp.checkpoints.own_notes import note_of
from gitcp.checkpoints.selectors import look_up
from gitcp.checkpoints.turn_of import Turn, spoken_in
from gitcp.cli import documents
from gitcp.cli.beside_lines import beside_documents, beside_lines, inside_lines
from gitcp.cli.emit import Output, one_line, path_line, safe, unstyled
from gitcp.cli.file_lines import (
    changed_files,
    grouped_lines,
    patch_lines,
    stat_lines,
)
from gitcp.cli.layout import cells, fit, width
from gitcp.cli.options import command, path_inside, reader
from gitcp.cli.parted_lines import parted_documents, parted_lines
from gitcp.cli.render import (
    count,
    decision_line,
    name_of,
    provenance,
    size,
    when,
    withheld_lines,
)
from gitcp.cli.shown import Shown, parent_of, whole_of
from gitcp.cli.turn_lines import answer_lines, prompt_lines, tool_lines
from gitcp.errors import NotFoundError, UsageError
from gitcp.format import tree
from gitcp.format.checkpoint import Conversation, left_out_of
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from gitcp.sync.preview import Foretold

_LAST = 3
_LINES = 200
_SHOWN = 4
# How many lines to show of a prompt's beginning, and of an answer's end.
_SPOKEN = 12
_TOOLS = 40


def _behind_document(behind: CommitStory | None) -> dict[str, Any] | None:
    if behind is None:
        return None
    return {
        "commit": behind.commit,
        "replaces": list(behind.replaces),
        "made": behind.made,
        "checkpoints": [
            checkpoint.id for part in behind.parts for checkpoint in part.checkpoints
        ],
    }


def _show_behind(out: Output, behind: CommitStory) -> None:
    """Prints that the rest is about all that led to a commit, not about one checkpoint."""
    total = sum(len(part.checkpoints) for part in behind.parts)
    number = "1 checkpoint" if total == 1 else f"{total} checkpoints, the last of them"
    name = f"the commit {behind.commit[:12]}"
    out.print(
        {
            "at": f"Behind {name}: {number}",
            "before": f"No checkpoint was made at {name}; the last one before it: {number}",
            "after": f"No checkpoint was made at {name}; the first one after it: {number}",
        }[behind.made]
    )
    if behind.replaces:
        some = ", ".join(oid[:12] for oid in behind.replaces[:_SHOWN])
        more = " …" if len(behind.replaces) > _SHOWN else ""
        out.print(f"  (it was made of {some}{more})")


def _told(workspace: Workspace, checkpoint: Checkpoint) -> "Foretold | None":
    if not checkpoint.origin.foreign:
        return None
    from gitcp.sync.preview import foretold

    return foretold(workspace, checkpoint)


def _head(out: Output, checkpoint: Checkpoint, preview: "Foretold | None") -> None:
    name = name_of(out, checkpoint)
    columns = width()
    room = max(1, columns - cells(unstyled(name)) - 2) if columns else None
    note = fit(one_line(note_of(checkpoint)), room)
    out.print(f"{name}  {note}" if note else name)
    for line in provenance(out, checkpoint):
        out.print(line)
    for line in withheld_lines(preview, _LINES) if preview else ():
        out.print(f"  withheld {line}")


@command("show")
@click.argument("selector", metavar="[SEL]", required=False)
@click.argument("words", metavar="[-- PATH...]", nargs=-1)
@click.option("-p", "--patch", is_flag=True, help="Show the lines that changed")
@click.option("--stat", is_flag=True, help="Count the lines that changed in each file")
def show_command(
    out: Output,
    selector: str | None,
    words: tuple[str, ...],
    patch: bool,
    stat: bool,
) -> None:
    """Show one checkpoint, or a whole turn.

    For a turn it shows the prompt, the tools that ran, the end of the answer, the changed
    files and the decisions. It also lists what was not captured. If SEL is a commit of the
    project, it shows the checkpoints that led to that commit.
    """
    workspace = reader(out, paged=True)
    shown = _looked_up(out, workspace, selector, words)
    if out.json:
        _document(out, workspace, shown, patch=patch, stat=stat)
        return
    checkpoint = shown.checkpoint
    if shown.behind is not None:
        _show_behind(out, shown.behind)
    _head(out, checkpoint, _told(workspace, checkpoint))
    _show_manifest(out, checkpoint)
    if shown.turn is not None and not shown.ends_turn:
        end = shown.turn.end
        number = f"#{end.number}" if end.number else end.id
        asked = fit(one_line(prompt_of(end) or ""), 60)
        out.print(f'  turn     {number} "{asked}"')
    for line in beside_lines(workspace, shown.together.spans, width()):
        out.print(line)
    if shown.turn is not None and shown.ends_turn:
        for line in inside_lines(shown.turn, width()):
            out.print(line)
    if not shown.paths and checkpoint.manifest.conversation is not None:
        _show_conversation(out, workspace, shown, checkpoint.manifest.conversation)
    _show_files(out, shown, patch=patch, stat=stat)
    new = shown.decisions(workspace)
    if new:
        out.print("\nDecisions")
        for entry in new:
            out.print(decision_line(out, entry))
    listed = checkpoint.skipped()
    skipped = left_out_of(listed)
    if skipped:
        out.print(f"\nNot captured ({len(skipped)})")
        for path, reason in skipped[:_LINES]:
            out.print(f"  {path_line(path, reason)}")
    if len(skipped) < len(listed):
        out.print("\nDatabases, with the content of their logs")
        for one in listed:
            if one not in skipped:
                out.print(f"  {path_line(one.path, one.reason)}")


def _looked_up(
    out: Output, workspace: Workspace, selector: str | None, words: Sequence[str]
) -> Shown:
    """Finds the named checkpoint; the first word may be a path, too, if it is no selector.

    Raises:
        NotFoundError: the word is neither a checkpoint nor a path.
    """
    try:
        checkpoint, behind, _ = look_up(workspace, selector)
    except (NotFoundError, UsageError):
        if selector is None:
            raise
        checkpoint, behind, _ = look_up(workspace, None)
        path = path_inside(out, workspace.top, selector)
        on_disk = os.path.join(os.fsencode(workspace.top), path)
        if checkpoint.entry(path) is None and not os.path.lexists(on_disk):
            raise
        words = [selector, *words]
    paths = tuple(path_inside(out, workspace.top, word) for word in words)
    if behind is not None:
        shown = Shown(checkpoint, behind, None, behind.parts, paths)
    else:
        shown = whole_of(workspace, checkpoint)._replace(paths=paths)
    for word, path in zip(words, paths, strict=True):
        if not _is_known(path, workspace, shown.parts):
            name = f"#{checkpoint.number}" if checkpoint.number else checkpoint.id
            raise NotFoundError(
                f"{word} is neither in {name} nor in the state before it",
                hint="quote a time (`gitcp show '5 minutes ago'`), or see `gitcp files"
                f" {name.removeprefix('#')}` lists the paths",
            )
    return shown


def _is_known(path: bytes, workspace: Workspace, parts: Sequence[Part]) -> bool:
    """Whether a path exists, or has existed."""
    if os.path.lexists(os.path.join(os.fsencode(workspace.top), path)):
        return True
    for part in parts:
        read = part.end.objects.files
        before = files_before(part)
        if before is not None and tree.lookup(before, path, read) is not None:
            return True
        if any(each.entry(path) is not None for each in part.checkpoints):
            return True
    return False


def _document(
    out: Output, workspace: Workspace, shown: Shown, *, patch: bool, stat: bool
) -> None:
    checkpoint, turn = shown.checkpoint, shown.turn
    alone = shown
    if shown.behind is None:
        # The changes of the checkpoint itself, on its branch: the turn lists its own.
        own = Part(parent_of(workspace, checkpoint), (checkpoint,))
        alone = shown._replace(parts=(own,))
    changes = alone.changes()
    compared = shown.compared() if patch or stat else ()
    lines = [file for each in compared for file in each.files]
    raw = b"".join(each.patch for each in compared)
    out.document(
        {
            "schema": "gitcp.show/1",
            "checkpoint": documents.checkpoint(checkpoint),
            "changes": documents.changes_and_renames(
                changes, diff.renames(changes, checkpoint)
            ),
            "decisions": documents.decisions(alone.decisions(workspace)),
            "skipped": documents.skipped(checkpoint.skipped()),
            "behind": _behind_document(shown.behind),
            "withheld": documents.withheld(_told(workspace, checkpoint)),
            "turn": _turn_document(workspace, shown, turn) if turn else None,
            "stat": documents.file_diffs(lines) if stat else None,
            "patch": raw.decode("utf-8", "backslashreplace") if patch else None,
        }
    )


def _turn_document(workspace: Workspace, shown: Shown, turn: Turn) -> dict[str, Any]:
    """Returns the turn that a checkpoint ends, or was made in."""
    whole = shown._replace(parts=(Part(turn.before, turn.checkpoints),))
    changed = whole.changes()
    changes = [one for one in changed if shown.together.own(one.path)]
    return {
        "number": turn.end.number,
        "id": turn.end.id,
        "checkpoints": [checkpoint.id for checkpoint in turn.checkpoints],
        "changes": documents.changes_and_renames(
            changes, diff.renames(changes, turn.end)
        ),
        "spoken": documents.spoken(spoken_in(workspace, turn.end, turn)),
        "beside": beside_documents(workspace, shown.together.spans),
        **parted_documents(changed, shown.together),
    }


def _show_files(out: Output, shown: Shown, *, patch: bool, stat: bool) -> None:
    if not patch and not stat:
        changed = shown.changes()
        changes = [one for one in changed if shown.together.own(one.path)]
        renamed = diff.renames(changes, shown.checkpoint)
        out.print(f"\nFiles ({changed_files(changes, renamed)})")
        for line in grouped_lines(out, changes, renamed):
            out.print(line)
        for line in parted_lines(out, changed, shown.together):
            out.print(line)
        return
    compared = shown.compared()
    if stat:
        out.print()
        for each in compared:
            for line in stat_lines(out, each.files):
                out.print(line)
    if patch:
        out.print()
        for each in compared:
            for line in patch_lines(out, each.patch):
                out.print(line, whole=True)


def _show_manifest(out: Output, checkpoint: Checkpoint) -> None:
    columns = width()

    def fact(name: str, text: str) -> None:
        out.print(fit(f"  {name:<8} {one_line(text)}", columns))

    manifest = checkpoint.manifest
    fact("made", f"{when(checkpoint)}, {manifest.trigger}")
    if checkpoint.label:
        fact("label", checkpoint.label)
    base = manifest.base
    if base and base.commit:
        operation = f", {base.operation} under way" if base.operation else ""
        fact("git", f"{base.commit[:12]} ({base.branch or 'detached'}{operation})")
    was = checkpoint.trailers.converted
    for way, commit in zip(manifest.converted, was, strict=False):
        there = f" at {way.base[:12]}" if way.base else ""
        fact("was", f"{commit[:12]}{there}, in a repository with {way.hash}")
    if manifest.task:
        fact("task", manifest.task)
    if bytes(manifest.position) != b"null":
        fact("position", one_line(bytes(manifest.position).decode(), 100))
    if manifest.note and "\n" in manifest.note.strip():
        out.print()
        # Indented, so that no line of a foreign note looks like a heading.
        for line in answer_lines(manifest.note, columns):
            out.print(line)


def _show_conversation(
    out: Output, workspace: Workspace, shown: Shown, conversation: Conversation
) -> None:
    checkpoint = shown.checkpoint
    logs = checkpoint.origin.logs
    pulled = f", pulled from {one_line(logs, 40)}" if logs else ""
    columns = width()
    heading = (
        f"Conversation ({count(conversation.messages, 'message')},"
        f" {size(conversation.bytes)}, {one_line(conversation.kind)}{pulled})"
    )
    out.print(f"\n{fit(heading, columns)}")
    turn = spoken_in(workspace, checkpoint, shown.turn)
    if turn is None:
        last = last_spoken(checkpoint.conversation_to_read()[0], _LAST)
        for line in as_markdown(last).splitlines()[:_LINES]:
            out.print(f"  {safe(line)}".rstrip())
        return
    asked = list(prompt_lines(out, turn.prompt or "", columns))
    answer = list(answer_lines(turn.answer, columns))
    tools = list(tool_lines(out, turn.tools, [str(workspace.top)], columns))
    for line in asked[:_SPOKEN]:
        out.print(line)
    if len(asked) > _SPOKEN:
        out.print(f"> … {len(asked) - _SPOKEN} more lines")
    for line in tools[:_TOOLS]:
        out.print(line)
    if len(tools) > _TOOLS:
        out.print(f"  * … and {len(tools) - _TOOLS} more")
    if len(answer) > _SPOKEN:
        out.print("  …")
    for line in answer[-_SPOKEN:]:
        out.print(line)
