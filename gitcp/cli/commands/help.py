"""`gitcp help`: explains a command, or a topic that many commands share."""

import difflib

import click

from gitcp.cli.app import COMMANDS
from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.cli.topics import TOPICS
from gitcp.errors import UsageError


@command("help")
@click.argument("topic", metavar="[COMMAND|TOPIC]", required=False)
@click.pass_context
def help_command(ctx: click.Context, out: Output, topic: str | None) -> None:
    """Explain a command or a topic.

    The topics are selectors, settings, environment, places, exit-codes and json.
    """
    text = _text(ctx.find_root(), topic)
    if out.json:
        out.document({"schema": "gitcp.help/1", "topic": topic, "text": text})
    else:
        out.print(text)


def _text(root: click.Context, topic: str | None) -> str:
    if topic is None:
        return root.get_help()
    if topic in TOPICS:
        return TOPICS[topic].text
    group = root.command
    assert isinstance(group, click.Group)
    found = group.get_command(root, topic)
    if found is None:
        near = difflib.get_close_matches(topic, [*TOPICS, *COMMANDS], n=1)
        hint = f"did you mean `{near[0]}`?" if near else "see `gitcp help`"
        raise UsageError(f"there is no help for {topic!a}", hint=hint)
    with found.make_context(topic, [], parent=root, resilient_parsing=True) as inner:
        return found.get_help(inner)
