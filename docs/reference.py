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

Results go to stdout, everything else to stderr. Nothing asks without a terminal: give
`--yes` in scripts. `NO_COLOR` is honoured. Control characters in file names or
conversations never reach the terminal. With `--json` a command prints one JSON document,
and an error is one JSON document on stderr. Exit codes: [exit-codes.md](exit-codes.md).
"""

COMMON = """\
Every command takes `-h, --help`, `-q, --quiet` and `--json`. `gitcp help COMMAND` shows at
the terminal what follows here, `gitcp help selectors` how to name a checkpoint.
"""

SETTINGS = """\
Settings are git configuration, section `gitcp`. A variable `GITCP_…` in the environment
wins, for instance `GITCP_MAX_FILE_SIZE=1g`.
"""

# What the help of a command has no room for.
MORE = {
    "save": """\
Works at once, without any set-up. Untracked files are captured, ignored ones are not
(see `gitcp.include`). Where neither files nor conversation nor decisions changed, nothing
is saved and the command says so; `--allow-empty` saves all the same. `-s` also makes that
session and branch the current ones.

`--messages` takes the whole conversation: a JSON array of messages, JSON lines, or an
object with `messages` and `metadata`. Only what is new is stored. `--append` takes only
the new messages. `--transcript` takes an agent's own file and stores it byte for byte;
the kinds `claude-code`, `codex` and `gemini` are recognised, any other is kept as well.
One of the three at a time.

The trigger is any word; `manual`, `turn-start`, `turn-end`, `before-refactor` and
`test-failure` are usual.""",
    "log": """\
The columns: number, id, time (UTC), files added `+`, modified `~` and deleted `-` since
the checkpoint before, messages in the conversation, trigger, label, note.""",
    "messages": """\
As Markdown, or into a file (`-o`) as JSON lines, unless `--format` says
otherwise. `jsonl` is the stored bytes: for a transcript the file exactly as it was.""",
    "cat": """\
The bytes as they are, without any conversion.""",
    "context": """\
Case facts, the current task, decisions, dead ends, bugs, notes, next steps, active files
and position. Nothing is summarised or cut. Tokens are estimated at four bytes each.""",
    "restore": """\
Shows the plan and asks; the answer `d` shows the diff and asks again; `--yes` does not ask.
The present state is saved first, unless the
newest checkpoint has it already. The restore itself is a new checkpoint: history is only
added to. HEAD, branches and index stay as they are.

What no checkpoint holds is never overwritten or deleted. If it is in the way the restore
is refused (exit code 18) and nothing is changed. With PATH only these files come back,
and no conversation. `--to` writes the files elsewhere and changes nothing here.

A restore that was killed is found by the next command (exit code 25). `--continue`
finishes it, `--abort` takes it back; each may be repeated.""",
    "undo": """\
Goes back to what the last restore in this branch replaced. Undoing twice brings the
restore back.""",
    "rollback": """\
Takes back what changed since the last checkpoint.""",
    "fork": """\
Where SEL is not the present state its files and conversation are restored, as `restore`
does, with the same question. `--no-switch` only makes the branch. `--worktree` puts it
into a new git worktree with a detached HEAD, and does not touch this one.""",
    "switch": """\
Without BRANCH it is `main`.""",
    "decide": """\
Waits in the git directory and goes into the next save of this work tree.""",
    "diff": """\
A and B are selectors. A name that is not a selector is taken as a path.""",
    "run": """\
What it prints is shown as it comes. A checkpoint is made before it, so that a command
that destroys something can be undone.""",
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
