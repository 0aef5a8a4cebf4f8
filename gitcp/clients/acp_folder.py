"""The folder of one session behind `gitcp acp`: its conversation, and turns not yet added.

The proxy records each turn line by line, in a file of its own (`TURN.turn`), before it
forwards a line. It converts a turn that has ended to messages, adds them to `talk.jsonl`,
and only then removes the turn's file. So a kill at any moment neither loses a turn nor adds
it twice.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.clients import acp_talk
from gitcp.user_state import state_directory

_TALK = "talk.jsonl"
_ABOUT = "session.json"
# How many lines `talk.jsonl` had when it was removed because a checkpoint holds it.
_STORED = "stored"
_LOCK = "proxy.lock"
_FOLDS = "fold.lock"
_TURN = re.compile(r"(?a)(\d{1,20})\.turn")
# The size of `talk.jsonl` before a turn was added to it.
_ADDING = re.compile(r"(?a)(\d{1,20})@(\d{1,20})\.adding")
_PATIENCE = 10.0
_NAME = 80


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """The description of a session: the agent's id for it, and the directory it works in.

    A session that a restore made has no id until an agent gives it one. Until then it waits
    in `top`; `number` is the checkpoint that it continues from, and `whole` the agent's
    session with exactly this conversation.
    """

    cwd: str
    session: str | None = None
    agent: str | None = None
    top: str | None = None
    number: int | None = None
    whole: str | None = None
    replayed: bool = True


def root(environment: Mapping[str, str]) -> Path:
    """Returns the folder of all sessions, in the user's state directory."""
    return state_directory(environment) / "acp"


def name_of(session: str) -> str:
    """Returns the name of a session's folder; ids that differ may share a name."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", session)[:_NAME] or "_"


class SessionFolder:
    """One folder; its name is gitcp's name for the session."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.talk = path / _TALK

    @property
    def name(self) -> str:
        """The name of the session here."""
        return self.path.name

    def about(self) -> About | None:
        """Returns the description of the session; None if it cannot be read."""
        with suppress(OSError, msgspec.MsgspecError):
            raw = (self.path / _ABOUT).read_bytes()
            return msgspec.json.decode(raw, type=About)
        return None

    @property
    def noted_at(self) -> float:
        """When the description was written, in seconds since 1970; 0 if there is none."""
        with suppress(OSError):
            return (self.path / _ABOUT).stat().st_mtime
        return 0.0

    def note(self, about: About) -> None:
        """Writes the description of the session.

        Raises:
            StorageError: the disk refused.
        """
        with durable.storage("noting a session of an agent"):
            durable.make_directories(self.path, private=True)
            durable.replace(self.path / _ABOUT, encode(about))

    def lock(self) -> int | None:
        """Locks the session for this process; None if another process has it."""
        return durable.try_lock(self.path / _LOCK)

    def turns(self) -> list[int]:
        """Returns the turns that are not in `talk.jsonl` yet, the oldest first."""
        return sorted({turn for turn, _, _ in self._waiting()})

    def begin(self, turn: int) -> int:
        """Returns the descriptor of a new file to record a turn in.

        Raises:
            OSError: the file cannot be made.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.path / f"{turn}.turn", flags, 0o600)

    def fold(self, upto: int) -> None:
        """Adds the turns up to `upto` to `talk.jsonl`.

        Raises:
            BusyError: another process holds the lock for ten seconds.
            StorageError: the talk cannot be written.
        """
        if not self.path.is_dir():
            return
        lock = self.path / _FOLDS
        with durable.locked(lock, what="the talk of a session", timeout=_PATIENCE):
            for turn, path, size in sorted(self._waiting()):
                if turn <= upto:
                    with durable.storage("adding a turn to the talk"):
                        self._add(turn, path, size)

    @contextmanager
    def at_rest(self) -> Iterator[bool]:
        """Locks the session; yields whether the conversation may be rewritten meanwhile.

        It may not if a proxy has the session, or if a killed process was adding a turn: the
        size of `talk.jsonl` shows how far that process got.

        Raises:
            BusyError: another process adds a turn for ten seconds.
            StorageError: the session cannot be locked.
        """
        if not self.path.is_dir():
            yield False
            return
        held = self.lock()
        if held is None:
            yield False
            return
        try:
            lock = self.path / _FOLDS
            with durable.locked(lock, what="the talk of a session", timeout=_PATIENCE):
                yield all(size is None for _, _, size in self._waiting())
        finally:
            durable.close(held)

    def put_away(self, count: int) -> None:
        """Removes `talk.jsonl`, once a checkpoint holds all its lines; see `at_rest`.

        Raises:
            StorageError: the disk refused.
        """
        with durable.storage("removing a talk that is stored"):
            # Write the count first: without it the next turn would begin a new
            # conversation.
            durable.replace(self.path / _STORED, f"{count}\n".encode())
            durable.remove(self.talk)

    def stored(self) -> int | None:
        """Returns how many lines of `talk.jsonl` were removed; None if it is there."""
        with suppress(OSError, ValueError):
            return int((self.path / _STORED).read_bytes())
        return None

    def write_again(self, talk: bytes) -> None:
        """Writes `talk.jsonl` again if it was removed; an existing file stays.

        Raises:
            BusyError: another process adds a turn for ten seconds.
            StorageError: the disk refused.
        """
        lock = self.path / _FOLDS
        with (
            durable.locked(lock, what="the talk of a session", timeout=_PATIENCE),
            durable.storage("writing a talk that was stored"),
        ):
            if not self.talk.exists():
                durable.replace(self.talk, talk, mode=0o600)
            durable.remove(self.path / _STORED)

    def said(self) -> list[Path]:
        """Returns the files that hold the conversation."""
        return [self.talk, *sorted(path for _, path, _ in self._waiting())]

    def _add(self, turn: int, path: Path, size: int | None) -> None:
        lines = acp_talk.messages(path.read_bytes())
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self.talk, flags, 0o600), "wb") as talk:
            if size is None:
                size = os.fstat(talk.fileno()).st_size
                path = path.rename(self.path / f"{turn}@{size}.adding")
            # Remove the part of this turn that a killed process added; no checkpoint holds
            # it.
            talk.truncate(size)
            talk.seek(size)
            talk.write(b"".join(msgspec.json.encode(one) + b"\n" for one in lines))
        path.unlink()

    def _waiting(self) -> Iterator[tuple[int, Path, int | None]]:
        with suppress(OSError):
            for name in os.listdir(self.path):
                found = _TURN.fullmatch(name)
                if found:
                    yield int(found[1]), self.path / name, None
                found = _ADDING.fullmatch(name)
                if found:
                    yield int(found[1]), self.path / name, int(found[2])


def is_name(text: str) -> bool:
    """Whether a text is a valid name of a session's folder, and leads nowhere else."""
    return re.fullmatch(r"(?a)[A-Za-z0-9_-]{1,120}", text) is not None


def encode(about: About) -> bytes:
    """Returns the content of `session.json`."""
    return msgspec.json.encode(about)


def folders(directory: Path) -> Iterator[SessionFolder]:
    """Yields the folders of all sessions."""
    with suppress(OSError):
        for name in sorted(os.listdir(directory)):
            if not name.startswith("."):
                yield SessionFolder(directory / name)
