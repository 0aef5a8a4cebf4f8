"""Writes docs/cli.md from the commands themselves: `python docs/reference.py`.

With `--print` it goes to stdout.
"""

# ruff: noqa: INP001  a script, not a package
import importlib
import inspect
import re
import sys
from pathlib import Path

import click

from gitcp.cli import app
from gitcp.cli.examples import EXAMPLES
from gitcp.cli.topics import TOPICS
from gitcp.project.settings import KNOWN

HERE = Path(__file__).parent

ABOUT = """\
`gitcp [-C DIR] [-q] [-v] [--color auto|always|never] [--no-pager] COMMAND …`

Results go to stdout, everything else to stderr. Without a terminal no command asks a
question; give `--yes` in scripts. gitcp honours `NO_COLOR`. It never sends control
characters of file names or conversations to the terminal. With `--json` a command prints
one JSON document on stdout, and an error is one JSON document on stderr. Exit codes:
[exit-codes.md](exit-codes.md).
"""

COMMON = """\
Every command takes `-h, --help`, `-q, --quiet` and `--json`. At a terminal, `gitcp help
COMMAND` explains a command and `gitcp help selectors` explains how to name a checkpoint.
"""

SETTINGS = """\
Settings are git configuration in the section `gitcp`. An environment variable `GITCP_…`
overrides a setting, for instance `GITCP_MAX_FILE_SIZE=1g`.
"""

# What the help of a command has no room for.
MORE = {
    "save": """\
No set-up is needed. gitcp captures untracked files, but not ignored ones (see
`gitcp.include`). If files, conversation and decisions are unchanged, it saves nothing and
says so; `--allow-empty` saves anyway. `-s` also makes that session and branch the current
ones.

`--messages` takes the whole conversation: a JSON array of messages, JSON lines, or an
object with `messages` and `metadata`. gitcp stores only what is new. `--append` takes only
the new messages. `--transcript` takes an agent's own file and stores it byte for byte;
gitcp recognises the kinds `claude-code`, `codex` and `gemini`, and stores any other as
well. Use one of the three at a time.

The trigger is any word. Common ones are `manual`, `turn-start`, `turn-end`,
`before-refactor` and `test-failure`.""",
    "log": """\
The columns: the number, the age, the trigger in brackets if it is not a turn's, the prompt
or the note, the tools that ran, and the counts of files.""",
    "messages": """\
The default format is Markdown, or JSON lines with `-o`. `jsonl` is the stored bytes: for a
transcript, the file exactly as it was.""",
    "cat": """\
It prints the exact bytes, without any conversion.""",
    "context": """\
The briefing has case facts, the current task, decisions, dead ends, bugs, notes, next
steps, active files and position. gitcp neither summarises nor cuts it. It estimates tokens
at four bytes each.""",
    "restore": """\
The command shows the plan and asks; the answer `d` shows the diff and asks again. It saves
the present state first, unless the newest checkpoint already has it. The restore itself
becomes a new checkpoint, so history only grows. HEAD, branches and index stay as they are.

If content that no checkpoint holds is in the way, gitcp refuses the restore (exit code 18)
and changes nothing. With PATH it restores only these files, and no conversation. `--to`
writes the files elsewhere and changes nothing here.

If a restore was killed, the next command reports it (exit code 25). `--continue` finishes
it, `--abort` undoes it; you may repeat either.""",
    "rollback": """\
This takes back everything that changed since the last checkpoint.""",
    "fork": """\
If SEL is not the present state, gitcp restores its files and conversation and asks first,
as `restore` does. `--no-switch` only creates the branch. `--worktree` puts it into a new
git work tree with a detached HEAD, and does not touch this one. That HEAD is the commit that the
checkpoint was made on; for one that was made elsewhere only if a branch of yours has the
commit, else it is the same as here.""",
    "switch": """\
The default BRANCH is `main`.""",
    "decide": """\
The entry waits in the git directory until the next save of this work tree.""",
    "diff": """\
A and B are selectors. A word that is not a selector is taken as a path.""",
    "run": """\
gitcp shows the command's output as it appears. It makes a checkpoint before the command,
so that you can undo what the command destroys.""",
    "export": """\
See [moving a session](how-to/move-a-session.md).""",
}


