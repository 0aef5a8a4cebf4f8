"""Writes docs/gitcp.1 from the commands themselves: `python docs/manpage.py`."""
# ruff: noqa: INP001  a script, not a package

import inspect
import itertools
from pathlib import Path

import click

from gitcp._version import __version__
from gitcp.cli import app
from gitcp.cli.examples import EXAMPLES
from gitcp.cli.topics import TOPICS

TARGET = Path(__file__).with_name("gitcp.1")
_COMMON = frozenset({"--json", "--quiet", "--help"})
_EXITS = (
    (0, "done"),
    (1, "answered no, or nothing to do"),
    (2, "usage"),
    (3, "done in part"),
    (10, "not a repository"),
    (11, "locked or busy"),
    (12, "the branch moved"),
    (13, "not found"),
    (14, "ambiguous"),
    (15, "corrupt"),
    (16, "format too new"),
    (17, "repository not supported"),
    (18, "would overwrite what no checkpoint holds"),
    (19, "unsafe path"),
    (20, "git failed"),
    (21, "transfer failed"),
    (22, "agent record unreadable"),
    (23, "confirmation needed"),
    (24, "secrets found"),
    (25, "a restore was interrupted"),
    (26, "encryption"),
    (70, "a bug in gitcp"),
    (130, "interrupted"),
)


def escape(text: str) -> str:
    """Returns text that roff takes literally."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


def page() -> str:
    """Returns the man page."""
    root = app._root  # noqa: SLF001  the documented program itself
    context = click.Context(root, info_name="gitcp", help_option_names=["-h", "--help"])
    lines = [
        f'.TH GITCP 1 "" "gitcp {__version__}" "User Commands"',
        ".SH NAME",
        "gitcp \\- checkpoints of files, conversation and decisions in a git repository",
        ".SH SYNOPSIS",
        ".B gitcp",
        "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]...",
        ".SH DESCRIPTION",
        escape((root.help or "").split("\f")[0].replace("\n", " ")),
        ".SH OPTIONS",
        *options(root, context),
        ".SH COMMANDS",
    ]
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        if command is None:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        usage = " ".join(command.collect_usage_pieces(inner))
        lines += [f'.SS "{escape(f"gitcp {name} {usage}")}"', *paragraphs(command)]
        lines += options(command, inner)
    lines += [".SH SELECTORS", *verbatim(TOPICS["selectors"].text)]
    lines += [".SH EXAMPLES"]
    for line, meaning in itertools.chain.from_iterable(
        EXAMPLES[name] for name in next(iter(app.SECTIONS.values()))
    ):
        lines += [".TP", f"\\fB{escape(line)}\\fR", escape(meaning)]
    lines += [".SH FILES", *verbatim(TOPICS["places"].text)]
    lines += [".SH ENVIRONMENT", *verbatim(TOPICS["environment"].text)]
    lines.append(".SH EXIT STATUS")
    for number, meaning in _EXITS:
        lines += [".TP", f".B {number}", escape(meaning)]
    lines += [".SH SEE ALSO", ".BR git (1)"]
    return "\n".join(lines) + "\n"


def verbatim(text: str) -> list[str]:
    """Returns a page of `gitcp help` without its first line, which is the heading."""
    return [".nf", *map(escape, text.split("\n")[2:]), ".fi"]


def paragraphs(command: click.Command) -> list[str]:
    """Returns the help of a command."""
    lines: list[str] = []
    for part in inspect.cleandoc(command.help or "").split("\n\n"):
        if "\b" in part:
            shown = part.replace("\b", "").strip("\n")
            kept = [escape(line) for line in shown.split("\n")]
            lines += [".PP", ".nf", *kept, ".fi"]
        else:
            lines += [".PP", escape(" ".join(part.split()))]
    return lines


def options(command: click.Command, context: click.Context) -> list[str]:
    """Returns the options of a command, but for those that every command has."""
    lines: list[str] = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        shared = context.parent is not None and _COMMON.intersection(parameter.opts)
        if record is not None and isinstance(parameter, click.Option) and not shared:
            lines += [".TP", f"\\fB{escape(record[0])}\\fR", escape(record[1])]
    return lines


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
