"""The commands that change a repository or a work tree, each with a scene to do it in."""

from __future__ import annotations

import random
import shutil
import sys
from pathlib import Path

from tests.fault.harness import make_scene, rework
from tests.fault.sweep import FAULTS, Program, Verb, copy, inject, is_open, must, points
from tests.support.gitrepo import git, write_files

SECRET = b"k3J9dLq0" + b"Xz7Yv3Wn5Bt1"
RESTORE = ("restore", "1", "--yes")


def _history(base: Path) -> None:
    """About forty files, saved twice, nearly all of them changed between."""
    repo = make_scene(base / "repo")
    (base / "home").mkdir()
    write_files(
        repo,
        {f"some/{n % 4}/file{n}.txt": b"one %d\n" % n * 50 for n in range(30)},
    )
    must(base, "save", "-m", "first")
    rework(repo)
    write_files(
        repo,
        {f"some/{n % 5}/file{n}.txt": b"two %d\n" % n * 60 for n in range(5, 35)},
    )
    must(base, "save", "-m", "second")


def _unsaved(base: Path) -> None:
    write_files(
        base / "repo", {"unsaved.txt": b"unsaved\n", "keep.txt": b"unsaved too\n"}
    )


def _save(base: Path) -> None:
    must(base, "decide", "this waits for the next save")
    _unsaved(base)


def _chunked(base: Path) -> None:
    """A large file that is stored in chunks has changed, and another one came."""
    git(base / "repo", "config", "gitcp.chunkAbove", "8k")
    large = random.Random(1).randbytes(200_000)
    write_files(base / "repo", {"large.bin": large})
    must(base, "save", "-m", "large")
    changed = large[:90_000] + b"put in" + large[90_000:]
    new = random.Random(2).randbytes(50_000)
    write_files(base / "repo", {"large.bin": changed, "new.bin": new})


def _undo(base: Path) -> None:
    must(base, *RESTORE)
    _unsaved(base)


def _half_way(base: Path) -> None:
    """Leaves a restore that was killed among its files."""
    _unsaved(base)
    before = copy(base, base.with_name("before"))
    through = points(base, RESTORE)
    copy(before, base)
    shutil.rmtree(before)
    moves = [
        point
        for point in through
        if point.call.startswith(("rename", "link", "unlink"))
        and "/repo/.git/" not in point.line
    ]
    inject(base, moves[len(moves) // 2], FAULTS["kill"], RESTORE)
    assert is_open(base)


def _forked(base: Path) -> None:
    must(base, "fork", "--no-switch", "1", "try")
    for number in range(4):
        write_files(base / "repo", {"edit.txt": b"%d\n" % number * 99})
        must(base, "save", "-m", f"edit {number}")
    must(base, "save", "-s", "main/try", "-m", "on the fork")


def _pruned(base: Path) -> None:
    _forked(base)
    must(base, *PRUNE)


def _secret(base: Path) -> None:
    write_files(base / "repo", {"conf.ini": b"token=" + SECRET + b"\n"})
    _forked(base)
    (base / "repo" / "conf.ini").unlink()


def _no_secret(base: Path) -> None:
    found = git(
        base / "repo", "cat-file", "--batch-all-objects", "--batch", "--unordered"
    )
    assert SECRET not in found


def _one_pack(base: Path) -> None:
    assert len(list((base / "repo/.git/objects/pack").glob("*.pack"))) == 1


INSTALL = ("install", "git-hooks", "claude-code", "codex", "skill")


def _settings(base: Path) -> None:
    write_files(
        base / "home",
        {
            ".claude/settings.json": b'{\n  "model": "opus", "hooks": {}\n}\n',
            ".codex/config.toml": b"# mine\nmodel = 'x'\n",
        },
    )


def _installed(base: Path) -> None:
    _settings(base)
    must(base, *INSTALL)


# Writes in bulk though there are few files, by several workers, in batches. It may kill
# itself at the n-th call that workers make beside the first thread, or says how many there
# are.
_IN_BULK = """
import os, signal, sys, threading
from gitcp.cli import main
from gitcp.worktree import bulk, renames
workers, due = map(int, sys.argv[1:3])
bulk.AT_LEAST, bulk.WORKERS, bulk.AT_ONCE = 5, workers, 25
seen, mutex = [], threading.Lock()
def counted(where, name):
    call = getattr(where, name)
    def wrapped(*args, **named):
        if threading.current_thread() is not threading.main_thread():
            with mutex:
                seen.append(name)
                if len(seen) == due:
                    os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **named)
    setattr(where, name, wrapped)
for name in ("open", "write", "mkdir", "fchmod", "close", "unlink", "rename"):
    counted(os, name)
counted(renames, "_attempt")
status = main(sys.argv[3:])
if due < 0:
    print(len(seen))
sys.exit(status)
"""


def _missing(base: Path) -> None:
    """A directory is gone with all that is in it."""
    shutil.rmtree(base / "repo" / "some")
    _unsaved(base)


def in_bulk(workers: int, due: int = 0) -> Program:
    """Starts gitcp so that it restores in bulk."""
    head = [sys.executable, "-P", "-c", _IN_BULK, str(workers), str(due)]
    return lambda *args: [*head, *args]


def bulk(workers: int) -> Verb:
    """The restore of about forty files in bulk, by so many workers."""
    return Verb(RESTORE, _unsaved, program=in_bulk(workers))


PRUNE = ("prune", "--keep-last", "2", "-y")
ONCE_MORE = frozenset({0})
# 13: there is nothing more to purge.
NOTHING_MORE = frozenset({0, 13})

VERBS = {
    "save": Verb(("save", "-m", "under test"), _save),
    "chunks": Verb(("save", "-m", "under test"), _chunked),
    "unchunk": Verb(("restore", "3", "--yes"), _chunked),
    "restore": Verb(RESTORE, _unsaved),
    "restore-in-bulk": bulk(2),
    "restore-missing": Verb(RESTORE, _missing, program=in_bulk(2)),
    "undo": Verb(("undo", "--yes"), _undo),
    "fork": Verb(("fork", "--yes", "1", "other"), _unsaved),
    "continue": Verb(("restore", "--continue"), _half_way),
    "abort": Verb(("restore", "--abort"), _half_way),
    "prune": Verb(PRUNE, _forked, ONCE_MORE),
    "gc": Verb(("gc",), _pruned, ONCE_MORE, _one_pack),
    "purge": Verb(("purge", "conf.ini", "-y"), _secret, NOTHING_MORE, _no_secret),
    "install": Verb(INSTALL, _settings, ONCE_MORE, hooks=True),
    "uninstall": Verb(
        ("un" + INSTALL[0], *INSTALL[1:]), _installed, ONCE_MORE, hooks=True
    ),
}


def make(base: Path, verb: Verb) -> Path:
    """Makes the scene of a verb."""
    base.mkdir()
    _history(base)
    verb.prepare(base)
    return base
