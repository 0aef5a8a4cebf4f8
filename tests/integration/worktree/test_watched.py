"""Captures by what the user's watcher names, and what happens when it is wrong."""

import contextlib
import itertools
import json
import os
import random
import shutil
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from gitcp import durable, notices
from gitcp.git import local_sockets, process
from gitcp.git.discover import discover
from gitcp.worktree import state as states
from gitcp.worktree import watched
from gitcp.worktree.scan import Rules
from tests.conftest import GitRunner
from tests.support.gitrepo import write_files
from tests.support.snapshots import capture, captured

# git compares sizes and whole seconds.
SIZES = itertools.count(100)
RULES = Rules(limit=1 << 20, watched=True)


class Hook:
    """A hook outside of the repository that says what a test lets it say."""

    def __init__(self, repo: Path, directory: Path) -> None:
        directory.mkdir()
        self.repo = repo
        self.answer = directory / "answer"
        self.calls = directory / "calls"
        self.path = directory / "monitor"
        self.answers()
        self.is_program()

    def is_program(self, body: str = "", version: int = 2) -> None:
        token = "printf 'token\\0'; " if version == 2 else ""
        self.path.write_text(
            f'#!/bin/sh\necho "$1 $2" >> {self.calls}\n[ "$1" = {version} ] || exit 1\n'
            f"{body}\n{token}cat {self.answer}\n"
        )
        self.path.chmod(0o755)

    def answers(self, *names: bytes) -> None:
        self.answer.write_bytes(b"\0".join(names))

    def asked(self) -> list[str]:
        text = self.calls.read_text() if self.calls.exists() else ""
        self.calls.unlink(missing_ok=True)
        return text.splitlines()


@pytest.fixture
def hook(repo: Path, git: GitRunner, tmp_path: Path) -> Hook:
    made = Hook(repo, tmp_path / "hook")
    git("config", "--global", "core.fsmonitor", str(made.path))
    return made


class _LaterClock:
    """A clock by which every file was written long ago."""

    device = 0
    second = second_elsewhere = 1 << 40


@pytest.fixture(autouse=True)
def folded(monkeypatch) -> None:
    """Has the index hold every file, as where there are many."""
    fold: Any = states._fold
    monkeypatch.setattr(states, "_FOLD_AT", 0)
    monkeypatch.setattr(
        states,
        "_fold",
        lambda path, state, _, form: fold(path, state, _LaterClock, form),
    )


@pytest.fixture
def unsampled(monkeypatch) -> None:
    monkeypatch.setattr(watched, "_FILES", 0)
    monkeypatch.setattr(watched, "_DIRECTORIES", 0)


@pytest.fixture
def compared(monkeypatch) -> list[str]:
    """Notes each comparison of everything."""
    noted: list[str] = []
    start = process.start

    def noting(args, **how):
        if "diff-files" in args:
            noted.append("all")
        return start(args, **how)

    monkeypatch.setattr(process, "start", noting)
    return noted


def save(repo: Path, rules: Rules = RULES) -> dict[bytes, str]:
    snapshot = capture(repo, rules)
    return {path: oid for path, (_, oid) in captured(repo, snapshot).items()}


def settle(repo: Path) -> None:
    """Waits until the disk's clock has moved on since the last change."""
    mark = repo / ".git" / "mark"
    mark.write_text("")
    first = mark.stat().st_ctime_ns
    while mark.stat().st_ctime_ns == first:
        time.sleep(0.002)
        mark.touch()


def ready(repo: Path, hook: Hook, compared: list[str] | None = None) -> dict:
    """Captures until the watcher's answers count."""
    capture(repo, RULES)
    before = save(repo)
    hook.asked()
    if compared is not None:
        compared.clear()
    return before


def edited(repo: Path, *names: str) -> None:
    for name in names:
        write_files(repo, {name: os.urandom(next(SIZES))})
    settle(repo)


def caught(repo: Path) -> bool:
    return (repo / ".git/gitcp/scan/watcher-missed").exists()


