"""Bindings: which branch an agent's session appends to, one small file each.

Two clients in one work tree have a session of gitcp's each. After a restore the resumed
conversation appends to the restored branch; the session that appended to it until then
continues on a branch of its own.
"""

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.names import encode
from gitcp.project.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint

_DIRECTORY = "agents"
_SHORT = 8
# A client that was not heard of for so long, in seconds, is taken for closed.
_LATELY = 3_600.0
_RANDOM_FIRST = r"[0-9a-f]{8}-[0-9a-f]{4}-4"


class Binding(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's session and the branch it grows.

    `source` is the name its conversation is stored under. `superseded` is the id
    of the branch's last checkpoint that was this session's, once another has taken the
    branch over. `session` is None for one that the client has forked and whose origin
    is not known yet. `asked` is what the turn began with, `transcript` the file the
    client writes the conversation to. `written` are the files that a restore wrote for the
    client, with their SHA-256, and `copied` the directories that it copied for it;
    `written_at` is the id of that restore's checkpoint. `restore` is the id of the last
    restore in the work tree that the client knows of. `ended` says that it was closed.
    """

    agent: str
    agent_session: str
    session: str | None
    branch: str = "main"
    source: str = ""
    superseded: str | None = None
    asked: str | None = None
    transcript: str | None = None
    seen: float = 0.0
    written: dict[str, str] = {}
    copied: tuple[str, ...] = ()
    restore: str | None = None
    written_at: str | None = None
    ended: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether the session continues where it did."""
        return self.session is not None and self.superseded is None


def find(workspace: Workspace, agent: str, agent_session: str) -> Binding | None:
    """Returns where a session of an agent grows, or None."""
    return _read(_path(workspace, agent, agent_session))


def short(agent_session: str) -> str:
    """Returns the part of an id that tells sessions apart.

    Most ids begin with the time (UUIDs of version 7, OpenCode's): of two clients that are
    started in the same minute they differ at the end only.
    """
    if re.match(_RANDOM_FIRST, agent_session):
        return agent_session[:_SHORT]
    return agent_session[-_SHORT:]


def keep(workspace: Workspace, binding: Binding, *, seen: bool = True) -> Binding:
    """Remembers where a session of an agent grows; `seen` says that it was just there."""
    refreshed = msgspec.structs.replace(binding, seen=time.time()) if seen else binding
    path = _path(workspace, binding.agent, binding.agent_session)
    with durable.storage("noting the agent's session"):
        workspace.repository.make_directory(path.parent)
        durable.replace(path, msgspec.json.encode(refreshed))
    return refreshed


def latest_first(workspace: Workspace, agent: str | None = None) -> list[Binding]:
    """Returns the known sessions, the one seen last first."""
    bindings = list(filter(None, map(_read, _files(workspace, agent))))
    return sorted(bindings, key=lambda one: one.seen, reverse=True)


def still_open(workspace: Workspace, restore: Checkpoint) -> list[Binding]:
    """Returns the sessions that are likely open in a client that a restore overtook."""
    return [one for one in likely_open(workspace) if one.restore != restore.id]


def likely_open(workspace: Workspace, agent: str | None = None) -> list[Binding]:
    """Returns the sessions that are likely open in a client.

    Clients do not say when they are killed: one is counted that was heard of lately, or
    whose transcript grew lately, and that did not say that it ended.
    """
    return [
        one
        for one in latest_first(workspace, agent)
        if not one.ended
        and one.transcript is not None
        and max(one.seen, _grew(one.transcript)) > time.time() - _LATELY
    ]


def _grew(transcript: str) -> float:
    with suppress(OSError):
        return Path(transcript).stat().st_mtime
    return 0.0


def take_over(workspace: Workspace, binding: Binding, before: str) -> Binding:
    """Gives a branch to a session; those that grew it continue elsewhere from `before`."""
    for other in latest_first(workspace):
        if (
            (other.session, other.branch) == (binding.session, binding.branch)
            and other.superseded is None
            and other.agent_session != binding.agent_session
        ):
            # One that was never resumed is still where it was written.
            unused = other.written_at if other.transcript is None else None
            superseded = msgspec.structs.replace(other, superseded=unused or before)
            keep(workspace, superseded, seen=False)
    return keep(workspace, binding)


def follow(workspace: Workspace, session: str, old: str, new: str) -> None:
    """Has the sessions that append to a branch append to its fork from now on."""
    for binding in latest_first(workspace):
        if (binding.session, binding.branch) == (session, old) and binding.is_settled:
            moved = msgspec.structs.replace(binding, branch=new)
            keep(workspace, moved, seen=False)


def kept_in(directory: Path) -> Iterator[Binding]:
    """Yields the sessions that the state of one work tree knows."""
    return filter(None, map(_read, sorted((directory / _DIRECTORY).glob("*/*.json"))))


def _files(workspace: Workspace, agent: str | None) -> Iterator[Path]:
    return (workspace.directory / _DIRECTORY).glob(f"{agent or '*'}/*.json")


def _path(workspace: Workspace, agent: str, agent_session: str) -> Path:
    name = f"{encode(agent_session)}.json"
    return workspace.directory / _DIRECTORY / encode(agent) / name


def _read(path: Path) -> Binding | None:
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes(), type=Binding)
    return None
