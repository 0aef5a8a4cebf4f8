"""Trusted remotes, and which checkpoints came from them.

The user trusts a remote's address, in the user's own git configuration (`gitcp.trust`); a
repository cannot bring it along. Each pull notes where its checkpoints came from, in this
repository's private directory. A checkpoint without such a note is not trusted
(docs/decisions/0060).
"""

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import msgspec

from gitcp import durable
from gitcp.at_fork import computed
from gitcp.errors import CorruptError, GitFailedError, UsageError
from gitcp.git.repository import Repository
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

_NOTES = "pulled.jsonl"
_KEY = "gitcp.trust"
# Not the repository's own configuration: that file may have come with it.
_SCOPES = frozenset({"system", "global", "command"})
_URL = r"(?i)[a-z][a-z0-9+.-]*://"
_SCP = r"[^/]+:"


class _Note(msgspec.Struct, frozen=True):
    """Checkpoints that came together: from `tip` back to `before`, excluding `before`."""

    url: str
    tip: str
    before: str | None = None


_DECODER = msgspec.json.Decoder(_Note)


def address(repository: Repository, given: str) -> str:
    """Returns the address of a remote, given by name or address, in a canonical spelling.

    Raises:
        UsageError: there is no such remote.
    """
    # Imported here, because a restore only reads the notes below, and needs no remote.
    from gitcp.git import remote as remotes  # noqa: PLC0415

    name = remotes.find(repository, given)
    urls = repository.config.get(f"remote.{name.lower()}.url", [])
    return spelled(repository, urls[0] if urls else name)


def spelled(repository: Repository, url: str) -> str:
    """Returns an address without secrets; a path is made absolute."""
    if not re.match(_URL, url):
        if re.match(_SCP, url):
            return url.rstrip("/")
        return os.path.realpath(Path(repository.top or repository.git_dir, url))
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2] if parts.scheme != "ssh" else parts.netloc
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def trusted(repository: Repository) -> list[str]:
    """Returns the addresses that the user trusts."""
    raw = repository.git("config", "--list", "--show-scope", "-z")
    fields = raw.decode("utf-8", "surrogateescape").split("\0")
    found = []
    for scope, setting in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = setting.partition("\n")
        if scope in _SCOPES and key.lower() == _KEY and value:
            found.append(value)
    return found


def give(repository: Repository, given: str) -> tuple[str, bool]:
    """Trusts a remote; returns its address, and whether it was not trusted before.

    Raises:
        UsageError: there is no such remote.
        GitFailedError: git cannot write the user's configuration.
    """
    url = address(repository, given)
    if url in trusted(repository):
        return url, False
    repository.git("config", "--global", "--add", _KEY, url)
    return url, True


def take(repository: Repository, given: str) -> str:
    """Ends the trust in a remote, or in an address; returns the address.

    Raises:
        UsageError: the user's own configuration does not trust the remote.
    """
    url = given
    if given not in trusted(repository):
        url = address(repository, given)
    try:
        repository.git("config", "--global", "--unset-all", _KEY, f"^{re.escape(url)}$")
    except GitFailedError as exc:
        raise UsageError(
            f"{url} is not trusted", hint="`gitcp trust` lists trusted addresses"
        ) from exc
    return url


# --- what came from where --------------------------------------------------------------


def note_pulled(
    store: Store, remote: str, tips: Iterable[str], before: Iterable[str]
) -> None:
    """Notes where new checkpoints came from.

    `before` are commits that were here before: what they reach came earlier, maybe from
    another remote.

    Raises:
        StorageError: the notes cannot be written.
    """
    repository = store.repository
    url = address(repository, remote)
    stops = "".join(f"^{oid}\n" for oid in sorted(set(before)))
    notes = []
    for tip in sorted(set(tips)):
        raw = repository.git(
            "rev-list",
            "--first-parent",
            "--parents",
            # A purge may have removed a commit since it was listed.
            "--ignore-missing",
            "--stdin",
            data=f"{tip}\n{stops}".encode(),
        )
        lines = raw.decode().splitlines()
        if lines:
            last = lines[-1].split()
            notes.append(_Note(url, tip, last[1] if len(last) > 1 else None))
    _add(repository, notes)


def note_made(store: Store, made: Checkpoint, source: Checkpoint) -> None:
    """Notes that a checkpoint made here has files or records of a pulled one.

    Raises:
        StorageError: the notes cannot be written.
    """
    url = _came_from(store, source) if source.origin.foreign else None
    if url is not None:
        parents = made.raw.parents
        note = _Note(url, made.commit, parents[0].hex() if parents else None)
        _add(store.repository, [note])


