"""The questions to git about every repository; they may start before gitcp has loaded.

Therefore this module imports only what Python has loaded anyway.
"""

import os
import time

from gitcp.git import launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitcp.git.configuration import Listed
    from gitcp.git.process import Running

    Answers = tuple[Listed, bytes, str | None, int]

# The arguments with which `git config` names the file of each value.
LIST = ("config", "--list", "--show-origin", "-z")
_PROBE = (
    "rev-parse",
    "--path-format=absolute",
    "--git-dir",
    "--git-common-dir",
    "--is-bare-repository",
    "--is-inside-work-tree",
    "--show-object-format",
    "--show-cdup",
)


class _Asked:
    """Two processes that answer. Both at once: each costs a start and no more.

    `since` is the time before git began to read, in nanoseconds.
    """

    def __init__(
        self, where: str, begin: "Callable[[tuple[str, ...]], Running]"
    ) -> None:
        self.where = where
        self.since = time.time_ns()
        self._config = begin(LIST)
        try:
            self._probe = begin(_PROBE)
        except BaseException:
            _end(self._config)
            raise

    def answers(self) -> "Answers":
        """Waits for the answers.

        Raises:
            GitFailedError: the configuration cannot be read.
            ChildProcessError: as `Launched.outcome` does.
        """
        from gitcp.git import configuration, process  # noqa: PLC0415  see above

        try:
            raw = process.result(self._config, accept=(0, 128))
        finally:
            failed, lines, err = process.outcome(self._probe)
        listed = configuration.parse(raw)
        refused = err.decode("utf-8", "replace").strip()
        return listed, lines, refused if failed else None, self.since

    def end(self) -> None:
        _end(self._config)
        _end(self._probe)


class _Slot:
    """The questions that were asked early, and whose answers were not taken yet."""

    early: _Asked | None = None


def start_early() -> None:
    """Asks about the current directory. git answers while gitcp loads.

    If git cannot be started, `ask` reports it.
    """
    try:
        where = os.path.realpath(".")
        _Slot.early = _Asked(where, lambda words: launch.launch(words, where=where))
    except OSError:
        return


def ask(where: str | os.PathLike[str], named: tuple[str, ...]) -> "Answers":
    """Returns git's answers about the repository around a directory.

    These are the configuration, the lines of `rev-parse`, the reason if there are none, and
    the time before git began to read, in nanoseconds. `named` are options that stand before
    the command.

    Raises:
        GitFailedError: git could not be started, or its answer is of no use.
    """
    from gitcp.git import process  # noqa: PLC0415  see above

    early, _Slot.early = _Slot.early, None
    if early is not None:
        if not named and early.where == os.path.realpath(where):
            try:
                return early.answers()
            except ChildProcessError:
                # git has ended; how, the system does not tell.
                pass
        else:
            early.end()
    at = os.fspath(where)
    asked = _Asked(at, lambda words: process.start([*named, *words], cwd=at))
    return asked.answers()


def drop() -> None:
    """Ends what was asked early and not taken."""
    early, _Slot.early = _Slot.early, None
    if early is not None:
        early.end()


def _end(running: "Running") -> None:
    from gitcp.git import process  # noqa: PLC0415  see above

    process.end(running)
