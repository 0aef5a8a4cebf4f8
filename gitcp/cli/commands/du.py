"""gitcp du."""

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, reader
from gitcp.cli.render import size
from gitcp.maintenance.disk_usage import usage


@command("du")
def du_command(out: Output) -> None:
    """Show what gitcp takes on disk."""
    found = usage(reader(out))
    if out.json:
        out.document(
            {
                "schema": "gitcp.du/1",
                "packs": {"bytes": found.packs, "count": found.pack_count},
                "only": found.only,
                "scan": found.scan,
                "sessions": [
                    {"name": name, "bytes": count}
                    for name, count in found.sessions.items()
                ],
            }
        )
        return
    packs = "1 pack" if found.pack_count == 1 else f"{found.pack_count} packs"
    rows = [
        (found.only, "held by checkpoints and by no branch, tag or remote"),
        (found.packs, f"in {packs} that gitcp wrote"),
        (found.scan, "scan state, which can be removed at any time"),
    ]
    for count, what in rows:
        out.print(f"{size(count):>10}  {what}")
    if found.sessions:
        out.print(f"\n{'':10}  by session; what two share counts in both")
    for name, count in found.sessions.items():
        out.print(f"{size(count):>10}  {out.style(safe(name), fg='cyan')}")
