"""gitcp show."""

import click

from gitcp.cli import documents
from gitcp.cli.emit import Output, one_line, safe
from gitcp.cli.options import command
from gitcp.cli.render import change_lines, decision_line, headline, size, when
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.ops.conversation import as_markdown, last_spoken
from gitcp.ops.diff import new_entries
from gitcp.ops.select import select
from gitcp.ops.workspace import open_workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

_LAST = 3
_LINES = 200


def _before(store: Store, found: Checkpoint) -> Checkpoint | None:
    parents = found.raw.parents
    return store.checkpoint(parents[0]) if parents else None


@command("show")
@click.argument("selector", metavar="[SEL]", required=False)
def show_command(out: Output, selector: str | None) -> None:
    """Show one checkpoint: changes, decisions, last messages, what was not captured."""
    workspace = open_workspace(out.directory)
    found = select(workspace, selector)
    before = _before(workspace.store, found)
    changes = list(
        tree.diff(
            before.files_tree if before else None, found.files_tree, found.objects.tree
        )
    )
    new = new_entries(before, found)
    skipped = found.skipped()
    if out.json:
        out.document(
            {
                "schema": "gitcp.show/1",
                "checkpoint": documents.checkpoint(found),
                "changes": documents.changes(changes),
                "decisions": documents.decisions(new),
                "skipped": documents.skipped(skipped),
            }
        )
        return
    said = found.manifest
    out.print(headline(out, found))
    out.print(f"  made     {when(found)} UTC, {safe(said.trigger)}")
    if said.label:
        out.print(f"  label    {safe(said.label)}")
    if said.base and said.base.commit:
        operation = f", {said.base.operation} under way" if said.base.operation else ""
        branch = safe(said.base.branch or "detached")
        out.print(f"  git      {said.base.commit[:12]} ({branch}{operation})")
    if said.task:
        out.print(f"  task     {one_line(said.task)}")
    if bytes(said.position) != b"null":
        out.print(f"  position {one_line(bytes(said.position).decode(), 100)}")
    if said.note and "\n" in said.note.strip():
        out.print(f"\n{safe(said.note)}")
    out.print(f"\nFiles ({len(changes)} changed)")
    for number, line in enumerate(change_lines(out, changes)):
        if number == _LINES:
            out.print(f"  … and {len(changes) - _LINES} more")
            break
        out.print(line)
    if new:
        out.print("\nDecisions")
        for entry in new:
            out.print(decision_line(out, entry))
    if said.conversation is not None:
        conversation = said.conversation
        out.print(
            f"\nConversation ({conversation.messages} messages,"
            f" {size(conversation.bytes)}, {safe(conversation.kind)})"
        )
        last = last_spoken(found.conversation(), _LAST)
        for line in as_markdown(last).splitlines()[:_LINES]:
            out.print(f"  {safe(line)}".rstrip())
    if skipped:
        out.print(f"\nNot captured ({len(skipped)})")
        for path, reason in skipped[:_LINES]:
            out.print(f"  {safe(show_path(path))} ({safe(reason)})")
