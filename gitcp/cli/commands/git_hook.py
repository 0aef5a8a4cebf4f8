"""`gitcp git-hook`: the command that git's hooks call."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gitcp.cli.emit import Output
from gitcp.cli.guard import OutOfTimeError, guarded, here, limited
from gitcp.cli.options import command
from gitcp.project.hook_log import write

if TYPE_CHECKING:
    from gitcp.project.workspace import Workspace

# The part of `hookTimeout` for the work: the rest is for starting and for the log.
_SHARE = 0.8
# The part of that time in which large new files may be read.
_FOR_FILES = 0.5


@command("git-hook", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def git_hook_command(out: Output, name: str, arguments: tuple[str, ...]) -> None:
    """Do gitcp's part in a git hook.

    NAME is the name of the hook. Pass it the arguments and the input that git gives the
    hook. It prints nothing and always exits with 0; `.git/gitcp/hooks.log` records what
    it did.
    """
    directory = out.directory if out.directory != "." else here()
    guarded(
        f"git-hook {name}",
        lambda started: _work(directory, name, list(arguments), started),
        directory=directory,
    )


def _work(directory: str, name: str, arguments: list[str], started: float) -> None:
    from gitcp.errors import UsageError
    from gitcp.project.settings import OFF
    from gitcp.project.workspace import open_workspace

    workspace = open_workspace(directory)
    if not _is_meant(workspace.repository.git_dir):
        return
    what = f"git-hook {name}"
    if name == "pre-push":
        remote = _given(arguments, 0, "PRE_COMMIT_REMOTE_NAME")
        settings = workspace.settings.sharing
        # Only for gitcp's own remote: a push to another remote does not concern it.
        if settings.auto_push != OFF and remote == settings.remote:
            done = _push(directory, remote, workspace)
            write(directory, what, started, done)
        return
    few_reads = workspace.repository.objects.few_reads()
    # The script kills a gitcp that takes the whole time; a shorter limit leaves time to log
    # that.
    timeout = workspace.settings.hook_timeout
    workspace.deadline = started + timeout * _FOR_FILES
    left = timeout * _SHARE - (time.monotonic() - started)
    with _remembered(workspace.directory), limited(left, what), few_reads:
        from gitcp.githooks import events

        workspace = events.patient(workspace)
        mended = events.mend(workspace.repository)
        framework = "PRE_COMMIT" in os.environ
        match name:
            case "post-commit":
                done = events.post_commit(workspace, rewrite_follows=not framework)
            case "post-rewrite":
                kind = _given(arguments, 0, "PRE_COMMIT_REWRITE_COMMAND") or "rebase"
                given = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
                entries = events.rewritten(workspace, kind, given)
                done = events.post_rewrite(workspace, kind, entries)
            case "post-merge":
                squash = _given(arguments, 0, "PRE_COMMIT_IS_SQUASH_MERGE") == "1"
                done = events.post_merge(workspace, squash=squash)
            case "post-checkout":
                before = _given(arguments, 0, "PRE_COMMIT_FROM_REF")
                after = _given(arguments, 1, "PRE_COMMIT_TO_REF")
                if _given(arguments, 2, "PRE_COMMIT_CHECKOUT_TYPE") != "1":
                    return
                done = events.post_checkout(workspace, before, after)
            case "prepare-commit-msg" | "commit-msg":
                message = Path(directory, _given(arguments, 0, ""))
                done = events.name_checkpoint(workspace, message)
            case "mend":
                done = f"joined again: {', '.join(mended) or 'nothing'}"
            case _:
                raise UsageError(f"gitcp does not use the hook {name!a}")
        write(directory, what, started, done)


@contextmanager
def _remembered(directory: Path) -> Iterator[None]:
    """Notes that time ran out, so that the next hook of the same command does not try again."""
    try:
        yield
    except OutOfTimeError:
        with suppress(OSError):
            (directory / "hung").write_text(f"{int(time.time())}\n")
        raise


def _push(directory: str, remote: str, workspace: "Workspace") -> str:
    """Runs `gitcp push` beside the user's push, and returns its output.

    The user does not wait for it, and there is no terminal to ask at; its limits are those of
    any transfer. It refuses secrets as the command does. It pushes a diverged branch as a
    fork, so that nothing stays unshared.
    """
    import tempfile

    from gitcp.cli.app import run
    from gitcp.project import failed_push

    with suppress(OSError):
        os.setsid()
    with tempfile.TemporaryFile() as output:
        os.dup2(output.fileno(), 2)
        os.dup2(output.fileno(), 1)
        status = run(["-C", directory, "push", "--fork", "--", remote])
        sys.stderr.flush()
        output.seek(0)
        text = output.read().decode("utf-8", "replace").strip()
    if not status:
        return f"pushed to {remote}: {text or 'done'}"
    # `status` and `log` show it, because users do not read the hooks' log by themselves.
    failed_push.note(workspace.repository, remote, text)
    return f"failed: {text}"


def _given(arguments: list[str], at: int, variable: str) -> str:
    """Returns an argument; pre-commit passes some of them only as variables."""
    if len(arguments) > at:
        return arguments[at]
    return os.environ.get(variable, "") if variable else ""


def _is_meant(git_dir: Path) -> bool:
    """Whether the repository around the current directory is the hook's own.

    `git --git-dir=… --work-tree=…` runs the hooks of a repository in the files of another.
    """
    inherited = os.environ.get("GIT_DIR")
    return not inherited or os.path.realpath(inherited) == os.path.realpath(git_dir)
