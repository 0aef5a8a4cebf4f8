"""Durable steps from Python: run once, remembered, asked about, taken back."""

from __future__ import annotations

import asyncio
import shlex
import threading
import time
from collections import UserDict
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import gitcp
from gitcp.format.ledger import INTENT, RESULT, Record
from gitcp.ledger.group_commit import GroupCommit
from gitcp.ledger.log import Ledger
from gitcp.project.workspace import open_workspace
from gitcp.wal.log_file import LogFile
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, invoke, ok


class World:
    """What lies outside of the project; counts what was done to it."""

    def __init__(self) -> None:
        self.did: list[Any] = []

    def act(self, *arguments: Any) -> int:
        self.did.append(arguments)
        return len(self.did)

    def undo(self, result: int) -> None:
        self.did.append(("undo", result))


@pytest.fixture
def world() -> World:
    return World()


def session(repo: Path, branch: str = "main") -> gitcp.Session:
    """A session as a new run of the program opens it."""
    return gitcp.open(repo).session("work", branch)


def interrupted(repo: Path, name: str, **options: Any) -> None:
    """Leaves a step as a kill between its effect and its result does."""
    run = session(repo)
    declared = run.step(name, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(run._engine), "finish", lambda *_: None)
        patch.setattr(type(run._engine), "failed", lambda *_: None)
        declared(lambda *_: None)()


# --- once -------------------------------------------------------------------------


def test_a_finished_step_is_not_run_again(repo, world):
    assert session(repo).step("pay", world.act, 5) == 1
    assert session(repo).step("pay", world.act, 5) == 1
    assert world.did == [(5,)]


def test_a_step_locks_the_ledger_once_before_each_of_its_records(repo, monkeypatch):
    session = gitcp.open(repo).session("s")
    session.step("first", lambda: 1)
    # All workers of a batch wait for this lock.
    locked = []
    acquire = LogFile.acquire

    def counted(log: LogFile, **given: Any) -> None:
        locked.append(log)
        acquire(log, **given)

    monkeypatch.setattr(LogFile, "acquire", counted)
    session.step("second", lambda: 2, key="k")
    # To look, for the intent, and for the result.
    assert len(locked) == 3


def test_calls_of_one_name_are_told_apart_by_their_number_or_key(repo, world):
    run = session(repo)
    assert [run.step("pay", world.act) for _ in range(3)] == [1, 2, 3]
    assert run.step("pay", world.act, key="bill-7") == 4
    again = session(repo)
    assert again.step("pay", world.act, key="bill-7") == 4
    assert [again.step("pay", world.act) for _ in range(4)] == [1, 2, 3, 5]


def test_another_scope_is_another_run(repo, world):
    for scope, expected in (("monday", 1), ("tuesday", 2), ("monday", 1)):
        assert session(repo).step("pay", world.act, scope=scope) == expected


def test_the_intent_is_durable_before_the_call_and_the_result_after_it(repo):
    seen: list[list[str]] = []

    def look() -> None:
        seen.append(
            [one.kind for one in open_workspace(repo).ledgers.of("work").records()]
        )

    run = session(repo)
    run.step("a", look)
    look()
    assert seen == [[INTENT], [INTENT, RESULT]]


def test_a_result_is_the_same_at_once_and_later(repo):
    value = {"a": (1, 2), "b": None, "big": 2**80, "odd": "\ud800\u2028"}
    first = session(repo).step("a", lambda: value)
    assert first == {"a": [1, 2], "b": None, "big": 2**80, "odd": "\ud800\u2028"}
    assert session(repo).step("a", lambda: value) == first


def test_a_large_result_lies_beside_the_records(repo):
    text = "x" * 100_000
    session(repo).step("a", lambda: text)
    assert session(repo).step("a", lambda: "other") == text
    assert len(git(repo, "show", "-s", "--format=%B", "refs/gitcp/fx/work")) < 2000
    assert git_line(repo, "show", "refs/gitcp/fx/work:2.json") == f'"{text}"'


