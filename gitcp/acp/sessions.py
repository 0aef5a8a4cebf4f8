"""The sessions that pass through one proxy, and the files that record each."""

import datetime
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.clients import acp_folder
from gitcp.clients.acp_folder import About, SessionFolder
from gitcp.clients.acp_talk import Heading
from gitcp.errors import GitcpError

# A restored talk is for the next session in its project, within so many seconds.
_WAITS = 12 * 3600.0


class LiveSession:
    """One session: its folder, the turn that is open, and lines that wait for a checkpoint."""

    def __init__(
        self, ident: str, cwd: str, folder: SessionFolder, lock: int | None
    ) -> None:
        self.ident = ident
        self.cwd = cwd
        self.folder = folder
        self.agent: str | None = None
        # False once it is known that nothing of it can be saved.
        self.is_kept = True
        # The talk that the agent is given with the next prompt.
        self.replays = False
        # The ids of the requests that the open turn has to answer.
        self.prompts: set[object] = set()
        self.held: list[bytes] | None = None
        self.held_id: object = None
        self._lock = lock
        self._turn: int | None = None
        self._file: int | None = None

    @property
    def turn(self) -> int | None:
        """The number of the last turn, open or not."""
        return self._turn

    @property
    def is_open(self) -> bool:
        """Whether a turn is open."""
        return self._file is not None

    def begin_turn(self, prompt: object, line: bytes) -> int:
        """Writes down the prompt of a new turn, and returns the turn's number.

        Raises:
            OSError: the line cannot be written.
        """
        self._close()
        turn = max(time.time_ns(), (self._turn or 0) + 1)
        self._turn, self.prompts = turn, {prompt}
        self._file = self.folder.begin(turn)
        at = datetime.datetime.fromtimestamp(turn / 1e9, datetime.UTC)
        heading = Heading(turn, at.isoformat(), self.cwd, self.agent)
        self.write(msgspec.json.encode(heading) + b"\n" + line)
        return turn

    def write(self, line: bytes) -> None:
        """Writes down a line of the open turn.

        Raises:
            OSError: the line cannot be written.
        """
        assert self._file is not None
        view = memoryview(line)
        while view:
            view = view[os.write(self._file, view) :]

    def end_turn(self) -> int | None:
        """Ends the open turn, and returns its number."""
        self._close()
        return self._turn

    def replayed(self) -> None:
        """Notes that the agent was given the talk.

        Raises:
            StorageError: the note cannot be written.
        """
        self.replays = False
        self.folder.note(About(self.cwd, self.ident, self.agent))

    def leave(self) -> None:
        """Gives the session up to other processes."""
        self._close()
        if self._lock is not None:
            durable.close(self._lock)
            self._lock = None

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None
        self.prompts.clear()


class Sessions:
    """The sessions of one proxy, by the agent's ids of them."""

    def __init__(self, directory: Path, agent: str) -> None:
        self._directory = directory
        self._agent = agent
        self._live: dict[str, LiveSession] = {}

    def find(self, ident: str | None) -> LiveSession | None:
        """Returns a session that passes through here, or None."""
        return self._live.get(ident) if ident is not None else None

    def all(self) -> list[LiveSession]:
        """Returns all of them."""
        return list(self._live.values())

    def begin(
        self, ident: str, cwd: str, restored: SessionFolder | None
    ) -> LiveSession:
        """Returns a session that the agent has just made; `restored` is the talk it is given.

        Raises:
            OSError, StorageError: nothing can be written down of it.
        """
        before = self._live.pop(ident, None)
        if before is not None:
            before.leave()
        folder = restored if restored is not None else self._new_folder(ident)
        lock = folder.lock()
        about = folder.about() if restored is not None else None
        number = about.number if about is not None else None
        waits = about is not None and not about.replayed
        folder.note(About(cwd, ident, self._agent, number=number, replayed=not waits))
        session = self._add(ident, cwd, folder, lock)
        session.replays = waits
        return session

    def go_on(self, ident: str, cwd: str) -> LiveSession:
        """Returns a session that was there before, here or in an earlier proxy.

        Raises:
            OSError, StorageError: nothing can be written down of it.
        """
        known = self._live.get(ident)
        if known is not None:
            return known
        found = [
            folder
            for folder in acp_folder.folders(self._directory)
            if (about := folder.about()) is not None
            and (about.session, about.agent) == (ident, self._agent)
            and os.path.realpath(about.cwd) == os.path.realpath(cwd)
        ]
        for folder in sorted(found, key=_grew, reverse=True):
            lock = folder.lock()
            if lock is not None:
                session = self._add(ident, cwd, folder, lock)
                about = folder.about()
                session.replays = about is not None and not about.replayed
                return session
        return self.begin(ident, cwd, None)

    def forget(self, session: LiveSession) -> None:
        """Leaves a session that was closed."""
        self._live.pop(session.ident, None)
        session.leave()

    def restored(self, cwd: str) -> tuple[SessionFolder, About] | None:
        """Takes the talk of the last restore, if it waits for a new session in a directory.

        One that waited for long is not what a new session is about, nor is one before it.
        """
        try:
            here = os.path.realpath(cwd)
        except ValueError:
            # No directory has such a name; the agent will say so.
            return None
        waiting = []
        for folder in acp_folder.folders(self._directory):
            about = folder.about()
            if about is None or about.replayed or about.top is None:
                continue
            if here == about.top or here.startswith(about.top + os.sep):
                waiting.append((folder.noted_at, folder, about))
        waiting.sort(key=lambda one: one[0])
        if not waiting or waiting[-1][0] < time.time() - _WAITS:
            return None
        for _, folder, about in waiting[:-1]:
            with suppress(GitcpError):
                folder.note(About(about.cwd, agent=about.agent))
        _, folder, about = waiting[-1]
        with suppress(OSError):
            # The first to make the file has it: two editors may ask at once.
            claim = folder.path / "waiting"
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            return folder, about
        return None

    def give_back(self, folder: SessionFolder) -> None:
        """Lets another session have the talk of a restore: this one was not made."""
        with suppress(OSError):
            (folder.path / "waiting").unlink()

    def abandoned(self) -> list[tuple[SessionFolder, int]]:
        """Returns what killed proxies left: sessions whose last turns are not in the talk."""
        found = []
        for folder in acp_folder.folders(self._directory):
            turns = folder.turns()
            if turns and folder.path.is_dir():
                lock = folder.lock()
                if lock is not None:
                    durable.close(lock)
                    found.append((folder, turns[-1]))
        return found

    def _add(
        self, ident: str, cwd: str, folder: SessionFolder, lock: int | None
    ) -> LiveSession:
        session = LiveSession(ident, cwd, folder, lock)
        session.agent = self._agent
        self._live[ident] = session
        return session

    def _new_folder(self, ident: str) -> SessionFolder:
        """Makes a folder: an id that was used before, as simple agents do, gets another."""
        durable.make_directories(self._directory, private=True)
        name = acp_folder.name_of(ident)
        for one in (name, f"{name}-{uuid.uuid4().hex[:8]}"):
            path = self._directory / one
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
                return SessionFolder(path)
        raise FileExistsError(str(self._directory / name))


def working_directory() -> str:
    """Returns the directory of this process; `/` if it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return "/"


def _grew(folder: SessionFolder) -> float:
    with suppress(OSError):
        return folder.talk.stat().st_mtime
    return 0.0
