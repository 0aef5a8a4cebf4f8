"""The folder of one session behind `gitcp acp`: its conversation, and turns not yet added.

The proxy writes each turn down line by line, in a file of its own (`TURN.turn`), before it
hands a line on. A turn that has ended is made into messages and added to `talk.jsonl`; only
then its file goes. A kill at any moment leaves the file, or the messages, never both twice.
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
# How many lines a talk had that was removed, as a checkpoint holds it.
_STORED = "stored"
_LOCK = "proxy.lock"
_FOLDS = "fold.lock"
_TURN = re.compile(r"(?a)(\d{1,20})\.turn")
# The size that the talk had before a turn was added to it.
_ADDING = re.compile(r"(?a)(\d{1,20})@(\d{1,20})\.adding")
_PATIENCE = 10.0
_NAME = 80


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of a session: the agent's id of it, and where it works.

    A session that a restore made has no id until an agent has one for it: it waits in `top`,
    and `number` is the checkpoint that it continues from. `whole` is the session of the agent
    that has exactly this talk.
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
    """Returns the name of a session's folder, as far as it has one to itself."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", session)[:_NAME] or "_"


class SessionFolder:
    """One folder; its name is what gitcp knows the session by."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.talk = path / _TALK

    @property
    def name(self) -> str:
        """The name of the session here."""
        return self.path.name

    def about(self) -> About | None:
        """Returns what is known of the session; None if nothing can be read."""
        with suppress(OSError, msgspec.MsgspecError):
            raw = (self.path / _ABOUT).read_bytes()
            return msgspec.json.decode(raw, type=About)
        return None

    @property
    def noted_at(self) -> float:
        """When that was written down, in seconds since 1970; 0 if it was not."""
        with suppress(OSError):
            return (self.path / _ABOUT).stat().st_mtime
        return 0.0

    def note(self, about: About) -> None:
        """Writes down what is known of the session.

        Raises:
            StorageError: the disk refused.
        """
        with durable.storage("noting a session of an agent"):
            durable.make_directories(self.path, private=True)
            durable.replace(self.path / _ABOUT, encode(about))

    def lock(self) -> int | None:
        """Takes the session for this process; None if another has it."""
        return durable.try_lock(self.path / _LOCK)

    def turns(self) -> list[int]:
        """Returns the turns that are not in the talk yet, the oldest first."""
        return sorted({turn for turn, _, _ in self._waiting()})

    def begin(self, turn: int) -> int:
        """Returns the descriptor of a new file that a turn is written down in.

        Raises:
            OSError: the file cannot be made.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.path / f"{turn}.turn", flags, 0o600)

    def fold(self, upto: int) -> None:
        """Adds the turns up to one to the talk.

        Raises:
            BusyError: another process is at it for ten seconds.
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
        """Holds the session; yields whether what was said may be rewritten until the end.

        It may not while a proxy has the session, nor where a killed process was adding a
        turn: how far that got is known by the size of the talk.

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
        """Removes the talk, of which a checkpoint holds all lines; see `at_rest`.

        Raises:
            StorageError: the disk refused.
        """
        with durable.storage("removing a talk that is stored"):
            # First: without it the talk would begin again with its next turn.
            durable.replace(self.path / _STORED, f"{count}\n".encode())
            durable.remove(self.talk)

    def stored(self) -> int | None:
        """Returns how many lines of the talk were removed; None if it is there."""
        with suppress(OSError, ValueError):
            return int((self.path / _STORED).read_bytes())
        return None

    def write_again(self, talk: bytes) -> None:
        """Writes a talk that was removed; one that is there stays.

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
        """Returns the files that hold what was said."""
        return [self.talk, *sorted(path for _, path, _ in self._waiting())]

    def _add(self, turn: int, path: Path, size: int | None) -> None:
        lines = acp_talk.messages(path.read_bytes())
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(self.talk, flags, 0o600), "wb") as talk:
            if size is None:
                size = os.fstat(talk.fileno()).st_size
                path = path.rename(self.path / f"{turn}@{size}.adding")
            # What a killed process had added of this turn is not stored anywhere yet.
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
    """Whether a text is the name of a folder, and of nothing outside of ours."""
    return re.fullmatch(r"(?a)[A-Za-z0-9_-]{1,120}", text) is not None


def encode(about: About) -> bytes:
    """Returns what `session.json` says."""
    return msgspec.json.encode(about)


def folders(directory: Path) -> Iterator[SessionFolder]:
    """Yields the folders of all sessions."""
    with suppress(OSError):
        for name in sorted(os.listdir(directory)):
            if not name.startswith("."):
                yield SessionFolder(directory / name)
