"""Writes new files into a client's own folder; never outside it, and never over a file."""

import errno
import os
from pathlib import Path

from gitcp import durable
from gitcp.clients.client import GrownList, ResumeFiles
from gitcp.durable import make_directories, storage, sync_directory
from gitcp.errors import StorageError

# The errors of file systems without hard links.
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS})


def place(written: ResumeFiles) -> None:
    """Writes what a client needs to resume a conversation.

    Raises:
        StorageError: a file would lie outside the client's folder, exists already,
            or cannot be written. Files written before it stay.
    """
    for path, _ in written.files:
        _check(written.root, path)
    for _, target in written.copies:
        _check(written.root, target)
    with storage("writing the conversation back"):
        for path, data in written.files:
            _write_new(path, data)
        for source, target in written.copies:
            if source.is_dir() and not target.exists():
                from shutil import copytree  # noqa: PLC0415  few clients have folders

                copytree(source, target, symlinks=True)
        if written.grown is not None:
            _check(written.root, written.grown.path)
            _grow(written.grown)


def _check(root: Path, path: Path) -> None:
    """Raises unless a path, as spelled, lies below the client's folder."""
    inside = path.is_relative_to(root) and path != root
    if not inside or ".." in path.parts or "\0" in str(path):
        raise StorageError(
            f"the conversation would be written to {str(path)!a}, outside its"
            " client's folder",
            hint="nothing was written; please report this with the path",
        )


def _write_new(path: Path, data: bytes) -> None:
    """Writes a new file that only its owner may read, as the clients do.

    The file gets its name only once it is complete, and never replaces another file.
    """
    make_directories(path.parent, private=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _create(temporary, data)
        try:
            os.link(temporary, path, follow_symlinks=False)
        except OSError as exc:
            if exc.errno not in _NO_LINKS:
                raise
            _create(path, data)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _create(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _grow(index: GrownList) -> None:
    """Adds an entry to a list of the client's, unless the client just changed it.

    This is the only file that gitcp replaces: without the entry the client does not find
    the conversation. The other entries stay as they were.
    """
    try:
        present: bytes | None = index.path.read_bytes()
    except FileNotFoundError:
        present = None
    if present != index.before:
        raise StorageError(
            f"{index.path} changed while gitcp was adding to it",
            hint="run the command again",
        )
    if present is None:
        _write_new(index.path, index.after)
    else:
        mode = durable.usual_mode(index.path)
        durable.replace(index.path, index.after, mode=mode)
