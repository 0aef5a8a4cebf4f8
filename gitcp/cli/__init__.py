"""The command line: the only package that imports click, or prints."""

import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# Commands that may do without click.
_SIMPLE = frozenset({"save", "restore"})
# `hook AGENT EVENT`
_HOOK = 3
# Options that may stand before the name of a command, those with which it does nothing, that
# by which a restore does not ask, and those with which it does not scan first.
_ALSO = frozenset({"-q", "--quiet", "-v", "--verbose", "--no-pager", "--json"})
_HELP = frozenset({"-h", "--help"})
_YES = frozenset({"-y", "--yes"})
_ELSEWHERE = frozenset({"--to", "--effects", "--continue", "--abort", "--dry-run"})
# Commands that open the project around the current directory, and are waited for.
_OPENING = frozenset(
    {
        *("save", "log", "show", "diff", "restore", "undo", "status", "messages"),
        *("context", "decide", "decisions", "search", "why", "sessions", "branches"),
        *("fork", "switch", "rollback", "label", "files", "cat", "steps", "du"),
    }
)


def entry() -> None:
    """Runs the command line and ends the process with its exit status."""
    # A command is short and makes no cycles worth looking for while it starts.
    gc.set_threshold(100_000, 20, 20)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    status = main(sys.argv[1:])
    _end(status)


def _end(status: int) -> None:
    """Ends the process.

    Python would first take apart all that was loaded. A hook, a save or a restore that
    needed no click has closed its files and has no other thread: what is registered for
    the end is all that is left to do.
    """
    # No cycles are worth looking for: that would take a tenth of a small save.
    gc.freeze()
    threading = sys.modules.get("threading")
    if "click" in sys.modules or threading is None or threading.active_count() > 1:
        sys.exit(status)
    atexit._run_exitfuncs()  # noqa: SLF001  there is no public name
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)
    os._exit(status)


def _open_streams() -> None:
    """Gives a process that was started without one of the three streams an empty one.

    As git does it: a file that is opened must not come to be what others print to.
    """
    number = os.open(os.devnull, os.O_RDWR)
    while number <= 2:  # noqa: PLR2004  stderr
        os.set_inheritable(number, True)  # noqa: FBT003  it has no name
        number = os.dup(number)
    os.close(number)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def main(arguments: "Sequence[str]") -> int:
    """Runs one command and returns its exit status."""
    if arguments == ["--version"]:
        # Asked for by scripts at every turn; click takes longer to load than to run.
        from gitcp._version import __version__

        sys.stdout.write(f"gitcp {__version__}\n")
        return 0
    if sys.platform == "win32":
        sys.stderr.write(
            "gitcp: Windows is not supported: its promises need POSIX files and locks\n"
            "  use it inside WSL\n"
        )
        return 17
    if (
        len(arguments) == _HOOK
        and arguments[0] == "hook"
        and "-" not in arguments[1][:1]
    ):
        # A client waits for it, and click takes longer to load than the rest of it.
        _load_msgspec()
        from gitcp.cli.agent_hook import run as run_hook

        run_hook(arguments[1], arguments[2])
        return 0
    words = [word for word in arguments if word not in _ALSO]
    if not _opens(words):
        _load_msgspec()
        from gitcp.cli.app import run

        return run(list(arguments))
    # git works while the rest is loaded: that takes longer than what it is asked.
    from gitcp.worktree import comparison

    if _scans_at_once(words):
        comparison.start_early()
    from gitcp.git import questions

    questions.start_early()
    try:
        _load_msgspec()
        return _run(list(arguments))
    finally:
        questions.drop()
        comparison.drop()


def _load_msgspec() -> None:
    """Loads msgspec without `typing_extensions`, which takes as long as msgspec itself.

    msgspec prefers it for two functions that Python 3.11 has itself. Whatever else asks for
    it later gets it.
    """
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    # So Python is told that a module does not exist.
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def _run(arguments: "list[str]") -> int:
    """Runs a command; click parses its arguments if they are not among the simplest."""
    if arguments[0] in _SIMPLE:
        from gitcp.cli import plain

        call = plain.parse(arguments)
        if call is not None:
            return plain.run(call)
    from gitcp.cli.app import run

    return run(arguments)


def _opens(words: "Sequence[str]") -> bool:
    """Whether a command opens the project around the current directory."""
    return (
        bool(words)
        and words[0] in _OPENING
        and _HELP.isdisjoint(words)
        and "_GITCP_COMPLETE" not in os.environ
    )


def _scans_at_once(words: "Sequence[str]") -> bool:
    """Whether one that opens it has its work tree scanned.

    A restore that asks scans before it has the lock; one without a question does not.
    """
    changes = words[0] in ("restore", "undo") and not _YES.isdisjoint(words)
    return words[0] == "save" or (changes and _ELSEWHERE.isdisjoint(words))
