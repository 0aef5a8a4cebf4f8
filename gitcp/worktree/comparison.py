"""Git's comparison of the files with the private index; may start before the rest is loaded.

It takes longer than the rest of a small save. So a command that is going to save starts
it before it loads the rest of gitcp, and it runs on another core meanwhile. Therefore this
module imports only what Python has loaded anyway.
"""

import os
import stat
import time

from gitcp.git import launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitcp.git.process import Running

CONFIG = b"""[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tautocrlf = false
\tsafecrlf = false
\tpreloadIndex = true
\ttrustctime = true
\tcheckStat = default
[index]
\tthreads = true
"""
# Overrides every .gitattributes, so that raw bytes are compared.
ATTRIBUTES = b"* -text -filter -ident -eol -working-tree-encoding\n"
# With a file of this name a git directory has its configuration elsewhere.
REDIRECTION = "commondir"
WORDS = (
    "diff-files",
    "-z",
    "--name-only",
    "--no-renames",
    "--ignore-submodules=all",
)
# After so many seconds too much may have changed: the command waited for another save.
_FRESH = 1.0


class Comparison:
    """A comparison that runs. `names` or `end` has to end it."""

    def __init__(self, running: "Running", directory: str, top: str) -> None:
        self._running = running
        self.directory = directory
        self.top = top

    def names(self) -> list[bytes]:
        """Waits, and returns the paths of the files that differ.

        Raises:
            GitFailedError: git failed.
        """
        from gitcp.git import process  # noqa: PLC0415  see above

        try:
            return process.result(self._running).split(b"\0")[:-1]
        except ChildProcessError:
            # It has ended; how, the system does not tell.
            return start(self.directory, self.top).names()

    def end(self) -> None:
        """Ends a comparison whose result is no longer needed."""
        from gitcp.git import process  # noqa: PLC0415  see above

        process.end(self._running)


class _Early:
    """A comparison that was started early, of an index with this signature."""

    def __init__(
        self, running: Comparison, signature: tuple[int, ...], began: float
    ) -> None:
        self.comparison = running
        self.signature = signature
        self.began = began


class _Slot:
    """The comparison that was started early and not taken yet."""

    early: _Early | None = None


def naming(
    directory: str | os.PathLike[str], top: str | os.PathLike[str]
) -> dict[str, str]:
    """Returns the environment that names the private directory and the work tree."""
    return {"GIT_DIR": os.fspath(directory), "GIT_WORK_TREE": os.fspath(top)}


def start(directory: str | os.PathLike[str], top: str | os.PathLike[str]) -> Comparison:
    """Starts to compare a work tree with the index in the private directory.

    Raises:
        GitFailedError: git could not be started.
    """
    from gitcp.git import process  # noqa: PLC0415  see above

    place, above = os.fspath(directory), os.fspath(top)
    started = process.start(WORDS, cwd=above, env=naming(place, above))
    return Comparison(started, place, above)


def start_early() -> None:
    """Starts to compare the work tree around the current directory, if that is simple.

    Git has not been asked for the repository yet. So the directory `.git` has to be this
    user's, and the private one below it as gitcp makes it: git reads no other settings
    there. The scan that takes it checks that the place was right. If git cannot be started,
    the scan reports it.
    """
    try:
        top = _top(os.path.realpath("."))
        if top is None:
            return
        directory = f"{top}/.git/gitcp/scan"
        if not _is_as_made(directory):
            return
        signature = _signature(directory)
        began = time.monotonic()
        env = naming(directory, top)
        launched = launch.launch(WORDS, where=top, env=env, yields=True)
    except OSError:
        return
    running = Comparison(launched, directory, top)
    _Slot.early = _Early(running, signature, began)


def take(
    directory: str | os.PathLike[str], top: str | os.PathLike[str]
) -> Comparison | None:
    """Returns the comparison that was started early, if it is of this index and fresh.

    The caller holds the lock of the work tree.
    """
    early, _Slot.early = _Slot.early, None
    if early is None:
        return None
    running = early.comparison
    try:
        if (
            running.directory == os.path.realpath(directory)
            and running.top == os.path.realpath(top)
            and early.signature == _signature(running.directory)
            and time.monotonic() < early.began + _FRESH
        ):
            return running
    except OSError:
        # There is no index any more.
        pass
    running.end()
    return None


def drop() -> None:
    """Ends a comparison that was started early and not taken."""
    early, _Slot.early = _Slot.early, None
    if early is not None:
        early.comparison.end()


def _top(where: str) -> str | None:
    """Returns the closest directory that has a `.git`, if that is a directory itself."""
    while True:
        try:
            status = os.lstat(f"{where}/.git")
        except FileNotFoundError:
            pass
        else:
            return where if _is_own(status) else None
        above = os.path.dirname(where)
        if above == where:
            return None
        where = above


def _is_as_made(directory: str) -> bool:
    """Whether the private directory holds what gitcp puts there, and nothing else.

    If a watcher was asked last time, its answer may suffice.
    """
    expected = {"config": CONFIG, "info/attributes": ATTRIBUTES}
    return (
        all(
            _is_own(os.lstat(path))
            for path in (os.path.dirname(directory), directory, f"{directory}/info")
        )
        and not any(
            os.path.lexists(f"{directory}/{name}") for name in (REDIRECTION, "watcher")
        )
        and all(
            _content(f"{directory}/{name}") == text for name, text in expected.items()
        )
    )


def _is_own(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        return os.read(fd, len(CONFIG) + 1)
    finally:
        os.close(fd)


def _signature(directory: str) -> tuple[int, ...]:
    """Returns stat data that changes when the index is replaced."""
    status = os.lstat(f"{directory}/index")
    return (
        status.st_dev,
        status.st_ino,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
    )