def test_a_result_that_is_not_json_leaves_an_outside_step_done(repo, world):
    def act() -> Any:
        world.act()
        return {1, 2}

    with pytest.raises(gitcp.UsageError, match="is a set"):
        session(repo).step("pay", act)
    with pytest.raises(gitcp.UsageError, match="is done, but"):
        session(repo).step("pay", act)
    assert len(world.did) == 1


class Sets:
    name = "sets"

    def dump(self, value: Any) -> Any:
        return sorted(value)

    def load(self, value: Any) -> Any:
        return set(value)


def test_a_codec_makes_results_json_and_back(repo):
    assert session(repo).step("a", lambda: {2, 1}, codec=Sets()) == {1, 2}
    assert session(repo).step("a", lambda: {9}, codec=Sets()) == {1, 2}
    with pytest.raises(gitcp.UsageError, match="sets"):
        session(repo).step("a", lambda: {9})


def test_the_key_reaches_the_function_and_stays_the_same(repo):
    keys: list[str] = []

    def pay(amount: int, idempotency_key: str) -> None:
        keys.append(idempotency_key)
        assert gitcp.current_step() == ("work", "pay", idempotency_key, len(keys))
        if len(keys) < 3:
            raise ValueError(amount)

    run = session(repo)
    with pytest.raises(ValueError, match="5"):
        run.step("pay", pay, 5)
    session(repo).step("pay", pay, 5, retry=gitcp.Retry(2, wait=0))
    assert len(keys) == 3
    assert len(set(keys)) == 1
    with pytest.raises(gitcp.UsageError, match="no step"):
        gitcp.current_step()


def test_other_arguments_are_noticed(repo, world):
    session(repo).step("mail", world.act, "ann")
    with pytest.raises(gitcp.StepChangedError):
        session(repo).step("mail", world.act, "bob")
    assert session(repo).step("mail", world.act, "bob", changed="replay") == 1
    assert len(world.did) == 1
    session(repo).step("ask", world.act, "one", effect="none")
    assert (
        session(repo).step("ask", world.act, "two", effect="none", changed="again") == 3
    )


def test_a_step_that_goes_round_in_circles_is_stopped(repo, world):
    run = session(repo)
    for _ in range(3):
        run.step("poll", world.act, "x", loops=3)
    with pytest.raises(gitcp.StepLoopError):
        run.step("poll", world.act, "x", loops=3)
    run.step("poll", world.act, "y", loops=3)
    # In the next run as well: that is what a restart loop is.
    with pytest.raises(gitcp.StepLoopError):
        session(repo).step("poll", world.act, "x", loops=3, key="new")


def test_a_pipeline_is_no_circle(repo, world):
    """Its function knows by itself what to do, or is given what JSON does not hold."""
    run = session(repo)
    for number in range(5):
        run.step("load", world.act, key=str(number), loops=3)
        run.step("embed", world.act, object(), loops=3)
    assert len(world.did) == 10
    # The same thing again and again is one, whatever its name.
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            session(repo).step("save", _fails, key="1", loops=2)
    with pytest.raises(gitcp.StepLoopError):
        session(repo).step("save", _fails, key="1", loops=2)


def _fails() -> None:
    raise ValueError("no")


# --- retry, timeout ---------------------------------------------------------------


def test_a_retry_waits_longer_each_time(repo):
    run = session(repo)
    waits: list[float] = []
    run._engine.sleep = waits.append
    calls: list[int] = []

    def flaky() -> str:
        calls.append(1)
        if len(calls) < 4:
            raise OSError("not yet")
        return "well"

    assert run.step("a", flaky, effect="none", retry=gitcp.Retry(4, wait=1)) == "well"
    assert waits == [1, 2, 4]
    kinds = [one.kind for one in run._engine.ledger.records()]
    assert kinds == ["intent", "failed"] * 3 + ["intent", "result"]


def test_a_step_that_takes_too_long_is_given_up(repo):
    go = threading.Event()
    try:
        with pytest.raises(gitcp.StepTimeoutError):
            session(repo).step("a", go.wait, effect="none", timeout=0.05)
        # What it does outside is not known then.
        with pytest.raises(gitcp.StepTimeoutError):
            session(repo).step("b", go.wait, timeout=0.05)
        with pytest.raises(gitcp.StepUnknownError):
            session(repo).step("b", go.wait, timeout=0.05)
    finally:
        go.set()
    assert session(repo).step("a", lambda: 1, effect="none", timeout=60) == 1


