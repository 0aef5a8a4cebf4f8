"""Bindings: which branch an agent's session appends to, one small file each.

Each client in a work tree has a session of its own. After a restore the resumed
conversation appends to the restored branch. The session that appended to it before
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
# A client without a hook event for this long, in seconds, counts as closed.
_LATELY = 3_600.0
_RANDOM_FIRST = r"[0-9a-f]{8}-[0-9a-f]{4}-4"


class Binding(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's session and the branch that it appends to.

    `source` is the name that its conversation is stored under. If another session has
    taken the branch over, `superseded` is the id of the last checkpoint that this session
    made there. `session` is None if the client has forked the session and its origin is
    not known yet. `asked` is the prompt that began the turn, `transcript` the file that
    the client writes the conversation to. `written` are the files that a restore wrote for
    the client, with their SHA-256, and `copied` the directories that it copied for the
    client; `written_at` is the id of that restore's checkpoint. `restore` is the id of the
    last restore in the work tree that the client knows of. `ended` says that the client
    closed the session.
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
        """Whether the session still has a branch of its own to append to."""
        return self.session is not None and self.superseded is None


def find(workspace: Workspace, agent: str, agent_session: str) -> Binding | None:
    """Returns the binding of an agent's session, or None."""
    return _read(_path(workspace, agent, agent_session))


def short(agent_session: str) -> str:
    """Returns the part of an id that tells sessions apart.

    Most ids begin with the time (UUIDs of version 7, OpenCode's). The ids of two clients
    that are started in the same minute differ only at the end.
    """
    if re.match(_RANDOM_FIRST, agent_session):
        return agent_session[:_SHORT]
    return agent_session[-_SHORT:]


def keep(workspace: Workspace, binding: Binding, *, seen: bool = True) -> Binding:
    """Stores the binding of an agent's session; `seen` says that its client is open now."""
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
    """Returns the sessions that are likely open in a client that has not seen a restore."""
    return [one for one in likely_open(workspace) if one.restore != restore.id]


def likely_open(workspace: Workspace, agent: str | None = None) -> list[Binding]:
    """Returns the sessions that are likely open in a client.

    A client that is killed does not report it. So a session counts as open if it did not
    report its end, and sent a hook event lately or has a transcript that grew lately.
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
    """Gives a branch to a session; others that appended to it fork from `before` later."""
    for other in latest_first(workspace):
        if (
            (other.session, other.branch) == (binding.session, binding.branch)
            and other.superseded is None
            and other.agent_session != binding.agent_session
        ):
            # A conversation that was never resumed is still at the checkpoint it was
            # written from.
            unused = other.written_at if other.transcript is None else None
            superseded = msgspec.structs.replace(other, superseded=unused or before)
            keep(workspace, superseded, seen=False)
    return keep(workspace, binding)


def follow(workspace: Workspace, session: str, old: str, new: str) -> None:
    """Makes the sessions that append to a branch append to its fork from now on."""
    for binding in latest_first(workspace):
        if (binding.session, binding.branch) == (session, old) and binding.is_settled:
            moved = msgspec.structs.replace(binding, branch=new)
            keep(workspace, moved, seen=False)


def kept_in(directory: Path) -> Iterator[Binding]:
    """Yields the bindings that the state of one work tree holds."""
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
