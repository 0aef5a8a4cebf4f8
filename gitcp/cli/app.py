"""The root command: global options, and commands that are imported on use."""

import importlib
import os
import sys
from typing import Any

import click

from gitcp._version import __version__
from gitcp.cli import boundary
from gitcp.cli.emit import Output, color_wanted
from gitcp.cli.helping import summary
from gitcp.errors import UsageError

# The headings of --help, each with its commands: command -> module below gitcp.cli.commands,
# imported on use, for start-up time.
SECTIONS = {
    "Every day": {
        "save": "save",
        "log": "log",
        "show": "show",
        "diff": "diff",
        "restore": "restore",
        "undo": "undo",
        "status": "status",
        "install": "install",
    },
    "Looking around": {"ui": "ui"},
    "Conversation and reasons": {
        "messages": "messages",
        "context": "context",
        "resume": "resume",
        "decide": "decisions",
        "decisions": "decisions",
        "search": "search",
        "why": "why",
        "view": "view",
    },
    "Sessions and branches": {
        "sessions": "sessions",
        "branches": "sessions",
        "fork": "fork",
        "switch": "sessions",
        "rollback": "undo",
        "label": "label",
    },
    "Files of a checkpoint": {"files": "files", "cat": "files"},
    "Automatic checkpoints": {
        "uninstall": "install",
        "watch": "watch",
        "acp": "acp",
        "mcp": "mcp",
    },
    "Commands and pipelines": {"run": "run", "steps": "steps"},
    "Sharing": {
        "push": "share",
        "pull": "share",
        "remote-sessions": "share",
        "trust": "trust",
        "export": "transfer",
        "import": "transfer",
        "import-history": "import_history",
        "adopt": "adopt",
        "scan": "scan",
        "purge": "purge",
    },
    "Maintenance": {
        "doctor": "doctor",
        "verify": "verify",
        "du": "du",
        "folders": "folders",
        "prune": "prune",
        "gc": "gc",
        "config": "config",
    },
    "Help": {"help": "help", "demo": "demo", "completion": "completion"},
    "Called by hooks": {
        "hook": "hook",
        "git-hook": "git_hook",
        "pusher": "pusher",
    },
}
COMMANDS = {
    name: module for section in SECTIONS.values() for name, module in section.items()
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(COMMANDS)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        width = max(map(len, COMMANDS))
        for title, names in SECTIONS.items():
            rows = []
            for name in names:
                subcommand = self.get_command(ctx, name)
                assert subcommand is not None
                rows.append((name.ljust(width), summary(subcommand)))
            with formatter.section(title):
                formatter.write_dl(rows)
        from gitcp.cli.topics import TOPICS

        with formatter.section("Topics, for `gitcp help TOPIC`"):
            formatter.write_dl(
                [(name.ljust(width), topic.about) for name, topic in TOPICS.items()]
            )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        loaded = importlib.import_module(f"gitcp.cli.commands.{module}")
        name = f"{cmd_name.replace('-', '_')}_command"
        loaded_command: click.Command = getattr(loaded, name)
        return loaded_command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0] if args else ""
        wrong = name and name not in COMMANDS and not name.startswith("-")
        if wrong and not ctx.resilient_parsing:
            import difflib

            from gitcp.cli.git_words import POINTERS

            near = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean `{near[0]}`?" if near else "see `gitcp --help`"
            hint = POINTERS.get(name, hint)
            raise UsageError(f"there is no command {name!a}", hint=hint)
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Lazy,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, message="gitcp %(version)s")
@click.option(
    "-C",
    "directory",
    metavar="DIR",
    default=None,
    help="Run as if gitcp was started in DIR",
)
@click.option(
    "-q", "--quiet", is_flag=True, help="Print only errors and the requested output"
)
@click.option("-v", "--verbose", is_flag=True, help="Print more details")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Whether to colour the output",
)
@click.option("--no-pager", is_flag=True, help="Print without a pager")
@click.option(
    "--json", is_flag=True, expose_value=False, help="Print one JSON document"
)
@click.pass_context
def _root(
    ctx: click.Context,
    directory: str | None,
    quiet: bool,
    verbose: bool,
    color: str,
    no_pager: bool,
) -> None:
    """Save and restore files, conversation and decisions in your git repository."""
    out: Output = ctx.obj
    out.quiet = quiet
    out.verbose = verbose
    out.pager = not no_pager
    out.color = color_wanted(color, sys.stdout)
    ctx.color = out.color
    if directory is not None:
        out.directory = directory
    if ctx.invoked_subcommand is None:
        from gitcp.cli.topics import SHORT

        out.print(SHORT)


def run(arguments: list[str]) -> int:
    """Runs the command line; every error becomes one message and one exit status."""
    out = boundary.output_for(arguments)
    if boundary.COMPLETE in os.environ:
        from gitcp.cli import completion_shells

        completion_shells.register()
    return boundary.run(out, lambda: _parsed(out, arguments))


def _parsed(out: Output, arguments: list[str]) -> Any:
    """Parses and runs a command line; click's errors become ours.

    Raises:
        GitcpError, KeyboardInterrupt: the command failed, or was interrupted.
    """
    try:
        return _root.main(arguments, prog_name="gitcp", standalone_mode=False, obj=out)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        error = UsageError(exc.format_message(), hint=_try(exc))
        if not _is_hook(arguments):
            raise error from exc
        # A client would act on the exit status: for Claude Code, 2 is a veto.
        boundary.report(out, error)
        return 0
    except click.Abort as exc:
        interrupted = KeyboardInterrupt()
        # click raises its own error from the error that has the notes.
        for note in getattr(exc.__cause__ or exc, "__notes__", ()):
            interrupted.add_note(note)
        raise interrupted from exc


def _try(exc: click.ClickException) -> str:
    """Returns the help command to suggest after a usage error."""
    context = exc.ctx if isinstance(exc, click.UsageError) else None
    return f"try `{context.command_path if context else 'gitcp'} --help`"


def _is_hook(arguments: list[str]) -> bool:
    """Whether a hook was called, even by a line that another version of gitcp wrote."""
    left = iter(arguments)
    for word in left:
        if word in {"-C", "--color"}:
            next(left, None)
        elif not word.startswith("-"):
            return word in {"hook", "git-hook"}
    return False