def test_only_what_a_watcher_names_is_compared(repo, hook, unsampled, compared):
    before = ready(repo, hook, compared)
    edited(repo, "README.md", "src/pkg/main.py", "new.txt")
    hook.answers(b"README.md", b"new.txt")
    now = save(repo)
    assert now[b"README.md"] != before[b"README.md"]
    assert b"new.txt" in now
    assert now[b"src/pkg/main.py"] == before[b"src/pkg/main.py"]
    assert hook.asked() == ["2 token"]
    assert compared == []
    # A restore asks no watcher: what it may write over is always compared.
    assert save(repo, Rules(limit=1 << 20))[b"src/pkg/main.py"] != before[b"README.md"]
    assert compared == ["all"]
    assert hook.asked() == []
    # The token goes with what that capture learnt.
    compared.clear()
    hook.answers()
    save(repo)
    assert hook.asked() == ["2 token"]
    assert compared == []


@pytest.mark.parametrize("what", ["edit", "new", "gone", "new directory"])
def test_a_watcher_that_lies_is_caught_by_the_sample(repo, hook, compared, what):
    ready(repo, hook, compared)
    if what == "gone":
        (repo / "src/pkg/main.py").unlink()
    name = {"new": "src/new.py", "new directory": "a/b/c.py"}.get(
        what, "src/pkg/main.py"
    )
    if what != "gone":
        write_files(repo, {name: b"unseen"})
    settle(repo)
    told: list[str] = []
    with notices.listening(told.append):
        now = save(repo)
    assert (name.encode() in now) == (what != "gone")
    assert now == save(repo, Rules(limit=1 << 20))
    assert caught(repo)
    assert len(told) == 1
    hook.asked()
    # From now on it is not asked any more.
    edited(repo, "README.md")
    before = now
    assert save(repo)[b"README.md"] != before[b"README.md"]
    assert hook.asked() == []


def test_a_lie_lasts_until_everything_is_compared(
    repo, hook, unsampled, compared, monkeypatch
):
    monkeypatch.setattr(watched, "_CAPTURES", 2)
    before = ready(repo, hook, compared)
    edited(repo, "README.md")
    with notices.listening(lambda _: None):
        assert save(repo) == before
        assert not caught(repo)
        assert save(repo)[b"README.md"] != before[b"README.md"]
    assert caught(repo)


def test_a_lie_lasts_no_longer_than_an_hour(repo, hook, unsampled, monkeypatch):
    before = ready(repo, hook)
    edited(repo, "README.md")
    monkeypatch.setattr(watched, "_AGE", 1)
    with notices.listening(lambda _: None):
        assert save(repo)[b"README.md"] != before[b"README.md"]


def test_a_change_after_the_question_is_no_lie(repo, hook, monkeypatch):
    monkeypatch.setattr(watched, "_CAPTURES", 0)
    before = ready(repo, hook)
    settle(repo)
    hook.is_program("echo later >> README.md")
    start, readme = process.start, repo / "README.md"

    def after_the_hook(args, **how):
        """Git compares only once the hook has made its change."""
        if "diff-files" in args:
            made = durable.until(
                lambda: "later" in readme.read_text() or None, timeout=60
            )
            assert made
        return start(args, **how)

    monkeypatch.setattr(process, "start", after_the_hook)
    assert save(repo)[b"README.md"] != before[b"README.md"]
    assert not caught(repo)


def test_a_touched_file_is_no_lie(repo, hook):
    ready(repo, hook)
    (repo / "README.md").touch()
    settle(repo)
    save(repo)
    assert not caught(repo)


@pytest.mark.parametrize("answer", [b"/", b"what?.txt", b"../etc", b"src/"])
def test_an_answer_that_names_too_little_is_not_enough(
    repo, hook, unsampled, compared, answer
):
    before = ready(repo, hook, compared)
    edited(repo, "src/pkg/main.py")
    hook.answers(answer)
    assert save(repo)[b"src/pkg/main.py"] != before[b"src/pkg/main.py"]
    assert compared == ["all"]


@pytest.mark.parametrize("body", ["exit 3", "cat; exit 0", "printf nonsense; exit 0"])
def test_a_watcher_that_fails_costs_nothing_but_time(
    repo, hook, unsampled, compared, body
):
    before = ready(repo, hook, compared)
    edited(repo, "README.md")
    hook.is_program(body)
    assert save(repo)[b"README.md"] != before[b"README.md"]
    assert compared == ["all"]


