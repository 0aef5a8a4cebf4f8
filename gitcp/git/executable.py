"""Reads objects through the git executable, if libgit2 does not support their ids."""

import threading
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from weakref import finalize

from gitcp import at_fork
from gitcp.errors import CorruptError, GitFailedError, GitUnseenError
from gitcp.format.oid import ObjectFormat
from gitcp.git import process
from gitcp.git.libgit import streamed
from gitcp.git.migrating import Patience
from gitcp.git.objects import IN_MEMORY, Objects, damaged, wrong_kind

# The command that reads objects and headers, and the two commands for git before 2.36,
# which lacks it.
_TOGETHER = "--batch-command"
_READ, _LOOK = "--batch", "--batch-check"
_VERBS = {_READ: b"contents ", _LOOK: b"info "}
# Its last message about an object that a partial clone has left at its remote: it may not
# fetch here.
_PROMISED = b"from promisor remote"
# Git's message about an option that it does not know.
_USAGE = 129
# Small objects are cached: up to this size each, and so many bytes in all.
_SMALL, _KEPT = 16 * 1024, 16 * 1024 * 1024
# After so many missing objects git is started again.
_UNANSWERED = 200
# `<oid> <kind> <size>`; `<oid> missing` has one word less.
_HEAD_WORDS = 3


class GitObjects(Objects):
    """The objects of a git directory, as the git executable reads them.

    One process answers all requests. It starts with the first request, and ends with this
    object, or with the program. Safe to share among threads.
    """

    def __init__(self, git_dir: Path, form: ObjectFormat) -> None:
        super().__init__(form)
        self._git_dir = git_dir
        self._together = True
        self._unanswered = 0
        self._small: dict[bytes, tuple[str, bytes]] = {}
        self._small_bytes = 0
        self._running: dict[str, process.Process] = {}
        self._mutex = threading.Lock()
        finalize(self, _end_all, self._running)
        at_fork.in_child(self, GitObjects._reset_after_fork)

    def _reset_after_fork(self) -> None:
        self._mutex = threading.Lock()
        # The processes belong to the parent, which waits for them.
        self._parents = dict(self._running)
        self._running.clear()

    def exists(self, oid: bytes) -> bool:
        """Whether the object is there."""
        return len(oid) == self.form.size and self._ask(_LOOK, oid) is not None

    def header(self, oid: bytes) -> tuple[str, int]:
        """Returns kind and size without reading the content.

        Raises:
            CorruptError: the object is missing or damaged.
        """
        found = self._ask(_LOOK, oid)
        if found is None:
            raise self._absent(oid)
        kind, size, _ = found
        return kind, size

    def read(self, oid: bytes, kind: str) -> bytes:
        """Returns the content of an object.

        Raises:
            CorruptError: the object is missing, damaged, or of another kind.
        """
        known = self._small.get(oid)
        found, data = known or self._read(oid)
        if found != kind:
            raise wrong_kind(oid, found, kind)
        return data

    def _read(self, oid: bytes) -> tuple[str, bytes]:
        answer = self._ask(_READ, oid)
        if answer is None:
            raise self._absent(oid)
        kind, size, data = answer
        # git does not compare the content with the id.
        if self.form.oid(kind, data) != oid:
            raise damaged(oid, ValueError("its content does not match its id"))
        if size <= _SMALL:
            if self._small_bytes > _KEPT:
                self._small.clear()
                self._small_bytes = 0
            self._small[oid] = kind, data
            self._small_bytes += size
        return kind, data

    def _absent(self, oid: bytes) -> CorruptError:
        """Returns the error for an object that git does not find, or whose file is broken."""
        name = oid.hex()
        loose = self._git_dir / "objects" / name[:2] / name[2:]
        if loose.exists():
            return damaged(oid, ValueError("git cannot read its file"))
        return damaged(oid, KeyError(name))

    def stream(self, oid: bytes) -> Iterator[bytes]:
        """Yields the content of a blob of any size in chunks.

        Raises:
            CorruptError: the object is missing or damaged. What was yielded before must not be
                kept then.
        """
        _, size = self.header(oid)
        if size <= IN_MEMORY:
            yield self.blob(oid)
        else:
            yield from streamed(self._git_dir, oid, size, self.form)

    def streams(self, oids: Iterable[bytes]) -> Generator[Iterator[bytes], None, None]:
        """Yields the content of many blobs; a git process reads ahead."""
        from gitcp.git.bulk import read_blobs  # noqa: PLC0415  hardly ever so many

        return read_blobs(self, self._git_dir, oids)

    def _ask(self, how: str, oid: bytes) -> tuple[str, int, bytes] | None:
        """Returns kind, size, and the content if that was requested; None if it is missing.

        Raises:
            CorruptError: git cannot read it.
        """
        patience: Patience | None = None
        killed = False
        with self._mutex:
            while True:
                try:
                    return self._answer(how, oid)
                except GitUnseenError as exc:
                    patience = patience or Patience(self._git_dir)
                    if not patience.lasts():
                        raise damaged(oid, ValueError(exc.message)) from exc
                except GitFailedError as exc:
                    # It may have been killed. One that gives up over an object does so
                    # again.
                    if killed:
                        raise damaged(oid, ValueError(exc.message)) from exc
                    killed = True

    def _answer(self, how: str, oid: bytes) -> tuple[str, int, bytes] | None:
        """Asks once.

        Raises:
            GitFailedError: git gave up.
        """
        command = _TOGETHER if self._together else how
        verb = _VERBS[how] if self._together else b""
        # If an answer is not read to its end, for example because a hook's time is
        # over, the next answer would begin with its rest: such a git is not used again.
        running = self._running.pop(command, None) or process.start(
            ["cat-file", command],
            cwd=self._git_dir,
            env={"GIT_DIR": str(self._git_dir)},
            stdin=process.PIPE,
        )
        assert running.stdin is not None
        assert running.stdout is not None
        answer = None
        try:
            running.stdin.write(verb + oid.hex().encode() + b"\n")
            running.stdin.flush()
            head = running.stdout.readline()
            words = head.split()
            if len(words) == _HEAD_WORDS:
                size = int(words[2])
                data = b""
                if how == _READ:
                    data = running.stdout.read(size + 1)
                if how == _READ and len(data) != size + 1:
                    head = b""
                answer = words[1].decode(), size, data[:size]
        except BrokenPipeError:
            head = b""
        except BaseException:
            _end(running)
            raise
        if not head:
            return self._without(running, how, oid)
        if answer is None:
            self._unanswered += 1
        if self._unanswered > _UNANSWERED:
            # What it says about each waits to be read, and there is room for so much.
            self._unanswered = 0
            _end(running)
        else:
            self._running[command] = running
        return answer

    def _without(
        self, running: process.Process, how: str, oid: bytes
    ) -> tuple[str, int, bytes] | None:
        """Continues without a git that has ended; if git is too old, uses the older commands."""
        _, said = running.communicate()
        if running.returncode == _USAGE and self._together:
            self._together = False
            return self._answer(how, oid)
        if _PROMISED in said:
            return None
        raise process.failure(running, said)


def _end(running: process.Process) -> None:
    with suppress(PermissionError):
        # If this process has changed its user since, git ends when its input ends.
        running.kill()
    running.communicate()


def _end_all(running: dict[str, process.Process]) -> None:
    for one in running.values():
        _end(one)
    running.clear()