def test_an_exception_says_that_nothing_happened_unless_the_line_went_dead(repo, world):
    def refuses() -> None:
        raise ValueError("no such account")

    def breaks() -> None:
        world.act()
        raise ConnectionResetError("while waiting for the answer")

    for _ in range(2):
        with pytest.raises(ValueError, match="account"):
            session(repo).step("a", refuses)
    with pytest.raises(ConnectionResetError):
        session(repo).step("b", breaks, retry=5)
    assert len(world.did) == 1
    with pytest.raises(gitcp.StepUnknownError):
        session(repo).step("b", breaks)
    assert len(world.did) == 1


# --- interrupted ------------------------------------------------------------------


@pytest.mark.parametrize("effect", ["none", "local"])
def test_an_interrupted_step_without_outside_effect_is_run_again(repo, world, effect):
    interrupted(repo, "a", effect=effect)
    assert [one.state for one in session(repo).steps()] == ["open"]
    assert session(repo).step("a", world.act, effect=effect) == 1


def test_a_step_outside_is_not_run_again_without_asking(repo, world):
    interrupted(repo, "pay")
    for _ in range(2):
        with pytest.raises(gitcp.StepUnknownError, match="interrupted"):
            session(repo).step("pay", world.act)
    assert world.did == []
    kinds = [one.kind for one in session(repo)._engine.ledger.records()]
    assert kinds == ["intent", "unknown"]


def test_a_step_with_the_policy_retry_keeps_its_key(repo):
    interrupted(repo, "pay", unknown="retry")
    first = session(repo).steps()[0].intent.key
    found = session(repo).step("pay", lambda: gitcp.current_step().key, unknown="retry")
    assert found == first


@pytest.mark.parametrize(
    ("said", "runs", "result"), [("done", 0, 7), ("failed", 1, 1), ("again", 1, 1)]
)
def test_an_answer_resolves_an_interrupted_step(repo, world, said, runs, result):
    interrupted(repo, "pay")
    before = session(repo).steps()[0].intent.key
    session(repo).answer("pay", said, 7 if said == "done" else None)
    assert session(repo).step("pay", world.act) == result
    assert len(world.did) == runs
    assert session(repo).steps()[0].intent.key == before
    with pytest.raises(gitcp.UsageError):
        session(repo).answer("pay", "again")


def hint_of(repo: Path, name: str, **options: Any) -> list[str]:
    """The words of the command that an error says to run."""
    with pytest.raises(gitcp.StepUnknownError) as caught:
        session(repo).step(name, lambda: 1, **options)
    assert caught.value.hint is not None
    words = shlex.split(caught.value.hint.split("`")[1])
    assert words[:2] == ["gitcp", "steps"]
    assert words[-1] == "done|failed|again"
    return words[1:-1]


def test_an_answer_is_for_the_step_that_was_asked_about(repo):
    """Two payments were interrupted; an answer to one does not answer the other."""
    for key in ("A", "B"):
        interrupted(repo, "pay", key=key)
    interrupted(repo, "pay", scope="today")
    with pytest.raises(
        gitcp.AmbiguousError, match="pay --call key:A, pay --call key:B"
    ):
        session(repo).answer("pay", "done")
    assert "3 steps" in fails(repo, 14, "steps", "answer", "pay", "done", "-s", "work")
    assert {one.state for one in session(repo).steps()} == {"open"}
    # The command in the error names the one that it is about, whatever is current.
    ok(repo, "save", "-s", "elsewhere")
    ok(repo, *hint_of(repo, "pay", key="A"), "failed")
    ok(repo, *hint_of(repo, "pay", scope="today"), "failed")
    found = {
        (one.slot.scope, one.slot.call): one.state for one in session(repo).steps()
    }
    assert found == {
        ("", "key:A"): "failed",
        ("", "key:B"): "open",
        ("today", "1"): "failed",
    }
    # One is left: its name is enough.
    session(repo).answer("pay", "done", 5)
    assert session(repo).step("pay", lambda: 1, key="B") == 5


