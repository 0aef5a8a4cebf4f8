"""Reads objects, in process (pygit2's Odb) or streamed (git cat-file)."""

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from gitcp.at_fork import computed
from gitcp.format.oid import SHA1, ObjectFormat
from gitcp.git import process
from gitcp.git.migrating import Patience, is_unseen
from gitcp.git.objects import (
    BLOB,
    COMMIT,
    FEW,
    IN_MEMORY,
    TREE,
    Objects,
    damaged,
    wrong_kind,
)

if TYPE_CHECKING:
    import pygit2

_T = TypeVar("_T")
_Packs = tuple[int, frozenset[str]]

_CHUNK = 1024 * 1024
# Objects up to this size that git has read are cached.
_SMALL = 16 * 1024
# `<oid> <kind> <size>`; `<oid> missing` has one word less.
_HEAD_WORDS = 3
# Bytes of packs that libgit2 maps at once, and of all of them.
_WINDOW, _MAPPED = 16 << 20, 64 << 20
# Seconds for which an object is looked up while packs change.
_CHANGING = 0.1
# By git's numbers: pygit2's enum is not loaded yet.
_KINDS = {1: COMMIT, 2: TREE, 3: BLOB, 4: "tag"}


class LibgitObjects(Objects):
    """The objects below a directory, as libgit2 and git read them.

    libgit2 checks each object against its id as it reads, so damage surfaces as an
    error and never as wrong bytes.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(SHA1)
        self._directory = directory
        self._asked: _CatFile | None = None
        # The packs that were there after the last miss.
        self._seen: _Packs | None = None

    @computed
    def _odb(self) -> "pygit2.Odb":
        # Loading takes as long as git needs for a scan, which is already running.
        import pygit2  # noqa: PLC0415

        # Otherwise libgit2 maps a chunked file of gigabytes as a whole, which counts as
        # memory.
        pygit2.settings.mwindow_size = _WINDOW
        pygit2.settings.mwindow_mapped_limit = _MAPPED
        self._id = pygit2.Oid
        # An id of another length is a ValueError: no object has it.
        self._errors = (pygit2.GitError, KeyError, ValueError, OSError)
        return pygit2.Odb(str(self._directory))

    @contextmanager
    def few_reads(self, most: int = FEW) -> Iterator[None]:
        """Makes git read the first objects inside, because git starts sooner than libgit2 loads.

        Each costs some ten times as much, so after `most` libgit2 is loaded after all. For
        one thread.
        """
        self._asked = _CatFile(self._directory.parent, most)
        try:
            yield
        finally:
            asked, self._asked = self._asked, None
            asked.close()

    def expect(self, reads: int) -> None:
        """Announces reads: if many follow, libgit2 is loaded at once."""
        if self._asked is not None:
            self._asked.left -= reads

    def _git(self) -> "_CatFile | None":
        """Returns the git to ask, if that is quicker."""
        asked = self._asked
        few = asked is not None and asked.left > 0 and "_odb" not in self.__dict__
        return asked if few else None

    def exists(self, oid: bytes) -> bool:
        """Whether the object is there."""
        if (asked := self._git()) and asked.header(oid):
            return True
        odb = self._odb
        if len(oid) != SHA1.size:
            return False
        wanted = self._id(raw=oid)
        return self._look_up(lambda: odb.exists(wanted) or None) is not None

    def header(self, oid: bytes) -> tuple[str, int]:
        """Returns kind and size without reading the content.

        Raises:
            CorruptError: the object is missing or damaged.
        """
        if (asked := self._git()) and (found := asked.header(oid)):
            return found
        odb = self._odb
        try:
            wanted = self._id(raw=oid)
            kind, size = self._found(oid, lambda: odb.read_header(wanted))
        except self._errors as exc:
            copy = self._sound_copy(oid, exc)
            if copy is None:
                raise damaged(oid, exc) from exc
            return copy[0], len(copy[1])
        return _KINDS[kind], size

    def read(self, oid: bytes, kind: str) -> bytes:
        """Returns the content of an object.

        Raises:
            CorruptError: the object is missing, damaged, or of another kind.
        """
        asked = self._git()
        answer = asked.read(oid) if asked else None
        if answer is None:
            # If git did not have the whole object, libgit2 reports what is wrong with
            # it.
            odb = self._odb
            try:
                wanted = self._id(raw=oid)
                number, data = self._found(oid, lambda: odb.read(wanted))
            except self._errors as exc:
                answer = self._sound_copy(oid, exc)
                if answer is None:
                    raise damaged(oid, exc) from exc
            else:
                answer = _KINDS[number], data
        found, data = answer
        if found != kind:
            raise wrong_kind(oid, found, kind)
        return data

    def _found(self, oid: bytes, read: Callable[[], _T]) -> _T:
        """Returns what `read` returns, which raises KeyError if it finds no object.

        Raises:
            KeyError: the object is missing.
        """

        def look() -> _T | None:
            with suppress(KeyError):
                return read()
            return None

        found = self._look_up(look)
        if found is None:
            raise KeyError(oid.hex())
        return found

    def _look_up(self, look: Callable[[], _T | None]) -> _T | None:
        """Returns what `look` finds; looks again if the packs changed meanwhile.

        After a miss, libgit2 lists the packs once more. If git removes a pack at that moment
        because a new one holds the same objects, the list may name neither.
        """
        until = time.monotonic() + _CHANGING
        while (found := look()) is None:
            packs = _packs(self._directory)
            if packs == self._seen or time.monotonic() > until:
                return None
            self._seen = packs
        return found

    def walk(self, tips: Sequence[str], hidden: Sequence[str]) -> list[str] | None:
        """Returns the commits that tips reach and hidden ones do not, parents first.

        None if git has to say what is wrong.
        """
        odb = self._odb
        import pygit2  # noqa: PLC0415  loaded by now

        order = pygit2.enums.SortMode.TOPOLOGICAL | pygit2.enums.SortMode.REVERSE
        try:
            # One in memory: nothing but these objects counts.
            repository = pygit2.Repository()
            repository.set_odb(odb)
            walker = repository.walk(None, order)
            for oid in tips:
                walker.push(oid)
            for oid in hidden:
                walker.hide(oid)
            return [str(commit.id) for commit in walker]
        except self._errors:
            return None

    def _sound_copy(self, oid: bytes, cause: Exception) -> tuple[str, bytes] | None:
        """Returns a sound copy, read by git, of an object that libgit2 found damaged.

        libgit2 gives up at the first pack that has it; git looks into every one.
        """
        if isinstance(cause, KeyError | ValueError):
            return None
        asked = _CatFile(self._directory.parent, 1)
        try:
            return asked.read(oid)
        finally:
            asked.close()

    def stream(self, oid: bytes) -> Iterator[bytes]:
        """Yields the content of a blob of any size in chunks.

        Raises:
            CorruptError: the object is missing or damaged. The hash is checked here too: what
                was yielded before must not be kept then.
        """
        _, size = self.header(oid)
        if size <= IN_MEMORY:
            yield self.blob(oid)
            return
        yield from streamed(self._directory.parent, oid, size, self.form)

    def streams(self, oids: Iterable[bytes]) -> Generator[Iterator[bytes], None, None]:
        """Yields the content of many blobs; a git process reads ahead."""
        from gitcp.git.bulk import read_blobs  # noqa: PLC0415  hardly ever so many

        return read_blobs(self, self._directory.parent, oids)


def streamed(
    git_dir: Path, oid: bytes, size: int, form: ObjectFormat
) -> Iterator[bytes]:
    """Yields the content of a large blob in chunks, from a git process of its own.

    Raises:
        CorruptError: the object is damaged. What was yielded before must not be kept then.
    """
    patience = Patience(git_dir)
    while True:
        reader = process.start(
            # Larger ones git streams, too, unless they are deltas.
            ["-c", "core.bigFileThreshold=16m", "cat-file", "blob", oid.hex()],
            cwd=git_dir,
            env={"GIT_DIR": str(git_dir)},
        )
        assert reader.stdout is not None
        digest = form.hasher(BLOB, size)
        try:
            while chunk := reader.stdout.read(_CHUNK):
                digest.update(chunk)
                yield chunk
        finally:
            reader.stdout.close()
            _, said = reader.communicate()
        if not reader.returncode and digest.digest() == oid:
            return
        if not (is_unseen(said.decode("utf-8", "replace")) and patience.lasts()):
            raise damaged(oid, ValueError("its content does not match its id"))


class _CatFile:
    """Git, asked for one object after the other.

    Two processes, each started when it is wanted: the one command that does both,
    `cat-file --batch-command`, is younger than the oldest git that gitcp works with.
    It lives as long as a short command, and its small cache with it. `left` is how many
    more reads are quicker this way.
    """

    def __init__(self, directory: Path, left: int) -> None:
        self.left = left
        self._cwd = directory
        self._running: dict[str, process.Process] = {}
        self._small: dict[bytes, tuple[str, bytes]] = {}

    def read(self, oid: bytes) -> tuple[str, bytes] | None:
        """Returns kind and content; None if git does not have it, or not whole."""
        if oid in self._small:
            return self._small[oid]
        found = self._ask("--batch", oid)
        # Git does not compare what it reads with the id.
        if found is None or SHA1.oid(found.kind, found.data) != oid:
            return None
        if found.size <= _SMALL:
            self._small[oid] = found.kind, found.data
        return found.kind, found.data

    def header(self, oid: bytes) -> tuple[str, int] | None:
        """Returns kind and size; None if git does not have it."""
        found = self._ask("--batch-check", oid)
        return found and (found.kind, found.size)

    def _ask(self, how: str, oid: bytes) -> "_Answer | None":
        self.left -= 1
        # If an answer is not read to its end, as when a hook's time is over, the next
        # would begin with the rest of it: such a git is not asked again.
        running = self._running.pop(how, None) or process.start(
            ["cat-file", how],
            cwd=self._cwd,
            env={"GIT_DIR": str(self._cwd)},
            stdin=process.PIPE,
        )
        assert running.stdin is not None
        assert running.stdout is not None
        try:
            running.stdin.write(oid.hex().encode() + b"\n")
            running.stdin.flush()
            words = running.stdout.readline().split()
            answer = None
            if len(words) == _HEAD_WORDS:
                size = int(words[2])
                data = running.stdout.read(size + 1)[:size] if how == "--batch" else b""
                answer = _Answer(words[1].decode(), size, data)
        except OSError:
            _end(running)
            return None
        except BaseException:
            _end(running)
            raise
        self._running[how] = running
        return answer

    def close(self) -> None:
        """Ends the git process."""
        for running in self._running.values():
            _end(running)
        self._running.clear()


def _packs(directory: Path) -> _Packs | None:
    """Returns the time of the last change of the packs, and the names of their indexes.

    Two changes may have the same time, and a pack that is replaced may keep its name.
    """
    packs = directory / "pack"
    with suppress(FileNotFoundError):
        changed = packs.stat().st_mtime_ns
        return changed, frozenset(n for n in os.listdir(packs) if n.endswith(".idx"))
    return None


class _Answer(NamedTuple):
    kind: str
    size: int
    data: bytes


def _end(running: process.Process) -> None:
    running.kill()
    running.communicate()