def test_a_watcher_that_does_not_answer_is_left_alone_for_a_while(
    repo, hook, unsampled, monkeypatch
):
    before = ready(repo, hook)
    edited(repo, "README.md")
    monkeypatch.setattr(watched, "_PATIENCE", 0.2)
    hook.is_program("sleep 600")
    assert save(repo)[b"README.md"] != before[b"README.md"]
    assert len(hook.asked()) == 1
    save(repo)
    assert hook.asked() == []


def test_version_1_is_asked_with_a_time(repo, hook, unsampled, compared):
    hook.is_program(version=1)
    before = ready(repo, hook, compared)
    edited(repo, "README.md", "src/pkg/main.py")
    hook.answers(b"README.md")
    now = save(repo)
    assert now[b"README.md"] != before[b"README.md"]
    assert now[b"src/pkg/main.py"] == before[b"src/pkg/main.py"]
    (asked,) = hook.asked()
    assert asked.startswith("1 ")
    assert time.time_ns() - int(asked[2:]) < 3_600_000_000_000


def test_ignored_files_that_git_tracks_need_not_be_named(
    repo, git, hook, unsampled, compared
):
    write_files(repo, {".gitignore": b"*.log\n", "b.log": b"1"})
    git("add", "-f", "b.log", ".gitignore")
    before = ready(repo, hook, compared)
    edited(repo, "b.log")
    assert save(repo)[b"b.log"] != before[b"b.log"]
    assert compared == []


def test_an_excluded_file_is_not_captured(repo, hook, unsampled, compared):
    rules = RULES._replace(exclude=("*.tmp",))
    capture(repo, rules)
    save(repo, rules)
    compared.clear()
    edited(repo, "x.tmp", "y.txt")
    hook.answers(b"x.tmp", b"y.txt")
    now = save(repo, rules)
    assert b"y.txt" in now
    assert b"x.tmp" not in now
    assert compared == []


def test_no_watcher_of_the_repositorys_own_is_run(repo, git, hook, tmp_path):
    git("config", "--global", "--unset", "core.fsmonitor")
    git("config", "core.fsmonitor", str(hook.path))
    capture(repo, RULES)
    git("config", "--unset", "core.fsmonitor")
    inside = repo / "monitor"
    shutil.copy(hook.path, inside)
    for value in (
        str(inside),
        ".git/../monitor",
        f"{hook.path} --all",
        f"{hook.path};x",
    ):
        git("config", "--global", "core.fsmonitor", value)
        capture(repo, RULES)
        standing = watched.standing(discover(repo), repo / ".git/gitcp/scan")
        assert "is not used" in standing[0]
    assert hook.asked() == []


