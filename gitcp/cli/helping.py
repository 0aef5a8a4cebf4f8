"""Formats a command's help: its options, the common ones, and examples."""

import re

import click

# Every command has these options, so its help lists them in one line instead of three.
_COMMON = frozenset({"--json", "--quiet", "--help"})
_RANGE = r"\s*\[x>=\d+\]$"


class Command(click.Command):
    """A command whose help ends with examples."""

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Writes the choices of arguments, the command's own options, and the common ones."""
        choices = [
            (each.metavar or each.human_readable_name, f"one of {_names(each.type)}")
            for each in self.params
            if isinstance(each, click.Argument) and isinstance(each.type, click.Choice)
        ]
        if choices:
            with formatter.section("Arguments"):
                formatter.write_dl(choices)
        own = [
            (record[0].replace("INTEGER RANGE", "N"), re.sub(_RANGE, "", record[1]))
            for each in self.get_params(ctx)
            if isinstance(each, click.Option)
            and not _COMMON.intersection(each.opts)
            and (record := each.get_help_record(ctx))
        ]
        if own:
            with formatter.section("Options"):
                formatter.write_dl(own)
        with formatter.section("Common options"):
            formatter.write_text("--json  -q, --quiet  -h, --help")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the examples."""
        from gitcp.cli.examples import EXAMPLES

        del ctx
        examples = EXAMPLES.get(self.name or "")
        if not examples:
            return
        with formatter.section("Examples"):
            for line, meaning in examples:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")
                with formatter.indentation():
                    formatter.write_text(meaning)


def _names(kind: click.Choice[str]) -> str:
    return ", ".join(map(str, kind.choices))


def summary(command: click.Command) -> str:
    """Returns the first sentence of a command's help, without its full stop."""
    first = (command.help or "").split("\n\n", 1)[0]
    return " ".join(first.split()).removesuffix(".")
