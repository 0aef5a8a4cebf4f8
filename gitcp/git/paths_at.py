"""Looks up one path in many commits, by one git process; a chunked file by its content."""

from collections.abc import Sequence
from contextlib import suppress

from gitcp.errors import CorruptError
from gitcp.format import chunked, tree
from gitcp.git.objects import BLOB, TREE, Objects
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
        "cat-file",
        "--batch-check=%(objecttype) %(objectsize) %(objectname)",
        data=asked,
    )
    found: list[Found | None] = []
    lines = answers.split(b"\n")[: len(commits)]
    for commit, answer in zip(commits, lines, strict=True):
        kind, _, rest = answer.partition(b" ")
        if kind not in {b"blob", b"tree"}:
            found.append(None)
            continue
        size, _, name = rest.partition(b" ")
        oid = bytes.fromhex(name.decode())
        if kind == b"blob" and chunked.may_be_pointer(int(size)):
            oid = _meant(repository.objects, bytes.fromhex(commit), oid)
        found.append((kind.decode(), oid))
    return found


def _meant(objects: Objects, commit: bytes, oid: bytes) -> bytes:
    """Returns the content that a pointer in a commit stands for; other blobs as they are."""
    with suppress(CorruptError):
        if objects.blob(oid).startswith(chunked.MAGIC):
            objects.chunked.learn_of(objects.commit(commit).tree)
            return objects.chunked.meant_by(oid)
    return oid


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
        root = objects.commit(commit).tree
        objects.chunked.learn_of(root)
        entry = tree.lookup(root, path, objects.files)
    except CorruptError:
        return None
    if entry is None or entry.mode == tree.GITLINK:
        return None
    return (TREE if entry.mode == tree.DIRECTORY else BLOB), entry.oid
