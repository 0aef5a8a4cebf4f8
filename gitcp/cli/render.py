"""Formats checkpoints for people."""

import datetime
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from gitcp import Checkpoint
from gitcp.checkpoints.own_notes import note_of
from gitcp.cli.emit import Output, one_line, path_line, safe, safe_line, safe_path
from gitcp.format import tree
from gitcp.format.log import Decision

if TYPE_CHECKING:
    # It imports everything that restoring needs; most commands need none of it.
    from gitcp.sync.preview import Foretold

_SIGN = {"added": ("A", "green"), "modified": ("M", "yellow"), "deleted": ("D", "red")}
SIGNS = {status: sign for status, (sign, _) in _SIGN.items()}
_TITLES = {
    "acp": "the agent in the editor",
    "claude-code": "Claude Code",
    "cline": "Cline CLI",
    "codex": "Codex",
    "copilot": "Copilot CLI",
    "cursor": "Cursor",
    "droid": "Droid",
    "gemini": "Gemini CLI",
    "kilo": "Kilo",
    "opencode": "OpenCode",
    "pi": "Pi",
    "openhands": "OpenHands",
    "qwen": "Qwen Code",
    "vscode": "VS Code",
}
_UNITS = ("B", "KB", "MB", "GB", "TB")
_KILO = 1024


def size(count: float) -> str:
    """Returns a size for people."""
    for unit in _UNITS:
        if count < _KILO or unit == _UNITS[-1]:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _KILO
    raise AssertionError


def count(number: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun, `1 path` or `2 paths`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def title_of(kind: str) -> str:
    """Returns the title of a client, without loading its module, which takes too long."""
    return _TITLES.get(kind, one_line(kind, 20))


def place(out: Output, session: str, branch: str) -> str:
    """Returns `session/branch`."""
    return out.style(one_line(f"{session}/{branch}".replace("\n", "\\n")), fg="cyan")


def name_of(out: Output, checkpoint: Checkpoint) -> str:
    """Returns `#47 id`, or `session/branch:seq id` for a checkpoint without a number."""
    ident = out.style(checkpoint.id, fg="yellow")
    if checkpoint.number is not None:
        return f"{out.style(f'#{checkpoint.number}', fg='cyan', bold=True)} {ident}"
    where = place(out, checkpoint.session, checkpoint.branch)
    return f"{where}:{checkpoint.seq} {ident}"


def headline(out: Output, checkpoint: Checkpoint) -> str:
    """Returns one line that tells a checkpoint from others."""
    note = one_line(note_of(checkpoint), 60)
    return f"{name_of(out, checkpoint)}{f'  {note}' if note else ''}"


def provenance(out: Output, checkpoint: Checkpoint) -> list[str]:
    """Returns a line with the origin of a checkpoint, if it was not made here."""
    where = checkpoint.origin.where
    if where is None:
        return []
    author = None if checkpoint.origin.here else checkpoint.manifest.author
    by = f", by {one_line(author, 60)} (as it says)" if author else ""
    what = "" if checkpoint.origin.files is not None else " (what was said and decided)"
    # The user's own checkpoints look like this, too, once `.git/gitcp` was deleted.
    unsealed = checkpoint.origin.unknown
    known = "not sealed with this repository's key" if unsealed else "not made here"
    return [
        out.style(f"  from     {one_line(where, 60)}{by}{what}: {known}", bold=True)
    ]


def whose(checkpoint: Checkpoint) -> str:
    """Returns the owner of a conversation that was made elsewhere, for a sentence."""
    author = None if checkpoint.origin.here else checkpoint.manifest.author
    by = f"by {one_line(author, 60)} (as it says), " if author else ""
    return f"{by}from {one_line(checkpoint.origin.logs or 'here', 60)}"


def withheld_lines(preview: "Foretold", limit: int = 5) -> list[str]:
    """Returns lines about the changes that a restore without trust would withhold."""
    lines = []
    if preview.paths:
        lines.append(
            f"a restore leaves out {count(len(preview.paths), 'path')} that"
            f" differ{('s' if len(preview.paths) == 1 else '')} from HEAD (--trust"
            " restores them):"
        )
        lines += [
            f"  {path_line(left.path, left.reason)}" for left in preview.paths[:limit]
        ]
        if len(preview.paths) > limit:
            lines.append(f"  and {len(preview.paths) - limit} more")
    if preview.agent is not None:
        lines.append(
            f"its conversation ({safe_line(preview.agent)}) is not handed to a client"
            " without --trust"
        )
    return lines


def changed(checkpoint: Checkpoint) -> str:
    """Returns the counts of changed files, `+2 ~1 -1`; empty if nothing changed."""
    files = checkpoint.manifest.files
    parts = [(files.added, "+"), (files.modified, "~"), (files.deleted, "-")]
    return " ".join(f"{sign}{count}" for count, sign in parts if count)


def change_lines(out: Output, changes: Iterable[tree.Change]) -> Iterable[str]:
    """Yields a line for each changed path."""
    for change in changes:
        sign, color = _SIGN[change.status]
        yield f"  {out.style(sign, fg=color)} {safe_path(change.path)}"


def decision_line(out: Output, entry: Decision) -> str:
    """Returns an entry of the decision log; its further lines are indented below it."""
    text = safe(entry.text)
    if entry.paths:
        text += f"  [{', '.join(map(safe_path, entry.paths))}]"
    if entry.why:
        text += f"\nbecause {safe(entry.why)}"
    text = text.replace("\n", f"\n{'':12}")
    return f"  {out.style(f'{one_line(entry.kind):<9}', fg='magenta')} {text}"


def when(checkpoint: Checkpoint) -> str:
    """Returns the time of a checkpoint in the user's zone, as git writes times."""
    created = checkpoint.manifest.created
    # A foreign checkpoint's time may be too early or late for the user's zone.
    with suppress(OverflowError, ValueError, OSError):
        made = datetime.datetime.fromisoformat(created).astimezone()
        return made.strftime("%Y-%m-%d %H:%M:%S %z")
    return f"{created[:19].replace('T', ' ')} +0000"


def width() -> int:
    """Returns the width of the terminal."""
    import shutil

    return shutil.get_terminal_size((100, 24)).columns


def prompt_plan(out: Output, lines: list[str], limit: int = 40) -> None:
    """Prints a plan to stderr, for a confirmation."""
    for line in lines[:limit]:
        out.tell(line)
    if len(lines) > limit:
        out.tell(f"  … and {len(lines) - limit} more")
