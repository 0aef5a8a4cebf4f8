"""Rewritten commits, kept from the hook that reports them until the next checkpoint."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from gitcp import durable
from gitcp.format.log import Rewrite, decode_rewrites, encode_rewrite
from gitcp.git.repository import Repository

# A rebase of more commits than that keeps the link of the last ones.
AT_MOST = 10_000
_NAME = "rewritten.jsonl"


def waiting(directory: Path) -> tuple[Rewrite, ...]:
    """Returns what goes into the next checkpoint of a work tree."""
    try:
        raw = (directory / _NAME).read_bytes()
    except OSError:
        return ()
    return tuple(decode_rewrites(raw))


def add(repository: Repository, entries: Iterable[Rewrite]) -> None:
    """Keeps what was rewritten for the next checkpoint.

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
        # In one write, so that hooks of two commands do not lose each other's.
        durable.append(directory / _NAME, b"".join(map(encode_rewrite, new)))


def forget(directory: Path, saved: Sequence[Rewrite]) -> None:
    """Leaves out what a checkpoint holds now; what came since stays."""
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
