"""`gitcp save`: saves a checkpoint."""

from typing import Any

import click

from gitcp.cli.emit import Output
from gitcp.cli.helping import Command
from gitcp.cli.options import command
from gitcp.cli.saving import KINDS, save_as

_ACTIVE = "--active"


def _spread(args: list[str]) -> list[str]:
    """Gives each path after an `--active` an option of its own."""
    spread: list[str] = []
    active = False
    for arg in args:
        if arg.startswith("-"):
            active = arg.partition("=")[0] == _ACTIVE
        elif active and spread[-1] != _ACTIVE:
            spread.append(_ACTIVE)
        spread.append(arg)
    return spread


class _Ordered(Command):
    """Remembers the order of the log entries, which `--why` refers to.

    Accepts several paths after `--active`, because a save has no positional arguments.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = _spread(args)
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        seen: dict[str, int] = {}
        entries: list[tuple[str, str]] = []
        for parameter in order:
            name = parameter.name or ""
            if name in KINDS or name == "why":
                value = values[name]
                at = seen.get(name, 0)
                seen[name] = at + 1
                entries.append((name, value[at] if isinstance(value, list) else value))
        ctx.meta["entries"] = entries
        return super().parse_args(ctx, args)


@command("save", cls=_Ordered)
@click.option(
    "-m", "--message", "note", metavar="NOTE", help="A note that describes this state"
)
@click.option("--label", metavar="NAME", help="A name to select the checkpoint by")
@click.option(
    "-s",
    "--session",
    "where",
    metavar="SESSION[/BRANCH]",
    help="The session and branch to save to",
)
@click.option("--messages", metavar="FILE", help="The whole conversation; - for stdin")
@click.option(
    "--append", metavar="FILE", help="Only the new messages, as JSON lines; - for stdin"
)
@click.option("--transcript", metavar="FILE", help="An agent's own transcript file")
@click.option("--agent", metavar="NAME", help="The agent that wrote the transcript")
@click.option("--decision", multiple=True, metavar="T", help="A decision (repeatable)")
@click.option("--tried", multiple=True, metavar="T", help="A dead end (repeatable)")
@click.option("--fact", multiple=True, metavar="T", help="A case fact (repeatable)")
@click.option(
    "--next", "next_step", multiple=True, metavar="T", help="A next step (repeatable)"
)
@click.option(
    "--note", "log_note", multiple=True, metavar="T", help="A remark (repeatable)"
)
@click.option("--bug", multiple=True, metavar="T", help="A bug found (repeatable)")
@click.option(
    "--why", multiple=True, metavar="T", help="The reason for the entry before it"
)
@click.option("--task", metavar="T", help="The current task")
@click.option(
    _ACTIVE, multiple=True, metavar="PATH…", help="Files being worked on (repeatable)"
)
@click.option("--position", metavar="JSON", help="The position of a pipeline")
@click.option(
    "--trigger", metavar="NAME", default="manual", help="What caused the checkpoint"
)
@click.option("--allow-empty", is_flag=True, help="Save even if nothing changed")
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Also capture these ignored paths"
)
@click.option(
    "--init",
    is_flag=True,
    help="In a folder without git: create a private store without asking",
)
@click.pass_context
def save_command(ctx: click.Context, out: Output, /, **given: Any) -> None:
    """Make a checkpoint of files, conversation and decisions.

    In a folder without git, it first asks whether to create a private store. The store is
    in your state directory; gitcp puts nothing into the folder.
    """
    save_as(out, ctx.with_resource, given, ctx.meta["entries"])
