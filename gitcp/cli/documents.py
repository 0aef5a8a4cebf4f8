"""Builds the JSON documents that several commands print."""

import base64
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from gitcp import Checkpoint
from gitcp.format import jsontext, tree
from gitcp.format.checkpoint import Skipped, is_text, show_path
from gitcp.format.log import Decision

if TYPE_CHECKING:
    from gitcp.worktree.plan import FilePlan, Left

if TYPE_CHECKING:
    from gitcp.checkpoints.diff import FileDiff
    from gitcp.checkpoints.spoken_turns import SpokenTurn

    # It imports everything that restoring needs; most commands need none of it.
    from gitcp.sync.preview import Foretold


def path_fields(path: bytes) -> dict[str, str]:
    """Returns `path`, and `path_b64` if the path is not UTF-8."""
    fields = {"path": show_path(path)}
    if not is_text(path):
        fields["path_b64"] = base64.b64encode(path).decode()
    return fields


def checkpoint(checkpoint: Checkpoint | None) -> dict[str, Any] | None:
    """Returns a checkpoint in the form of the JSON interface."""
    if checkpoint is None:
        return None
    manifest = checkpoint.manifest
    conversation = None
    if manifest.conversation is not None:
        conversation = {
            "messages": manifest.conversation.messages,
            "bytes": manifest.conversation.bytes,
            "agent": manifest.conversation.kind,
            "agent_session": manifest.conversation.agent_session,
            "source": manifest.conversation.source,
            "segments": manifest.conversation.segments,
        }
    return {
        "number": checkpoint.number,
        "id": manifest.id,
        "commit": checkpoint.commit,
        "session": manifest.session,
        "branch": manifest.branch,
        "seq": manifest.seq,
        "created": manifest.created,
        "trigger": manifest.trigger,
        "note": manifest.note,
        "label": checkpoint.label,
        "author": manifest.author,
        "base": manifest.base,
        "files": manifest.files,
        "changed": checkpoint.changed._asdict(),
        "conversation": conversation,
        "decisions": manifest.decisions.entries if manifest.decisions else 0,
        "task": manifest.task,
        "position": msgspec.Raw(jsontext.compact(manifest.position)),
        "metadata": msgspec.Raw(jsontext.compact(manifest.metadata)),
        "skipped": manifest.skipped,
        "restored_from": manifest.restored_from,
        "replaced": manifest.replaced,
        "forked_from": manifest.forked_from,
        "foreign": checkpoint.origin.foreign,
        "origin": {
            "files": checkpoint.origin.files,
            "conversation": checkpoint.origin.logs,
        },
        "converted": [
            {"from": way.hash, "base": way.base, "commit": commit}
            for way, commit in zip(
                manifest.converted, checkpoint.trailers.converted, strict=False
            )
        ],
    }


def _decision(entry: Decision) -> dict[str, Any]:
    return {
        "kind": entry.kind,
        "text": entry.text,
        "why": entry.why,
        "at": entry.at,
        "paths": list(entry.paths),
    }


def decisions(entries: Iterable[Decision]) -> list[dict[str, Any]]:
    """Returns decision entries."""
    return [_decision(entry) for entry in entries]


def reasons(
    entries: Iterable[Decision], taken_back: Container[Decision]
) -> list[dict[str, Any]]:
    """Returns decision entries, with a mark on those whose changes a restore took back."""
    return [
        {**_decision(entry), "taken_back": entry in taken_back} for entry in entries
    ]


def changes(changes: Iterable[tree.Change]) -> list[dict[str, Any]]:
    """Returns changed paths."""
    return [{**path_fields(change.path), "status": change.status} for change in changes]


def changes_and_renames(
    changes: Iterable[tree.Change], renamed: Mapping[bytes, bytes]
) -> list[dict[str, Any]]:
    """Returns changed paths; `renamed` has the old path of each renamed one."""
    targets = {old: new for new, old in renamed.items()}
    return [
        {
            **path_fields(change.path),
            "status": change.status,
            **_renamed(renamed.get(change.path), targets.get(change.path)),
        }
        for change in changes
    ]


def file_diffs(files: Iterable["FileDiff"]) -> list[dict[str, Any]]:
    """Returns changed paths with their lines."""
    return [
        {
            **path_fields(file.change.path),
            "status": file.change.status,
            **_renamed(file.renamed_from, file.renamed_to),
            "old_mode": _mode(file.change.old),
            "new_mode": _mode(file.change.new),
            "added": file.added,
            "deleted": file.deleted,
        }
        for file in files
    ]


def _renamed(old: bytes | None, new: bytes | None) -> dict[str, str | None]:
    """Returns the other side of a rename, for either of its paths; else an empty dict."""
    return (
        {"renamed_from": _path(old), "renamed_to": _path(new)}
        if old is not None or new is not None
        else {}
    )


def _path(path: bytes | None) -> str | None:
    return show_path(path) if path is not None else None


def _mode(entry: tree.Entry | None) -> str | None:
    return f"{entry.mode:06o}" if entry is not None else None


def spoken(turn: "SpokenTurn | None") -> dict[str, Any]:
    """Returns a turn's prompt, its tool calls, and the answer."""
    return {
        "prompt": _unicode(turn.prompt) if turn else None,
        "tools": [
            {"name": _unicode(call.tool), "argument": _unicode(call.argument)}
            for call in (turn.tools if turn else ())
        ],
        "answer": _unicode(turn.answer) if turn else None,
    }


def _unicode(text: str | None) -> str | None:
    """Returns a text without lone surrogates, which JSON may hold."""
    return text.encode("utf-8", "replace").decode() if text is not None else None


def skipped(entries: Iterable[Skipped]) -> list[dict[str, Any]]:
    """Returns the paths that were not captured."""
    return [{**path_fields(path), "reason": reason} for path, reason in entries]


def steps(plan: "FilePlan") -> list[dict[str, Any]]:
    """Returns the steps of a plan."""
    return [{**path_fields(step.path), "action": step.action} for step in plan.steps]


def left(paths: "Iterable[Left]") -> list[dict[str, Any]]:
    """Returns the paths that a restore leaves as they are."""
    return [{**path_fields(path), "reason": reason} for path, reason in paths]


def withheld(preview: "Foretold | None") -> dict[str, Any]:
    """Returns the changes that a restore without trust would withhold."""
    return {
        "paths": left(preview.paths) if preview else [],
        "conversation": preview.agent if preview else None,
    }
