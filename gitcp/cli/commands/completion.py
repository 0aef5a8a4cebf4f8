"""`gitcp completion`: prints a script that completes commands in a shell."""

import click
from click.shell_completion import get_completion_class

from gitcp.cli.emit import Output
from gitcp.cli.options import command
from gitcp.errors import UsageError

VARIABLE = "_GITCP_COMPLETE"


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(ctx: click.Context, out: Output, shell: str) -> None:
    """Print the script that completes commands in a shell.

    \b
    bash   echo 'eval "$(gitcp completion bash)"' >> ~/.bashrc
    zsh    echo 'eval "$(gitcp completion zsh)"' >> ~/.zshrc
    fish   gitcp completion fish > ~/.config/fish/completions/gitcp.fish

    Then start a new shell.
    """  # noqa: D301  click's mark for a paragraph that stays as it is
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(
            f"there is no completion for {shell}", hint="there is bash, zsh and fish"
        )
    script = kind(ctx.find_root().command, {}, "gitcp", VARIABLE).source()
    if out.json:
        out.document({"schema": "gitcp.completion/1", "shell": shell, "script": script})
        return
    out.print(script)
