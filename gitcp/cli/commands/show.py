"""`gitcp show`: prints one checkpoint."""

from typing import Any

import click

from gitcp import Checkpoint
from gitcp.checkpoints.commit_lookup import (
    CommitStory,
    Part,
    changed_by,
    decided_in,
)
from gitcp.checkpoints.conversation import as_markdown, last_spoken
from gitcp.checkpoints.selectors import look_up
from gitcp.cli import documents
from gitcp.cli.emit import Output, one_line, safe, safe_path
from gitcp.cli.options import command, reader
from gitcp.cli.render import (
    change_lines,
    count,
    decision_line,
    headline,
    provenance,
    size,
    when,
    withheld_lines,
)
from gitcp.format.checkpoint import Conversation
from gitcp.project.workspace import Workspace
from gitcp.store.store import Store
from gitcp.sync.preview import Foretold, foretold

_LAST = 3
_LINES = 200
_SHOWN = 4


def _before(store: Store, checkpoint: Checkpoint) -> Checkpoint | None:
    parents = checkpoint.raw.parents
    return store.checkpoint(parents[0]) if parents else None


def _behind_document(behind: CommitStory | None) -> dict[str, Any] | None:
    if behind is None:
        return None
    return {
        "commit": behind.commit,
        "replaces": list(behind.replaces),
        "checkpoints": [
            checkpoint.id for part in behind.parts for checkpoint in part.checkpoints
        ],
    }


def _show_behind(out: Output, behind: CommitStory) -> None:
    """Says what the rest is about: all that led to a commit, not one checkpoint."""
    total = sum(len(part.checkpoints) for part in behind.parts)
    number = "1 checkpoint" if total == 1 else f"{total} checkpoints, the last of them"
    out.print(f"Behind the commit {behind.commit[:12]}: {number}")
    if behind.replaces:
        some = ", ".join(oid[:12] for oid in behind.replaces[:_SHOWN])
        more = " …" if len(behind.replaces) > _SHOWN else ""
        out.print(f"  (it was made of {some}{more})")


def _told(workspace: Workspace, checkpoint: Checkpoint) -> Foretold | None:
    return foretold(workspace, checkpoint) if checkpoint.origin.foreign else None


def _head(out: Output, checkpoint: Checkpoint, preview: Foretold | None) -> None:
    out.print(headline(out, checkpoint))
    for line in provenance(out, checkpoint):
        out.print(line)
    for line in withheld_lines(preview, _LINES) if preview else ():
        out.print(f"  withheld {line}")


@command("show")
@click.argument("selector", metavar="[SEL]", required=False)
def show_command(out: Output, selector: str | None) -> None:
    """Show one checkpoint: changes, decisions, last messages.

    What it did not capture is listed, too. SEL may be a commit of the project: then it is
    what lies behind it.
    """
    workspace = reader(out)
    checkpoint, behind = look_up(workspace, selector)
    parts = (
        behind.parts
        if behind
        else (Part(_before(workspace.store, checkpoint), (checkpoint,)),)
    )
    changes = changed_by(parts)
    new = decided_in(parts)
    skipped = checkpoint.skipped()
    if out.json:
        out.document(
            {
                "schema": "gitcp.show/1",
                "checkpoint": documents.checkpoint(checkpoint),
                "changes": documents.changes(changes),
                "decisions": documents.decisions(new),
                "skipped": documents.skipped(skipped),
                "behind": _behind_document(behind),
                "withheld": documents.withheld(_told(workspace, checkpoint)),
            }
        )
        return
    if behind is not None:
        _show_behind(out, behind)
    _head(out, checkpoint, _told(workspace, checkpoint))
    _show_manifest(out, checkpoint)
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
    if checkpoint.manifest.conversation is not None:
        _show_conversation(out, checkpoint, checkpoint.manifest.conversation)
    if skipped:
        out.print(f"\nNot captured ({len(skipped)})")
        for path, reason in skipped[:_LINES]:
            out.print(f"  {safe_path(path)} ({safe(reason)})")


def _show_manifest(out: Output, checkpoint: Checkpoint) -> None:
    manifest = checkpoint.manifest
    out.print(f"  made     {when(checkpoint)} UTC, {safe(manifest.trigger)}")
    if checkpoint.label:
        out.print(f"  label    {safe(checkpoint.label)}")
    base = manifest.base
    if base and base.commit:
        operation = f", {base.operation} under way" if base.operation else ""
        branch = safe(base.branch or "detached")
        out.print(f"  git      {base.commit[:12]} ({branch}{operation})")
    if manifest.task:
        out.print(f"  task     {one_line(manifest.task)}")
    if bytes(manifest.position) != b"null":
        out.print(f"  position {one_line(bytes(manifest.position).decode(), 100)}")
    if manifest.note and "\n" in manifest.note.strip():
        out.print(f"\n{safe(manifest.note)}")


def _show_conversation(
    out: Output, checkpoint: Checkpoint, conversation: Conversation
) -> None:
    logs = checkpoint.origin.logs
    pulled = f", pulled from {one_line(logs, 40)}" if logs else ""
    out.print(
        f"\nConversation ({count(conversation.messages, 'message')},"
        f" {size(conversation.bytes)}, {safe(conversation.kind)}{pulled})"
    )
    last = last_spoken(checkpoint.conversation_to_read()[0], _LAST)
    for line in as_markdown(last).splitlines()[:_LINES]:
        out.print(f"  {safe(line)}".rstrip())