def note_replaced(store: Store, replaced: Container[bytes]) -> None:
    """Notes once more what was pulled below commits that are about to be replaced.

    Each note names a tip. Once that is gone nothing would say that what stays was pulled.

    Raises:
        StorageError: the notes cannot be written.
    """
    notes = []
    for note, line in _noted(store):
        tip = next(line, None)
        if tip is None or tip.oid not in replaced:
            continue
        stays = next((one for one in line if one.oid not in replaced), None)
        if stays is not None:
            notes.append(_Note(note.url, stays.commit, note.before))
    _add(store.repository, notes)


def _add(repository: Repository, notes: list[_Note]) -> None:
    if not notes:
        return
    path = repository.store_dir / _NOTES
    with durable.storage("recording where checkpoints came from"):
        durable.make_directories(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        with os.fdopen(os.open(path, flags, 0o600), "ab") as file:
            file.write(b"".join(msgspec.json.encode(one) + b"\n" for one in notes))
            file.flush()
            os.fsync(file.fileno())


def is_trusted(store: Store, found: Checkpoint) -> bool:
    """Whether the part of a checkpoint made elsewhere came from a trusted remote."""
    return found in Trusting(store)


class Trusting:
    """Answers `is_trusted` for many checkpoints of a store, as things are now.

    `known` keeps the addresses that were found, by commit, for later ones of the same store.
    """

    def __init__(self, store: Store, known: dict[str, str] | None = None) -> None:
        self._store = store
        self._known = {} if known is None else known

    def __contains__(self, found: Checkpoint) -> bool:
        return not found.origin.foreign or self.covers(found)

    @property
    def any(self) -> bool:
        """Whether the user trusts any remote."""
        return bool(self._allowed)

    def covers(self, found: Checkpoint) -> bool:
        """Whether a checkpoint came from a trusted remote, no matter what its seal says."""
        allowed = self._allowed
        return bool(allowed) and self._address_of(found) in allowed

    def _address_of(self, found: Checkpoint) -> str | None:
        """Returns what `_came_from` does, without walking a line twice."""
        url, passed = None, []
        for one in self._store.line(found):
            url = self._known.get(one.commit)
            if url is not None:
                break
            passed.append(one.commit)
            if _begins(one):
                break
        if url is None:
            url = _came_from(self._store, found, self._came)
        if url is not None:
            self._known.update(dict.fromkeys(passed, url))
        return url

    @computed
    def _allowed(self) -> list[str]:
        return trusted(self._store.repository)

    @computed
    def _came(self) -> Mapping[str, str]:
        return _commits(self._store)


class Pulled:
    """The commits that a pull has brought into a store.

    A seal vouches for files and logs. Anyone who may push can put other records beside them.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: tuple[int, int] | None = None
        self._commits: Mapping[str, str] = {}

    def __contains__(self, commit: str) -> bool:
        try:
            now = (self._store.repository.store_dir / _NOTES).stat()
        except FileNotFoundError:
            return False
        if self._read != (now.st_mtime_ns, now.st_size):
            self._commits = _commits(self._store)
            self._read = now.st_mtime_ns, now.st_size
        return commit in self._commits


def _came_from(
    store: Store, found: Checkpoint, came: Mapping[str, str] | None = None
) -> str | None:
    """Returns the address that the part made elsewhere came from, if known.

    A checkpoint made here has the same origin as the one before it, unless it was made by a
    restore or fork: those have notes of their own.
    """
    came = _commits(store) if came is None else came
    for one in store.line(found):
        url = came.get(one.commit)
        if url is not None:
            return url
        if _begins(one):
            return None
    return None


def _begins(one: Checkpoint) -> bool:
    """Whether the origin of a checkpoint's content is not that of the one before it."""
    brought = one.manifest.restored_from or one.manifest.forked_from
    return not one.origin.here or brought is not None


def _commits(store: Store) -> Mapping[str, str]:
    """Returns the address that each noted commit came from first."""
    found: dict[str, str] = {}
    for note, line in _noted(store):
        for one in line:
            found.setdefault(one.commit, note.url)
    return found


def _noted(store: Store) -> Iterator[tuple[_Note, Iterator[Checkpoint]]]:
    """Yields each note with the checkpoints that it is about, newest first."""
    try:
        raw = (store.repository.store_dir / _NOTES).read_bytes()
    except FileNotFoundError:
        return
    for line in raw.splitlines():
        try:
            note = _DECODER.decode(line)
        except msgspec.MsgspecError:
            # A line that a crash truncated proves nothing.
            continue
        yield note, _since(store, note)


def _since(store: Store, note: _Note) -> Iterator[Checkpoint]:
    # A prune or purge may have removed some; what it was rewritten to proves nothing.
    with suppress(CorruptError):
        tip = store.checkpoint(note.tip)
        for one in store.line(tip) if tip else ():
            if one.commit == note.before:
                return
            yield one