def signatures(repo: Path) -> dict[bytes, tuple]:
    found = {}
    for directory, names, files in os.walk(os.fsencode(repo)):
        if b".git" in names:
            names.remove(b".git")
        for name in (*names, *files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            found[os.path.relpath(path, os.fsencode(repo))] = (
                *(status.st_ino, status.st_mode, status.st_size),
                *(status.st_mtime_ns, status.st_ctime_ns),
            )
    return found


def change(repo: Path, chance: random.Random) -> None:
    """Does one of the things that people and tools do to files."""
    there = sorted(
        path for path in repo.rglob("*") if ".git" not in path.relative_to(repo).parts
    )
    files = [path for path in there if path.is_file()]
    directories = [path for path in there if path.is_dir()]
    if not directories:
        directories = [repo / f"made{chance.randrange(1 << 30)}"]
        directories[0].mkdir()
    one, place = chance.choice(files or [repo / "x"]), chance.choice(directories)
    new = place / f"n{chance.randrange(9)}"
    with contextlib.suppress(OSError):
        match chance.randrange(10):
            case 0 | 1:
                one.write_bytes(chance.randbytes(5))
            case 2:
                one.unlink()
            case 3:
                one.rename(new)
            case 4:
                new.mkdir()
                (new / "inside").write_bytes(chance.randbytes(5))
            case 5:
                place.rename(repo / f"d{chance.randrange(4)}")
            case 6:
                shutil.rmtree(place)
            case 7:
                one.unlink()
                one.mkdir()
                (one / "below").write_bytes(b"x")
            case 8:
                (place / ".gitignore").write_text(f"n{chance.randrange(9)}\n")
            case _:
                shutil.rmtree(place)
                place.write_bytes(b"was a directory")


def agree(repo: Path, hook: Hook, seed: int, steps: int) -> None:
    """Compares captures by a watcher that names all with captures that know nothing."""
    chance = random.Random(seed)
    ready(repo, hook)
    for _ in range(steps):
        before = signatures(repo)
        for _ in range(chance.randrange(1, 4)):
            change(repo, chance)
        settle(repo)
        now = signatures(repo)
        hook.answers(*sorted(p for p in before | now if before.get(p) != now.get(p)))
        narrow = capture(repo, RULES)
        full = capture(repo, Rules(limit=1 << 20), fresh=True, remember=False)
        assert narrow[:3] == full[:3]
        assert not caught(repo)


@pytest.mark.parametrize("seed", [0, 1])
def test_with_a_true_watcher_captures_are_those_without(repo, hook, unsampled, seed):
    agree(repo, hook, seed, 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_in_the_long_run_they_are_too(repo, hook, unsampled, seed):
    agree(repo, hook, seed, 40)


# --- watchers that answer on a socket -------------------------------------------------


@contextlib.contextmanager
def server(place: Path, answer):
    """Answers each connection on a local socket by a function of what it read."""
    with socket.socket(socket.AF_UNIX) as listening:
        with local_sockets.address(str(place)) as short:
            listening.bind(short)
        listening.listen()

        def serve() -> None:
            while True:
                try:
                    asked, _ = listening.accept()
                except OSError:
                    return
                with asked:
                    said = asked.recv(1 << 16)
                    if said == b"end":
                        return
                    asked.sendall(answer(said))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            with (
                socket.socket(socket.AF_UNIX) as last,
                local_sockets.address(str(place)) as short,
            ):
                last.connect(short)
                last.sendall(b"end")
            thread.join()


def test_gits_daemon_is_asked_by_its_socket(repo, git, unsampled, compared):
    git("config", "core.fsmonitor", "true")
    names, asked = [b"/"], []

    def answer(said: bytes) -> bytes:
        asked.append(said)
        body = b"builtin:1:2\0" + b"".join(name + b"\0" for name in names)
        return b"%04x" % (len(body) + 4) + body + b"0000"

    with server(repo / ".git/fsmonitor--daemon.ipc", answer):
        capture(repo, RULES)
        before = save(repo)
        compared.clear()
        edited(repo, "README.md", "src/pkg/main.py")
        names[:] = [b"README.md"]
        now = save(repo)
    assert asked[-1] == b"000fbuiltin:1:20000"
    assert now[b"README.md"] != before[b"README.md"]
    assert now[b"src/pkg/main.py"] == before[b"src/pkg/main.py"]
    assert compared == []
    # Without the daemon everything is compared.
    assert save(repo)[b"src/pkg/main.py"] != before[b"src/pkg/main.py"]


def test_a_socket_far_down_is_reached(tmp_path):
    place = tmp_path.joinpath(*["directory"] * 12, "socket")
    place.parent.mkdir(parents=True)
    # The answer is the question.
    with server(place, lambda said: said):
        said = local_sockets.from_daemon(str(place), "token", time.monotonic() + 60)
    assert said == b"token"


def test_watchman_is_asked_where_a_hook_has_its_name(
    repo, git, hook, unsampled, compared, tmp_path, monkeypatch
):
    git("config", "--global", "--unset", "core.fsmonitor")
    git("config", "core.fsmonitor", ".git/hooks/query-watchman")
    program = tmp_path / "hook" / "watchman"
    place = tmp_path / "sock"
    program.write_text(f"#!/bin/sh\necho '{json.dumps({'sockname': str(place)})}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    names = ["README.md"]
    fresh = False

    def answer(said: bytes) -> bytes:
        question = json.loads(said)
        assert question[1] == str(repo)
        found = {"clock": "c:1:2", "files": names, "is_fresh_instance": fresh}
        if question[0] == "clock":
            del found["files"], found["is_fresh_instance"]
        else:
            assert question[2]["since"] == "c:1:2"
        return json.dumps(found).encode() + b"\n"

    with server(place, answer):
        capture(repo, RULES)
        before = save(repo)
        compared.clear()
        edited(repo, "README.md", "src/pkg/main.py")
        now = save(repo)
        assert now[b"README.md"] != before[b"README.md"]
        assert now[b"src/pkg/main.py"] == before[b"src/pkg/main.py"]
        assert compared == []
        # It has lost track since the token.
        fresh = True
        assert save(repo)[b"src/pkg/main.py"] != before[b"src/pkg/main.py"]