@pytest.mark.parametrize("name", ["-x", "two\nlines", "it's", "a b", "\u202ename"])
def test_the_hint_is_a_command_whatever_the_name(repo, name):
    interrupted(repo, name)
    ok(repo, *hint_of(repo, name), "done")
    assert session(repo).step(name, lambda: 1) is None


def test_a_later_call_does_not_take_the_answer(repo, world):
    """As where steps run side by side: the second is done, the first was interrupted."""
    interrupted(repo, "pay")
    run = session(repo)
    run.on_unknown(lambda _: "stop")
    with pytest.raises(gitcp.StepUnknownError):
        run.step("pay", world.act)
    assert run.step("pay", world.act) == 1
    session(repo).answer("pay", "failed")
    assert [one.state for one in session(repo).steps()] == ["failed", "done"]


def test_a_session_that_is_not_there_has_not_done_nothing(repo):
    said = fails(repo, 13, "steps", "-s", "ordres")
    assert "ordres/main" in said
    assert ok(repo, "steps")["steps"] == []
    ok(repo, "save", "-s", "empty", "--allow-empty")
    ok(repo, "save", "-s", "main", "--allow-empty")
    assert ok(repo, "steps", "-s", "empty")["steps"] == []


def test_a_very_long_name_does_not_push_the_others_aside(repo, world):
    session(repo).step("n" * 500, world.act)
    session(repo).step("short", world.act)
    lines = invoke(repo, "steps", "-s", "work").stdout.decode().splitlines()
    assert [len(one) < 200 for one in lines] == [True, True]
    assert lines[1].startswith("short  done")


def test_a_callback_may_be_asked(repo, world):
    interrupted(repo, "pay")
    run = session(repo)
    asked: list[str] = []

    def ask(call: gitcp.Call) -> str:
        asked.append(call.name)
        return "again"

    run.on_unknown(ask)
    # Not where the policy says not to ask.
    with pytest.raises(gitcp.StepUnknownError):
        session(repo).step("pay", world.act, unknown="fail")
    assert run.step("pay", world.act) == 1
    assert asked == ["pay"]


# --- ways to write it -------------------------------------------------------------


def test_a_declared_function_takes_its_arguments_by_name(repo, world):
    run = session(repo)

    @run.step("pay", key="1")
    def pay(what: int, times: int = 1, *, to: str = "Ann") -> Any:
        return [world.act(what, times, to), what, times, to]

    assert pay(5, times=2) == [1, 5, 2, "Ann"]
    # The same arguments, and so the same step.
    assert pay(5, 2) == pay(times=2, what=5) == [1, 5, 2, "Ann"]
    with pytest.raises(gitcp.StepChangedError):
        pay(5, 2, to="Bob")
    with pytest.raises(TypeError, match="unexpected"):
        pay(5, too="Bob")  # type: ignore[call-arg]

    @run.step("mail")
    async def mail(to: str, *, idempotency_key: str = "") -> Any:
        return [world.act(to), bool(idempotency_key)]

    async def one(*, copy: bool) -> Any:
        return copy

    assert asyncio.run(mail(to="Ann")) == [2, True]
    assert asyncio.run(run.step("copy")(one)(copy=True)) is True
    assert world.did == [(5, 2, "Ann"), ("Ann",)]


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda run: run.step(len, "x"), "needs a name"),
        (lambda run: run.step("a", 5), "no function but 5"),
        (lambda run: run.step("a", len, "x", retry="3"), "'3' is not a number"),
        (lambda run: run.step("a", len, "x", timeout="4"), "'4' is not a number"),
    ],
)
def test_what_makes_no_step_is_said_before_anything_is_recorded(repo, give, said):
    with pytest.raises(gitcp.UsageError, match=said):
        give(session(repo))
    assert session(repo).steps() == []


class Broken:
    name = "broken"

    def dump(self, value: Any) -> Any:
        raise AttributeError(value)

    def load(self, value: Any) -> Any:
        return value


