"""Processes forked while other threads are at work: in steps, saves, loading, reading."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

import gitcp
from gitcp import at_fork, durable
from gitcp.errors import BusyError, UsageError
from gitcp.git import process, repository
from gitcp.git.discover import discover
from gitcp.git.libgit import LibgitObjects
from gitcp.ledger.call import StepSlot
from gitcp.project.workspace import open_workspace
from gitcp.steps import lease
from tests.support.forks import lasting_child
from tests.support.gitrepo import gitcp_environment
from tests.support.inprocess import ok


@pytest.fixture(autouse=True)
def forking_is_what_is_tested() -> Iterator[None]:
    """Python warns of threads that a fork does not copy."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def child(work: Callable[[], object]) -> int:
    """Forks a process for some work; the kernel ends it where it hangs."""
    number = os.fork()
    if number == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return number


def ended_well(number: int) -> bool:
    return os.waitpid(number, 0)[1] == 0


@contextmanager
def beside(work: Callable[[], object]) -> Iterator[None]:
    """Another thread, which must not fail."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as exc:  # noqa: BLE001  for the thread that asks
            failed.append(exc)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failed, failed


def in_the_child(session: gitcp.Session, number: int) -> None:
    assert session.step("child", lambda: number, key=f"child-{number}") == number
    session.flush()


def test_many_forks_beside_steps(repo):
    session = gitcp.open(repo).session("work")
    session.step("first", lambda: 0)
    stop = threading.Event()
    done: list[int] = []
    called: list[int] = []

    def steps() -> None:
        while not stop.is_set():
            number = len(done)
            effect: Literal["local"] | None = "local" if number % 4 == 0 else None
            (repo / "file").write_text(str(number))
            session.step(
                "parent", called.append, number, key=str(number), effect=effect
            )
            done.append(number)

    context = multiprocessing.get_context("fork")
    with beside(steps):
        try:
            for number in range(12):
                if number % 2:
                    assert ended_well(child(partial(in_the_child, session, number)))
                else:
                    one = context.Process(target=in_the_child, args=(session, number))
                    one.start()
                    one.join(60)
                    assert one.exitcode == 0
        finally:
            stop.set()
    session.flush()
    found = gitcp.open(repo).session("work").steps()
    assert {one.state for one in found} == {"done"}
    assert called == done
    ours = [one for one in found if one.intent.step == "parent"]
    assert len(ours) == len(done)
    assert len([one for one in found if one.intent.step == "child"]) == 12
    assert all(one.attempts == 1 for one in found)
    assert ok(repo, "verify")["ok"]


def test_what_a_step_forked_does_not_record_its_result(repo):
    session = gitcp.open(repo).session("work")
    parent = os.getpid()

    def forks() -> str:
        number = os.fork()
        if number == 0:
            return "child"
        os.waitpid(number, 0)
        # It has come to its end, and the step is held by this process all the same.
        return "parent"

    status, result = 1, ""
    try:
        result = session.step("forks", forks)
    except UsageError:
        status = 0 if os.getpid() != parent else 1
    if os.getpid() != parent:
        os._exit(status)
    assert result == "parent"
    assert [one.attempts for one in session.steps()] == [1]


def test_a_forked_step_that_raises_is_not_run_again_by_the_child(repo):
    session = gitcp.open(repo).session("work")
    parent = os.getpid()

    def forks() -> str:
        number = os.fork()
        if number == 0:
            raise ValueError("in the child")
        assert ended_well(number)
        return "parent"

    try:
        session.step("forks", forks, retry=3)
    except ValueError:
        os._exit(os.getpid() == parent)
    assert [(one.state, one.attempts) for one in session.steps()] == [("done", 1)]


def test_a_child_does_not_take_the_name_of_its_parents_lease(repo):
    workspace = open_workspace(repo)
    slot = StepSlot("", "step", "1")
    place = (workspace.repository, "work", "main", slot)
    with lease.held(*place, timeout=0):
        number = os.fork()
        if not number:
            # It leaves the block as its parent does.
            pass
        else:
            assert ended_well(number)
            assert lease.is_running(*place)
            with pytest.raises(BusyError), lease.held(*place, timeout=0):
                pytest.fail("two hold it")
    if not number:
        os._exit(0)


_KILLED = """
    import os, sys, threading, time, gitcp
    from gitcp.git.transaction import transaction
    session = gitcp.open(".").session("work")
    inside = threading.Event()
    def hang():
        with session.workspace.locked(), transaction(session.workspace.repository):
            inside.set()
            time.sleep(600)
    threading.Thread(target=session.step, args=("hangs", hang), daemon=True).start()
    inside.wait()
    child = os.fork()
    if child == 0:
        # A worker that has nothing to do with the step, and outlives its parent.
        os.setsid()
        time.sleep(600)
        os._exit(0)
    print(child, flush=True)
    time.sleep(600)
