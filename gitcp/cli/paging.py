"""Shows a command's output in a pager if git would."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from gitcp.cli import layout
from gitcp.cli.emit import Output, writing
from gitcp.project import pager
from gitcp.project.workspace import Workspace


def wanted(out: Output) -> bool:
    """Whether a command may use a pager: on a terminal, and for people."""
    return out.pager and not out.json and _is_terminal()


def _is_terminal() -> bool:
    """Whether stdout is a real terminal, not a program's object that claims to be one."""
    try:
        return os.isatty(sys.stdout.fileno())
    except (OSError, ValueError):
        return False


@contextmanager
def paging(out: Output, workspace: Workspace) -> Iterator[None]:
    """Collects the output until the end, and then shows it in the user's pager.

    The command is done by then: it holds no locks while the user reads, and leaving the pager
    early does not break a pipe.
    """
    program = pager.chosen(workspace, os.environ)
    kept = _file() if program is not None else None
    if program is None or kept is None:
        yield
        return
    with kept:
        try:
            with _into(out, kept):
                yield
        except BaseException:
            _copy(kept)
            raise
        if os.fstat(kept.fileno()).st_size:
            kept.seek(0)
            if not pager.show(program, kept):
                _copy(kept)


def _file() -> IO[bytes] | None:
    """Returns a file without a name; None if none can be made."""
    import tempfile

    with suppress(OSError):
        # Unbuffered, because the pager reads from the file's present position.
        return tempfile.TemporaryFile(prefix="gitcp-page-", buffering=0)
    return None


@contextmanager
def _into(out: Output, kept: IO[bytes]) -> Iterator[None]:
    """Sends the output to a file, laid out as for the terminal."""
    stdout = sys.stdout.fileno()
    with layout.terminal_of(layout.width()):
        before = os.dup(stdout)
        os.dup2(kept.fileno(), stdout)
        out.paged = True
        try:
            yield
            with writing():
                sys.stdout.flush()
        finally:
            out.paged = False
            with suppress(OSError):
                sys.stdout.flush()
            os.dup2(before, stdout)
            os.close(before)


def _copy(kept: IO[bytes]) -> None:
    """Prints the collected output without a pager."""
    import shutil

    kept.seek(0)
    with writing():
        shutil.copyfileobj(kept, sys.stdout.buffer)
        sys.stdout.flush()
