"""The error boundary: every error of a command becomes one message and one exit status."""

import os
import sys
from collections.abc import Callable
from typing import Any

from gitcp import durable, notices
from gitcp._version import __version__
from gitcp.cli.emit import Output, safe, safe_path, writing
from gitcp.cli.streams import discard, has_reader, write
from gitcp.errors import (
    EffectsStandError,
    GitcpError,
    PartialError,
    SecretsFoundError,
    StorageError,
    UnsureFolderError,
    WouldOverwriteError,
)

# The variable that a shell sets to ask for completions.
COMPLETE = "_GITCP_COMPLETE"
_INTERNAL = 70
_INTERRUPTED = 130
_CLOSED_PIPE = 141


def output_for(arguments: list[str]) -> Output:
    """Returns the output of a command line that is not parsed yet.

    An error in the usage itself needs to know whether to print JSON.
    """
    out = Output()
    out.json = "--json" in arguments[: _end_of_options(arguments)]
    return out


def run(out: Output, work: Callable[[], Any]) -> int:
    """Runs a command and returns its exit status."""
    try:
        with notices.listening(out.warn):
            result = _work(out, work)
        with writing():
            sys.stdout.flush()
    except GitcpError as exc:
        report(out, exc)
        return exc.exit_status
    except KeyboardInterrupt as exc:
        write(b"gitcp: interrupted\n", err=True)
        for note in getattr(exc, "__notes__", ()):
            write(f"  {note}\n".encode("utf-8", "backslashreplace"), err=True)
        return _INTERRUPTED
    except (BrokenPipeError, SystemExit) as exc:
        # click itself exits after a completion, and after a closed pipe.
        if isinstance(exc, SystemExit) and COMPLETE in os.environ:
            return exc.code if isinstance(exc.code, int) else _INTERNAL
        if has_reader(sys.stdout):
            # It was the pipe to another program that broke.
            _report_bug(out, exc.__context__ or exc)
            return _INTERNAL
        # The reader of our output is gone; Python would report that again at exit.
        discard(sys.stdout)
        return _CLOSED_PIPE
    except Exception as exc:  # noqa: BLE001  the boundary
        limit = _limit(exc)
        if limit is not None:
            report(out, limit)
            return limit.exit_status
        _report_bug(out, exc)
        return _INTERNAL
    return result if isinstance(result, int) else 0


def _work(out: Output, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except UnsureFolderError as exc:
        # Raised during the search for the folder, before the command changed anything.
        from gitcp.cli import private_folder

        if not private_folder.again(out, exc):
            raise
        return work()


def _limit(exc: Exception) -> StorageError | None:
    """Returns the error to report for a reached limit of the system; None for other errors."""
    if not isinstance(exc, OSError) or exc.errno not in durable.LIMITS:
        return None
    try:
        with durable.storage("running the command"):
            raise exc
    except StorageError as error:
        return error


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)


def report(out: Output, exc: GitcpError) -> None:
    """Reports an error, as text or as a JSON document."""
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


def _report_bug(out: Output, exc: BaseException) -> None:
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
    write(safe(trace).encode("utf-8", "backslashreplace"), err=True)
