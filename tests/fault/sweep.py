"""Faults at each system call of a command, and what must hold after each of them.

A sweep counts the calls of one run that change a file system (strace), then runs the
command once for each of them, on a copy, with a fault just there. Between two such
calls the disk is the same: no other moment leaves another state.

A trial is a directory with `repo` and `home` in it, so that copies share nothing.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.fault.harness import (
    Done,
    Point,
    fsck,
    nothing_left,
    points_in,
    users_state,
)
from tests.support.gitrepo import (
    PATIENCE,
    Node,
    git_line,
    gitcp_argv,
    gitcp_environment,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import Done as Ended
from tests.support.inprocess import invoke

# What changes a file system or makes it durable. Each is counted by its own name.
CHANGING = (
    *("openat", "creat", "write", "pwrite64", "writev", "copy_file_range", "sendfile"),
    *("fsync", "fdatasync", "ftruncate", "truncate", "fallocate"),
    *("mkdir", "mkdirat", "link", "linkat", "symlink", "symlinkat"),
    *("rename", "renameat", "renameat2", "unlink", "unlinkat", "rmdir"),
    *("chmod", "fchmod", "fchmodat", "utimensat"),
)
# Those of them that a full disk may refuse.
GROWING = frozenset(CHANGING) - {"unlink", "unlinkat", "rmdir", "chmod", "fchmod"}

_TEMPORARY = re.compile(rb"\.gitcp-\d+$|\.\d+\.tmp$")
# The directories that an installation made: a killed one may have made some of them already.
_DIRECTORIES = re.compile(rb'(gitcp install skill: [0-9a-f]+) \d+|,"above":\[[^]]*\]')


class Fault(NamedTuple):
    """What strace is to inject, and the exit statuses that may come of it."""

    name: str
    inject: str
    statuses: frozenset[int]

    def hits(self, point: Point) -> bool:
        """Whether it can happen at a call."""
        output = point.line.startswith("write(1<")
        return self.name != "full" or (point.call in GROWING and not output)


def _signal(name: str, *statuses: int) -> Fault:
    number = -int(getattr(signal, f"SIG{name}"))
    return Fault(name.lower(), f"signal={name}", frozenset({0, number, *statuses}))


INTERRUPTED = 130
_LIBRARY = rb"cannot open shared object|failed to load certificates"
# A closed pipe, a file that cannot be opened to be read: a call that is counted in
# one run may be another in the next.
_REFUSED = frozenset({0, 12, 15, 20})
FAULTS = {
    fault.name: fault
    for fault in (
        _signal("KILL"),
        _signal("INT", INTERRUPTED),
        # A restore ends on it as on Ctrl-C, so that it says how to go on.
        _signal("TERM", INTERRUPTED, 143),
        _signal("HUP", 129),
        Fault("full", "error=ENOSPC", _REFUSED),
    )
}


# Makes the argv of a command.
Program = Callable[..., Sequence[str | bytes | Path]]


class Verb(NamedTuple):
    """A command under test: `prepare` brings a scene to where it is run.

    `again` are the exit statuses of running it once more, where that must lead to the
    new state; empty where it does something else then. `also` looks at that state.
    `program` starts gitcp, perhaps with something changed in it.
    """

    args: tuple[str, ...]
    prepare: Callable[[Path], None]
    again: frozenset[int] = frozenset()
    also: Callable[[Path], None] = lambda base: None
    hooks: bool = False
    program: Program = gitcp_argv


class State(NamedTuple):
    """What a command may change: files, settings, and the checkpoints there are."""

    files: dict[bytes, Node]
    settings: dict[bytes, Node]
    known: dict[str, list[tuple[str, str]]]


class Outcome(NamedTuple):
    """What a trial came to: the exit status of the command, and which state it left."""

    status: int
    state: str


# --- running ------------------------------------------------------------------------------


def environment(base: Path) -> dict[str, str]:
    return {"HOME": str(base / "home"), "XDG_CONFIG_HOME": str(base / "home/.config")}


def run(base: Path, *args: str) -> Ended:
    """Runs gitcp in this process, in a trial."""
    return invoke(base / "repo", *args, env=environment(base))


def must(base: Path, *args: str) -> Ended:
    done = run(base, *args)
    assert done.returncode == 0, (args, done.returncode, done.stderr)
    return done


def copy(base: Path, to: Path) -> Path:
    """Copies a trial with all times and modes; what was there goes."""
    shutil.rmtree(to, ignore_errors=True)
    subprocess.run(["cp", "-a", base, to], check=True)
    return to


def traced(
    base: Path,
    options: Sequence[str | Path],
    args: Sequence[str],
    program: Program = gitcp_argv,
) -> Done:
    return started(base, ["strace", "-qq", *options, *program(*args)])


def started(base: Path, argv: Sequence[str | bytes | Path]) -> Done:
    # The command must not ignore these signals, but it would inherit that: a shell ignores
    # SIGINT for what runs in the background, nohup ignores SIGHUP. A handler is not inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)
    return subprocess.run(
        argv,
        cwd=base / "repo",
        env=gitcp_environment(environment(base)),
        input=b"",
        capture_output=True,
        check=False,
        timeout=PATIENCE,
    )


def points(
    base: Path, args: Sequence[str], program: Program = gitcp_argv
) -> list[Point]:
    """Runs a command; returns its calls that concern the trial or the output.

    Of several threads, those of the first.
    """
    log = base.with_name(f"{base.name}.strace")
    names = ",".join(CHANGING)
    done = traced(base, ["-y", "-o", log, "-e", f"trace={names}"], args, program)
    assert done.returncode == 0, done.stderr
    return [
        point._replace(line=point.line.replace(str(base), ""))
        for point in points_in(log, base)
    ]


def inject(
    base: Path,
    point: Point,
    fault: Fault,
    args: Sequence[str],
    program: Program = gitcp_argv,
) -> Done:
    """Runs gitcp with one fault; strace ends by the signal that ended gitcp."""
    at = f"inject={point.call}:{fault.inject}:when={point.number}"
    options = ["-o", os.devnull, "-e", f"trace={point.call}", "-e", at]
    return traced(base, options, args, program)


# --- looking ------------------------------------------------------------------------------


def state(base: Path) -> State:
    """What there is now, by git's own reading."""
    return State(tree_bytes(base / "repo"), settings(base), checkpoints(base / "repo"))


