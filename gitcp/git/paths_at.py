"""Looks up one path in many commits, by one git process."""

from collections.abc import Sequence

from gitcp.errors import CorruptError
from gitcp.format import tree
from gitcp.git.objects import BLOB, TREE
from gitcp.git.repository import Repository

# The kind of an object, and its oid.
Found = tuple[str, bytes]
_FEW = 2


def paths_at(
    repository: Repository, commits: Sequence[str], path: bytes
) -> list[Found | None]:
    """Returns what is at a path in each commit; None for nothing, or for what is damaged."""
    # To read a few trees costs less than to start git.
    if len(commits) <= _FEW or b"\n" in path:
        return [_path_at(repository, bytes.fromhex(one), path) for one in commits]
    asked = b"".join(b"%b:%b\n" % (commit.encode(), path) for commit in commits)
    answers = repository.plumbing(
        "cat-file", "--batch-check=%(objecttype) %(objectname)", data=asked
    )
    found: list[Found | None] = []
    for answer in answers.split(b"\n")[: len(commits)]:
        kind, _, oid = answer.partition(b" ")
        known = kind in {b"blob", b"tree"}
        found.append((kind.decode(), bytes.fromhex(oid.decode())) if known else None)
    return found


def blobs_at(
    repository: Repository, commits: Sequence[str], path: bytes
) -> list[bytes | None]:
    """Returns the oid of the file or link at a path in each commit; None for none."""
    return [
        found[1] if found is not None and found[0] == BLOB else None
        for found in paths_at(repository, commits, path)
    ]


def _path_at(repository: Repository, commit: bytes, path: bytes) -> Found | None:
    objects = repository.objects
    try:
        entry = tree.lookup(objects.commit(commit).tree, path, objects.tree)
    except CorruptError:
        return None
    if entry is None or entry.mode == tree.GITLINK:
        return None
    return (TREE if entry.mode == tree.DIRECTORY else BLOB), entry.oid
