"""`gitcp completion`: prints a script that completes commands in a shell."""

import click

from gitcp.cli.completion_shells import SHELLS
from gitcp.cli.emit import Output
from gitcp.cli.options import command

VARIABLE = "_GITCP_COMPLETE"


@command("completion")
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion_command(ctx: click.Context, out: Output, shell: str) -> None:
    """Print the script that completes commands in a shell.

    \b
    bash   echo 'eval "$(gitcp completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(gitcp completion zsh)"' >> ~/.zshrc
    fish   gitcp completion fish > ~/.config/fish/completions/gitcp.fish

    Then start a new shell.
    """  # noqa: D301  click's mark for a paragraph that stays as it is
    kind = SHELLS[shell]
    script = kind(ctx.find_root().command, {}, "gitcp", VARIABLE).source()
    if out.json:
        out.document({"schema": "gitcp.completion/1", "shell": shell, "script": script})
        return
    out.print(script)
