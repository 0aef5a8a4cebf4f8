"""Disks that are full, broken or lose power: a clean failure, or what was promised."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fault.harness import (
    REF,
    Point,
    calls,
    check,
    fresh,
    fsck,
    ids,
    in_parallel,
    inject,
    line,
    make_scene,
    mounted,
    needs_root,
    needs_strace,
    nothing_left,
    rework,
    saved,
    spread,
    strace,
    tip,
    users_state,
)
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_environment,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)

RESTORE = ("restore", "1", "--yes")


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    repo = make_scene(tmp_path / "scene")
    saved(repo)
    rework(repo)
    return repo


# --- 6: write order -------------------------------------------------------------------

_TRACED = (
    "write,pwrite64,fsync,fdatasync,mkdir,mkdirat,link,linkat,rename,renameat,renameat2"
)
_DERIVED = ("/gitcp/scan/", ".keep", "/gitcp/packs", "/gitcp/numbered", "/owner")


class Order:
    """Reads a trace in order and notes what was made visible before it was durable."""

    def __init__(self, repo: Path) -> None:
        self._top = str(repo)
        self._dirty: set[str] = set()
        self._owed: dict[str, str] = {}
        self.wrong: list[str] = []
        self.moves = 0

    def read(self, log: Path) -> Order:
        for text in log.read_text("utf-8", "replace").splitlines():
            match = re.match(r"(?:\d+ +)?(\w+)\((.*)\) += 0?(\d*)", text)
            if match is not None and self._top in text:
                self._one(match[1], match[2])
        # What the last sync of a directory did not follow is lost in a power cut.
        self.wrong += [f"{name} in {where}" for where, name in self._owed.items()]
        return self

    def _one(self, call: str, rest: str) -> None:
        fd = re.match(r"\d+<([^>]*)>", rest)
        if call in {"write", "pwrite64"} and fd:
            self._dirty.add(fd[1])
        elif call in {"fsync", "fdatasync"} and fd:
            self._dirty.discard(fd[1])
            self._owed.pop(fd[1], None)
        elif call.startswith("mkdir"):
            (path,) = _paths(rest)
            if "/gitcp/tmp/" not in path and not _derived(path):
                self._owe(path)
        elif call.startswith(("link", "rename")):
            source, target = _paths(rest)
            if not _derived(source) and not _derived(target):
                self.moves += 1
                if source in self._dirty:
                    self.wrong.append(f"{source} became {target} unsynced")
                # git's lock is transient; the rename onto the ref is what counts.
                # What loses its name to a temporary one is going.
                if not target.endswith(".lock") and "/.gitcp-tmp-" not in target:
                    self._owe(target)

    def _owe(self, path: str) -> None:
        self._owed[os.path.dirname(path)] = os.path.basename(path)


def _derived(path: str) -> bool:
    return any(part in path for part in _DERIVED) or path.endswith("/gitcp/scan")


def _paths(rest: str) -> list[str]:
    """The absolute paths among printed arguments; a descriptor goes before its name."""
    found = []
    for where, name in re.findall(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"', rest):
        found.append(os.path.join(where, name))
    return found


def ordered(repo: Path, *args: str) -> Order:
    log = repo.with_name("order.strace")
    done = strace(repo, ["-y", "-o", log, "-e", f"trace={_TRACED}"], *args)
    assert done.returncode == 0, done.stderr
    return Order(repo).read(log)


@needs_strace
@pytest.mark.parametrize("first", [True, False])
def test_save_makes_nothing_visible_before_it_is_durable(tmp_path, first):
    repo = make_scene(tmp_path / "scene")
    if not first:
        saved(repo)
        rework(repo)
    order = ordered(repo, "save")
    assert order.wrong == []
    # git itself moves a table.
    assert order.moves >= (2 if (repo / ".git/reftable").is_dir() else 4)


@needs_strace
def test_restore_makes_nothing_visible_before_it_is_durable(scene):
    saved(scene)
    write_files(scene, {"unsaved.txt": b"unsaved\n"})
    order = ordered(scene, *RESTORE)
    # Without the list of what it brought `undo` leaves these files, which is safe.
    assert [one for one in order.wrong if "brought.json" not in one] == []
    assert order.moves >= 10


_UNSYNCED = """
import os
os.fsync = lambda fd: None
import gitcp
gitcp.open(".").session("main").save(messages=[{"n": 1}])
"""


@pytest.mark.ref_files
@needs_strace
def test_the_order_checker_sees_a_missing_sync(tmp_path):
    repo = make_scene(tmp_path / "scene")
    log = repo.with_name("order.strace")
    # EBADF stands for an fsync that never came: the call is not "= 0" in the trace.
    driver = [sys.executable, "-c", _UNSYNCED]
    subprocess.run(
        ["strace", "-qq", "-y", "-o", log, "-e", f"trace={_TRACED}", *driver],
        cwd=repo,
        env=gitcp_environment(),
        capture_output=True,
        check=True,
    )
    wrong = "\n".join(Order(repo).read(log).wrong)
    assert "pack.tmp" in wrong
    assert "/ref became" in wrong
    assert "objects/pack" in wrong


# --- 7, 8: full -------------------------------------------------------------------------

_ENOSPC = "error=ENOSPC"
_GROWING = ("openat", "write", "mkdir", "mkdirat", "link", "linkat", "rename", "fsync")


def full_save(scene: Path, count: int | None, fault: str, said: bytes) -> None:
    user = users_state(scene)
    acked = line(scene)
    points = [
        point
        for point in calls(fresh(scene), "save", among=_GROWING)
        if "write(1<" not in point.line
    ]

    def one(point: Point) -> None:
        repo = fresh(scene)
        done = inject(repo, point, fault, "save")
        if tip(repo) == acked[0]:
            assert done.returncode == 20, (done.returncode, done.stderr)
        if done.returncode:
            assert done.returncode == 20, (done.returncode, done.stderr)
            assert b"Traceback" not in done.stderr
            assert said in done.stderr
        if done.returncode and tip(repo) != acked[0]:
            # Past the commit point an error must not read as if nothing was saved.
            assert b"saved" in done.stderr
        again = run_gitcp(repo, "save")
        assert again.returncode == 0, again.stderr
        assert len(line(repo)) == len(acked) + 1, "a rerun must not make a duplicate"
        check(repo, user, acked)
        shutil.rmtree(repo)

    in_parallel(one, spread(points, count))


@needs_strace
def test_full_disk_at_sampled_calls_of_save(scene):
    full_save(scene, 6, _ENOSPC, b"disk is full")


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_full_disk_at_every_call_of_save(scene):
    full_save(scene, None, _ENOSPC, b"disk is full")


@needs_root
def test_small_disk_that_fills_up(tmp_path):
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=1m", "tmpfs") as disk:
        repo = make_repo(disk / "repo", {"file": b"0\n"})
        user = users_state(repo)
        acked: list[str] = []
        done = None
        for _ in range(100):
            try:
                (repo / "file").write_bytes(os.urandom(30_000))
            except OSError:
                (repo / "file").write_bytes(os.urandom(500))
            done = run_gitcp(repo, "save")
            if done.returncode:
                break
            acked = line(repo)
        assert done is not None
        assert done.returncode == 20, done.stderr
        assert b"disk is full" in done.stderr
        assert b"Traceback" not in done.stderr
        assert len(acked) > 3
        assert line(repo) == acked
        fsck(repo)
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        check(repo, user, acked)


@needs_root
@pytest.mark.parametrize("state", ["kept", "deleted"])
def test_looking_works_where_nothing_can_be_written(scene, tmp_path, state):
    if state == "deleted":
        shutil.rmtree(scene / ".git" / "gitcp")
    (scene / "unseen").write_text("n")
    looks = [
        ("status",),
        ("log",),
        ("show", "1"),
        ("diff", "1"),
        ("restore", "1", "--dry-run"),
        ("search", "nowhere"),
        ("view", "-o", str(tmp_path / "page.html")),
    ]
    with mounted(scene, "--bind", scene):
        subprocess.run(["mount", "-o", "remount,ro,bind", scene], check=True)
        for look in looks:
            done = run_gitcp(scene, *look, env={"TMPDIR": str(tmp_path)})
            assert done.returncode == 0, (look, done.stderr)
            if look == ("status",):
                assert b"A unseen" in done.stdout
        doctor = run_gitcp(scene, "doctor")
        refused = run_gitcp(scene, "save")
    assert b"Errno" not in doctor.stdout
    assert refused.returncode == 20
    assert b"the file system is read-only" in refused.stderr
    # What was borrowed is gone.
    assert [each.name for each in tmp_path.glob("gitcp-*")] == []


def test_full_disk_while_a_long_conversation_is_packed(tmp_path):
    """More than the pack writer buffers, so that the disk refuses in the middle."""
    from unittest import mock

    import gitcp
    from gitcp.git import pack

    repo = make_scene(tmp_path / "scene")
    session = gitcp.open(repo).session("main")
    session.save()
    acked = line(repo)
    original = pack.PackWriter.add

    def add(self, kind, data, oid=None):
        if len(data) > 1 << 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(self, kind, data, oid)

    with (
        mock.patch.object(pack.PackWriter, "add", add),
        pytest.raises(gitcp.StorageError, match="disk is full"),
    ):
        session.save(messages=[{"text": "long" * 600_000}])
    assert line(repo) == acked
    nothing_left(repo)


@needs_root
@pytest.mark.parametrize("how", ["--continue", "--abort"])
def test_work_tree_on_a_full_disk(tmp_path, how):
    """The repository has room, the disk of the work tree has not."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=400k", "tmpfs") as disk:
        repo = make_repo(tmp_path / "main", {"small": b"small\n"})
        big = {f"big{number}": bytes([number]) * 60_000 for number in range(4)}
        work = disk / "work"
        git(repo, "worktree", "add", "--detach", work)
        write_files(work, big)
        assert run_gitcp(work, "save", "-s", "main").returncode == 0
        target = tree_bytes(work)
        for name in big:
            (work / name).unlink()
        write_files(work, {"small": b"changed\n"})
        before = tree_bytes(work)
        (disk / "filler").write_bytes(b"x" * 250_000)
        done = run_gitcp(work, *RESTORE)
        assert done.returncode == 20, (done.returncode, done.stderr)
        assert b"disk is full" in done.stderr
        for path, node in tree_bytes(work).items():
            if path != b".git":
                assert node in (before.get(path), target.get(path)), path
        if how == "--continue":
            (disk / "filler").unlink()
        ended = run_gitcp(work, "restore", how)
        assert ended.returncode == 0, ended.stderr
        assert tree_bytes(work) == (target if how == "--continue" else before)
        (disk / "filler").unlink(missing_ok=True)
        again = run_gitcp(work, "save")
        assert again.returncode == 0, again.stderr
        fsck(repo)


