"""Finds where each line of a file first appeared, by `git blame`.

It runs in a repository of its own, which borrows the user's objects and is gone at the end.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NamedTuple

from gitcp.format import tree
from gitcp.format.commit import raw_commit
from gitcp.git import process
from gitcp.git.aside import make_bare
from gitcp.git.objects import BLOB, COMMIT, TREE, Objects, size_of
from gitcp.git.pack import PackWriter
from gitcp.git.paths_at import blobs_at
from gitcp.git.repository import Repository

_NAME = b"file"
_GROUP = re.compile(rb"([0-9a-f]{40,64}) \d+ (\d+) (\d+)$")
# Younger than any commit that git would believe.
_LATEST = 2**32 - 1


class Version(NamedTuple):
    """A content of a file, and the versions it was made from, as positions in a list.

    Lines that it shares with the first of them came from there, and so on.
    """

    blob: bytes
    parents: tuple[int, ...] = ()


def first_appearances(
    repository: Repository,
    versions: Sequence[Version],
    content: bytes,
    lines: tuple[int, int],
    *,
    tips: Sequence[int] | None = None,
    meanwhile: Callable[[int], object],
) -> list[int | None]:
    """Returns for each of some lines, from 1 on, the version in which it first appeared.

    Each version comes after those it was made from; the content was made from the last
    one, or from all of `tips`. None if a line is in no version. `meanwhile` is called
    with each version that is found, while git still searches for the others.

    Raises:
        GitFailedError: git failed.
    """
    if not versions:
        return [None] * (lines[1] - lines[0] + 1)
    with _aside(repository) as place:
        pack = PackWriter(place, repository.form)
        made: list[bytes] = []
        for version in versions:
            parents = [made[one] for one in version.parents]
            _add_whole(pack, repository.objects, version.blob)
            made.append(_commit(pack, _NAME, version.blob, parents, len(made)))
        before = [made[one] for one in tips or (-1,)]
        tip = made[-1]
        if tips or versions[-1].blob != repository.form.oid(BLOB, content):
            tip = _commit(pack, _NAME, pack.add(BLOB, content), before, len(made))
        _keep(pack, place)
        places = {oid.hex(): at for at, oid in enumerate(made)}

        def known(oid: str) -> None:
            if oid in places:
                meanwhile(places[oid])

        found = _blamed(place, tip, _NAME, lines, known)
    return [places.get(oid) for oid in found]


@contextmanager
def commits_of(
    repository: Repository, path: bytes, content: bytes, lines: tuple[int, int]
) -> Iterator[Callable[[], list[str | None]]]:
    """Starts git to find the commit in HEAD's history that each of some lines came with.

    Yields a function that waits for the commits and returns them; None if a line is in
    no commit.

    Raises:
        GitFailedError: git failed, here or later; a partial clone may lack what it needs.
    """
    head, _ = repository.head()
    if head is None:
        yield lambda: [None] * (lines[1] - lines[0] + 1)
        return
    (blob,) = blobs_at(repository, [head], path)
    if blob is not None and b"\r\n" not in repository.objects.blob(blob):
        # In the form that a checkout may have given them.
        content = content.replace(b"\r\n", b"\n")
    with _aside(repository) as place:
        pack = PackWriter(place, repository.form)
        parents = [bytes.fromhex(head)]
        tip = _commit(pack, path, pack.add(BLOB, content), parents, _LATEST)
        _keep(pack, place)
        # A pipe would fill up before its end is read.
        with open(place / "found", "w+b") as found:
            running = _start(place, tip, path, lines, found)

            def commits() -> list[str | None]:
                process.finish(running)
                found.seek(0)
                named = _read(found, lines)
                return [None if oid == tip.hex() else oid for oid in named]

            try:
                yield commits
            finally:
                if running.poll() is None:
                    _end(running)


@contextmanager
def _aside(repository: Repository) -> Iterator[Path]:
    """Makes a temporary repository that borrows the objects of another one."""
    with tempfile.TemporaryDirectory(prefix="gitcp-blame-") as name:
        place = Path(name)
        make_bare(place, repository.form)
        objects = os.fsencode(repository.common_dir / "objects")
        quoted = objects.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        quoted = quoted.replace(b"\n", b"\\n")
        (place / "objects/info/alternates").write_bytes(b'"%b"\n' % quoted)
        with suppress(FileNotFoundError):
            shutil.copyfile(repository.common_dir / "shallow", place / "shallow")
        yield place


def _add_whole(pack: PackWriter, objects: Objects, oid: bytes) -> None:
    """Adds a content that is stored in chunks as one blob, so that git can compare it."""
    if oid in objects.chunked and oid not in pack:
        pack.add_stream(size_of(objects, oid), objects.content(oid))


def _commit(
    pack: PackWriter, path: bytes, blob: bytes, parents: Sequence[bytes], at: int
) -> bytes:
    """Adds a commit that holds one file; `at` is its time, by which git orders them."""
    root, mode = blob, tree.FILE
    for name in reversed(path.split(b"/")):
        root = pack.add(TREE, tree.encode({name: tree.Entry(mode, root)}))
        mode = tree.DIRECTORY
    return pack.add(COMMIT, raw_commit(root, parents, at, b""))


def _keep(pack: PackWriter, place: Path) -> None:
    """Makes what was added to a pack readable."""
    written = pack.close()
    assert written is not None
    packed, index, name = written
    packed.rename(place / "objects" / "pack" / f"{name}.pack")
    index.rename(place / "objects" / "pack" / f"{name}.idx")


def _blamed(
    place: Path,
    tip: bytes,
    path: bytes,
    lines: tuple[int, int],
    meanwhile: Callable[[str], object],
) -> list[str]:
    """Returns the commit that git names for each of some lines."""
    running = _start(place, tip, path, lines, process.PIPE)
    assert running.stdout is not None
    try:
        found = _read(running.stdout, lines, meanwhile)
    except BaseException:
        _end(running)
        raise
    process.finish(running)
    return found


def _start(
    place: Path, tip: bytes, path: bytes, lines: tuple[int, int], to: int | IO[bytes]
) -> process.Process:
    return process.start(
        [
            *("-c", "diff.algorithm=histogram", "blame", "--incremental"),
            *(f"-L{lines[0]},{lines[1]}", tip.hex(), "--", path),
        ],
        cwd=place,
        # No setting or attribute of the user's applies, and no program runs.
        env={
            "GIT_DIR": os.fspath(place),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
        },
        stdout=to,
    )


def _read(
    told: Iterable[bytes],
    lines: tuple[int, int],
    meanwhile: Callable[[str], object] = str,
) -> list[str]:
    """Returns the commit of each line from what `git blame --incremental` tells."""
    found = [""] * (lines[1] - lines[0] + 1)
    for line in told:
        group = _GROUP.match(line)
        if group is not None:
            oid, first, length = group.groups()
            start = int(first) - lines[0]
            found[start : start + int(length)] = [oid.decode()] * int(length)
            meanwhile(oid.decode())
    return found


def _end(running: process.Process) -> None:
    running.kill()
    running.communicate()
