"""The command line: the only package that imports click, or prints."""

import atexit
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


# Commands that may run without click.
_SIMPLE = frozenset({"save", "restore"})
# `hook AGENT EVENT`
_HOOK = 3
# Options that may precede a command's name; options with which the command does nothing;
# options by which a restore does not ask; and options with which it does not scan first.
_ALSO = frozenset({"-q", "--quiet", "-v", "--verbose", "--no-pager", "--json"})
_HELP = frozenset({"-h", "--help"})
_YES = frozenset({"-y", "--yes"})
_ELSEWHERE = frozenset({"--to", "--effects", "--continue", "--abort", "--dry-run"})
# Commands that open the project around the current directory, and that users wait for.
_OPENING = frozenset(
    {
        *("save", "log", "show", "diff", "restore", "undo", "status", "messages"),
        *("context", "decide", "decisions", "search", "why", "sessions", "branches"),
        *("fork", "switch", "rollback", "label", "files", "cat", "steps", "du"),
    }
)


def entry() -> None:
    """Runs the command line and ends the process with its exit status."""
    # A command is short, so collecting cycles while it starts is not worth the time.
    gc.set_threshold(100_000, 20, 20)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    status = main(sys.argv[1:])
    _end(status)


def _end(status: int) -> None:
    """Ends the process.

    Python would first tear down all loaded modules. A hook, save or restore that did not
    load click has closed its files and has no other thread, so only the registered exit
    functions are left to run.
    """
    # Do not collect cycles: that would take a tenth of the time of a small save.
    gc.freeze()
    threading = sys.modules.get("threading")
    at_once = (
        "click" not in sys.modules
        and threading is not None
        and threading.active_count() == 1
    )
    if at_once:
        atexit._run_exitfuncs()  # noqa: SLF001  there is no public name
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        from gitcp.cli.streams import discard_unwritten

        status = discard_unwritten(status)
    if at_once:
        os._exit(status)
    sys.exit(status)


def _open_streams() -> None:
    """Opens /dev/null for each of the three streams that the process was started without.

    git does the same: a file that gitcp opens must not get the number of a stream that
    other code prints to.
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
        # Scripts ask for it often, and click takes longer to load than to run.
        from gitcp._version import __version__

        line = f"gitcp {__version__}\n"
        try:
            sys.stdout.write(line)
            sys.stdout.flush()
        except OSError:
            from gitcp.cli import boundary

            out = boundary.output_for(arguments)
            return boundary.run(out, lambda: out.raw(line.encode()))
        return 0
    if sys.platform == "win32":
        sys.stderr.write(
            "gitcp: Windows is not supported: its promises need POSIX files and locks\n"
            "  use it inside WSL\n"
        )
        return 17
    from gitcp.git import questions
    from gitcp.worktree import comparison

    words = [word for word in arguments if word not in _ALSO]
    # git works while the other modules load, which takes about as long. The questions come
    # first: they are short, and a process starts faster while nothing else works.
    if _opens(words):
        questions.start_early()
    if _scans_at_once(words):
        comparison.start_early()
    _await_children()
    if (
        len(arguments) == _HOOK
        and arguments[0] == "hook"
        and "-" not in arguments[1][:1]
    ):
        # A client waits for the hook, and click takes longer to load than the rest.
        _load_msgspec()
        from gitcp.cli.agent_hook import run as run_hook

        run_hook(arguments[1], arguments[2])
        return 0
    if not _opens(words):
        _load_msgspec()
        from gitcp.cli.app import run

        return run(list(arguments))
    try:
        _load_msgspec()
        return _run(list(arguments))
    finally:
        questions.drop()
        comparison.drop()


def _await_children() -> None:
    """Makes the system keep the exit status of each git, where the caller ignores its children.

    A program inherits that from the one that starts it. Without a status, a git that
    failed would count as one that did what it was asked.
    """
    import signal

    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _load_msgspec() -> None:
    """Loads msgspec without `typing_extensions`, which takes as long as msgspec itself.

    msgspec prefers it for two functions that Python 3.11 has itself. Modules that import it
    later get it.
    """
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    # None tells Python that the module does not exist.
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def _run(arguments: "list[str]") -> int:
    """Runs a command; click parses all but the simplest arguments."""
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
    """Whether a command that opens the project has its work tree scanned at once.

    A restore that asks scans before it has the lock; a restore that does not ask does not.
    """
    if not _opens(words):
        return False
    changes = words[0] in ("restore", "undo") and not _YES.isdisjoint(words)
    return words[0] == "save" or (changes and _ELSEWHERE.isdisjoint(words))
