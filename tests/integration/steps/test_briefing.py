"""The briefing of a worker says the same as the whole ledger."""

from __future__ import annotations

import pickle
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.checkpoints.done_records import DoneRecords
from gitcp.format.ledger import Record
from gitcp.ledger import page_cache
from gitcp.ledger.log import Ledger
from gitcp.project.workspace import Current
from gitcp.steps import rewind
from gitcp.steps.batch_record import BatchRecord
from gitcp.steps.briefer import Briefer
from gitcp.steps.briefing import BriefedSteps
from gitcp.steps.history import History

MAIN = Current("work", "main")


def session(repo: Path) -> gitcp.Session:
    """The session as another process has it."""
    return gitcp.open(repo).session("work")


def fails(number: int) -> None:
    raise ValueError(number)


def stops(number: int) -> None:
    raise TimeoutError(number)


def answers(number: int) -> int:
    return number


def run(of: gitcp.Session, records: list[int], chance: random.Random) -> None:
    """Runs one step in each record: it answers, fails, or leaves its outcome open."""
    for number in records:
        function: Any = chance.choice([answers, answers, fails, stops])
        with (
            BatchRecord(number, beside=True),
            suppress(ValueError, TimeoutError, gitcp.StepUnknownError),
        ):
            of.step("one", function, number, changed="replay")


def briefer_of(repo: Path, done: int = 0) -> Briefer:
    found = DoneRecords([(0, done)] if done else [])
    return Briefer(session(repo).workspace, MAIN, found, clock=lambda: 0.0)


def history(repo: Path) -> History:
    return History(session(repo).workspace, MAIN)


def check(repo: Path, briefing: bytes | None, numbers: range) -> History:
    """A briefed process knows what a process knows that reads the whole ledger."""
    assert briefing is not None
    steps = BriefedSteps(pickle.loads(briefing))
    mine, whole = history(repo), history(repo)
    met = 0
    for slot, call in whole.live().items():
        number = int(slot.scope.removeprefix("record "))
        if number in numbers:
            met += 1
            with BatchRecord(number, steps, beside=True):
                assert mine.call(slot) == call
                given = call.intent.input
                assert mine.times(slot, given) == whole.times(slot, given) > 0
    assert met
    return mine


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_cache, "_PAGES", 7)


@pytest.mark.parametrize("seed", range(4))
def test_a_worker_knows_its_briefing_and_what_came_since(repo, seed):
    chance = random.Random(seed)
    run(session(repo), list(range(20)), chance)
    run(session(repo), list(range(20)), chance)
    briefing = briefer_of(repo, done=5).brief(5, 14)
    # Meanwhile others go on, with the same records and with new ones.
    run(session(repo), [3, 7, 9, 13, 25], chance)
    mine = check(repo, briefing, range(5, 15))
    assert not mine.ledger._known.whole
    assert len(mine.ledger._known.pages) < len(session(repo)._engine.ledger.pages())
    # A step without a briefing needs the whole.
    slot = next(slot for slot in mine.live() if slot.scope == "record 25")
    assert mine.call(slot) is not None
    assert mine.ledger._known.whole


def test_the_program_reads_only_pages_of_records_that_are_left(repo, monkeypatch):
    run(session(repo), list(range(40)), random.Random(1))
    taken: list[str] = []
    take = Briefer._take

    def noting(briefer: Briefer, record: Record) -> bool:
        taken.append(record.id)
        return take(briefer, record)

    monkeypatch.setattr(Briefer, "_take", noting)
    check(repo, briefer_of(repo, done=30).brief(30, 39), range(30, 40))
    assert len(set(taken)) < 20


def test_a_briefed_worker_appends_where_the_others_are(repo):
    run(session(repo), list(range(6)), random.Random(2))
    briefing = briefer_of(repo).brief(6, 7)
    assert briefing is not None
    steps = BriefedSteps(pickle.loads(briefing))
    worker = session(repo)
    with BatchRecord(6, steps, beside=True):
        assert worker.step("one", answers, 6) == 6
    assert not worker._engine.ledger._known.whole
    run(session(repo), [7], random.Random(3))
    with BatchRecord(6, steps, beside=True):
        assert worker.step("one", fails, 6) == 6
    numbers = [one.n for one in session(repo)._engine.ledger.records()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_large_results_are_read_by_a_briefed_worker(repo):
    large = "x" * 20_000
    with BatchRecord(1, beside=True):
        session(repo).step("one", str, large)
    briefing = briefer_of(repo).brief(1, 1)
    assert briefing is not None
    with BatchRecord(1, BriefedSteps(pickle.loads(briefing)), beside=True):
        assert session(repo).step("one", fails, large) == large


def test_there_is_no_briefing_after_a_branch_went_back(repo):
    of = session(repo)
    first = of.save()
    run(of, list(range(4)), random.Random(1))
    assert briefer_of(repo).brief(0, 3) is not None
    assert rewind.went_back(of.workspace, MAIN, first, "a restore") is not None
    assert briefer_of(repo).brief(0, 3) is None


def test_there_is_no_briefing_on_a_fork_before_it_has_a_record(repo):
    of = session(repo)
    run(of, [0, 1], random.Random(1))
    fork = of.fork(of.save(), "other")
    current = Current("work", fork.branch)
    one = Briefer(of.workspace, current, DoneRecords(), clock=lambda: 0.0)
    assert one.brief(0, 1) is None


def test_a_briefing_on_another_ledger_is_not_believed(repo):
    run(session(repo), list(range(4)), random.Random(1))
    briefing = briefer_of(repo).brief(0, 3)
    assert briefing is not None
    elsewhere = pickle.loads(briefing)._replace(page="0" * 40)
    assert not BriefedSteps(elsewhere).catch_up(ledger_of(repo))
    check(repo, pickle.dumps(elsewhere), range(4))


def ledger_of(repo: Path) -> Ledger:
    return history(repo).ledger
