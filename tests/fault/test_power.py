"""Power cuts: whatever was acknowledged before is there after, on each file system.

More cuts, and the same again (CONTRIBUTING.md):

    CUTS=500 SEED=1 pytest -m slow tests/fault/test_power.py
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fault.disks import Disk
from tests.fault.harness import (
    REF,
    check,
    do_as_the_screen_says,
    fsck,
    line,
    needs_root,
    tip,
    users_state,
)
from tests.support.gitrepo import (
    git,
    gitcp_environment,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)
from tests.support.needs import needs_reftable

pytestmark = needs_root

FILESYSTEMS = [("ext4", ""), ("ext4", "data=writeback,noauto_da_alloc"), ("xfs", "")]
on_each = pytest.mark.parametrize(("kind", "options"), FILESYSTEMS)

# Read at import: each test runs sealed from such variables.
CUTS = int(os.environ.get("CUTS", "50"))
SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))

# Saves as fast as it can and prints each tip once it is acknowledged.
_SAVER = """
import os, sys
if sys.argv[2] == "unsynced":
    os.fsync = lambda fd: None
import gitcp
session = gitcp.open(".").session("main")
for number in range(int(sys.argv[1])):
    with open("file", "w") as file:
        file.write(str(number) * 2000)
    print(session.save(messages=[{"n": number}]).commit, flush=True)
"""


class Cut(NamedTuple):
    """When the power goes: savers at work, saves of each, acknowledgements awaited."""

    savers: int
    saves: int
    after: int

    def where_refs_are(self) -> Cut:
        """Returns the cut for repositories as git makes them here.

        With tables no save is under way at the cut: while git changes one, a cut can leave
        a repository whose refs git does not read (docs/decisions/0093).
        """
        if os.environ.get("GIT_DEFAULT_REF_FORMAT") != "reftable":
            return self
        return Cut(1, self.after, self.after)


def start(repo: Path, saves: int, mode: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _SAVER, str(saves), mode],
        # `communicate` would not see what a buffer has read beyond a line.
        bufsize=0,
        cwd=repo,
        env=gitcp_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def acknowledged(disk: Disk, repos: list[Path], cut: Cut, mode: str) -> list[list[str]]:
    """Saves in all repositories at once, and cuts the power among that.

    Returns what was acknowledged in each. That includes what a saver printed after the
    cut: whatever comes to be printed then must have been durable before it.
    """
    running = [start(repo, cut.saves, mode) for repo in repos]
    stdout = running[0].stdout
    assert stdout is not None
    lines = [stdout.readline() for _ in range(cut.after)]
    assert all(lines), running[0].communicate()
    disk.cut_power()
    found = []
    for process in running:
        out, err = process.communicate(timeout=120)
        # Each access is an error now; a saver may have been done before.
        assert process.returncode == 0 or b"rror" in err, err
        found.append(out.decode().split())
    found[0] = b"".join(lines).decode().split() + found[0]
    return found


def lose_power(base: Path, kind: str, options: str, cut: Cut, *, mode: str) -> None:
    base.mkdir()
    disk = Disk(base, kind, options)
    with disk.mounted() as top:
        repos = [
            make_repo(top / f"repo{number}", {"file": b"0\n"})
            for number in range(cut.savers)
        ]
        disk.sync()
        users = [users_state(repo) for repo in repos]
        acked = acknowledged(disk, repos, cut, mode)
    with disk.mounted():
        for repo, user, known in zip(repos, users, acked, strict=True):
            found = line(repo)[::-1]
            assert found[: len(known)] == known, "acknowledged and lost"
            # One more may have become durable before it could be printed.
            assert len(found) <= len(known) + 1
            assert not [p for p in (repo / ".git").rglob("*") if _empty_data(p)]
            check(repo, user, known)
    shutil.rmtree(base)


_EMPTY_BY_DESIGN = {"owner", "packs", "store.lock", "worktree.lock"}


def _empty_data(path: Path) -> bool:
    # Empty by design; derived; and only a hint for consolidation.
    if path.suffix == ".keep" or path.name in _EMPTY_BY_DESIGN:
        return False
    # What a transaction or a writer had not ended when the power went.
    if "tmp" in path.parts or path.suffix in {".lock", ".tmp"}:
        return False
    if not path.is_file() or "scan" in path.parts:
        return False
    return path.stat().st_size == 0


@on_each
def test_power_loss_right_after_the_acknowledgement(tmp_path, kind, options):
    for cut in (Cut(1, 1, 1), Cut(2, 5, 3)):
        at = cut.where_refs_are()
        lose_power(tmp_path / f"{cut.saves}", kind, options, at, mode="synced")


@on_each
def test_power_loss_where_refs_are_in_tables(tmp_path, monkeypatch, kind, options):
    """git writes the end of a table after it has synced it."""
    needs_reftable()
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("GIT_DEFAULT_REF_FORMAT", "reftable")
    cut = Cut(2, 5, 3).where_refs_are()
    lose_power(tmp_path / "x", kind, options, cut, mode="synced")


@pytest.mark.slow
@pytest.mark.timeout(14_400)
@on_each
def test_power_loss_again_and_again(tmp_path, kind, options):
    """Half of the cuts follow the first acknowledgement of a repository's life."""
    print(f"CUTS={CUTS} SEED={SEED}")
    chance = random.Random(f"{SEED} {kind} {options}")
    for number in range(CUTS):
        saves = chance.choice((1, 1, 2, 5, 12))
        after = chance.choice((1, chance.randint(1, saves)))
        cut = Cut(chance.choice((1, 1, 2)), saves, after).where_refs_are()
        try:
            lose_power(tmp_path / f"{number}", kind, options, cut, mode="synced")
        except AssertionError as exc:
            exc.add_note(f"cut {number} of SEED={SEED}: {cut}")
            raise


