"""`gitcp context`: prints what a new conversation has to know."""

import click

from gitcp.checkpoints import briefing, reasons
from gitcp.checkpoints.conversation import tokens
from gitcp.checkpoints.selectors import select
from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, reader


@command("context")
@click.argument("selector", metavar="[SEL]", required=False)
@click.option("--window", type=click.IntRange(min=1), help="Warn above N tokens")
def context_command(out: Output, selector: str | None, window: int | None) -> None:
    """Print a briefing for the next conversation.

    Without SEL it has the reasons of this work tree: what any conversation here decided,
    tried and left to do, as far as it led to the present state.
    """
    workspace = reader(out)
    gathered = reasons.of_work_tree(workspace, pending=True)
    # In a bare repository there is no work tree, and before the first save nothing.
    if selector is None and gathered.newest is not None and not workspace.bare:
        checkpoint, text = gathered.newest, briefing.work_tree(gathered)
    else:
        checkpoint = select(workspace, selector)
        text = briefing.context(checkpoint)
    own = tokens(len(text.encode("utf-8", "replace")))
    conversation = checkpoint.manifest.conversation
    whole = own + tokens(conversation.bytes if conversation else 0)
    too_large = window is not None and whole > window
    if out.json:
        out.document(
            {
                "schema": "gitcp.context/1",
                "checkpoint": checkpoint.id,
                "context": text,
                "origin": checkpoint.origin.logs,
                "tokens": {"context": own, "total": whole, "window": window},
                "fits": None if window is None else not too_large,
            }
        )
    else:
        out.print(safe(text))
        out.note(
            f"about {own:,} tokens; with the conversation about {whole:,} (estimated)"
        )
    if too_large:
        out.warn(
            f"context and conversation are about {whole:,} tokens, the window is"
            f" {window:,}: {whole - (window or 0):,} too many. Nothing was cut; go back to"
            " an earlier checkpoint or start again from the context alone"
        )
