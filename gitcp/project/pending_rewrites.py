"""Rewritten commits: a hook reports them, and they wait here for the next checkpoint."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from gitcp import durable
from gitcp.format.log import Rewrite, decode_rewrites, encode_rewrite
from gitcp.git.repository import Repository

# If a rebase rewrites more commits than this, only the last ones are kept.
AT_MOST = 10_000
_NAME = "rewritten.jsonl"


def waiting(directory: Path) -> tuple[Rewrite, ...]:
    """Returns the rewritten commits for the next checkpoint of a work tree."""
    try:
        raw = (directory / _NAME).read_bytes()
    except OSError:
        return ()
    return tuple(decode_rewrites(raw))


def add(repository: Repository, entries: Iterable[Rewrite]) -> None:
    """Keeps rewritten commits for the next checkpoint.

    Raises:
        StorageError: the disk refused.
    """
    new = [entry for entry in entries if entry.old != entry.new]
    if not new:
        return
    directory = repository.worktree_dir
    before = waiting(directory)
    with durable.storage("keeping which commits were rewritten"):
        repository.make_directory(directory)
        if len(before) + len(new) > AT_MOST:
            _write(directory, (*before, *new)[-AT_MOST:])
            return
        # One write, so that concurrent hooks do not lose each other's entries.
        durable.append(directory / _NAME, b"".join(map(encode_rewrite, new)))


def forget(directory: Path, saved: Sequence[Rewrite]) -> None:
    """Removes the entries that a checkpoint holds now; newer ones stay."""
    if not saved:
        return
    held = set(saved)
    with durable.storage("clearing what was saved"):
        rest = [entry for entry in waiting(directory) if entry not in held]
        if rest:
            _write(directory, rest)
        else:
            durable.remove(directory / _NAME)


def _write(directory: Path, entries: Iterable[Rewrite]) -> None:
    durable.replace(directory / _NAME, b"".join(map(encode_rewrite, entries)))
