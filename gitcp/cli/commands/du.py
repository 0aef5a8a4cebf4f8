"""`gitcp du`: prints the disk usage of sessions."""

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, left_out, reader
from gitcp.cli.render import size
from gitcp.maintenance.disk_usage import usage


@command("du")
def du_command(out: Output) -> int:
    """Show what gitcp takes on disk."""
    used = usage(reader(out))
    if out.json:
        out.document(
            {
                "schema": "gitcp.du/1",
                "packs": {"bytes": used.packs, "count": used.pack_count},
                "only": used.only,
                "scan": used.scan,
                "search": used.search,
                "sessions": [
                    {"name": name, "bytes": count}
                    for name, count in used.sessions.items()
                ],
                "unreadable": list(used.unreadable),
            }
        )
        return left_out(out, used.unreadable)
    packs = "1 pack" if used.pack_count == 1 else f"{used.pack_count} packs"
    rows = [
        (used.only, "held by checkpoints and by no branch, tag or remote"),
        (used.packs, f"in {packs} that gitcp wrote"),
        (used.scan, "scan state, which can be removed at any time"),
        (used.search, "index of `gitcp search`, which can be, too"),
    ]
    for count, what in rows:
        out.print(f"{size(count):>10}  {what}")
    if used.sessions:
        out.print(f"\n{'':10}  by session; what two share counts in both")
    for name, count in used.sessions.items():
        out.print(f"{size(count):>10}  {out.style(safe(name), fg='cyan')}")
    return left_out(out, used.unreadable)
