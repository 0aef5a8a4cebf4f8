"""Batches whose records are worked on by an executor's workers."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gitcp

FORK = multiprocessing.get_context("fork")


def pool(workers: int = 2) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=FORK)


def session(repo: Path, name: str = "pipe") -> gitcp.Session:
    return gitcp.open(repo).session(name)


def position(repo: Path, name: str = "pipe") -> Any:
    last = session(repo, name).last
    return last.position if last is not None else None


def square(number: int) -> int:
    return number * number


def effect(log: Path, number: int) -> int:
    """Reaches outside, and says so."""
    with log.open("a") as file:
        file.write(f"{number}\n")
    return number * number


def charge(of: gitcp.Session, log: Path, number: int) -> int:
    result: int = of.step("charge", effect, log, number)
    return result


def effects(log: Path) -> list[int]:
    return sorted(map(int, log.read_text().split())) if log.exists() else []


class Late(Executor):
    """Runs nothing before it is asked to, and then in the order that it is told."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], partial[Any]]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def run(self, which: int) -> None:
        future, call = self.waiting.pop(which)
        if future.set_running_or_notify_cancel():
            future.set_result(call())


def test_processes_work_and_the_position_is_saved(repo, tmp_path):
    log = tmp_path / "log"
    work = partial(charge, session(repo), log)
    with pool() as workers, session(repo).batch(range(7), executor=workers) as batch:
        found = sorted(batch.map(work, chunksize=2))
    assert found == [(number, number * number) for number in range(7)]
    assert position(repo) == {"offset": 7}
    assert effects(log) == list(range(7))
    # The steps are known by their records, whichever process ran them.
    scopes = {call.slot.scope for call in session(repo).steps()}
    assert scopes == {f"record {number}" for number in range(7)}
    # And in git, though a worker was not told that the batch is over.
    assert not list((repo / ".git" / "gitcp" / "redo").iterdir())


def test_what_is_done_is_saved_in_intervals_and_left_out_later(repo):
    late = Late()
    with session(repo).batch(range(8), executor=late) as batch:
        results = batch.map(square, chunksize=2, ahead=3)
        # The third chunk comes first, and one record of it is counted.
        late_first(late, results, 2)
        assert next(results) == (5, 25)
        results.close()
    assert position(repo) == {"offset": 0, "done": [[4, 5]]}
    # With other workers, chunks and order; then without any.
    with (
        ThreadPoolExecutor(1) as workers,
        session(repo).batch(range(8), executor=workers) as batch,
    ):
        results = batch.map(square, chunksize=3)
        assert list(itertools.islice(results, 3)) == [(0, 0), (1, 1), (2, 4)]
        results.close()
    assert position(repo) == {"offset": 2, "done": [[4, 5]]}
    with session(repo).batch(range(8)) as batch:
        assert list(batch) == [2, 3, 5, 6, 7]


