"""gitcp gc."""

from collections.abc import Sequence

import click

from gitcp.cli.emit import Output
from gitcp.cli.options import command, yes_option
from gitcp.cli.render import count, place, prompt_plan, size
from gitcp.maintenance.gc import gc
from gitcp.maintenance.lost_refs import Lost, kept
from gitcp.project.workspace import open_workspace


@command("gc")
@click.option(
    "--drop-lost",
    is_flag=True,
    help="Also remove, for good, checkpoints whose branch has lost its ref",
)
@yes_option
def gc_command(out: Output, drop_lost: bool, yes: bool) -> None:
    """Give back the disk space of pruned checkpoints.

    gitcp's packs become one. No checkpoint is removed, and nothing that git itself
    can reach; `gitcp verify --lost` lists what --drop-lost removes. What killed processes
    left is cleared away.
    """
    workspace = open_workspace(out.directory, bare=out.directory != ".")
    if drop_lost:
        found = kept(workspace)
        if found and not yes and not out.json:
            prompt_plan(out, _lines(out, found))
        if found:
            out.confirm(f"Remove {count(len(found), 'lost line')} for good?", yes=yes)
    done = gc(workspace, drop_lost=drop_lost)
    if out.json:
        out.document(
            {
                "schema": "gitcp.gc/1",
                "packs": {"before": done.packs_before, "after": done.packs_after},
                "bytes": {"before": done.bytes_before, "after": done.bytes_after},
                "swept": done.swept,
                "dropped": done.dropped,
                "waiting": done.waiting,
                "lost": [
                    {
                        "session": one.session,
                        "branch": one.branch,
                        "checkpoint": one.tip.id,
                        "commit": one.tip.commit,
                        "seq": one.tip.seq,
                        "kept": not drop_lost,
                    }
                    for one in done.lost
                ],
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
    if done.waiting:
        out.print(
            f"kept {count(done.waiting, 'object')} that nothing needs: git has used their"
            " packs, and its grace period (gc.pruneExpire) is not over"
        )
    if done.swept:
        out.print(f"cleared away what {done.swept} killed processes left")
    if done.lost and not drop_lost:
        out.warn("no ref leads to these checkpoints any more; they were kept:")
        for line in _lines(out, done.lost):
            out.note(line)
        out.note(
            "  `gitcp verify --lost --repair` puts them back,"
            " `gitcp gc --drop-lost` removes them for good"
        )


def _lines(out: Output, found: Sequence[Lost]) -> list[str]:
    return [
        f"  {place(out, one.session, one.branch)}  #{one.tip.seq} {one.tip.id}"
        for one in found
    ]
