"""The root command: global options, commands imported on use, and the error boundary."""

import importlib
import os
import sys
from typing import Any

import click

from gitcp import durable, notices
from gitcp._version import __version__
from gitcp.cli.emit import Output, color_wanted, drop_output, safe, safe_path, writing
from gitcp.cli.helping import summary
from gitcp.errors import (
    EffectsStandError,
    GitcpError,
    PartialError,
    SecretsFoundError,
    StorageError,
    UnsureFolderError,
    UsageError,
    WouldOverwriteError,
)

# What --help shows under which heading: command -> module below gitcp.cli.commands,
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
_COMPLETE = "_GITCP_COMPLETE"
_INTERNAL = 70
_INTERRUPTED = 130
_CLOSED_PIPE = 141


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
    out = Output()
    # Known before click has parsed anything, for errors in the usage itself.
    out.json = "--json" in arguments[: _end_of_options(arguments)]
    if _COMPLETE in os.environ:
        from gitcp.cli import completion_shells

        completion_shells.register()
    try:
        with notices.listening(out.warn):
            result = _main(out, arguments)
        with writing():
            sys.stdout.flush()
    except GitcpError as exc:
        _report(out, exc)
        return exc.exit_status
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.ClickException as exc:
        error = UsageError(exc.format_message(), hint=_try(exc))
        _report(out, error)
        # A client would act on the status: to Claude Code 2 is a veto.
        return 0 if _is_hook(arguments) else error.exit_status
    except (click.Abort, KeyboardInterrupt) as exc:
        click.echo("gitcp: interrupted", err=True)
        # click raises its own error from the one that has them.
        for note in getattr(exc.__cause__ or exc, "__notes__", ()):
            click.echo(f"  {note}", err=True)
        return _INTERRUPTED
    except (BrokenPipeError, SystemExit) as exc:
        # click ends a completion by an exit of its own, and a closed pipe likewise.
        if isinstance(exc, SystemExit) and _COMPLETE in os.environ:
            return exc.code if isinstance(exc.code, int) else _INTERNAL
        # The reader of our output is gone; Python would complain again at exit.
        drop_output()
        return _CLOSED_PIPE
    except Exception as exc:  # noqa: BLE001  the boundary
        limit = _limit(exc)
        if limit is not None:
            _report(out, limit)
            return limit.exit_status
        _report_bug(out, exc)
        return _INTERNAL
    return result if isinstance(result, int) else 0


def _main(out: Output, arguments: list[str]) -> Any:
    def main() -> Any:
        return _root.main(arguments, prog_name="gitcp", standalone_mode=False, obj=out)

    try:
        return main()
    except UnsureFolderError as exc:
        # Raised as the folder was looked for: nothing has been done yet.
        from gitcp.cli import private_folder

        if not private_folder.again(out, exc):
            raise
        return main()


def _limit(exc: Exception) -> StorageError | None:
    """Returns what a limit of the system is to be reported as; None for anything else."""
    if not isinstance(exc, OSError) or exc.errno not in durable.LIMITS:
        return None
    try:
        with durable.storage("running the command"):
            raise exc
    except StorageError as error:
        return error


def _try(exc: click.ClickException) -> str:
    """Returns which help to read after a usage error."""
    context = exc.ctx if isinstance(exc, click.UsageError) else None
    return f"try `{context.command_path if context else 'gitcp'} --help`"


def _is_hook(arguments: list[str]) -> bool:
    """Whether a hook was called, perhaps by a line that another version wrote."""
    left = iter(arguments)
    for word in left:
        if word in {"-C", "--color"}:
            next(left, None)
        elif not word.startswith("-"):
            return word in {"hook", "git-hook"}
    return False


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)


def _report(out: Output, exc: GitcpError) -> None:
    if out.json:
        document: dict[str, Any] = {
            "code": exc.code,
            "message": exc.message,
            "hint": exc.hint,
            "exit": exc.exit_status,
        }
        if isinstance(exc, PartialError):
            document["left"] = list(exc.left)
        if isinstance(exc, SecretsFoundError):
            from gitcp.cli import findings

            document["secrets"] = findings.documents(exc.findings)
        if isinstance(exc, WouldOverwriteError):
            document["paths"] = list(exc.paths)
        if isinstance(exc, EffectsStandError):
            document["steps"] = list(exc.steps)
        out.error_document(document)
        return
    out.error(exc.message, exc.hint)
    if isinstance(exc, SecretsFoundError):
        from gitcp.cli import findings

        findings.show(out, exc.findings)
    if isinstance(exc, PartialError):
        for line in exc.left:
            out.note(f"  {safe_path(line)}")


def _report_bug(out: Output, exc: Exception) -> None:
    import traceback

    trace = "".join(traceback.format_exception(exc))
    if out.json:
        out.error_document(
            {
                "code": "internal",
                "message": f"{type(exc).__name__}: {exc}",
                "hint": "please report this",
                "exit": _INTERNAL,
            }
        )
    else:
        out.error(
            f"this is a bug in gitcp {__version__}: {exc}", "please report it with:"
        )
    click.echo(safe(trace), err=True, nl=False)