# --- 9, 10: input/output errors -----------------------------------------------------------


@needs_strace
def test_a_source_file_that_cannot_be_read_fails_the_save(scene):
    user, acked = users_state(scene), line(scene)
    bad = scene / "edit.txt"
    done = strace(
        scene,
        [
            "-o",
            os.devnull,
            "-P",
            bad,
            "-e",
            "trace=read,pread64",
            "-e",
            "inject=read,pread64:error=EIO",
        ],
        "save",
    )
    assert done.returncode == 20, (done.returncode, done.stderr)
    assert b"edit.txt" in done.stderr
    assert b"input/output error" in done.stderr
    assert line(scene) == acked
    check(scene, user, acked)


@needs_strace
def test_no_sync_may_fail_unnoticed(scene):
    """Also the last, after the rename of the ref; a rerun makes no duplicate."""
    user, acked = users_state(scene), line(scene)
    points = calls(fresh(scene), "save", among=("fsync",))
    assert len(points) >= 5
    moved = []

    def one(point: Point) -> None:
        repo = fresh(scene)
        done = inject(repo, point, "error=EIO", "save", "-m", "under test")
        assert b"input/output error" in done.stderr
        if "gitcp-numbers" in point.line or done.returncode == 0:
            # It is saved; the number is given by the next command.
            assert b"has no number yet" in done.stderr
            assert tip(repo) != acked[0]
            return
        assert done.returncode == 20, (done.returncode, done.stderr)
        if tip(repo) != acked[0]:
            moved.append(point)
            assert b"not known to be durable" in done.stderr
        again = run_gitcp(repo, "save", "-m", "under test")
        assert again.returncode == 0, again.stderr
        assert len(line(repo)) == len(acked) + 1
        assert len(set(ids(repo))) == len(ids(repo))
        check(repo, user, acked)

    in_parallel(one, points)
    assert moved, "the sync after the commit point was not among them"