def commands() -> dict[str, click.Command]:
    """Returns the commands that are built, by name."""
    found = {}
    for name, module in sorted(app.COMMANDS.items()):
        try:
            loaded = importlib.import_module(f"gitcp.cli.commands.{module}")
            found[name] = getattr(loaded, f"{name.replace('-', '_')}_command")
        except ModuleNotFoundError as exc:
            if not (exc.name or "").startswith("gitcp."):
                raise
    return found


def usage(name: str, command: click.Command) -> str:
    """Returns the line that shows how a command is called."""
    words = ["gitcp", name]
    if any(isinstance(one, click.Option) for one in command.params):
        words.append("[OPTIONS]")
    words += [
        argument.make_metavar(click.Context(command)).lstrip()
        for argument in command.params
        if isinstance(argument, click.Argument)
    ]
    return " ".join(words)


def options(command: click.Command) -> list[tuple[str, str]]:
    """Returns the options of a command with their meaning."""
    found = []
    for option in command.params:
        if not isinstance(option, click.Option) or option.hidden:
            continue
        value = ""
        if not option.is_flag:
            kind = option.type
            value = option.metavar or "N"
            if isinstance(kind, click.Choice):
                value = "|".join(map(str, kind.choices))
        names = ", ".join([*option.opts, *option.secondary_opts])
        found.append((f"{names} {value}".strip(), (option.help or "").rstrip(".")))
    return found


def text_of(command: click.Command) -> str:
    """Returns the help of a command as Markdown."""
    plain = inspect.cleandoc(command.help or "")
    # A paragraph that click leaves as it is.
    return re.sub(
        r"^\x08\n(.*?)\n(?=\n|\Z)",
        lambda found: f"```\n{found[1]}\n```\n",
        plain,
        flags=re.MULTILINE | re.DOTALL,
    )


def examples(name: str) -> str:
    """Returns the examples of a command as a block."""
    lines = [f"# {meaning}\n{line}" for line, meaning in EXAMPLES[name]]
    return "\n".join(["```sh", *lines, "```"])


def common(option: tuple[str, str]) -> bool:
    """Whether every command has an option."""
    return option[0] in {"--json", "-q, --quiet"}


def settings() -> list[tuple[str, str, str]]:
    """Returns name, default and meaning of each setting."""
    return [
        (f"gitcp.{name}", default or "none", meaning)
        for name, (default, _, meaning, *_) in KNOWN.items()
    ]


def page() -> str:
    """Returns the page."""
    parts = [
        "# Commands",
        "<!-- Made by docs/reference.py; do not edit. -->",
        ABOUT.strip(),
        COMMON.strip(),
        "## Selecting a checkpoint",
        f"```\n{TOPICS['selectors'].text}\n```",
    ]
    for name, command in commands().items():
        parts += [f"## {name}", f"`{usage(name, command)}`", text_of(command)]
        if name in MORE:
            parts.append(MORE[name])
        own = [option for option in options(command) if not common(option)]
        if own:
            rows = [
                f"| `{names.replace('|', chr(92) + '|')}` | {meaning} |"
                for names, meaning in own
            ]
            parts.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
        parts.append(examples(name))
    rows = [
        f"| `{name}` | {default} | {meaning} |" for name, default, meaning in settings()
    ]
    parts += [
        "## Settings",
        SETTINGS.strip(),
        "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]),
    ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> None:
    """Writes the page, or prints it."""
    if arguments == ["--print"]:
        sys.stdout.write(page())
    else:
        (HERE / "cli.md").write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
