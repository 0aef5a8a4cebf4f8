"""The JSON documents that commands print."""

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from gitcp.format import jsontext, tree
from gitcp.format.checkpoint import Skipped, is_text, show_path
from gitcp.format.log import Decision
from gitcp.store.checkpoint import Checkpoint
from gitcp.worktree.plan import FilePlan, Left

if TYPE_CHECKING:
    # It brings everything that restoring needs; most commands need none of it.
    from gitcp.sync.preview import Foretold


def path_fields(path: bytes) -> dict[str, str]:
    """Returns `path`, and `path_b64` where the path is not UTF-8."""
    fields = {"path": show_path(path)}
    if not is_text(path):
        fields["path_b64"] = base64.b64encode(path).decode()
    return fields


def checkpoint(found: Checkpoint | None) -> dict[str, Any] | None:
    """Returns a checkpoint as the interface describes it."""
    if found is None:
        return None
    said = found.manifest
    conversation = None
    if said.conversation is not None:
        conversation = {
            "messages": said.conversation.messages,
            "bytes": said.conversation.bytes,
            "agent": said.conversation.kind,
            "agent_session": said.conversation.agent_session,
            "source": said.conversation.source,
            "segments": said.conversation.segments,
        }
    return {
        "id": said.id,
        "commit": found.commit,
        "session": said.session,
        "branch": said.branch,
        "seq": said.seq,
        "created": said.created,
        "trigger": said.trigger,
        "note": said.note,
        "label": said.label,
        "author": said.author,
        "base": said.base,
        "files": said.files,
        "conversation": conversation,
        "decisions": said.decisions.entries if said.decisions else 0,
        "task": said.task,
        "position": msgspec.Raw(jsontext.compact(said.position)),
        "metadata": msgspec.Raw(jsontext.compact(said.metadata)),
        "skipped": said.skipped,
        "restored_from": said.restored_from,
        "replaced": said.replaced,
        "forked_from": said.forked_from,
        "foreign": found.origin.foreign,
        "origin": {"files": found.origin.files, "conversation": found.origin.logs},
    }


def decisions(entries: Iterable[Decision]) -> list[dict[str, Any]]:
    """Returns decision entries."""
    return [
        {
            "kind": entry.kind,
            "text": entry.text,
            "why": entry.why,
            "at": entry.at,
            "paths": list(entry.paths),
        }
        for entry in entries
    ]


def changes(found: Iterable[tree.Change]) -> list[dict[str, Any]]:
    """Returns changed paths."""
    return [{**path_fields(one.path), "status": one.status} for one in found]


def skipped(found: Iterable[Skipped]) -> list[dict[str, Any]]:
    """Returns what was not captured."""
    return [{**path_fields(path), "reason": reason} for path, reason in found]


def steps(plan: FilePlan) -> list[dict[str, Any]]:
    """Returns the steps of a plan."""
    return [{**path_fields(step.path), "action": step.action} for step in plan.steps]


def left(found: Iterable[Left]) -> list[dict[str, Any]]:
    """Returns what a restore leaves as it is."""
    return [{**path_fields(path), "reason": reason} for path, reason in found]


def withheld(told: "Foretold | None") -> dict[str, Any]:
    """Returns what a restore without trust would leave out."""
    return {
        "paths": left(told.paths) if told else [],
        "conversation": told.agent if told else None,
    }