# --- 14: rot --------------------------------------------------------------------------------


@pytest.mark.parametrize("loose", [True, False])
def test_restore_refuses_a_damaged_blob_before_any_change(scene, loose):
    acked = [*line(scene)]
    # In one pack of gitcp's and nowhere else.
    blob = git_line(scene, "rev-parse", f"{REF}:own.txt")
    packs = scene / ".git" / "objects" / "pack"
    if loose:
        raw = [(path, path.read_bytes()) for path in packs.glob("*.pack")]
        for suffix in ("pack", "idx", "rev"):
            for path in packs.glob(f"*.{suffix}"):
                path.unlink()
        for _, data in raw:
            git(scene, "unpack-objects", "-q", input=data)
        path = scene / ".git" / "objects" / blob[:2] / blob[2:]
        flip(path, path.stat().st_size - 8)
    else:
        (scene / ".git" / "objects" / blob[:2] / blob[2:]).unlink(missing_ok=True)
        (path,) = packs.glob("*.pack")
        listing = git_line(scene, "verify-pack", "-v", path.with_suffix(".idx"))
        if blob not in listing:
            pytest.fail("the blob is not in gitcp's pack: the test has to be changed")
        at = next(row.split() for row in listing.splitlines() if row.startswith(blob))
        flip(path, int(at[4]) + int(at[3]) - 2)
    before = tree_bytes(scene)
    user = users_state(scene)
    done = run_gitcp(scene, *RESTORE)
    assert done.returncode == 15, (done.returncode, done.stderr)
    assert b"own.txt" in done.stderr
    assert tree_bytes(scene) == before
    assert users_state(scene) == user
    assert not (scene / ".git" / "gitcp" / "restore.json").exists()
    # The others remain usable, and the next save works.
    assert run_gitcp(scene, "save").returncode == 0
    assert line(scene)[-1] == acked[-1]
    assert run_gitcp(scene, "restore", "last", "--yes").returncode == 0


def flip(path: Path, at: int) -> None:
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x40]))


@needs_strace
def test_full_disk_while_a_decision_is_kept(scene):
    """Half a line in the file would stop every later save."""
    decide = ("decide", "second " * 400)
    assert run_gitcp(scene, "decide", "first").returncode == 0
    user, acked = users_state(scene), line(scene)
    points = [
        p for p in calls(fresh(scene), *decide, among=_GROWING) if p.call != "openat"
    ]

    def one(point: Point) -> None:
        repo = fresh(scene)
        done = inject(repo, point, _ENOSPC, *decide)
        check(repo, user, acked)
        kept = git(repo, "grep", "-h", "text", REF, "--", ".gitcp/log/decisions")
        assert kept.count(b"first") == 1
        assert kept.count(b"second ") >= 400 or done.returncode

    in_parallel(one, [point for point in points if "pending" in point.line])
