"""`gitcp context`: prints what a new conversation needs to know."""

import click

from gitcp import Checkpoint
from gitcp.checkpoints import briefing, reasons
from gitcp.checkpoints.conversation import tokens
from gitcp.checkpoints.in_session import newest_in
from gitcp.checkpoints.selectors import LAST, select
from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, reader, refuse_both, session_option
from gitcp.project.workspace import Workspace


def _briefing(
    workspace: Workspace, selector: str | None, where: str | None
) -> tuple[Checkpoint, str]:
    """Returns the selected checkpoint, and the briefing for a conversation there."""
    if where is not None:
        checkpoint = newest_in(workspace, where)
        return checkpoint, briefing.context(checkpoint)
    # A bare repository has no work tree, and before the first save there is nothing.
    if selector in {None, LAST} and not workspace.bare:
        gathered = reasons.of_work_tree(workspace, pending=True)
        if gathered.newest is not None:
            return gathered.newest, briefing.work_tree(gathered)
    checkpoint = select(workspace, selector)
    return checkpoint, briefing.context(checkpoint)


@command("context")
@click.argument("selector", metavar="[SEL]", required=False)
@session_option
@click.option(
    "--window", type=click.IntRange(min=1), help="Warn if it takes more than N tokens"
)
def context_command(
    out: Output, selector: str | None, where: str | None, window: int | None
) -> None:
    """Print a briefing for the next conversation.

    Without SEL it covers this work tree: what any conversation here decided, tried and
    left to do on the way to the present state. With `-s` it covers the newest checkpoint
    of one session.

    You do not need to paste it. An agent's hooks add it to a new conversation, and after
    a compaction; `gitcp config injectContext` controls when.
    """
    refuse_both(selector, where)
    workspace = reader(out, paged=True)
    checkpoint, text = _briefing(workspace, selector, where)
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
                "origin": reasons.recorded_at(checkpoint),
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
            f"context and conversation have about {whole:,} tokens,"
            f" {whole - (window or 0):,} more than the window of {window:,}."
            " Nothing was cut; go back to an earlier checkpoint, or start a"
            " conversation with the context alone"
        )
