"""Batches over records: saved by the clock, resumed, and answers matched by their ids."""

from __future__ import annotations

import random
from typing import Any

import pytest

import gitcp
from gitcp.checkpoints.batch import Batch
from tests.support.clones import clone, make_hub, results


class Clock:
    """A time that passes only where a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def timed(
    session: gitcp.Session, clock: Clock, records: range, **more: Any
) -> Batch[int]:
    given: dict[str, Any] = {"every": None, "seconds": 30, "note": None, **more}
    return Batch(session, records, clock=clock, **given)


def saved(session: gitcp.Session) -> list[int]:
    """The offsets that were saved, oldest first."""
    return [one.position["offset"] for one in session.checkpoints()][::-1]


def test_it_saves_when_the_time_is_over_and_not_before(repo):
    session, clock = gitcp.open(repo).session("pipe"), Clock()
    with timed(session, clock, range(10)) as batch:
        for record in batch:
            # Twelve seconds each: over after the third.
            clock.now += 12
            if record == 2:
                assert session.last is None
            if record == 3:
                assert saved(session) == [3]
    assert saved(session) == [3, 6, 9, 10]


def test_records_that_are_done_only_elsewhere_are_told(tmp_path):
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    gitcp.open(ann).session("pipe").save(position={"offset": 3})
    results(ann, "push")
    results(bob, "pull")
    session = gitcp.open(bob).session("pipe")
    with (
        pytest.warns(
            gitcp.GitcpWarning, match=r"3 records count .* elsewhere \(origin\)"
        ),
        session.batch(range(4)) as batch,
    ):
        assert list(batch) == [3]
    # The rest was done here.
    with session.batch(range(4)) as batch:
        assert list(batch) == []


def test_an_explicit_save_restarts_the_interval(repo):
    session, clock = gitcp.open(repo).session("pipe"), Clock()
    with timed(session, clock, range(8)) as batch:
        for record in batch:
            if record == 2:
                clock.now += 20
                batch.save()
            else:
                clock.now += 7
    # Saved by hand with two done; five more take longer than the time, four do not.
    assert saved(session) == [2, 8]


@pytest.mark.parametrize(
    ("pace", "expected"), [(1, [4, 8, 10]), (20, [2, 4, 6, 8, 10])]
)
def test_whichever_comes_first(repo, pace, expected):
    session, clock = gitcp.open(repo).session("pipe"), Clock()
    with timed(session, clock, range(10), every=4) as batch:
        for _ in batch:
            clock.now += pace
    assert saved(session) == expected


def test_it_resumes_after_what_the_clock_saved(repo):
    session, clock = gitcp.open(repo).session("pipe"), Clock()
    batch = timed(session, clock, range(10))
    seen = []
    for record in batch:
        clock.now += 12
        seen.append(record)
        if record == 4:
            # Killed: nothing is saved at the end.
            break
    assert saved(session) == [3]
    with timed(session, clock, range(10)) as again:
        assert again.offset == 3
        seen += list(again)
    # Only what came after the last save is done again.
    assert seen == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("given", [{"every": 0}, {"seconds": 0}, {"seconds": -1}])
def test_a_pace_that_makes_no_sense_is_refused(repo, given):
    with pytest.raises(gitcp.UsageError):
        gitcp.open(repo).session("pipe").batch(range(3), **given)


@pytest.mark.parametrize("count", [0, 2])
def test_other_records_do_not_pass_for_done(repo, count):
    """A job that starts again each night, without a session for each run."""
    with gitcp.open(repo).session("pipe").batch(range(3), every=1) as batch:
        assert list(batch) == [0, 1, 2]
    with (
        pytest.raises(gitcp.UsageError, match="3 records are done in pipe/main"),
        gitcp.open(repo).session("pipe").batch(range(count), every=1) as batch,
    ):
        assert list(batch) == []
    # The same and more of them go on.
    with gitcp.open(repo).session("pipe").batch(range(5), every=1) as batch:
        assert list(batch) == [3, 4]


def test_the_end_of_a_batch_puts_its_steps_into_git(repo):
    session = gitcp.open(repo).session("pipe")
    with session.batch(range(3), every=1) as batch:
        for record in batch:
            session.step("load", lambda: 1, effect="none", key=str(record))
    assert not list((repo / ".git" / "gitcp" / "redo").iterdir())


def test_steps_on_files_in_between_do_not_forget_the_position(repo):
    """Their checkpoints carry it on."""
    session = gitcp.open(repo).session("pipe")

    def write(record: int) -> None:
        (repo / "out.txt").write_text(f"{record}\n")

    with pytest.raises(RuntimeError), session.batch(range(6), every=2) as batch:
        for record in batch:
            session.step("write", write, record, effect="local", key=str(record))
            if record == 4:
                raise RuntimeError
    assert gitcp.open(repo).session("pipe").batch(range(6)).offset == 4


def test_answers_that_come_in_any_order_are_matched_by_their_ids(repo):
    """A service answers a batch as a file of lines, shuffled, and once one is missing."""
    chance = random.Random(7)
    calls: list[int] = []

    def ask(first: int, last: int, idempotency_key: str) -> dict[str, int]:
        calls.append(first)
        lines = [(number, number * number) for number in range(first, last)]
        chance.shuffle(lines)
        if len(calls) == 2:
            lines.pop()
        found = dict(lines)
        missing = set(range(first, last)) - found.keys()
        if missing:
            raise ValueError(f"no answer for {sorted(missing)}")
        return {str(number): found[number] for number in range(first, last)}

    def run() -> dict[str, int]:
        session = gitcp.open(repo).session("pipe")
        squares: dict[str, int] = {}
        with session.batch(range(0, 30, 10), every=1) as batch:
            for first in batch:
                squares |= session.step("ask", ask, first, first + 10, key=str(first))
        return squares

    with pytest.raises(ValueError, match="no answer for"):
        run()
    # The one that was answered in part did not count, and is asked again.
    found = run()
    assert found == {str(number): number * number for number in range(10, 30)}
    assert calls == [0, 10, 10, 20]
    done = gitcp.open(repo).session("pipe").step("ask", ask, 0, 10, key="0")
    assert done == {str(number): number * number for number in range(10)}
    assert list(done) == [str(number) for number in range(10)]
    assert calls == [0, 10, 10, 20]


@pytest.mark.parametrize(
    "position",
    [7, "seven", {"row": 7}, {"offset": "7"}, {"offset": True}, {"offset": -1}],
)
def test_a_position_that_is_not_a_batchs_is_refused(repo, position):
    session = gitcp.open(repo).session("pipe")
    session.save(position=position)
    with pytest.raises(gitcp.UsageError, match="is not a batch's"):
        session.batch(range(3), every=1)
    session.save(position={"offset": 2, "more": 1})
    with session.batch(range(3), every=1) as batch:
        assert list(batch) == [2]