@on_each
def test_power_loss_is_seen_where_nothing_is_synced(tmp_path, kind, options):
    """The negative control: the same check fails once fsync does nothing."""
    with pytest.raises(AssertionError):
        lose_power(tmp_path / "x", kind, options, Cut(1, 5, 5), mode="unsynced")


# Packs refs once more than two sessions have some.
_CROWD = """
import gitcp
from gitcp.git import pack_refs as crowd
crowd.AT_MOST = 2
for number in range(4):
    print(gitcp.open(".").session(f"s{number}").save().commit, flush=True)
"""

# The user's git packs refs between the move of a ref and the sync of its directory.
_OVERTAKEN = """
import subprocess
import gitcp
from gitcp import durable
original = durable.sync_directory
def sync_directory(directory):
    if (directory / "main").exists():
        subprocess.run(["git", "pack-refs", "--all", "--prune"], check=True)
    original(directory)
durable.sync_directory = sync_directory
print(gitcp.open(".").session("s0").save().commit, flush=True)
"""


@pytest.mark.ref_files
@on_each
@pytest.mark.parametrize("program", [_CROWD, _OVERTAKEN], ids=["crowd", "overtaken"])
def test_packed_refs_survive_a_power_cut(tmp_path, kind, options, program):
    """By default git syncs neither the file of packed refs nor its name."""
    disk = Disk(tmp_path, kind, options)
    with disk.mounted() as top:
        repo = make_repo(top / "repo", {"file": b"0\n"})
        git(repo, "tag", "of-the-user")
        disk.sync()
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=repo,
            env=gitcp_environment(),
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert (repo / ".git" / "packed-refs").exists()
        known = git(repo, "for-each-ref")
        disk.cut_power()
    with disk.mounted():
        assert git(repo, "for-each-ref") == known
        for number, commit in enumerate(done.stdout.split()):
            assert tip(repo, f"refs/gitcp/s/s{number}/main") == commit
        fsck(repo)