def settings(base: Path) -> dict[bytes, Node]:
    """The files that an installation changes.

    Directories that a killed one has made stay, empty; and so do its temporary files,
    which nothing reads.
    """
    found = tree_bytes(base / "home")
    hooks = tree_bytes(base / "repo" / ".git" / "hooks")
    found |= {b"hooks/" + path: node for path, node in hooks.items()}
    return {
        path: (kind, mode, _DIRECTORIES.sub(rb"\1", content))
        for path, (kind, mode, content) in found.items()
        if kind != "dir" and not _TEMPORARY.search(path)
    }


def checkpoints(repo: Path) -> dict[str, list[tuple[str, str]]]:
    """Id and tree of each checkpoint of each branch, oldest first."""
    shape = "%(trailers:key=Gitcp-Checkpoint,valueonly,separator=) %T"
    found = {}
    for ref in git_line(
        repo, "for-each-ref", "--format=%(refname)", "refs/gitcp/s"
    ).split():
        out = git_line(
            repo,
            *("log", "--reverse", "--committer=gitcp@localhost", f"--format={shape}"),
            ref,
        )
        rows = (row.split() for row in out.splitlines())
        found[ref] = [(ident, tree) for ident, tree in rows]
    return found


def earlier(
    now: Mapping[str, list[tuple[str, str]]], before: State
) -> dict[str, list[tuple[str, str]]]:
    """Those of the checkpoints that were there before the command."""
    kept = {}
    for ref, rows in before.known.items():
        ids = {ident for ident, _ in rows}
        kept[ref] = [row for row in now.get(ref, []) if row[0] in ids]
    return kept


