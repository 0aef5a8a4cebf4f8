"""gitcp gc."""

from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.cli.render import size
from gitcp.ops.gc import gc
from gitcp.ops.workspace import open_workspace


@command("gc")
def gc_command(out: Output) -> None:
    """Merge gitcp's packs into one, and clear away what killed processes left.

    No checkpoint is removed; saves do this by themselves where it is due.
    """
    done = gc(open_workspace(out.directory))
    if out.json:
        out.document(
            {
                "schema": "gitcp.gc/1",
                "packs": {"before": done.packs_before, "after": done.packs_after},
                "bytes": {"before": done.bytes_before, "after": done.bytes_after},
                "swept": done.swept,
            }
        )
        return
    if done.packs_after < done.packs_before:
        out.print(
            f"merged {done.packs_before} packs into {done.packs_after}:"
            f" {size(done.bytes_before)} became {size(done.bytes_after)}"
        )
    else:
        out.print("nothing to merge")
    if done.swept:
        out.print(f"cleared away what {done.swept} killed processes left")
