"""`gitcp install` and `uninstall`: hooks and skills of agents and of git."""

import sys
from contextlib import suppress
from typing import Any

import click

from gitcp.agents import resume
from gitcp.agents.install import has_hooks
from gitcp.cli.emit import Output, safe_path
from gitcp.cli.options import command, yes_option
from gitcp.clients import registry
from gitcp.clients.client import SCOPES, ClientPlaces
from gitcp.clients.present import present
from gitcp.clients.script_files import hook_files
from gitcp.errors import GitcpError, NotARepositoryError, UnsureFolderError, UsageError
from gitcp.project import installers
from gitcp.project.config import repository_around
from gitcp.project.installers import THINGS, Done
from gitcp.project.workspace import open_workspace

_scope = click.option(
    "--scope",
    type=click.Choice(SCOPES),
    help="Whose settings to change: yours (the default), the project's, or yours for the project",
)
_what = click.argument(
    "what",
    metavar="[WHAT]...",
    nargs=-1,
    type=click.Choice(sorted(THINGS)),
)


def _place(out: Output) -> tuple[ClientPlaces, str | None]:
    """Returns where to look for clients, and a note if hooks do nothing there."""
    try:
        return resume.place(repository_around(out.directory).top), None
    except UnsureFolderError as exc:
        note = f"hooks do nothing here until you say which folder this is: {exc.hint}"
    except NotARepositoryError:
        note = (
            "this folder is not in a git repository: hooks do nothing here until"
            " you run `gitcp save --init`"
        )
    # The user's own hooks can be installed from any directory.
    return resume.place(None), note


def _all(
    out: Output, what: tuple[str, ...], schema: str, work: Any
) -> list[tuple[str, Done]]:
    """Does the work for one thing after the other; reports those done even if one fails."""
    done: list[tuple[str, Done]] = []
    failure: GitcpError | None = None
    for name in dict.fromkeys(what):
        try:
            done += [(name, each) for each in work(name)]
        except GitcpError as exc:
            failure = exc
            break
    if out.json and (failure is None or done):
        out.document({"schema": schema, "done": [each._asdict() for _, each in done]})
    if not out.json:
        _show(out, done, schema)
    if failure is not None:
        raise failure
    return done


def _show(out: Output, done: list[tuple[str, Done]], schema: str) -> None:
    installs = schema.startswith("gitcp.install/")
    for name, each in done:
        scope = f" ({each.scope})" if each.scope else ""
        if each.changed:
            verb = "Installed" if installs else "Removed"
        else:
            verb = "Already installed:" if installs else "Not installed:"
        out.print(f"{verb} {name}{scope} in {safe_path(each.path)}")
        for note in each.notes:
            out.note(f"  {note}")


def _chosen(out: Output, place: ClientPlaces, scope: str | None) -> tuple[str, ...]:
    """Asks which of the clients on this machine get hooks.

    Raises:
        UsageError: no client is without hooks, or there is no terminal to ask at.
    """
    found = [name for name in present(place.environment) if not _has_hooks(name, place)]
    if not found:
        raise UsageError(
            "found no client on PATH without hooks",
            hint=f"name one of {', '.join(sorted(THINGS))}",
        )
    if out.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "name what to install", hint=f"clients found here: {', '.join(found)}"
        )
    where = scope or SCOPES[0]
    chosen = []
    for name in found:
        title = registry.client(name).title
        question = f"Let {title} save checkpoints ({where} settings)?"
        if click.confirm(question, default=True, err=True):
            chosen.append(name)
    if not chosen:
        raise UsageError("nothing was chosen", hint="nothing was changed")
    return tuple(chosen)


def _has_hooks(name: str, place: ClientPlaces) -> bool:
    """Whether a client has hooks of ours in any settings."""
    client = registry.client(name)
    for scope in SCOPES:
        with suppress(UsageError, OSError):
            if any(has_hooks(file, scope, place) for file in hook_files(client)):
                return True
    return False


@command("install")
@_what
@_scope
def install_command(out: Output, what: tuple[str, ...], scope: str | None) -> None:
    """Let coding agents and git save checkpoints automatically.

    Adds hooks to the existing settings. Running it again changes nothing. The hooks never
    make the agent or git fail, and never hold them up. GITCP_DISABLE=1 turns all hooks
    off; `gitcp config autoCheckpoint false` turns them off for one project. Without WHAT,
    at a terminal, it offers the clients on PATH that have no hooks yet.
    """
    place, note = _place(out)
    what = what or _chosen(out, place, scope)
    _all(
        out,
        what,
        "gitcp.install/1",
        lambda name: [installers.installer(name).install(name, place, scope)],
    )
    if note is not None:
        out.note(note)
    if place.top is not None and (off := open_workspace(place.top).settings.hooks_off):
        out.warn(f"agents' hooks make no checkpoints in this project: {off}")


@command("uninstall")
@click.argument(
    "what", metavar="[WHAT]...", nargs=-1, type=click.Choice(sorted(THINGS))
)
@_scope
@click.option(
    "--everything",
    is_flag=True,
    help="Remove gitcp from this project: hooks, settings, state and checkpoints",
)
@click.option(
    "--dry-run", is_flag=True, help="With --everything: show what would be removed"
)
@yes_option
def uninstall_command(
    out: Output,
    what: tuple[str, ...],
    scope: str | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Remove what `gitcp install` added, or all of gitcp.

    Removes it from every scope, unless --scope names one. A settings file that has not
    changed since the installation is restored byte for byte.

    With --everything it removes all that gitcp created for this project: hooks, skills,
    settings, restored conversations that were not continued, and .git/gitcp. It asks
    separately about the checkpoints, and about hooks in your own settings, which other
    projects use. With --scope project it leaves your own settings alone.
    """
    if everything:
        if what:
            raise UsageError(
                "--everything takes no names", hint="remove the names, or --everything"
            )
        from gitcp.cli import leaving

        leaving.everything(out, scope=scope, dry_run=dry_run, yes=yes)
        return
    if not what or dry_run:
        raise UsageError(
            "name what to remove" if not what else "--dry-run needs --everything",
            hint=f"one of {', '.join(sorted(THINGS))}, or --everything",
        )
    place, _ = _place(out)
    _all(
        out,
        what,
        "gitcp.uninstall/1",
        lambda name: installers.installer(name).uninstall(name, place, scope),
    )
