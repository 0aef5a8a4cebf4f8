"""gitcp gc."""

from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.cli.render import count, size
from gitcp.ops.upkeep.gc import gc
from gitcp.ops.workspace import open_workspace


@command("gc")
def gc_command(out: Output) -> None:
    """Give back the disk space of pruned checkpoints.

    gitcp's packs become one. No checkpoint is removed, and nothing that git itself
    can reach. What killed processes left is cleared away.
    """
    done = gc(open_workspace(out.directory))
    if out.json:
        out.document(
            {
                "schema": "gitcp.gc/1",
                "packs": {"before": done.packs_before, "after": done.packs_after},
                "bytes": {"before": done.bytes_before, "after": done.bytes_after},
                "swept": done.swept,
                "dropped": done.dropped,
            }
        )
        return
    if done.dropped or done.packs_after < done.packs_before:
        dropped = f", {count(done.dropped, 'object')} dropped" if done.dropped else ""
        out.print(
            f"merged {count(done.packs_before, 'pack')} into {done.packs_after}{dropped}:"
            f" {size(done.bytes_before)} became {size(done.bytes_after)}"
        )
    else:
        out.print("nothing to merge or to drop")
    if done.swept:
        out.print(f"cleared away what {done.swept} killed processes left")