# Restores the first checkpoint, and says when it is where the power is to go.
_RESTORER = """
import os, sys
from gitcp.cli import main
from gitcp.worktree import apply, bulk, disks, one_step, renames
least, at, mode = sys.argv[1:]
bulk.AT_LEAST, bulk.WORKERS, bulk.AT_ONCE = int(least), 2, 25
if mode == "unsynced":
    disks.sync_whole = lambda fd: None
names = iter(range(1000))
whole = iter(range(1000))
def stop(here):
    if here:
        # What another program may do: names become durable, of whatever content.
        with open(".git/description", "a") as file:
            file.write("x")
            file.flush()
            os.fsync(file.fileno())
        print("now", flush=True)
        sys.stdin.read()
def before(where, name, here):
    call = getattr(where, name)
    def stopped(*args, **options):
        stop(here())
        return call(*args, **options)
    setattr(where, name, stopped)
# First of what git has written, then of what is written here.
due = {"by git": 0, "written": 1}.get(at, -1)
before(disks, "sync_whole", lambda: next(whole) == due)
before(renames, "move_directory", lambda: at == "one placed" and next(names) == 1)
before(one_step, "give_name", lambda: at == "named" and next(names) == 12)
before(apply, "_sync", lambda: at == "all named")
assert main(["restore", "-q", "-y", "1"]) == 0
stop(at == "done")
"""
# A restore by one sync for all, and by one for each file.
BULK, EACH = "5", "100000"


def lost_and_restored(
    base: Path, kind: str, options: str, cut: tuple[str, ...]
) -> None:
    """Cuts the power in a restore of fifty files; what is begun is ended as told."""
    least, at, end, mode = cut
    base.mkdir()
    disk = Disk(base, kind, options)
    with disk.mounted() as top:
        # Of all sizes up to some blocks, so that there is something to tear.
        repo = make_repo(
            top / "repo",
            {f"d{n % 5}/e{n % 2}/f{n}": b"%07d\n" % n * (n * n) for n in range(70)},
        )
        assert run_gitcp(repo, "save").returncode == 0
        whole = tree_bytes(repo)
        for name in ("d0", "d1"):
            shutil.rmtree(repo / name)
        write_files(repo, {f"d2/e{n % 2}/f{n}": b"edited" for n in range(2, 70, 5)})
        write_files(repo, {f"d3/e{n % 2}/f{n}": b"mine" * n for n in range(3, 40, 5)})
        assert run_gitcp(repo, "save").returncode == 0
        wreck = tree_bytes(repo)
        disk.sync()
        process = subprocess.Popen(
            [sys.executable, "-c", _RESTORER, least, at, mode],
            cwd=repo,
            env=gitcp_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said == b"now\n", process.communicate()
        disk.cut_power()
        process.communicate(timeout=120)
    with disk.mounted():
        do_as_the_screen_says(repo)
        fsck(repo)
        if at == "done":
            assert tree_bytes(repo) == whole
            assert git(repo, "log", "-1", "--format=%B", REF).count(b"Trigger: restore")
        else:
            done = run_gitcp(repo, "restore", end)
            assert done.returncode == 0, done.stderr
            assert tree_bytes(repo) == (whole if end == "--continue" else wreck)
        assert run_gitcp(repo, "verify").returncode == 0
    shutil.rmtree(base)


@on_each
@pytest.mark.parametrize("least", [BULK, EACH], ids=["bulk", "each"])
def test_power_loss_in_a_restore(tmp_path, kind, options, least):
    moments = ("by git", "written", "one placed", "named", "all named", "done")
    for at in moments if least == BULK else moments[3:]:
        for end in ("--continue", "--abort") if at != "done" else ("",):
            cut = (least, at, end, "synced")
            try:
                lost_and_restored(tmp_path / "x", kind, options, cut)
            except AssertionError as exc:
                exc.add_note(f"the power went at {cut}")
                raise


@on_each
def test_power_loss_in_a_bulk_restore_is_seen_where_nothing_is_synced(
    tmp_path, kind, options
):
    """The negative control: names become durable with others, and their content not."""
    with pytest.raises(AssertionError):
        cut = (BULK, "done", "", "unsynced")
        lost_and_restored(tmp_path / "x", kind, options, cut)