"""


def test_a_child_that_outlives_its_parent_keeps_none_of_its_locks(repo):
    (repo / "file").write_text("file")
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(_KILLED)],
        cwd=repo,
        env=gitcp_environment(),
        stdout=subprocess.PIPE,
    )
    assert parent.stdout is not None
    worker = int(parent.stdout.readline())
    try:
        parent.kill()
        parent.wait()
        session = gitcp.open(repo).session("work")
        session.workspace.settings = session.workspace.settings._replace(lock_timeout=0)
        session.workspace.refresh = lambda: None  # type: ignore[method-assign]
        assert session.step("hangs", lambda: 1, unknown="retry") == 1
        session.save()
        session.workspace.ledgers.drainer.close()
        assert not list((repo / ".git" / "gitcp" / "tmp").iterdir())
    finally:
        os.kill(worker, signal.SIGKILL)
        parent.stdout.close()


def test_a_child_keeps_no_pipe_open_that_git_reads(repo):
    started = process.start(["cat-file", "--batch"], cwd=repo, stdin=process.PIPE)
    with lasting_child():
        # git ends when nothing can write to it any more.
        out, _ = started.communicate(timeout=30)
    assert started.returncode == 0
    assert out == b""


def test_a_fork_waits_for_a_process_that_is_being_started(repo, monkeypatch):
    inside, go_on = threading.Event(), threading.Event()
    real = subprocess.Popen

    def slow(*args: object, **given: object) -> object:
        inside.set()
        go_on.wait(30)
        return real(*args, **given)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", slow)
    order: list[str] = []

    def started() -> None:
        order.append("started")
        go_on.set()

    def start() -> None:
        process.run(["version"], cwd=repo)

    with beside(start):
        inside.wait(30)
        monkeypatch.setattr(subprocess, "Popen", real)
        threading.Timer(0.2, started).start()
        number = child(lambda: None)
        order.append("forked")
    assert ended_well(number)
    assert order == ["started", "forked"]


@pytest.mark.sha1
def test_what_another_thread_computes_can_be_computed_in_the_child(repo, monkeypatch):
    opened = discover(repo)
    inside, go_on = threading.Event(), threading.Event()

    class Slow(LibgitObjects):
        def __init__(self, directory: Path) -> None:
            super().__init__(directory)
            if threading.current_thread() is not threading.main_thread():
                inside.set()
                go_on.wait(30)

    monkeypatch.setattr(repository, "LibgitObjects", Slow)
    with beside(lambda: opened.objects):
        assert inside.wait(30)
        assert ended_well(child(lambda: opened.objects))
        mine = opened.objects
        go_on.set()
    assert opened.objects is mine


def test_a_module_that_another_thread_loads_can_be_loaded_in_the_child(
    tmp_path, monkeypatch
):
    (tmp_path / "slowly_loaded.py").write_text(
        "from tests.fault import test_fork_beside as here\n"
        "here.LOADING[0].set(); here.LOADING[1].wait(30)\n"
        "whole = True\n"
    )
    monkeypatch.setattr(gitcp, "__path__", [*gitcp.__path__, str(tmp_path)])
    monkeypatch.setitem(
        sys.modules, "tests.fault.test_fork_beside", sys.modules[__name__]
    )

    def load() -> None:
        assert importlib.import_module("gitcp.slowly_loaded").whole

    try:
        with beside(load):
            LOADING[0].wait(30)
            threading.Timer(0.2, LOADING[1].set).start()
            assert ended_well(child(load))
    finally:
        sys.modules.pop("gitcp.slowly_loaded", None)


LOADING = threading.Event(), threading.Event()


def test_a_number_that_is_used_again_is_not_taken_from_the_child(tmp_path):
    held = durable.try_lock(tmp_path / "lock")
    assert held is not None
    durable.unlock(held)
    file = os.open(tmp_path / "own", os.O_RDWR | os.O_CREAT)
    assert file == held

    def write() -> None:
        os.write(file, b"child")

    assert ended_well(child(write))
    assert (tmp_path / "own").read_bytes() == b"child"
    os.close(file)


def test_nothing_is_withheld_in_the_end(repo):
    session = gitcp.open(repo).session("work")
    session.step("one", lambda: 0, effect="local")
    session.save(append=[1])
    session.flush()
    session.workspace.ledgers.drainer.close()
    session.workspace.ledgers.of("work")._log.close()
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in at_fork._withheld]
    assert not [path for path in held if str(repo) in path]
