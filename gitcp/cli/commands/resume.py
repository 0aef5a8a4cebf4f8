"""`gitcp resume`: continues a conversation, in its own client or in another."""

import sys
from typing import TYPE_CHECKING

import click

from gitcp.agents import handover, resume
from gitcp.agents.handover import (
    CONVERTED,
    IN_PLACE,
    REBUILT,
    TOLD,
    VERBATIM,
    HandedOver,
)
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.restore_request import request_restore
from gitcp.checkpoints.selectors import select
from gitcp.checkpoints.standing import timeline
from gitcp.cli import documents
from gitcp.cli.emit import Output, safe, safe_line
from gitcp.cli.options import command, trust_option, writer
from gitcp.cli.render import name_of, title_of, whose
from gitcp.cli.restoring import stoppable, with_trust
from gitcp.errors import NothingToDoError, UsageError

if TYPE_CHECKING:
    from gitcp import Checkpoint
    from gitcp.clients.client import Client
    from gitcp.project.workspace import Workspace

_HOW = {
    IN_PLACE: "its client still has it",
    VERBATIM: "word for word, as a copy",
    REBUILT: "rebuilt from its messages and tool results",
    CONVERTED: "each message with its role, its text, its tool calls and their results",
    TOLD: "as a text to read, with decisions and dead ends",
}


@command("resume")
@click.argument("selector", metavar="[SEL]", required=False)
@click.option("--with", "agent", metavar="AGENT", help="The client to continue it in")
@trust_option
def resume_command(
    out: Output, selector: str | None, agent: str | None, trust: bool
) -> None:
    """Continue a conversation, in its own client or another one.

    Without SEL it continues the newest conversation of this work tree. It changes none of
    your files; `gitcp restore` does that. Between Claude Code and Codex, each message keeps
    its role, text, tool calls and results. Other clients get the conversation and its
    reasons as text to read. gitcp lists what it left out. At a terminal it asks before it
    starts the client; otherwise it prints the command.

    A conversation that was pulled needs --trust.
    """
    workspace = writer(out)
    chosen = select(workspace, selector) if selector else _newest(workspace)
    client = handover.target(chosen, agent)
    trust = with_trust(workspace, chosen, trust)
    if resume.is_foreign(chosen) and not trust:
        raise UsageError(
            f"the conversation is {whose(chosen)}, so gitcp does not hand it to a"
            " client unless you say so",
            hint="look at it with `gitcp messages`; repeat the command with --trust to"
            " continue it",
        )
    workspace.refuse_if_interrupted()
    done = _continued(workspace, chosen, client, trust=trust)
    shown = done.resumption.shown(out.directory)
    if out.json:
        out.document(
            {
                "schema": "gitcp.resume/1",
                "checkpoint": documents.checkpoint(chosen),
                "agent": client.name,
                "how": done.how,
                "left": done.left,
                "resume": shown,
                "told": done.resumption.told,
            }
        )
        return
    out.tell(f"{name_of(out, chosen)} in {title_of(client.name)}: {_HOW[done.how]}")
    if resume.is_foreign(chosen):
        out.tell(
            f"  the conversation is {whose(chosen)}; records that approve or run"
            " something were left out"
        )
    for what, number in sorted(done.left.items()):
        out.note(f"  left out: {number} {safe_line(what)}")
    at_terminal = sys.stdin.isatty() and sys.stderr.isatty() and sys.stdout.isatty()
    if shown is None or not at_terminal:
        out.print(safe(shown or done.resumption.told or ""), whole=True)
        return
    out.tell(f"  {safe(shown)}", whole=True)
    if click.confirm(f"Start {client.title} now?", default=False, err=True):
        resume.become(done.resumption)


def _newest(workspace: "Workspace") -> "Checkpoint":
    """Returns the newest checkpoint of this work tree that has a conversation.

    Raises:
        NothingToDoError: no checkpoint has a conversation.
    """
    reach = Reach(workspace.store)
    for entry in timeline(workspace):
        found = readable(reach, entry)
        if found is not None and found.manifest.conversation is not None:
            return found
    raise NothingToDoError(
        "no checkpoint of this work tree has a conversation",
        hint="run `gitcp install` so that agents save them, or `gitcp import-history`"
        " to import those that agents have on disk",
    )


def _continued(
    workspace: "Workspace", chosen: "Checkpoint", client: "Client", *, trust: bool
) -> HandedOver:
    """Hands a conversation to a client, on a branch that ends with it."""
    held = chosen.manifest.conversation
    assert held is not None
    same = held.kind == client.name
    there = resume.where_it_is(workspace, chosen) if same else None
    if same and there is None:
        from gitcp.agents import import_history

        there = import_history.where_it_is(workspace, chosen)
    if there is not None:
        return HandedOver(there, IN_PLACE, {})
    tip = workspace.store.tip(chosen.session, chosen.branch)
    if tip != chosen:
        # Later messages follow the conversation up to that checkpoint.
        from gitcp.checkpoints.restore import restore

        request = request_restore(chosen, files=False, trust=trust)
        with stoppable():
            tip = restore(workspace, request).checkpoint
    assert tip is not None
    if not same:
        return handover.hand_over(workspace, tip, client)
    resumption = resume.write_back(workspace, tip)
    if resumption is None:
        raise NothingToDoError(
            f"{client.title} cannot continue the conversation of {chosen.id}",
            hint="name another client: --with AGENT",
        )
    how = REBUILT if resume.is_foreign(chosen) else VERBATIM
    return HandedOver(resumption, how, {})
