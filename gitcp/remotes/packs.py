"""Makes packs for an object store; makes git check and index received ones."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from gitcp.errors import GitFailedError
from gitcp.git import process, transport
from gitcp.git.remote import RefusedError, checked
from gitcp.git.repository import Repository, naming
from gitcp.git.transport import Limits, Look, Told


def make(repository: Repository, tip: str, without: Iterable[str], file: Path) -> None:
    """Writes a pack of the objects that `tip` reaches and no commit of `without` does.

    The pack is thin, as git sends it: an object may be a delta against one that the others
    reach.

    Raises:
        GitFailedError: an object is missing or damaged.
    """
    lines = [tip, *(f"^{oid}" for oid in without)]
    with file.open("xb") as out:
        started = process.start(
            [
                *("-c", "pack.threads=1", "-c", "pack.windowMemory=64m"),
                *("-c", "core.bigFileThreshold=16m"),
                *("pack-objects", "--quiet", "--revs", "--thin", "--stdout"),
                "--delta-base-offset",
            ],
            cwd=repository.top or repository.git_dir,
            env=naming(repository),
            stdin=process.PIPE,
            stdout=out,
        )
        process.finish(started, "".join(f"{line}\n" for line in lines).encode())


def anchors(repository: Repository, tips: Iterable[str]) -> frozenset[str]:
    """Returns the newest ancestors of tips that a git remote of the project has.

    As far as this repository knows: they are on a remote-tracking branch.
    """
    return _edge(repository, tips, "--not", "--remotes")


def below(repository: Repository, tip: str, known: Iterable[str]) -> tuple[str, ...]:
    """Returns which of the known commits, or of their ancestors, are ancestors of a tip."""
    ends = [f"^{oid}" for oid in sorted(known)]
    return tuple(sorted(_edge(repository, [tip, *ends]))) if ends else ()


def _edge(
    repository: Repository, revisions: Iterable[str], *options: str
) -> frozenset[str]:
    """Returns the newest commits that both sides of a range reach."""
    data = "".join(f"{line}\n" for line in revisions).encode()
    out = repository.git("rev-list", "--boundary", "--stdin", *options, data=data)
    lines = out.decode("ascii").split()
    return frozenset(line[1:] for line in lines if line.startswith("-"))


def is_ancestor(repository: Repository, old: str, new: str) -> bool:
    """Whether a commit is an ancestor of another; False if either is not here."""
    try:
        repository.git("merge-base", "--is-ancestor", old, new)
    except GitFailedError:
        return False
    return True


def index(
    repository: Repository,
    objects: Path,
    pack: Path,
    *,
    limits: Limits,
    progress: Told | None,
    look: Look | None,
) -> None:
    """Makes git check a pack, complete it, and put it into a directory of objects.

    Raises:
        TransferError: a limit was exceeded.
        RefusedError: git refuses the pack.
    """
    with pack.open("rb") as source:
        ended = transport.run(
            [
                *checked(),
                *("index-pack", "--stdin", "--fix-thin", "--strict", "-v"),
            ],
            cwd=repository.top or repository.git_dir,
            env={**naming(repository), "GIT_OBJECT_DIRECTORY": str(objects)},
            limits=limits,
            doing="checking fetched objects",
            source=source,
            progress=progress,
            look=look,
        )
    if ended.status:
        raise RefusedError(
            f"git refuses the fetched objects: {ended.reason()}",
            hint="nothing was adopted",
        )


def checksum(file: Path) -> str:
    """Returns the SHA-256 of a file's content."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
