"""Writes `.gitcp/summary.md`, for people: `git show <ref>:.gitcp/summary.md`."""

from collections.abc import Iterable

from gitcp.format.checkpoint import Manifest
from gitcp.format.log import Decision


def summary(manifest: Manifest, new: Iterable[Decision]) -> bytes:
    """Returns the page of one checkpoint; its size does not grow with history."""
    files = manifest.files
    lines = [
        f"# {manifest.session}/{manifest.branch}:{manifest.seq}",
        "",
        manifest.note or f"({manifest.trigger})",
        "",
        f"* checkpoint `{manifest.id}`, {manifest.created}, trigger `{manifest.trigger}`",
        (
            f"* files: {files.added} added, {files.modified} modified,"
            f" {files.deleted} deleted since the one before"
        ),
    ]
    if manifest.conversation is not None:
        conversation = manifest.conversation
        lines.append(
            f"* conversation: {conversation.messages} messages,"
            f" {conversation.bytes} bytes ({conversation.kind})"
        )
    if manifest.task:
        lines.append(f"* task: {manifest.task}")
    if manifest.skipped:
        lines.append(
            f"* not captured: {manifest.skipped} paths, see `.gitcp/skipped.jsonl`"
        )
    entries = list(new)
    if entries:
        lines += ["", "## New in the decision log", ""]
        for entry in entries:
            why = f" ({entry.why})" if entry.why else ""
            lines.append(f"* {entry.kind}: {entry.text}{why}")
    return ("\n".join(lines) + "\n").encode("utf-8", "replace")
