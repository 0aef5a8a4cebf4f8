"""A disk that is full after each megabyte of a save in chunks, and of a restore in bulk."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.harness import fsck, mounted, needs_root
from tests.support.gitrepo import git_line, make_repo, run_gitcp, write_files

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800), needs_root]

SEED = int(os.environ.get("SEED") or 1)
MEGABYTE = 1 << 20
# Each grows over the sizes at which its command succeeds.
LARGE, FILES, SIZE = 12, 300, 40_000
FULL = 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(320 * MEGABYTE)
    words = ["mkfs.ext4", "-q", "-F", "-m", "0"]
    subprocess.run([*words, image], check=True, capture_output=True)
    with mounted(tmp_path / "disk", "-o", "loop", image) as where:
        yield where


def free(disk: Path) -> int:
    status = os.statvfs(disk)
    return status.f_bavail * status.f_frsize


def leave(disk: Path, size: int) -> None:
    """Fills the disk, so that this much is left."""
    subprocess.run(["sync", "-f", disk], check=True)
    with (disk / "ballast").open("wb") as file:
        wanted = free(disk) - size
        while wanted > 0:
            try:
                os.posix_fallocate(file.fileno(), 0, wanted)
                break
            except OSError as exc:
                if exc.errno != errno.ENOSPC:
                    raise
                # What says where the blocks are takes some, too.
                wanted -= 1 << 16


def files(repo: Path) -> dict[str, bytes]:
    return {
        os.path.relpath(os.path.join(above, name), repo): Path(above, name).read_bytes()
        for above, _, names in os.walk(repo)
        if ".git" not in Path(above).relative_to(repo).parts
        for name in names
    }


def tips(repo: Path) -> str:
    return git_line(repo, "for-each-ref", "refs/gitcp")


def must(repo: Path, *args: str) -> None:
    done = run_gitcp(repo, *args)
    assert done.returncode == 0, (args, done.stderr)


def fails_cleanly(done: subprocess.CompletedProcess[bytes]) -> bool:
    if done.returncode:
        assert done.returncode == FULL, (done.returncode, done.stderr)
        assert b"Traceback" not in done.stderr
    return done.returncode != 0


def copies(disk: Path, base: Path, most: int) -> Iterator[tuple[int, Path]]:
    """Yields a fresh copy for each number of megabytes, on a disk with that much left."""
    for left in range(most):
        repo = disk / "copy"
        shutil.copytree(base, repo, symlinks=True)
        leave(disk, left * MEGABYTE)
        yield left, repo
        shutil.rmtree(repo)


def make_room(disk: Path) -> None:
    (disk / "ballast").unlink()


@pytest.mark.parametrize("large", [[LARGE], [LARGE // 3] * 3])
def test_a_save_in_chunks_is_whole_or_not_there(disk, tmp_path, large):
    # The room is checked for each file before it is stored; several use it up.
    chance = random.Random(SEED)
    base = make_repo(tmp_path / "base", {"kept.txt": b"kept\n"})
    git_line(base, "config", "gitcp.chunkAbove", str(MEGABYTE))
    must(base, "save")
    content = {
        f"large{number}.bin": chance.randbytes(size * MEGABYTE)
        for number, size in enumerate(large)
    }
    write_files(base, content)
    whole = files(base)
    failed = saved = 0
    for left, repo in copies(disk, base, LARGE + 8):
        before = tips(repo)
        if fails_cleanly(run_gitcp(repo, "save")):
            failed += 1
            assert tips(repo) == before, left
        else:
            saved += 1
            assert tips(repo) != before, left
        assert files(repo) == whole, left
        make_room(disk)
        must(repo, "save")
        for name in content:
            (repo / name).unlink()
        must(repo, "restore", "last", "--yes")
        assert files(repo) == whole, left
        fsck(repo)
    print(f"SEED={SEED}: {failed} of {failed + saved} saves failed")
    assert failed > LARGE - 3
    assert saved


@pytest.mark.parametrize("how", ["--continue", "--abort"])
def test_a_restore_in_bulk_can_be_ended_both_ways(disk, tmp_path, how):
    base = make_repo(tmp_path / "base", {"kept.txt": b"kept\n"})
    chance = random.Random(SEED)
    bare = files(base)
    write_files(
        base,
        {f"d{n % 20}/f{n}.bin": chance.randbytes(SIZE) for n in range(FILES)},
    )
    whole = files(base)
    must(base, "save")
    for number in range(20):
        shutil.rmtree(base / f"d{number}")
    must(base, "save")
    failed = opened = done_at = 0
    for left, repo in copies(disk, base, FILES * SIZE // MEGABYTE + 8):
        if fails_cleanly(run_gitcp(repo, "restore", "1", "--yes")):
            failed += 1
            is_open = (repo / ".git/gitcp/restore.json").exists()
            opened += is_open
            make_room(disk)
            if is_open:
                must(repo, "restore", how)
                # Past the commit point nothing is taken back.
                wanted = [whole, bare] if how == "--abort" else [whole]
                assert files(repo) in wanted, left
            else:
                assert files(repo) == bare, left
        else:
            done_at += 1
            make_room(disk)
            assert files(repo) == whole, left
        must(repo, "verify")
        fsck(repo)
    print(f"{failed} of {failed + done_at} restores failed, {opened} left open")
    assert failed > FILES * SIZE // MEGABYTE - 3
    assert done_at
