"""Reopens a session that was sent to another process, if that has the same store."""

import os
import platform
from contextlib import suppress
from typing import Any, NamedTuple

from gitcp.checkpoints.session import BaseSession
from gitcp.errors import GitcpError, UsageError
from gitcp.project.workspace import Current, Workspace, open_workspace

_BOOT = "/proc/sys/kernel/random/boot_id"


class SentSession(NamedTuple):
    """The data sent of a session: where its repository is, and how to recognise it."""

    kind: type[BaseSession]
    top: str
    name: str
    branch: str
    machine: str
    device: int
    inode: int


class Identity(NamedTuple):
    """The identity of a session's branch, whatever path leads to its repository."""

    machine: str
    device: int
    inode: int
    name: str
    branch: str


def identity(workspace: Workspace, current: Current) -> Identity:
    """Returns the identity of a session's branch."""
    status = os.stat(workspace.repository.common_dir)
    return Identity(
        _machine(), status.st_dev, status.st_ino, current.session, current.branch
    )


_opened: dict[SentSession, BaseSession] = {}


def sent(session: BaseSession) -> SentSession:
    """Returns the data that another process needs to open the session."""
    repository = session.workspace.repository
    status = os.stat(repository.common_dir)
    return SentSession(
        type(session),
        os.fspath(session.workspace.top),
        session.name,
        session.branch,
        _machine(),
        status.st_dev,
        status.st_ino,
    )


def _machine() -> str:
    with suppress(OSError), open(_BOOT, encoding="ascii") as file:
        return file.read().strip()
    return platform.node()


def reopen(of: SentSession) -> Any:
    """Returns the session, one per process, or an object that raises on any use."""
    session = _opened.get(of)
    if session is None:
        try:
            session = _opened.setdefault(of, _open(of))
        except GitcpError as exc:
            # Do not raise here: an error while unpickling kills some workers.
            return UnreachableSession(of, exc.message)
    return session


def _open(of: SentSession) -> BaseSession:
    if of.machine != _machine():
        raise UsageError("this is another machine")
    session = of.kind(open_workspace(of.top, lasting=True), of.name, of.branch)
    status = os.stat(session.workspace.repository.common_dir)
    if (status.st_dev, status.st_ino) != (of.device, of.inode):
        raise UsageError("there is another repository here")
    return session


class UnreachableSession:
    """Stands for a session in a process that cannot reach its repository."""

    def __init__(self, of: SentSession, why: str) -> None:
        self._of = of
        self._why = why

    def __repr__(self) -> str:
        return f"<session {self._of.name}/{self._of.branch}, out of reach>"

    def __reduce__(self) -> tuple[Any, ...]:
        return reopen, (self._of,)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UsageError(
            f"this worker cannot reach the repository of the session {self._of.name!a} at"
            f" {self._of.top!a}: {self._why}",
            hint="a step has to be durable before it begins: run steps on the machine"
            " of the repository, and only functions without steps elsewhere",
        )
