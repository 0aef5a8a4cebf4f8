"""Faults under a real gitcp: strace, and what must hold after each of them."""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.gitrepo import (
    PATIENCE,
    Executable,
    Symlink,
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    make_repo,
    named,
    run_gitcp,
    users_refs,
    write_files,
)

REF = "refs/gitcp/s/main/main"
# What changes a file system, and what makes it durable.
CHANGING = (
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "mkdir",
    "mkdirat",
    "link",
    "linkat",
    "symlinkat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "ftruncate",
    "chmod",
    "fchmod",
)
# The samples of the fast run are smaller, the whole sweeps are larger.
_FEW = 16
_NO_STRACE = "strace is missing or may not trace here"

_serial = count()
_lock = threading.Lock()

Done = subprocess.CompletedProcess[bytes]


class Point(NamedTuple):
    """The n-th call of a system call, and how strace printed it."""

    call: str
    number: int
    line: str


def _strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    done = subprocess.run(
        ["strace", "-qq", "-o", os.devnull, "true"], capture_output=True, check=False
    )
    return done.returncode == 0


needs_strace = pytest.mark.skipif(not _strace_works(), reason=_NO_STRACE)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")


def strace(
    repo: Path, options: Sequence[str | Path], *args: str, data: bytes = b""
) -> Done:
    """Runs gitcp under strace; the git processes it starts are left alone."""
    return subprocess.run(
        ["strace", "-qq", *options, *gitcp_argv(*args)],
        cwd=repo,
        env=gitcp_environment(),
        input=data,
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )


def calls(
    repo: Path, *args: str, among: Sequence[str] = CHANGING, data: bytes = b""
) -> list[Point]:
    """Runs gitcp and returns its calls that concern the repository or the output."""
    log = repo.with_name(f"{repo.name}.{threading.get_ident()}.strace")
    names = ",".join(among)
    done = strace(repo, ["-y", "-o", log, "-e", f"trace={names}"], *args, data=data)
    assert done.returncode == 0, done.stderr
    return points_in(log, repo)


def points_in(log: Path, top: Path) -> list[Point]:
    """Returns the calls in strace's log that concern a directory or the output.

    The log goes. What only opens a file to read it changes nothing, and is left out.
    """
    seen: dict[str, int] = {}
    found = []
    for line in log.read_text("utf-8", "replace").splitlines():
        match = re.match(r"(\w+)\(", line)
        if match is None:
            continue
        name = match[1]
        seen[name] = seen.get(name, 0) + 1
        reading = name == "openat" and "O_CREAT" not in line
        if (str(top) in line and not reading) or line.startswith("write(1<"):
            found.append(Point(name, seen[name], line))
    log.unlink()
    return found


def inject(repo: Path, point: Point, fault: str, *args: str, data: bytes = b"") -> Done:
    """Runs gitcp with one fault; `signal=KILL` ends strace by the same signal."""
    at = f"inject={point.call}:{fault}:when={point.number}"
    return strace(
        repo,
        ["-o", os.devnull, "-e", f"trace={point.call}", "-e", at],
        *args,
        data=data,
    )


def copy(source: Path, to: Path) -> Path:
    """Copies a repository with all times and modes."""
    subprocess.run(["cp", "-a", source, to], check=True)
    return to


def users_state(repo: Path) -> dict[str, bytes]:
    """Everything in the git directory that is not gitcp's (I8)."""
    found = {}
    top = repo / ".git"
    for where, directories, files in os.walk(top):
        inside = Path(where).relative_to(top).as_posix()
        if Path(where).name == "reftable":
            found[inside] = users_refs(Path(where).parent)
            continue
        if inside == ".":
            directories[:] = [n for n in directories if n not in {"objects", "gitcp"}]
        if inside == "refs" or Path(inside).parent.name == "worktrees":
            directories[:] = [name for name in directories if name != "gitcp"]
        for name in files:
            if name == "gitcp-numbers":
                continue
            path = Path(where, name)
            found[path.relative_to(top).as_posix()] = path.read_bytes()
    return found


