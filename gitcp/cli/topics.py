"""The pages of `gitcp help TOPIC`; the man page and docs/cli.md have them as well."""

import textwrap
from collections.abc import Callable, Iterator
from typing import NamedTuple

from gitcp import errors
from gitcp.errors import GitcpError
from gitcp.project.settings import KNOWN, VARIABLES

_WIDTH = 80

SHORT = """\
gitcp saves files, conversation and decisions together, in your git repository.

  gitcp install claude-code   save before each prompt and after each turn
  gitcp save -m "it works"    save now
  gitcp log                   list what was saved, newest first
  gitcp show 3                look at one checkpoint
  gitcp diff 3                see what changed since then
  gitcp restore 3             go back to it: files and conversation
  gitcp undo                  undo the last restore
  gitcp status                see where you are

`gitcp help` lists all commands, `gitcp help restore` explains one of them."""

_SELECTORS = """\
How to name a checkpoint.

Where a command's usage shows SEL, A or B, you can give any of these:

  47, '#47'         the checkpoint with that number in this repository; a number
                    always means the same checkpoint (quote the #, because it
                    starts a comment in a shell)
  last              the newest checkpoint; the default where SEL is optional
  last~2, ~2        two before the newest
  80cf1dba132b      an id, or at least its first four digits
  before-refactor   a label (`save --label`, `gitcp label`); label=NAME if NAME
                    could mean something else
  HEAD~2, v1.2      a git commit: the checkpoint made at it, even if the commit
                    was amended, rebased or squashed since; if there is none,
                    the last one made before it
  MESSAGE-ID        a prompt or message of the conversation: the state before it
  '2 hours ago', 'yesterday 12:00', '@{2026-11-21 18:00}'
                    a time: the newest checkpoint at or before it

With a session and branch:

  main:3            the third checkpoint of the session main
  main/try:3        the third checkpoint of its branch try
  main:last         its newest checkpoint; ~N, ids, labels and all other forms
                    work after the colon too
  'main:2 hours ago', 'main@{yesterday 12:00}'
                    its newest checkpoint at or before a time

`gitcp diff` takes two selectors, or A..B.

A number takes precedence over the digits of an id, and a checkpoint made here,
or pulled from a remote that you trust, over others of the same name. If a
selector still matches more than one checkpoint, gitcp refuses it and lists the
candidates. `gitcp log` shows numbers and labels, `gitcp sessions` shows the
names of sessions.

`-s` takes the name of a session, the start or end of the name, `#47` for the
session of that checkpoint, or the session's first prompt: `-s "add VAT"`."""

_ENVIRONMENT = """\
Environment variables that gitcp reads.

  GITCP_DISABLE=1     makes every hook exit at once, without doing anything
  GITCP_SETTING       a setting for one command; it overrides git's
                      configuration. GITCP_MAX_FILE_SIZE is gitcp.maxFileSize;
                      `gitcp help settings` lists them
  GIT_PAGER, PAGER    the pager for log, show, diff, messages, decisions and
                      context at a terminal. gitcp tries GIT_PAGER, git's
                      core.pager, PAGER, then less. An empty value, cat or
                      --no-pager means no pager
  NO_COLOR, FORCE_COLOR, TERM=dumb
                      whether to colour the output; --color overrides them
  HOME, XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME
                      where your own settings, and those of clients, are
  CLAUDE_CONFIG_DIR, CODEX_HOME
                      where these clients keep settings and conversations
  CLAUDE_CODE_SESSION_ID, CODEX_THREAD_ID, GITCP_OPENCODE_SESSION, GEMINI_CLI
                      set in an agent's shell: they tell `gitcp decide` which
                      conversation calls it

gitcp runs git, which reads its own variables: GIT_CONFIG_GLOBAL,
GIT_SSH_COMMAND, ..."""

_FILES = """\
Where gitcp keeps things.

  refs/gitcp/*        the checkpoints: ordinary git objects, under refs that are
                      neither branches nor tags
  .git/gitcp/         locks, keys, caches, and the state of a running restore
  .git/gitcp/hooks.log
                      what hooks did, and what failed
  .git/config         settings, in section gitcp; your settings for all projects
                      are in ~/.gitconfig
  ~/.local/state/gitcp/
                      copies of client settings from before `gitcp install`

Only a restore, and `gitcp install` with --scope project or local, write into
the work tree. `gitcp uninstall --everything` removes all of these."""

_JSON = """\
JSON for programs.

With --json, every command prints one document on stdout. A command that keeps
running (watch) prints one document a line. A document names its schema:
{"schema": "gitcp.save/1", ...}. New versions may add fields, but do not rename
or remove any.

An error is one document on stderr:
{"error": {"code": ..., "message": ..., "hint": ..., "exit": ...}}
`gitcp help exit-codes` lists the codes.

Times are RFC 3339, in UTC. A path that is not UTF-8 is given twice: escaped as
`path`, and exactly as `path_b64`. With --json no command asks a question: give
--yes where it would."""


class Topic(NamedTuple):
    """A page: its subject, and its text or a function that makes the text."""

    about: str
    make: Callable[[], str]

    @property
    def text(self) -> str:
        """The page, at most 80 columns wide."""
        return self.make()


def _exit_codes() -> str:
    lines = ["Exit codes, and the `code` of an error with --json.", ""]
    lines += _row("0", "", "done")
    by_status = sorted(_classes(GitcpError), key=lambda one: one.exit_status)
    for one in by_status:
        about = (one.__doc__ or "").strip().split("\n\n")[0].removesuffix(".")
        lines += _row(str(one.exit_status), one.code, " ".join(about.split()))
    lines += _row(str(GitcpError.exit_status), "internal", "a bug in gitcp")
    lines += _row("130", "", "interrupted, by Ctrl-C or a signal")
    return "\n".join(lines)


def _classes(kind: type[GitcpError]) -> Iterator[type[GitcpError]]:
    for one in kind.__subclasses__():
        if one.__module__ == errors.__name__:
            if "code" in vars(one):
                yield one
            yield from _classes(one)


def _row(number: str, code: str, about: str) -> list[str]:
    head = f"  {number:>3}  {code:<20} "
    return textwrap.wrap(
        about, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
    )


def _settings() -> str:
    lines = [
        "Settings: git configuration, section gitcp.",
        "",
        "`gitcp config` shows the values used here. `gitcp config KEY VALUE` sets one",
        "for this repository, `git config --global gitcp.KEY VALUE` for all of yours.",
    ]
    for name, known in KNOWN.items():
        default = known.default or "none"
        lines += ["", f"  {name} (default: {default}; {VARIABLES[name]})"]
        lines += textwrap.wrap(
            known.meaning, _WIDTH, initial_indent="      ", subsequent_indent="      "
        )
    return "\n".join(lines)


TOPICS = {
    "selectors": Topic("how to name a checkpoint", lambda: _SELECTORS),
    "settings": Topic("what can be set, and how", _settings),
    "environment": Topic("variables that gitcp reads", lambda: _ENVIRONMENT),
    "places": Topic("where gitcp keeps things", lambda: _FILES),
    "exit-codes": Topic("what an exit code means", _exit_codes),
    "json": Topic("documents for programs", lambda: _JSON),
}