def late_first(late: Late, results: Any, which: int) -> None:
    """Takes the first result, which is of the chunk `which`."""
    submit = late.submit

    def last(fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = submit(fn, *args, **kwargs)
        if len(late.waiting) > which:
            late.run(which)
        return future

    late.submit = last  # type: ignore[method-assign]
    assert next(results) == (4, 16)


def test_records_without_an_end_are_read_as_they_are_needed(repo):
    read = []

    def records():
        for number in itertools.count():
            read.append(number)
            yield number

    with (
        ThreadPoolExecutor(2) as workers,
        session(repo).batch(records(), executor=workers) as batch,
    ):
        results = batch.map(square, chunksize=5, ahead=4)
        for _ in range(100):
            next(results)
        # Those that are out, that which is ready to go out, and the one behind it.
        assert len(read) <= 100 + 6 * 5 + 1
        results.close()


def test_an_error_ends_the_batch_and_the_record_is_tried_again(repo):
    def fails(number: int) -> int:
        if number == 3 and failing:
            raise KeyError("three")
        return number

    failing = True
    late = Late()
    with (
        pytest.raises(KeyError, match="three") as caught,
        ThreadPoolExecutor(1) as workers,
        session(repo).batch(range(8), executor=workers) as batch,
    ):
        list(batch.map(fails, chunksize=4))
    assert "record 3" in caught.value.__notes__[0]
    assert not late.waiting
    assert position(repo) == {"offset": 3}
    failing = False
    with session(repo).batch(range(8)) as batch:
        assert [record for record, _ in batch.map(fails)] == [3, 4, 5, 6, 7]


def dies_once(flag: Path, number: int) -> int:
    if number == 4 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def always_dies(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_a_broken_pool_is_made_again_if_the_batch_makes_it(repo, tmp_path):
    flag = tmp_path / "flag"
    with session(repo).batch(range(9), executor=pool) as batch:
        found = sorted(batch.map(partial(dies_once, flag), chunksize=2))
    assert found == [(number, number) for number in range(9)]
    flag.unlink()
    with (
        pytest.raises(BrokenExecutor) as caught,
        pool() as workers,
        session(repo, "other").batch(range(9), executor=workers) as batch,
    ):
        list(batch.map(partial(dies_once, flag), chunksize=2))
    assert "run it again" in caught.value.__notes__[-1]
    with session(repo, "other").batch(range(9), executor=pool) as batch:
        dict(batch.map(partial(dies_once, flag), chunksize=2))
    assert position(repo, "other") == {"offset": 9}


def test_a_record_that_kills_each_worker_ends_the_batch(repo):
    made = []

    def make() -> ProcessPoolExecutor:
        made.append(1)
        return pool(1)

    with (
        pytest.raises(BrokenExecutor),
        session(repo).batch(range(2), executor=make) as batch,
    ):
        list(batch.map(always_dies))
    assert len(made) == 4


def interrupted(flag: Path, log: Path, number: int) -> int:
    """Dies between its effect and what would be recorded of it."""
    effect(log, number)
    if number == 2 and not flag.exists():
        flag.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def once(of: gitcp.Session, flag: Path, log: Path, number: int) -> int:
    result: int = of.step("charge", interrupted, flag, log, number)
    return result


def test_a_record_whose_effect_is_not_known_is_left_out_and_not_repeated(
    repo, tmp_path
):
    flag, log = tmp_path / "flag", tmp_path / "log"
    work = partial(once, session(repo), flag, log)
    with (
        pytest.raises(gitcp.StepUnknownError, match=r"1 record left out \(2\)"),
        session(repo).batch(range(5), executor=partial(pool, 1)) as batch,
    ):
        list(batch.map(work))
    assert list(batch.unknown) == [2]
    assert position(repo) == {"offset": 2, "done": [[3, 5]]}
    assert effects(log) == [0, 1, 2, 3, 4]
    # It stays like that, until an answer comes: here from a function, in this process.
    asked = []
    again = session(repo)

    def ask(call: gitcp.Call) -> str:
        asked.append((call.slot.scope, os.getpid()))
        return "done"

    again.on_unknown(ask)
    with again.batch(range(5), executor=partial(pool, 1)) as batch:
        results: list[Any] = list(batch.map(work))
    assert results == [(2, None)]
    assert asked == [("record 2", os.getpid())]
    assert position(repo) == {"offset": 5}
    assert effects(log) == [0, 1, 2, 3, 4]


def run_and_die(repo: Path, log: Path, count: int) -> None:
    """Runs a batch in a process of its own that is killed after `count` records."""
    child = os.fork()
    if not child:
        try:
            work = partial(charge, session(repo), log)
            with session(repo).batch(range(12), every=3, executor=pool) as batch:
                for taken, _ in enumerate(batch.map(work, chunksize=2), 1):
                    if taken == count:
                        os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def test_a_killed_parent_is_resumed_with_another_number_of_workers(repo, tmp_path):
    log = tmp_path / "log"
    run_and_die(repo, log, 5)
    saved = position(repo)
    assert len(list(session(repo).batch(range(12)))) == 9
    work = partial(charge, session(repo), log)
    with session(repo).batch(range(12), executor=partial(pool, 3)) as batch:
        assert batch.offset == saved["offset"]
        found = dict(batch.map(work))
    assert len(found) == 9
    assert all(found[number] == number * number for number in found)
    # Some ran in the first process and are not in its position: no effect is repeated.
    assert effects(log) == list(range(12))


def test_steps_on_files_are_refused_in_workers(repo):
    of = session(repo)

    def write(number: int) -> None:
        of.step("write", square, number, effect="local")

    with (
        pytest.raises(gitcp.UsageError, match="changes files"),
        ThreadPoolExecutor(1) as workers,
        of.batch(range(2), executor=workers) as batch,
    ):
        list(batch.map(write))
    # In the process of the batch there is nothing beside it.
    with of.batch(range(2)) as batch:
        assert [number for number, _ in batch.map(write)] == [0, 1]


def test_steps_of_one_name_are_counted_within_their_record(repo):
    of = session(repo)

    def twice(number: int) -> int:
        first: int = of.step("add", lambda: number, effect="none", scope="night")
        second: int = of.step("add", lambda: 1, effect="none", scope="night")
        return first + second

    with of.batch(range(3)) as batch:
        assert [result for _, result in batch.map(twice)] == [1, 2, 3]
    slots = {(call.slot.scope, call.slot.call) for call in of.steps()}
    assert slots == {
        (f"night/record {number}", call) for number in range(3) for call in "12"
    }


def unsendable(number: int) -> Any:
    return threading.Lock()


class AwkwardError(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


def awkward(number: int) -> None:
    raise AwkwardError("has a lock")


def test_what_cannot_be_sent_back_is_an_error_and_not_done_again(repo):
    with pool(1) as workers:
        with (
            pytest.raises(Exception, match="cannot pickle") as caught,
            session(repo).batch(range(2), executor=workers) as batch,
        ):
            list(batch.map(unsendable))
        assert any("cannot be sent" in note for note in caught.value.__notes__)
        with (
            pytest.raises(RuntimeError, match="AwkwardError: has a lock"),
            session(repo).batch(range(2), executor=workers) as batch,
        ):
            list(batch.map(awkward))


def test_a_session_that_is_sent_is_opened_again_if_it_is_the_same(
    repo, tmp_path, monkeypatch
):
    first = session(repo).save(note="one")
    sent = pickle.dumps(session(repo))
    branch = pickle.loads(pickle.dumps(session(repo).fork(first, "other")))
    assert (type(branch), branch.branch) == (gitcp.Branch, "other")
    assert pickle.loads(sent).last.id == first.id
    assert pickle.loads(sent) is pickle.loads(sent)
    monkeypatch.setattr("gitcp.steps.reopened._opened", {})
    monkeypatch.setattr("gitcp.steps.reopened._machine", lambda: "another")
    with pytest.raises(gitcp.UsageError, match=r"cannot reach.*another machine"):
        pickle.loads(sent).step("charge", square, 1)
    monkeypatch.undo()
    monkeypatch.setattr("gitcp.steps.reopened._opened", {})
    (repo / ".git").rename(tmp_path / "away")
    with pytest.raises(gitcp.UsageError, match="cannot reach"):
        pickle.loads(sent).step("charge", square, 1)


@pytest.mark.parametrize("given", [{"chunksize": 0}, {"ahead": 0}])
def test_numbers_that_make_no_sense_are_refused(repo, given):
    with pytest.raises(gitcp.UsageError):
        session(repo).batch(range(3)).map(square, **given)


def test_a_loop_over_a_batch_with_an_executor_is_refused(repo):
    with pytest.raises(gitcp.UsageError, match="elsewhere"):
        list(session(repo).batch(range(3), executor=Late()))


def test_functions_that_would_do_nothing_are_refused(repo):
    async def waits(number: int) -> int:
        return number

    def yields(number: int) -> Any:
        yield number

    for function in (waits, yields):
        with pytest.raises(gitcp.UsageError):
            session(repo).batch(range(3)).map(function)