@pytest.mark.parametrize(
    ("value", "codec", "said"),
    [
        ("x", Broken(), "codec 'broken' did not make"),
        (10**5000, None, "a number that is too long"),
    ],
    ids=["codec", "number"],
)
def test_what_is_done_is_done_whatever_becomes_of_its_result(repo, value, codec, said):
    with pytest.raises(gitcp.UsageError, match=said):
        session(repo).step("pay", lambda: value, codec=codec)
    assert [one.state for one in session(repo).steps()] == ["done"]
    with pytest.raises(gitcp.UsageError, match="is done, but"):
        session(repo).step("pay", lambda: value, codec=codec)


def test_a_mapping_is_as_good_as_a_dict(repo):
    frozen = MappingProxyType({"a": UserDict(b=1)})
    for _ in range(2):
        found = session(repo).step("pay", lambda given: given, frozen)
        assert found == {"a": {"b": 1}}


def test_what_is_nested_too_deeply_is_said_in_a_line(repo):
    deep: list[Any] = []
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(gitcp.UsageError, match="nested too deeply") as caught:
        session(repo).step("deep", lambda: deep)
    assert len(str(caught.value)) < 200


def test_a_step_as_decorator_and_as_block(repo, world):
    for _ in range(2):
        run = session(repo)

        @run.step("pay", undo=world.undo)
        def pay(amount: int) -> int:
            return world.act(amount)

        assert (pay(1), pay(2)) == (1, 2)
        with run.step("block", effect="none") as step:
            if step.pending:
                assert step.key
                step.result = world.act("block")
        assert step.result == 3
    assert len(world.did) == 3
    with pytest.raises(KeyError), session(repo).step("other", effect="none") as step:
        raise KeyError
    assert [one.state for one in session(repo).steps()][-1] == "failed"
    with (
        pytest.raises(gitcp.UsageError, match="block"),
        session(repo).step("x", retry=3),
    ):
        pass


def test_coroutines_are_steps_too_and_share_their_commits(repo, world, monkeypatch):
    run = GroupCommit._run
    waited: list[bool] = []

    def slowly(queue: GroupCommit, batch: Sequence[Any]) -> None:
        # As on a slow disk: while the first record is written, all the others come.
        while not waited and len(queue._queue) < 11:
            time.sleep(0.001)
        waited.append(True)
        run(queue, batch)

    monkeypatch.setattr(GroupCommit, "_run", slowly)

    async def act(number: int, idempotency_key: str) -> int:
        await asyncio.sleep(0)
        world.act(number)
        assert gitcp.current_step().key == idempotency_key
        return number * number

    async def work() -> list[int]:
        run = session(repo)
        found = await asyncio.gather(*(run.step("a", act, n) for n in range(12)))
        run.flush()
        return found

    assert asyncio.run(work()) == [n * n for n in range(12)]
    # One for the first beginning, one for the other eleven, and at most one for each end.
    assert int(git_line(repo, "rev-list", "--count", "refs/gitcp/fx/work")) <= 14
    assert asyncio.run(work()) == [n * n for n in range(12)]
    assert len(world.did) == 12


def test_a_coroutine_that_is_cancelled_is_not_known_to_have_ended(repo):
    async def work() -> None:
        run = session(repo)
        began = asyncio.Event()

        async def forever() -> None:
            began.set()
            await asyncio.Event().wait()

        with pytest.raises(gitcp.StepTimeoutError):
            await run.step("slow", forever, effect="none", timeout=0.05)
        began.clear()
        task = asyncio.ensure_future(run.step("a", forever))
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(gitcp.StepUnknownError):
            await session(repo).step("a", forever)

    asyncio.run(work())


def test_the_loop_goes_on_while_a_block_is_recorded(repo, monkeypatch):
    run = session(repo)
    turn = threading.Event()
    append = Ledger.append

    def waiting(ledger: Ledger, *records: Record) -> tuple[Record, ...]:
        # It cannot be set while the loop is kept from turning.
        assert turn.wait(30), "the loop stands still"
        turn.clear()
        return append(ledger, *records)

    monkeypatch.setattr(Ledger, "append", waiting)

    async def work() -> None:
        async def turning() -> None:
            while True:
                turn.set()
                await asyncio.sleep(0.001)

        clock = asyncio.ensure_future(turning())
        async with run.step("block", effect="none") as step:
            step.result = gitcp.current_step().key == step.key
        with pytest.raises(KeyError):
            async with run.step("other", effect="none"):
                raise KeyError
        clock.cancel()

    asyncio.run(work())
    assert [one.state for one in run.steps()] == ["done", "failed"]


