"""`gitcp import-history`: imports the conversations that clients have on disk."""

import datetime
from collections import Counter

import click

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, writer
from gitcp.cli.render import count, title_of
from gitcp.errors import PartialError


@command("import-history")
@click.argument("agents", metavar="[AGENT]...", nargs=-1)
@click.option("--since", metavar="TIME", help="Only messages since then")
def import_history_command(
    out: Output, agents: tuple[str, ...], since: str | None
) -> None:
    """Import the conversations that agents have on disk for this project.

    Each conversation becomes a session without files: `gitcp search` finds it, `gitcp log
    --imported` lists it, `gitcp view` shows its turns, and `gitcp resume` continues it.
    Restoring it changes no file. Run the command again to import what is new since then.
    AGENT is claude-code, cline, codex, copilot, gemini, kilo, opencode, pi or qwen; the
    default is all of them. Conversations that hooks already save are skipped.

    Nothing leaves the machine: a push sends imported sessions only if you name them.
    """
    from gitcp.agents.import_history import import_history
    from gitcp.checkpoints.times import when

    then = datetime.datetime.fromisoformat(when(since)).timestamp() if since else None
    done = import_history(writer(out), agents, then)
    if out.json:
        from gitcp.cli import documents

        out.document(
            {
                "schema": "gitcp.import-history/1",
                "conversations": [
                    {
                        "result": "fast-forward" if one.grew else "created",
                        "checkpoint": documents.checkpoint(one.checkpoint),
                    }
                    for one in done.taken
                ],
                "known": done.known,
                "left": list(done.left),
                "noted": list(done.noted),
            }
        )
    else:
        agents_of = Counter(
            held.kind
            for one in done.taken
            if (held := one.checkpoint.manifest.conversation) is not None
        )
        for name, number in sorted(agents_of.items()):
            out.print(f"imported {count(number, 'conversation')} of {title_of(name)}")
        if not done.taken:
            out.print("nothing new to import")
        if done.known:
            out.note(f"  already here: {count(done.known, 'conversation')}")
        for line in done.noted:
            out.note(f"  {safe(line)}")
        if done.taken:
            out.note(
                "`gitcp log --imported` lists them; `gitcp search WORDS` finds them"
            )
    if done.left:
        raise PartialError(
            f"{count(len(done.left), 'transcript')} could not be imported",
            left=[safe(line) for line in done.left],
            hint="the rest was imported",
        )
