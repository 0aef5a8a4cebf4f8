"""`gitcp diff`: prints the differences between two checkpoints, or to the work tree."""

import os
from contextlib import suppress
from typing import Any

import click
import msgspec

from gitcp import Checkpoint
from gitcp.checkpoints import diff as ops
from gitcp.checkpoints.conversation import as_markdown
from gitcp.checkpoints.diff import FilesDiff
from gitcp.checkpoints.diff_conversation import conversations
from gitcp.checkpoints.selectors import LAST, select
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe
from gitcp.cli.file_lines import colored, patch_lines, stat_lines
from gitcp.cli.options import command, path_inside, reader
from gitcp.cli.render import count, decision_line
from gitcp.errors import NotFoundError, UsageError
from gitcp.project.workspace import Workspace


@command("diff")
@click.argument("first", metavar="A")
@click.argument("rest", metavar="[B] [PATH]...", nargs=-1)
@click.option("--files", is_flag=True, help="Compare the files (the default)")
@click.option("--conversation", is_flag=True, help="Compare the conversations")
@click.option("--decisions", is_flag=True, help="Compare the decision logs")
@click.option("--stat", is_flag=True, help="Only count what changed")
def diff_command(
    out: Output,
    first: str,
    rest: tuple[str, ...],
    files: bool,
    conversation: bool,
    decisions: bool,
    stat: bool,
) -> None:
    """Show what changed between checkpoints, or since one.

    Without B, files are compared with the work tree, and conversation and decisions with
    the newest checkpoint. `A..B` is the same as `A B`; if one end is missing, it is the
    newest checkpoint.
    """
    if files + conversation + decisions > 1:
        raise UsageError(
            "--files, --conversation and --decisions are mutually exclusive",
            hint="use one of them",
        )
    workspace = reader(out, paged=True)
    old, end = _ends(workspace, first)
    new, paths = _second(out, workspace, old, rest, end)
    if paths and (conversation or decisions):
        raise UsageError(
            "paths can only be combined with --files", hint="drop the paths"
        )
    if conversation or decisions:
        if new is None:
            current = workspace.current()
            new = workspace.store.require_tip(current.session, current.branch)
        if conversation:
            _conversation(out, old, new, stat=stat)
        else:
            _decisions(out, old, new, stat=stat)
    elif new is not None:
        _files(out, old, new, ops.between(old, new, paths), stat=stat)
    else:
        diff = ops.with_worktree(workspace, old, paths)
        _files(out, old, None, diff, stat=stat)


def _ends(workspace: Workspace, first: str) -> tuple[Checkpoint, Checkpoint | None]:
    """Returns A, and B if the first argument is `A..B`."""
    begin, dots, end = first.partition("..")
    if not dots:
        return select(workspace, first), None
    try:
        return select(workspace, begin or LAST), select(workspace, end or LAST)
    except (NotFoundError, UsageError):
        # The name of a session, and so a selector, may contain two dots.
        with suppress(NotFoundError, UsageError):
            return select(workspace, first), None
        raise


def _second(
    out: Output,
    workspace: Workspace,
    old: Checkpoint,
    rest: tuple[str, ...],
    new: Checkpoint | None,
) -> tuple[Checkpoint | None, list[bytes]]:
    """Returns B, which may be known or be the first argument, and the paths."""
    words = list(rest)
    if words and new is None:
        try:
            new = select(workspace, words[0])
            words = words[1:]
        except (NotFoundError, UsageError):
            inside = path_inside(out, workspace.top, words[0])
            there = os.path.lexists(os.path.join(os.fsencode(workspace.top), inside))
            if not there and old.entry(inside) is None:
                raise
    paths = [path_inside(out, workspace.top, word) for word in words]
    for word, path in zip(words, paths, strict=True):
        sides = [side for side in (old, new) if side is not None]
        there = new is None and os.path.lexists(
            os.path.join(os.fsencode(workspace.top), path)
        )
        if not there and not any(side.entry(path) for side in sides):
            raise NotFoundError(
                f"{word} is in neither state",
                hint="`gitcp files SEL` lists the paths",
            )
    return new, paths


def _head(kind: str, old: Checkpoint, new: Checkpoint | None) -> dict[str, Any]:
    return {
        "schema": "gitcp.diff/1",
        "kind": kind,
        "a": old.id,
        "b": new.id if new is not None else None,
    }


def _files(
    out: Output,
    old: Checkpoint,
    new: Checkpoint | None,
    diff: FilesDiff,
    *,
    stat: bool,
) -> None:
    if out.json:
        document = _head("files", old, new)
        document["changes"] = documents.file_diffs(diff.files)
        if not stat:
            document["patch"] = diff.patch.decode("utf-8", "backslashreplace")
        out.document(document)
        return
    for line in stat_lines(out, diff.files) if stat else patch_lines(out, diff.patch):
        out.print(line, whole=True)
    if stat:
        differing = sum(file.renamed_to is None for file in diff.files)
        out.note(f"{count(differing, 'file')} with differences")


def _conversation(out: Output, old: Checkpoint, new: Checkpoint, *, stat: bool) -> None:
    diff = conversations(old, new)
    if out.json:
        document = _head("conversation", old, new)
        document |= {"common": diff.common}
        document |= {"removed": diff.removed.total, "added": diff.added.total}
        if not stat:
            document["removed_records"] = list(map(_record, diff.removed.shown))
            document["added_records"] = list(map(_record, diff.added.shown))
        out.document(document)
    else:
        out.print(
            f"{diff.common} records in common, {diff.removed.total} only in {old.id},"
            f" {diff.added.total} only in {new.id}"
        )
        for sign, records in (("-", diff.removed), ("+", diff.added)):
            if not stat:
                for line in as_markdown(b"\n".join(records.shown)).splitlines():
                    out.print(colored(out, safe(f"{sign} {line}".rstrip())), whole=True)
    if not stat and not (diff.removed.whole and diff.added.whole):
        out.warn(
            "only the first records are shown; `gitcp messages SEL --format"
            " jsonl` prints every byte"
        )


def _record(line: bytes) -> Any:
    try:
        return msgspec.Raw(msgspec.json.format(line.decode().encode(), indent=-1))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return line.decode("utf-8", "backslashreplace")


def _decisions(out: Output, old: Checkpoint, new: Checkpoint, *, stat: bool) -> None:
    diff = ops.decision_logs(old, new)
    if out.json:
        document = _head("decisions", old, new)
        document |= {"common": diff.common}
        if stat:
            document |= {"removed": len(diff.removed), "added": len(diff.added)}
        else:
            document |= {
                "removed": documents.decisions(diff.removed),
                "added": documents.decisions(diff.added),
            }
        out.document(document)
        return
    out.print(
        f"{diff.common} entries in common, {len(diff.removed)} only in {old.id},"
        f" {len(diff.added)} only in {new.id}"
    )
    if stat:
        return
    for sign, entries in (("-", diff.removed), ("+", diff.added)):
        for entry in entries:
            out.print(f"{sign}{decision_line(out, entry)[1:]}")