def test_a_block_that_is_cancelled_as_it_begins_has_not_run(repo, monkeypatch):
    run = session(repo)
    begun, go_on = threading.Event(), threading.Event()
    append = Ledger.append

    def waiting(ledger: Ledger, *records: Record) -> tuple[Record, ...]:
        begun.set()
        assert go_on.wait(30)
        return append(ledger, *records)

    async def block() -> None:
        async with run.step("block", effect="irreversible"):
            pytest.fail("it was cancelled")

    async def work() -> None:
        task = asyncio.ensure_future(block())
        assert await asyncio.to_thread(begun.wait, 30)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.001)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    with monkeypatch.context() as slow:
        slow.setattr(Ledger, "append", waiting)
        asyncio.run(work())
    assert [one.state for one in run.steps()] == ["failed"]
    with run.step("block", effect="irreversible") as step:
        assert step.pending


def test_threads_that_share_a_session_lose_nothing(repo, world):
    run = session(repo)
    errors: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(5):
                run.step(name, world.act, effect="none")
        except BaseException as exc:  # noqa: BLE001
            errors.append(exc)

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(world.did) == 20
    assert {one.state for one in session(repo).steps()} == {"done"}
    assert ok(repo, "verify")["ok"]


def test_a_step_that_runs_elsewhere_is_waited_for_and_not_run_twice(repo, world):
    git(repo, "config", "gitcp.lockTimeout", "100ms")
    run, other = session(repo), session(repo)
    slot = other._engine.history.next_slot(run.step("pay", key="1")._options)
    with other._engine.held(slot), pytest.raises(gitcp.BusyError, match="another"):
        run.step("pay", world.act, key="1")
    assert world.did == []
    assert run.step("pay", world.act, key="1") == 1


# --- going back -------------------------------------------------------------------


def test_a_restore_asks_what_to_do_about_steps_that_reached_outside(repo, world):
    run = session(repo)
    first = run.save(note="before")
    run.step("pay", world.act, 5)
    plan = run.plan_restore(first)
    assert [one.name for one in plan.behind.outside] == ["pay"]
    with pytest.raises(gitcp.EffectsStandError, match="pay") as caught:
        run.restore(plan)
    assert caught.value.steps == ("pay",)
    assert caught.value.exit_status == 23
    # Nothing was changed, not even a safety checkpoint made.
    assert run.last == first

    run.flush()
    ledger = git_line(repo, "rev-parse", "refs/gitcp/fx/work")
    run.restore(run.plan_restore(first, replay=True))
    git(repo, "merge-base", "--is-ancestor", ledger, "refs/gitcp/fx/work")
    # In the same process, and in the next one.
    assert run.step("pay", world.act, 5) == 1
    assert session(repo).step("pay", world.act, 5) == 1
    assert world.did == [(5,)]


def test_a_restore_takes_back_the_steps_that_made_files(repo, world):
    run = session(repo)
    first = run.save(note="before", allow_empty=True)

    def write() -> int:
        (repo / "made.txt").write_text("made\n")
        return world.act()

    run.step("write", write, effect="local")
    made = run.save(note="made", allow_empty=True)
    run.restore(run.plan_restore(first))
    assert not (repo / "made.txt").exists()
    assert session(repo).step("write", write, effect="local") == 2
    assert (repo / "made.txt").exists()
    # Forward again: what was done there counts as done there.
    run.restore(run.plan_restore(first))
    session(repo).restore(session(repo).plan_restore(made))
    assert session(repo).step("write", write, effect="local") == 1
    assert len(world.did) == 2


