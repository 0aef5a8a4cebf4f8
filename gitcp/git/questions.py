"""The questions to git about every repository; they may start before gitcp has loaded."""

import os
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import GitFailedError
from gitcp.git import configuration, process

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


class Answers(NamedTuple):
    """What git said: the configuration, and the lines of `rev-parse`.

    `since` is the time before git began to read, in nanoseconds; `refused` says why there
    are no lines.
    """

    listed: configuration.Listed
    lines: bytes
    refused: str | None
    since: int


class _Questions:
    """The two processes that answer. Both at once: each costs a start and no more."""

    def __init__(self, where: str, named: tuple[str, ...]) -> None:
        self.since = configuration.now()
        self._config = process.start([*named, *configuration.LIST], cwd=where)
        self._probe = process.start([*named, *_PROBE], cwd=where)

    def answers(self) -> Answers:
        listed = configuration.parse(process.finish(self._config, accept=(0, 128)))
        lines, err = self._probe.communicate()
        refused = err.decode("utf-8", "replace").strip()
        failed = self._probe.returncode
        return Answers(listed, lines, refused if failed else None, self.since)

    def end(self) -> None:
        for running in (self._config, self._probe):
            running.kill()
            running.communicate()


class _Early(NamedTuple):
    questions: _Questions
    where: str


class _Slot:
    """The questions that were asked early, and whose answers were not taken yet."""

    early: _Early | None = None


def start_early() -> None:
    """Asks about the current directory. git answers while gitcp loads."""
    with suppress(OSError, GitFailedError):
        where = os.path.realpath(".")
        _Slot.early = _Early(_Questions(where, ()), where)


def ask(where: str | os.PathLike[str], named: tuple[str, ...]) -> Answers:
    """Returns git's answers about the repository around a directory.

    `named` are options that stand before the command.

    Raises:
        GitFailedError: git could not be started, or its answer is of no use.
    """
    early, _Slot.early = _Slot.early, None
    if early is not None:
        if not named and early.where == os.path.realpath(where):
            return early.questions.answers()
        early.questions.end()
    return _Questions(os.fspath(where), named).answers()


def drop() -> None:
    """Ends what was asked early and not taken."""
    early, _Slot.early = _Slot.early, None
    if early is not None:
        early.questions.end()
