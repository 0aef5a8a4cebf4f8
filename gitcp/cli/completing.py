"""Completes values in a shell, by the parameter's placeholder in the usage line."""

import os
import re
import shlex
from collections.abc import Callable, Iterator

import click
from click.shell_completion import CompletionItem

from gitcp.checkpoints import candidates
from gitcp.checkpoints.candidates import Candidate
from gitcp.checkpoints.selectors import select
from gitcp.cli.emit import Output, one_line
from gitcp.cli.options import path_inside
from gitcp.errors import GitcpError
from gitcp.project.settings import KNOWN
from gitcp.project.workspace import Workspace, open_workspace

Items = list[CompletionItem[str]]
_WORD = re.compile(r"[A-Z]+")
_ABOUT = 50
# Other names would need quoting, different for each shell; and completing a name that was
# made elsewhere must not turn it into a command, an option, a comment or a directory.
_PLAIN = re.compile(r"(?![-~=#])[\w./:@%+=,~#-]+")


def complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Items | None:
    """Returns the candidate values; None if gitcp has none for this parameter."""
    words = _words(parameter)
    if "FILE" in words:
        return [CompletionItem(incomplete, type="file")]
    if "DIR" in words:
        return [CompletionItem(incomplete, type="dir")]
    found: list[Candidate] | None = None
    for word in words:
        look = _LOOKS.get(word)
        if look is None:
            continue
        try:
            found = [*(found or ()), *look(context, parameter, incomplete)]
        except GitcpError:
            # There is no repository, or no such checkpoint.
            found = found or []
    if found is None:
        return None
    # Of each word one: of two bash would insert what their descriptions begin with, too.
    abouts: dict[str, str] = {}
    for one in found:
        abouts.setdefault(one.word, one.about)
    items = [
        CompletionItem(word, help=one_line(about, _ABOUT) or None)
        for word, about in abouts.items()
        if word.startswith(incomplete) and _PLAIN.fullmatch(word)
    ]
    wants_path = not _PATHS.isdisjoint(words)
    return items or ([CompletionItem(incomplete, type="file")] if wants_path else [])


def _words(parameter: click.Parameter) -> list[str]:
    """Returns a parameter's placeholders in the usage line, such as `[SEL] NAME`."""
    shown = parameter.metavar or (parameter.name or "").upper()
    return _WORD.findall(shown)


def _workspace(context: click.Context) -> Workspace:
    return open_workspace(_directory(context))


def _directory(context: click.Context) -> str:
    # The root command has not run; only its arguments are parsed.
    directory: str = context.find_root().params.get("directory") or "."
    return directory


def _given(context: click.Context, parameter: click.Parameter) -> tuple[str, ...]:
    value = context.params.get(parameter.name or "")
    return value if isinstance(value, tuple) else ()


def _checkpoints(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Iterator[Candidate]:
    # In `[SEL] NAME` and `[B] [PATH]...` it is the first word.
    if not _given(context, parameter):
        yield from candidates.checkpoints(_workspace(context), incomplete)


def _sessions(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Iterator[Candidate]:
    del parameter
    yield from candidates.sessions(_workspace(context), incomplete)


def _remotes(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Iterator[Candidate]:
    del parameter, incomplete
    for name, values in _workspace(context).repository.config.items():
        if name.startswith("remote.") and name.endswith(".url"):
            yield Candidate(name[len("remote.") : -len(".url")], values[-1])


def _settings(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Iterator[Candidate]:
    del parameter, incomplete
    if context.info_name == "config":
        for name, known in KNOWN.items():
            yield Candidate(name, known.meaning)


def _topics(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Iterator[Candidate]:
    from gitcp.cli.topics import TOPICS

    del parameter, incomplete
    yield from (Candidate(name, topic.about) for name, topic in TOPICS.items())
    root = context.find_root()
    if isinstance(root.command, click.Group):
        yield from map(Candidate, root.command.list_commands(root))


def _paths(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> Iterator[Candidate]:
    """Yields paths of the checkpoint that precedes them in the command."""
    del parameter
    named = [
        value
        for one in context.command.params
        if isinstance(one, click.Argument)
        and not _CHECKPOINT.isdisjoint(_words(one))
        and isinstance(value := context.params.get(one.name or ""), str)
    ]
    if not named:
        return
    workspace = _workspace(context)
    checkpoint = select(workspace, named[0])
    out = Output()
    out.directory = _directory(context)
    folder, slash, _ = incomplete.rpartition("/")
    inside = path_inside(out, workspace.top, folder or ".")
    for name, is_directory in candidates.names_in(checkpoint, inside):
        text = os.fsdecode(name) + ("/" if is_directory else "")
        yield Candidate(f"{folder}{slash}{text}")


_CHECKPOINT = frozenset({"SEL", "A", "B"})
_PATHS = frozenset({"PATH", "P"})
_LOOKS: dict[
    str, Callable[[click.Context, click.Parameter, str], Iterator[Candidate]]
] = {
    **dict.fromkeys(_CHECKPOINT, _checkpoints),
    **dict.fromkeys(_PATHS, _paths),
    "SESSION": _sessions,
    "REMOTE": _remotes,
    "KEY": _settings,
    "TOPIC": _topics,
}


def words_of(line: str) -> tuple[list[str], str]:
    """Returns the arguments of a command line, and the last one if it is not complete."""
    try:
        words = shlex.split(line)
    except ValueError:
        # The cursor is inside a quoted word.
        words = line.split()
    if not line or line[-1].isspace():
        return words[1:], ""
    return words[1:-1], words[-1] if words else ""