def test_a_restore_of_the_conversation_or_of_paths_takes_no_step_back(repo, world):
    run = session(repo)
    first = run.save(messages=[{"n": 1}])
    run.step("pay", world.act)
    run.save(messages=[{"n": 1}, {"n": 2}])
    run.restore(run.plan_restore(first, files=False))
    (repo / "README.md").write_text("changed\n")
    run.restore(run.plan_restore(first, paths=["README.md"]))
    assert run.step("pay", world.act) == 2
    assert session(repo).step("pay", world.act) == 1


def test_a_fork_has_not_done_what_came_after_its_start(repo, world):
    run = session(repo)
    run.step("early", world.act)
    first = run.save(note="before")
    run.step("pay", world.act)
    run.save(note="after")
    fork = run.fork(first, "other")
    assert fork.step("early", world.act) == 1
    assert fork.step("pay", world.act) == 3
    assert session(repo).step("pay", world.act) == 2
    keys = {one.intent.key for one in (*fork.steps(), *run.steps())}
    assert len(keys) == 3
    # And once more in a new process, on the fork.
    assert session(repo, "other").step("early", world.act) == 1
    assert session(repo, "other").step("pay", world.act) == 3


def test_the_restore_command_asks_and_takes_an_answer(repo, world):
    run = session(repo)
    run.save(note="before")
    run.step("pay", world.act)
    assert ok(repo, "restore", "1", "--dry-run")["behind"][0]["name"] == "pay"
    said = fails(repo, 23, "restore", "1", "--yes")
    assert "pay" in said
    assert "--replay" in said
    fails(repo, 23, "rollback", "--yes")
    replayed = ok(repo, "restore", "1", "--yes", "--replay")
    assert [one["name"] for one in replayed["behind"]] == ["pay"]
    session(repo).step("look", world.act, effect="none")
    assert [one["name"] for one in ok(repo, "undo", "--yes")["behind"]] == ["look"]
    assert session(repo).step("pay", world.act) == 1


def test_a_restore_that_was_taken_back_leaves_the_steps_as_they_were(repo, monkeypatch):
    from gitcp.checkpoints import finish_restore as restoring

    run = session(repo)
    first = run.save(note="before", allow_empty=True)
    run.step("write", lambda: (repo / "made.txt").write_text("x"), effect="local")
    run.save(note="after", allow_empty=True)
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "_append", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run.restore(run.plan_restore(first))
    assert session(repo).steps() == []
    ok(repo, "restore", "--abort")
    assert (repo / "made.txt").exists()
    assert [one.state for one in session(repo).steps()] == ["done"]


def test_a_save_after_a_step_makes_a_checkpoint_that_knows_of_it(repo, world):
    run = session(repo)
    first = run.save(note="one")
    run.step("pay", world.act)
    second = run.save(note="two")
    assert (first.manifest.effects, second.manifest.effects) == (0, 2)
    assert second != first
    assert run.plan_restore(second).behind == ((), ())


# --- what keeps it ----------------------------------------------------------------


def test_gc_and_prune_keep_the_ledger(repo, world):
    run = session(repo)
    for number in range(30):
        run.step(f"s{number}", world.act, effect="none")
    for number in range(4):
        (repo / "a.txt").write_text(f"{number}")
        run.save(note=f"{number}")
    run.flush()
    before = git_line(repo, "rev-parse", "refs/gitcp/fx/work")
    ok(repo, "prune", "--keep-last", "1", "--yes")
    git(repo, "reflog", "expire", "--expire=now", "--all")
    ok(repo, "gc")
    git(repo, "gc", "--quiet", "--prune=now")
    assert git_line(repo, "rev-parse", "refs/gitcp/fx/work") == before
    again = session(repo)
    assert [again.step(f"s{n}", world.act, effect="none") for n in range(30)] == list(
        range(1, 31)
    )
    assert git(repo, "fsck", "--strict", "--full") == b""


def test_a_ledger_that_was_moved_back_is_noticed(repo, world):
    run = session(repo)
    run.step("a", world.act)
    run.step("b", world.act)
    run.flush()
    git(repo, "update-ref", "refs/gitcp/fx/work", "refs/gitcp/fx/work~1")
    with pytest.raises(gitcp.CorruptError, match="rewound"):
        run.step("c", world.act)