def users(base: Path, *, hooks: bool) -> dict[str, bytes]:
    """What is the user's in the git directory, and must stay as it is."""
    found = users_state(base / "repo")
    if hooks:
        found = {
            path: data for path, data in found.items() if not path.startswith("hooks/")
        }
    return found


def is_open(base: Path) -> bool:
    return (base / "repo" / ".git" / "gitcp" / "restore.json").exists()


# --- judging ------------------------------------------------------------------------------


class Judge:
    """Knows a command's old and new state, and says whether what a fault left is one.

    All trials are at one place, since hooks and settings hold paths.
    """

    def __init__(self, base: Path, verb: Verb) -> None:
        self.base = base
        self.verb = verb
        self._pristine = copy(base, base.with_name(f"{base.name}.pristine"))
        self.user = users(base, hooks=verb.hooks)
        self.old = state(base)
        # On a copy, as each trial: its files have other inodes, and all of them are read.
        base = copy(self._pristine, base)
        self.points = points(base, verb.args, verb.program)
        assert not is_open(base)
        self.new = state(base)
        # Where a restore is open already, it is between two states of the files.
        self._begun = is_open(self._pristine)
        self.backward = self._ended("--abort") if self._begun else self.old
        self.forward = self._ended("--continue") if self._begun else self.new

    def _ended(self, how: str) -> State:
        base = copy(self._pristine, self.base)
        must(base, "restore", how)
        return state(base)

    def trial(self, point: Point, fault: Fault) -> Outcome:
        """Runs the command with a fault on a copy, and looks at everything."""
        verb = self.verb
        return self.attempt(
            fault,
            lambda base: inject(base, point, fault, verb.args, verb.program),
        )

    def attempt(self, fault: Fault, run: Callable[[Path], Done]) -> Outcome:
        """Has the command run on a copy, in which a fault happens, and looks."""
        base = copy(self._pristine, self.base)
        done = run(base)
        # In another run the n-th call may be one that loads a library, which a full disk
        # does not refuse.
        loads = fault.name == "full" and re.search(_LIBRARY, done.stderr) is not None
        statuses = fault.statuses | ({70} if loads else set())
        assert done.returncode in statuses, (done.returncode, done.stderr)
        assert loads or b"Traceback" not in done.stderr, done.stderr
        if fault.name == "full" and done.returncode == 20:
            # In another run the n-th call may be one that starts git.
            assert re.search(rb"disk is full|No space left", done.stderr), done.stderr
        found = self._outcome(base)
        if done.returncode == 0 or (done.stdout and fault.name == "kill"):
            assert found == "new", (done.stdout, "told as done, and is not")
        self.look(base)
        return Outcome(done.returncode, found)

    def _outcome(self, base: Path) -> str:
        """Says which state this is: "open" with a restore to end, "new" or "old"."""
        if is_open(base):
            return "open"
        found = state(base)
        same = found._replace(known={}) == self.new._replace(known={})
        return "new" if same and _counts(found) == _counts(self.new) else "old"

    def look(self, base: Path) -> None:
        """Checks what a fault left, and ends it both ways."""
        fsck(base / "repo")
        assert users(base, hooks=self.verb.hooks) == self.user
        if not is_open(base):
            found = state(base).files
            # A command that ends a restore may not leave it neither open nor ended.
            _each_as_in(found, self.old.files, self.new.files)
            assert found in (self.old.files, self.new.files)
            assert not self._begun or found == self.new.files
            self._settle(base)
            return
        past = self._past_the_commit_point(base)
        twin = copy(base, base.with_name(f"{base.name}.twin"))
        self._end(twin, "--continue", self.forward.files)
        shutil.rmtree(twin)
        # Past the commit point the restore is done: there is nothing to take back.
        self._end(base, "--abort", (self.forward if past else self.backward).files)

    def _past_the_commit_point(self, base: Path) -> bool:
        before = {row for rows in self.old.known.values() for row in rows}
        for ref in checkpoints(base / "repo"):
            newest = git_line(
                base / "repo",
                *("log", "-1", ref),
                "--format=%(trailers:key=Gitcp-Checkpoint,valueonly,separator=) %T"
                " %(trailers:key=Gitcp-Trigger,valueonly,separator=)",
            ).split()
            if (newest[0], newest[1]) not in before and newest[2] == "restore":
                return True
        return False

    def _end(self, base: Path, how: str, wanted: dict[bytes, Node]) -> None:
        refused = run(base, "save")
        assert refused.returncode == 25, (refused.returncode, refused.stderr)
        must(base, "restore", how)
        assert tree_bytes(base / "repo") == wanted, how
        assert not is_open(base)
        self._settle(base)

    def _settle(self, base: Path) -> None:
        """The next command finds the old state or the new, and clears away the rest."""
        verb = self.verb
        write_files(base / "repo", {"next.txt": b"after"})
        must(base, "save", "-s", "aside", "-m", "the next one")
        aside = "refs/gitcp/s/aside/main:next.txt"
        assert git_line(base / "repo", "show", aside) == "after"
        (base / "repo" / "next.txt").unlink()
        found = state(base)
        kept = earlier(found.known, self.old)
        old, new = (earlier(one.known, self.old) for one in (self.old, self.new))
        assert kept in (old, new), "a checkpoint is gone, or not what it was"
        _each_as_in(found.settings, self.old.settings, self.new.settings)
        must(base, "verify")
        if verb.again:
            again = run(base, *verb.args)
            assert again.returncode in verb.again, (again.returncode, again.stderr)
            last = state(base)
            assert earlier(last.known, self.old) == new
            _each_as_in(last.settings, self.new.settings, self.new.settings)
            verb.also(base)
        nothing_left(base / "repo")
        fsck(base / "repo")
        assert users(base, hooks=verb.hooks) == self.user


