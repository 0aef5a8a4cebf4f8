"""The scan state of the last capture, so that the next reads only changes (I7)."""

import hashlib
import struct
from pathlib import Path

import msgspec

from gitcp import durable
from gitcp.format import index as indexes
from gitcp.format.index import IndexEntry, Stat, trim
from gitcp.format.oid import ObjectFormat
from gitcp.worktree.clock import Clock, Reading
from gitcp.worktree.databases import Known

_VERSION = 5
# Beyond this many remembered paths, writing the index is the cheaper way.
_FOLD_AT = 1_000
# Files that git tracks though it ignores them, up to this number, stay remembered: a
# watcher may leave them out.
FORCED_AT_MOST = 500
_CHECKSUM = 20

Signature = tuple[int, int, int]
Directory = tuple[int, int, int, int]
Remembered = tuple[bytes, Stat]


class ScanState(msgspec.Struct):
    """Derived data. `tree` equals the index with `overlay` laid over it.

    `limit` is the size in bytes that files were captured up to (0 if an older gitcp
    did not note it); `root` is the raw root tree, which no commit holds;
    `dirs` maps each directory that is walked to the stat it had when it was listed and
    the number of its children that are not ignored;
    `overlay` has the paths captured since the index was written; `nested` the
    repositories inside, with the HEAD recorded (None if there is none);
    `ignore_files` the `.gitignore` files that are not captured themselves; `forced`
    what is tracked though no listing leads to it: ignored, or in a nested repository;
    `submodules` those that are tracked and ignored; `sparse` what a sparse checkout
    leaves out; `blocked` what is in place of more of that, and whether it is in
    place of a directory above (None if an older gitcp did not note it); `hidden`
    what was not there and no listing leads to, of `forced` and of `sparse`; `listings`
    digests of what directories list, where that can change without their stat; `names`
    the digest of the names in the user's index, which lie in a file beside, and `ignored`
    those of them that are ignored (None if an older gitcp did not note it); `large`
    the ids of the whole content of chunked files, `lists` the tree of their lists; `clock`
    what the clocks said when the file was written; `stored` the checksum of the file it
    came from (not in the file).
    """

    version: int = _VERSION
    rules: bytes = b""
    limit: int = 0
    index: bytes = b""
    tree: bytes | None = None
    root: bytes = b""
    dirs: dict[bytes, Directory] = {}
    skipped: dict[bytes, str] = {}
    nested: dict[bytes, bytes | None] = {}
    overlay: dict[bytes, Remembered] = {}
    ignore_files: dict[bytes, Signature] = {}
    user_index: Signature | None = None
    forced: list[bytes] = []
    submodules: list[bytes] = []
    sparse: dict[bytes, tuple[int, bytes]] = {}
    blocked: dict[bytes, bool] | None = None
    hidden: list[bytes] = []
    listings: dict[bytes, bytes] = {}
    names: bytes = b""
    ignored: list[bytes] | None = None
    large: dict[bytes, bytes] = {}
    lists: bytes | None = None
    databases: Known = {}
    clock: Reading | None = None
    stored: bytes = b""


def load(directory: Path) -> ScanState:
    """Returns the state left by the last capture, or an empty one if it is unusable."""
    try:
        raw = (directory / "state").read_bytes()
        if _digest(raw[_CHECKSUM:]) != raw[:_CHECKSUM]:
            return ScanState()
        state = msgspec.msgpack.decode(raw[_CHECKSUM:], type=ScanState)
    except (OSError, msgspec.MsgspecError):
        return ScanState()
    state.stored = raw[:_CHECKSUM]
    usable = state.version == _VERSION and state.index == _checksum(directory)
    return state if usable else ScanState()


def save(directory: Path, state: ScanState, clock: Clock, form: ObjectFormat) -> None:
    """Stores the state, folding the overlay into the index when it has grown large."""
    if not state.index:
        # What an earlier state knew is not to be mixed with this one.
        (directory / "index").unlink(missing_ok=True)
    if len(state.overlay) > _FOLD_AT:
        _fold(directory, state, clock, form)
    stored, state.stored = state.stored, b""
    raw = msgspec.msgpack.encode(state)
    if _digest(raw) == stored:
        state.stored = stored
        return
    state.clock = clock.reading
    raw = msgspec.msgpack.encode(state)
    state.stored = _digest(raw)
    durable.replace(directory / "state", state.stored + raw, sync=False)


def _digest(raw: bytes) -> bytes:
    return hashlib.sha1(raw, usedforsecurity=False).digest()


def _fold(directory: Path, state: ScanState, clock: Clock, form: ObjectFormat) -> None:
    changes: dict[bytes, IndexEntry | None] = {}
    kept: dict[bytes, Remembered] = {}
    forced = set(state.forced) if len(state.forced) <= FORCED_AT_MOST else set()
    for path, (oid, stat) in state.overlay.items():
        changes[path] = None
        # Most builds of git compare whole seconds. A file that was changed in the
        # second in which it was last seen could change again unnoticed.
        is_same_disk = stat.device == trim(clock.device)
        second = clock.second if is_same_disk else clock.second_elsewhere
        if stat.ctime >= second or stat.mtime >= second or path in forced:
            kept[path] = oid, stat
        elif stat.mode:
            changes[path] = IndexEntry(path, oid, stat)
    try:
        raw = indexes.merged((directory / "index").read_bytes(), changes, form)
    except (OSError, ValueError, IndexError, struct.error):
        raw = indexes.merged(indexes.encode((), form), changes, form)
    durable.replace(directory / "index", raw, sync=False)
    state.index = raw[-_CHECKSUM:]
    state.overlay = kept


def _checksum(directory: Path) -> bytes:
    try:
        with (directory / "index").open("rb") as file:
            file.seek(-_CHECKSUM, 2)
            return file.read()
    except OSError:
        return b""


def digest(*parts: bytes) -> bytes:
    """Returns one digest of several strings."""
    total = hashlib.sha256()
    for part in parts:
        total.update(len(part).to_bytes(8, "big") + part)
    return total.digest()
