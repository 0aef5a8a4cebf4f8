"""`gitcp du`: prints the disk usage of sessions, turns and paths."""

from typing import Any

from gitcp.cli import documents
from gitcp.cli.emit import Output, safe_line, safe_path
from gitcp.cli.layout import fit, width
from gitcp.cli.options import command, left_out, reader
from gitcp.cli.render import count, size
from gitcp.cli.size_warning import tell_if_large
from gitcp.maintenance.disk_breakdown import Breakdown, TurnCost, breakdown
from gitcp.maintenance.disk_usage import Usage, usage


@command("du")
def du_command(out: Output) -> int:
    """Show how much disk space gitcp uses.

    It lists the size of each session, what the newest turns added, the paths that take
    most space, and which of them you could exclude because git does not track them. A
    file that you remove or exclude now stays in older checkpoints until `gitcp prune`
    removes those.
    """
    workspace = reader(out)
    used = usage(workspace)
    parts = breakdown(workspace)
    if out.json:
        out.document(_document(used, parts))
        return left_out(out, used.unreadable)
    _show_totals(out, used)
    if parts.turns:
        out.print(f"\n{'':10}  added by the newest turns")
    for turn in parts.turns:
        out.print(fit(_turn_line(turn), width()))
    if parts.paths:
        out.print(f"\n{'':10}  largest paths")
    for path in parts.paths:
        versions = count(path.versions, "version")
        shown = f"{size(path.bytes):>10}  {safe_path(path.path)}"
        out.print(f"{shown}  ({versions})")
    if parts.own:
        out.print(
            f"{size(parts.own):>10}  conversations, decisions, lists of directories"
        )
    if parts.exclude:
        out.print("\nTo exclude those that git does not track:")
    for one in parts.exclude:
        out.print(f"  gitcp config --add exclude {_quoted(one.pattern)}", whole=True)
    tell_if_large(out, workspace)
    return left_out(out, used.unreadable)


def _document(used: Usage, parts: Breakdown) -> dict[str, Any]:
    return {
        "schema": "gitcp.du/1",
        "packs": {"bytes": used.packs, "count": used.pack_count},
        "only": used.only,
        "scan": used.scan,
        "search": used.search,
        "sessions": [
            {"name": name, "bytes": count} for name, count in used.sessions.items()
        ],
        "turns": [
            {
                "number": turn.checkpoint.number,
                "id": turn.checkpoint.id,
                "bytes": turn.bytes,
                "most": None
                if turn.most is None
                else {
                    **documents.path_fields(turn.most.path),
                    "bytes": turn.most.bytes,
                },
            }
            for turn in parts.turns
        ],
        "paths": [
            {
                **documents.path_fields(path.path),
                "bytes": path.bytes,
                "versions": path.versions,
            }
            for path in parts.paths
        ],
        "records": parts.own,
        "exclude": [
            {**documents.path_fields(one.pattern), "bytes": one.bytes}
            for one in parts.exclude
        ],
        "unreadable": list(used.unreadable),
    }


def _show_totals(out: Output, used: Usage) -> None:
    packs = "1 pack" if used.pack_count == 1 else f"{used.pack_count} packs"
    rows = [
        (used.only, "only in checkpoints, not in any branch, tag or remote"),
        (used.packs, f"in {packs} that gitcp wrote"),
        (used.scan, "scan state; you can remove it at any time"),
        (used.search, "index of `gitcp search`; you can remove it at any time"),
    ]
    for number, what in rows:
        out.print(f"{size(number):>10}  {what}")
    if used.sessions:
        out.print(f"\n{'':10}  by session; shared content counts in each")
    for name, number in used.sessions.items():
        out.print(f"{size(number):>10}  {out.style(safe_line(name), fg='cyan')}")


def _turn_line(turn: TurnCost) -> str:
    one = turn.checkpoint
    name = f"#{one.number}" if one.number is not None else one.id
    line = f"{size(turn.bytes):>10}  {name}"
    if turn.most is not None and turn.most.bytes:
        line += f"  {size(turn.most.bytes)} of it {safe_path(turn.most.path)}"
    return line


def _quoted(pattern: bytes) -> str:
    import shlex

    return shlex.quote(safe_path(pattern))