def tip(repo: Path, ref: str = REF) -> str | None:
    """The commit a ref names, by git's own reading; None only where git says so."""
    done = subprocess.run(
        ["git", *named(repo), "rev-parse", "--verify", "--quiet", ref],
        cwd=repo,
        capture_output=True,
        check=False,
    )
    # 1 is "no such ref". Where git fails for another reason no ref is missing.
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout.decode().strip() or None


def line(repo: Path, ref: str = REF) -> list[str]:
    """The checkpoints of a branch, newest first, by git's own reading."""
    if tip(repo, ref) is None:
        return []
    out = git_line(
        repo, "log", "--first-parent", "--committer=gitcp@localhost", "--format=%H", ref
    )
    return out.split()


def fsck(repo: Path) -> None:
    """git finds nothing wrong: every object a ref reaches is there and whole."""
    done = subprocess.run(
        ["git", *named(repo), "fsck", "--full", "--strict", "--no-dangling"],
        cwd=repo,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def nothing_left(repo: Path, *, packers: int = 1) -> None:
    """No lock, no transaction, no `.keep` and no half pack stands.

    `packers` is how many of git's own commands packed at once. Two may leave an index
    alone: one puts it in place after the other has removed the pack as redundant. The
    next `git gc` removes it.
    """
    top = repo / ".git"
    assert not list((top / "refs" / "gitcp").rglob("*.lock"))
    assert not list((top / "gitcp" / "tmp").glob("*"))
    directory = top / "objects" / "pack"
    assert not list(directory.glob("*.keep"))
    packs = {path.stem for path in directory.glob("*.pack")}
    indexes = {path.stem for path in directory.glob("*.idx")}
    halves = packs - indexes if packers > 1 else packs ^ indexes
    assert not halves, sorted(p.name for p in directory.iterdir() if p.stem in halves)


def check(
    repo: Path, user: dict[str, bytes], acked: Iterable[str], *, changed: str = "after"
) -> None:
    """The common checker: git is content, the user's own untouched, nothing is lost.

    The next save needs no manual step and clears away what was left. Only the lock that a
    killed git leaves beside its tables is for the user to remove.
    """
    do_as_the_screen_says(repo)
    fsck(repo)
    assert users_state(repo) == user
    assert set(acked) <= set(line(repo))
    before = tip(repo)
    (repo / "next.txt").write_text(changed)
    done = run_gitcp(repo, "save", "-m", "the next one")
    assert done.returncode == 0, done.stderr
    assert line(repo)[1:2] == ([before] if before else [])
    assert git_line(repo, "show", f"{REF}:next.txt") == changed
    nothing_left(repo)
    fsck(repo)
    assert users_state(repo) == user


def do_as_the_screen_says(repo: Path) -> bool:
    """Removes git's lock of all refs if it stands, as gitcp's refusal says.

    Returns whether it stood.
    """
    lock = repo / ".git" / "reftable" / "tables.list.lock"
    if not lock.exists():
        return False
    is_open = (repo / ".git" / "gitcp" / "restore.json").exists()
    command = ("restore", "--continue") if is_open else ("save", "--allow-empty")
    done = run_gitcp(repo, *command, env={"GITCP_LOCK_TIMEOUT": "200ms"})
    assert done.returncode == 11, done
    assert f"if no git command is running, remove {lock}" in done.stderr.decode()
    lock.unlink()
    return True


def ids(repo: Path) -> list[str]:
    """The ids of the checkpoints of the line; an id twice would be a duplicate."""
    out = git_line(
        repo,
        "log",
        "--first-parent",
        "--committer=gitcp@localhost",
        "--format=%(trailers:key=Gitcp-Checkpoint,valueonly,separator=)",
        REF,
    )
    return out.split()


def make_scene(path: Path) -> Path:
    """A repository of a user at work: staged change, stash, hook, branch, config."""
    repo = make_repo(
        path,
        {
            ".gitignore": b"*.log\n",
            "keep.txt": b"keep\n",
            "edit.txt": b"one\n",
            "tool": Executable(b"#!/bin/sh\n"),
            "link": Symlink(b"keep.txt"),
            "sub/deep/a.txt": b"a\n",
            "sub/deep/b.txt": b"b\n",
        },
    )
    write_files(repo, {"edit.txt": b"stashed\n"})
    git(repo, "stash")
    git(repo, "branch", "other")
    git(repo, "config", "test.key", "value")
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    write_files(repo, {"staged.txt": b"staged\n"})
    git(repo, "add", "staged.txt")
    write_files(repo, {"build.log": b"ignored\n", "own.txt": b"in no commit\n" * 99})
    return repo


def rework(repo: Path) -> None:
    """Changes of every kind: content, mode, type, deletion, empty directory."""
    write_files(
        repo,
        {
            "edit.txt": b"two\n" * 5000,
            "tool": b"#!/bin/sh\n",
            "new/n.txt": b"n\n",
            "keep.txt": Executable(b"keep\n"),
        },
    )
    shutil.rmtree(repo / "sub")
    (repo / "own.txt").unlink()
    write_files(repo, {"sub": b"a file now\n"})
    (repo / "link").unlink()
    write_files(repo, {"link/inside": b"a directory now\n"})
    (repo / "hollow").mkdir()


def saved(repo: Path, *args: str) -> str:
    """Saves and returns the tip."""
    done = run_gitcp(repo, "save", *args)
    assert done.returncode == 0, done.stderr
    found = tip(repo)
    assert found is not None
    return found


def spread(points: Sequence[Point], count: int | None) -> list[Point]:
    """So many points, evenly spread, the first and the last among them; None is all."""
    if count is None or count >= len(points):
        return list(points)
    last = len(points) - 1
    return [points[number * last // (count - 1)] for number in range(count)]


def in_parallel(work: Callable[[Point], object], points: Sequence[Point]) -> None:
    """Runs trials, many of them two at a time; names the point of the first that fails.

    Few are run one by one: beside other tests that takes no longer, and gitcp need not
    be started for each (see `run_gitcp`).
    """

    def one(point: Point) -> None:
        try:
            work(point)
        except AssertionError as exc:
            raise AssertionError(f"at {point}: {exc}") from exc

    if len(points) <= _FEW:
        for point in points:
            one(point)
        return
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(one, points):
            pass


@contextmanager
def mounted(where: Path, *options: str | Path) -> Iterator[Path]:
    """Mounts something for a while, or skips the test where that is not allowed."""
    where.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", *options, where], capture_output=True, check=False, text=True
    )
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.strip()}")
    try:
        yield where
    finally:
        unmount(where)


def unmount(where: Path, *, patience: float = 60) -> None:
    """Unmounts, and waits for processes that still have the disk as their directory.

    A lazy unmount would leave the file system alive with them, and mounting the same
    device again would then show that one, not what the disk holds.
    """
    deadline = time.monotonic() + patience
    while True:
        # Cycles keep the files of a store open that no test uses any more.
        gc.collect()
        done = subprocess.run(
            ["umount", where], capture_output=True, check=False, text=True
        )
        if done.returncode == 0 or "not mounted" in done.stderr:
            return
        if time.monotonic() > deadline:
            subprocess.run(["umount", "-l", where], check=False)
            raise AssertionError(f"in use to the end: {done.stderr.strip()}")
        time.sleep(0.05)


def fresh(source: Path) -> Path:
    """Copies a repository to a place of its own beside it."""
    with _lock:
        number = next(_serial)
    return copy(source, source.with_name(f"trial{number}"))


class Scene(NamedTuple):
    """A repository before a command, with what may come out of it."""

    repo: Path
    user: dict[str, bytes]
    acked: list[str]
    before: dict
    target: dict
