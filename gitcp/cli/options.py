"""Options and helpers that several commands share."""

import functools
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gitcp.cli.emit import Output
from gitcp.cli.helping import Command
from gitcp.cli.opening import shown_output, to_change
from gitcp.errors import PartialError, UsageError
from gitcp.names import quoted

if TYPE_CHECKING:
    from gitcp.project.workspace import Current, Workspace

F = TypeVar("F", bound=Callable[..., Any])


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.obj.json = True


json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=_set_json,
    help="Print one JSON document",
)


def _set_quiet(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.obj.quiet = True


quiet_option = click.option(
    "-q",
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=_set_quiet,
    help="Print only errors and the requested output",
)


def _set_verbose(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.obj.verbose = True


verbose_option = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    expose_value=False,
    callback=_set_verbose,
    help="Print more details",
)
yes_option = click.option(
    "-y", "--yes", is_flag=True, help="Do not ask for confirmation"
)
session_option = click.option(
    "-s",
    "--session",
    "where",
    metavar="SESSION[/BRANCH]",
    help="Use one session only",
)
trust_option = click.option(
    "--trust",
    is_flag=True,
    help="Trust a checkpoint that was pulled",
)


def command(name: str, **settings: Any) -> Callable[[F], click.Command]:
    """Makes a command with `--json` and `-q`, which gets the Output as its first argument."""

    def decorate(function: F) -> click.Command:
        @functools.wraps(function)
        def with_output(*arguments: Any, **options: Any) -> Any:
            out = click.get_current_context().obj
            with shown_output(out, name, options):
                return function(out, *arguments, **options)

        make: Any = click.command(name, **{"cls": Command, **settings})
        built: click.Command = make(json_option(quiet_option(with_output)))
        return built

    return decorate


def reader(out: Output, *, paged: bool = False, numbers: bool = True) -> "Workspace":
    """Opens the workspace for a command that only reads; its output may be `paged`.

    Without `numbers`, which read each branch, it cannot name checkpoints by number.

    All objects stay until the command ends, even if another process prunes. Most commands
    read little, and git does that before libgit2 would be loaded.
    """
    from gitcp.checkpoints.numbered import with_numbers
    from gitcp.project.workspace import open_workspace

    workspace = open_workspace(out.directory, bare=out.directory != ".")
    context = click.get_current_context()
    if paged:
        from gitcp.cli.paging import paging, wanted

        if wanted(out):
            # Entered before the lock, so left after it: a user may read for hours.
            context.with_resource(paging(out, workspace))
    context.with_resource(workspace.reading())
    context.with_resource(workspace.repository.objects.few_reads())
    if numbers:
        with_numbers(workspace)
    return workspace


def writer(out: Output) -> "Workspace":
    """Opens the workspace for a command that changes something."""
    return to_change(out, click.get_current_context().with_resource)


def reading_in(workspace: "Workspace") -> AbstractContextManager[None]:
    """Keeps all objects inside, even if another process prunes; for short reads only."""
    return workspace.reading()


def refuse_both(selector: str | None, where: str | None) -> None:
    """Refuses a selector together with a session.

    Raises:
        UsageError: both were given.
    """
    if selector is not None and where is not None:
        raise UsageError(
            "a checkpoint and -s are mutually exclusive",
            hint=f"`{quoted(where)}:WHAT` names a checkpoint of that session",
        )


def left_out(out: Output, unreadable: Sequence[str]) -> int:
    """Reports branches that a listing left out; returns its exit status."""
    for line in unreadable:
        out.warn(line)
    if unreadable:
        out.note(
            "  `gitcp verify` says more; `gitcp verify --repair` repairs what it can"
        )
    return PartialError.exit_status if unreadable else 0


def path_inside(out: Output, top: os.PathLike[str], path: str) -> bytes:
    """Returns a path from the command line relative to the work tree, as bytes.

    Inside the work tree the path is not resolved: a link in it is a name like any other.
    Only the path to the work tree may lead through links. The work tree itself is the empty
    path.

    Raises:
        UsageError: the path is empty, or outside the work tree.
    """
    if not path:
        raise UsageError(
            "a path must not be empty", hint="`.` names the current directory"
        )
    real_top = os.path.realpath(top)
    written = os.path.normpath(os.path.join(os.path.realpath(out.directory), path))
    parts = written.split(os.sep)
    for count in range(1, len(parts) + 1):
        if os.path.realpath(os.sep.join(parts[:count]) or os.sep) == real_top:
            return os.fsencode(os.sep.join(parts[count:]))
    raise UsageError(
        f"{path} is outside the project {real_top}", hint="name a path inside it"
    )


def place_of(workspace: "Workspace", text: str | None) -> "Current":
    """Returns the named session and branch, or the current ones.

    Raises:
        UsageError: the name is not usable.
    """
    current = workspace.current()
    if text is None:
        return current
    return current.named(text)