def _counts(found: State) -> dict[str, int]:
    return {ref: len(rows) for ref, rows in found.known.items()}


def _each_as_in(
    found: Mapping[bytes, Node], old: Mapping[bytes, Node], new: Mapping[bytes, Node]
) -> None:
    """Each path is as it was before, or as it is after; no other is there."""
    wrong = [
        (path, found.get(path))
        for path in sorted(found.keys() | old.keys() | new.keys())
        if found.get(path) not in (old.get(path), new.get(path))
    ]
    assert not wrong, wrong


# --- many trials --------------------------------------------------------------------------


def in_processes(work: Callable[[int], list[Outcome]], workers: int) -> list[Outcome]:
    """Does the work in forked processes, which run gitcp without starting Python again.

    `work` is given the number of its process. An error of it is raised here.
    """
    with tempfile.TemporaryDirectory(prefix="sweep-") as place:
        ends = [Path(place, str(number)) for number in range(workers)]
        children = [_child(work, number, end) for number, end in enumerate(ends)]
        try:
            for child in children:
                os.waitpid(child, 0)
        except BaseException:
            for child in children:
                os.kill(child, signal.SIGKILL)
            raise
        results: list[Outcome] = []
        for end in ends:
            found, failure = pickle.loads(end.read_bytes())
            assert failure is None, failure
            results += found
        return results


def _child(work: Callable[[int], list[Outcome]], number: int, end: Path) -> int:
    child = os.fork()
    if child:
        return child
    try:
        results: list[Outcome] = []
        failure = None
        try:
            results = work(number)
        except BaseException:  # noqa: BLE001  the parent raises it
            failure = traceback.format_exc()
        end.write_bytes(pickle.dumps((results, failure)))
    finally:
        os._exit(0)
