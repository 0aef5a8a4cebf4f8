"""Starts a git before gitcp has loaded: this module imports nothing that takes time.

`subprocess` takes longer to load than git takes to answer a question.
"""

import os

# Variables that a calling git sets (a hook's GIT_DIR, the index of a commit under way)
# would redirect our git. Variables that a user sets for transport and configuration
# must keep working.
_KEPT = frozenset(
    {
        "GIT_ASKPASS",
        "GIT_CEILING_DIRECTORIES",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_EXEC_PATH",
        "GIT_PROXY_COMMAND",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_CERT",
        "GIT_SSL_KEY",
        "GIT_SSL_NO_VERIFY",
    }
)
# Settings that a user gives by the environment, as containers of a CI do; what `git -c`
# hands to its hooks has another name.
_NUMBERED = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
_ALWAYS = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "LC_ALL": "C",
}
# No hook, monitor or background job of the user's runs because of gitcp. By default git
# does not sync refs (and before 2.36 it cannot): what packs or deletes some would leave
# an empty file of packed refs after a power cut, and the user's branches are in it too.
SAFE = (
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "gc.auto=0",
    "-c",
    "maintenance.auto=false",
    # A project may come with a directory that looks like a bare repository: git ignores
    # one that is not named. gitcp names the git directory that it means.
    "-c",
    "safe.bareRepository=explicit",
    "-c",
    "core.fsync=reference",
)
# Bytes of one read of what git printed.
_PIECE = 1 << 20
_SIGKILL = 9
# Git compares with up to 20 threads, and on a few cores their share would leave gitcp next to
# none: both are done earlier if git yields to it.
_YIELDS = 10

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def environment(extra: "Mapping[str, str] | None" = None) -> dict[str, str]:
    """Returns the environment for a git process."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT or name.startswith(_NUMBERED)
    }
    return {**kept, **_ALWAYS, **(extra or {})}


class Launched:
    """A git that runs while gitcp loads. `arguments` are those of git itself.

    `outcome` or `kill` has to end it.
    """

    def __init__(
        self, pid: int, arguments: "Sequence[str]", streams: tuple[int, int]
    ) -> None:
        self.arguments = arguments
        self.pid = pid
        self._streams = streams

    def outcome(self) -> tuple[int, bytes, bytes]:
        """Waits for git; returns its status as `subprocess` does, its stdout and stderr.

        Raises:
            ChildProcessError: the system has forgotten the status, because this process was
                started to ignore the end of its children.
        """
        try:
            out, err = _contents(self._streams)
            _, waited = os.waitpid(self.pid, 0)
        except ChildProcessError:
            self._close()
            raise
        except BaseException:
            # A hook's time is over, or the user interrupts.
            self.kill()
            raise
        self._close()
        return os.waitstatus_to_exitcode(waited), out, err

    def kill(self) -> None:
        """Ends git and forgets what it printed."""
        try:
            os.kill(self.pid, _SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            # The system has forgotten it; see `outcome`.
            pass
        finally:
            self._close()

    def _close(self) -> None:
        for fd in self._streams:
            os.close(fd)


def launch(
    arguments: "Sequence[str]",
    *,
    where: str,
    env: "Mapping[str, str] | None" = None,
    yields: bool = False,
) -> Launched:
    """Starts `git ARGUMENTS` in a directory; with `yields`, this process has precedence.

    Raises:
        OSError: there is no git executable, or the system has no room for a process.
    """
    words = ["git", "-C", where, *SAFE, *arguments]
    out, to_out = os.pipe()
    err, to_err = os.pipe()
    actions = (
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, to_out, 1),
        (os.POSIX_SPAWN_DUP2, to_err, 2),
    )
    try:
        pid = os.posix_spawnp("git", words, environment(env), file_actions=actions)
    except OSError:
        os.close(out)
        os.close(err)
        raise
    finally:
        os.close(to_out)
        os.close(to_err)
    if yields:
        _lower(pid)
    return Launched(pid, arguments, (out, err))


def _lower(pid: int) -> None:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    try:  # noqa: SIM105  contextlib takes long to load
        os.setpriority(os.PRIO_PROCESS, pid, own + _YIELDS)
    except OSError:
        # It has ended, or the system does not allow it: that costs only time.
        pass


def _contents(streams: tuple[int, int]) -> tuple[bytes, bytes]:
    """Reads two pipes to their ends, whichever has something."""
    import select  # noqa: PLC0415  loaded by now

    pieces: dict[int, list[bytes]] = {fd: [] for fd in streams}
    poller = select.poll()
    for fd in streams:
        poller.register(fd, select.POLLIN)
    left = len(streams)
    while left:
        for fd, _ in poller.poll():
            piece = os.read(fd, _PIECE)
            if piece:
                pieces[fd].append(piece)
            else:
                poller.unregister(fd)
                left -= 1
    out, err = streams
    return b"".join(pieces[out]), b"".join(pieces[err])
