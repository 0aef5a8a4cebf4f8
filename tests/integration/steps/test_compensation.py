"""Undoing what steps did, and repairing only what a failure affects."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

import gitcp
from gitcp.format.ledger import (
    INTENT,
    IRREVERSIBLE,
    UNDO_FAILED,
    UNDOING,
    UNDONE,
    Record,
)
from gitcp.ledger.call import DONE, Call, StepSlot
from gitcp.steps import repair
from tests.support.gitrepo import git, run_gitcp
from tests.support.inprocess import fails, invoke, ok

DID: list[Any] = []


def book(amount: int) -> dict[str, int]:
    DID.append(("book", amount))
    return {"id": amount}


def cancel(result: dict[str, int], idempotency_key: str) -> None:
    assert idempotency_key.startswith("undo:")
    DID.append(("cancel", result["id"]))


@pytest.fixture(autouse=True)
def nothing_done() -> None:
    DID.clear()


def command(repo: Path, status: int, *words: str) -> Any:
    """The document of a command that starts others: it needs descriptors of its own."""
    at = words.index("--") if "--" in words else len(words)
    done = run_gitcp(repo, *words[:at], "--json", *words[at:])
    assert done.returncode == status, (done.stdout, done.stderr)
    return json.loads(done.stdout or done.stderr.splitlines()[-1])


def session(repo: Path) -> gitcp.Session:
    return gitcp.open(repo).session("main")


def write(repo: Path, name: str, text: str) -> Any:
    def work() -> None:
        path = repo / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    return work


def kinds(run: gitcp.Session) -> list[str]:
    return [one.kind for one in run._engine.ledger.records()]


# --- compensation -----------------------------------------------------------------


def test_undos_run_newest_first_and_are_recorded(repo):
    run = session(repo)
    first = run.save(note="before")
    run.step("one", book, 1, undo=cancel)
    run.step("file", write(repo, "made.txt", "made"), effect="local")
    run.step("think", lambda: 1, effect="none")
    run.step("two", book, 2, undo=cancel)
    done = run.compensate(first)
    assert [one.name for one in done.undone] == ["two", "think", "file", "one"]
    assert DID == [("book", 1), ("book", 2), ("cancel", 2), ("cancel", 1)]
    assert not (repo / "made.txt").exists()
    assert {one.state for one in run.steps()} == {UNDONE}
    assert run.compensate(first).undone == ()
    # What was undone may be done again, as another thing with another key.
    assert session(repo).step("one", book, 1, undo=cancel) == {"id": 1}
    assert DID[-1] == ("book", 1)


def test_only_what_came_after_the_checkpoint_is_undone(repo):
    run = session(repo)
    run.step("one", book, 1, undo=cancel)
    run.save(note="between")
    run.step("two", book, 2, undo=cancel)
    assert [one.name for one in run.compensate().undone] == ["two"]
    assert DID[2:] == [("cancel", 2)]


def test_an_undo_of_another_process_is_found_by_its_module(repo):
    first = session(repo).save(note="before")
    session(repo).step("one", book, 1, undo=cancel)
    session(repo).compensate(first)
    assert DID == [("book", 1), ("cancel", 1)]


def test_a_missing_undo_stops_and_says_so(repo):
    first = session(repo).save(note="before")
    session(repo).step("early", book, 1, undo=cancel)
    session(repo).step("late", book, 2, undo=lambda result: DID.append([result]))
    with pytest.raises(
        gitcp.CompensationError, match="this process does not know"
    ) as caught:
        session(repo).compensate(first)
    assert caught.value.left == ("late", "early")
    assert DID == [("book", 1), ("book", 2)]
    run = session(repo)
    run.register_undo("late", lambda result: DID.append(result["id"]))
    assert [one.name for one in run.compensate(first).undone] == ["late", "early"]
    assert DID[2:] == [2, ("cancel", 1)]


def test_an_irreversible_step_stops_unless_it_is_to_be_kept(repo):
    run = session(repo)
    first = run.save(note="before")
    run.step("early", book, 1, undo=cancel)
    run.step("mail", book, 2)
    with pytest.raises(gitcp.CompensationError, match="irreversible"):
        run.compensate(first)
    assert len(DID) == 2
    done = run.compensate(first, keep=["mail"])
    assert [one.name for one in done.kept] == ["mail"]
    assert [one.name for one in done.undone] == ["early"]
    # Kept is kept: it is not asked about again, and not run again.
    assert run.compensate(first).undone == ()
    assert session(repo).step("mail", book, 2) == {"id": 2}
    assert len(DID) == 3


def test_an_interrupted_step_stops_a_compensation(repo, monkeypatch):
    run = session(repo)
    first = run.save(note="before")
    monkeypatch.setattr(type(run._engine), "finish", lambda *_: None)
    run.step("mail", book, 1, undo=cancel)
    monkeypatch.undo()
    with pytest.raises(gitcp.CompensationError, match="not known"):
        session(repo).compensate(first)
    assert kinds(session(repo)) == ["intent"]


def test_an_undo_that_fails_stops_and_is_tried_again(repo):
    run = session(repo)
    first = run.save(note="before")
    broken = [True]

    def undo(result: Any) -> None:
        if broken[0]:
            raise OSError("no server")
        cancel(result, "undo:")

    run.step("early", book, 1, undo=cancel)
    run.step("late", book, 2, undo=undo)
    with pytest.raises(gitcp.CompensationError, match="no server") as caught:
        run.compensate(first)
    assert caught.value.left == ("late", "early")
    assert kinds(run)[-2:] == [UNDOING, UNDO_FAILED]
    with pytest.raises(gitcp.StepUnknownError, match="being undone"):
        session(repo).step("late", book, 2, undo=undo)
    broken[0] = False
    run.compensate(first)
    assert DID == [("book", 1), ("book", 2), ("cancel", 2), ("cancel", 1)]


class KilledError(BaseException):
    """Stands for a kill: nothing after it is recorded."""


@pytest.mark.parametrize("at", range(5))
def test_an_interrupted_compensation_is_continued(repo, monkeypatch, at):
    run = session(repo)
    first = run.save(note="before")
    run.step("one", book, 1, undo=cancel)
    run.step("two", book, 2, undo=cancel)
    appended = 0
    append = type(run._engine.ledger).append

    def killed(self: Any, *records: Any) -> Any:
        nonlocal appended
        if appended == at:
            raise KilledError
        appended += 1
        return append(self, *records)

    monkeypatch.setattr(type(run._engine.ledger), "append", killed)
    if at < 4:
        with pytest.raises(KilledError):
            run.compensate(first)
    else:
        run.compensate(first)
    monkeypatch.undo()
    session(repo).compensate(first)
    assert {one.state for one in session(repo).steps()} == {UNDONE}
    undone = [entry[1] for entry in DID if entry[0] == "cancel"]
    # In order, and once, but for the one that was under way.
    assert sorted(set(undone), reverse=True) == [2, 1]
    assert undone in ([2, 1], [2, 2, 1], [2, 1, 1])


def test_files_are_put_back_only_where_they_are_as_the_step_left_them(repo):
    run = session(repo)
    first = run.save(note="before")
    (repo / "README.md").write_text("mine\n")

    def work() -> None:
        (repo / "a.txt").write_text("a")
        (repo / "src/pkg/main.py").write_text("changed")

    run.step("edit", work, effect="local")
    (repo / "a.txt").write_text("edited by hand since")
    with pytest.raises(gitcp.CompensationError, match=r"a\.txt"):
        run.compensate(first)
    # Nothing of it, then.
    assert (repo / "src/pkg/main.py").read_text() == "changed"
    (repo / "a.txt").write_text("a")
    run.compensate(first)
    assert not (repo / "a.txt").exists()
    assert (repo / "src/pkg/main.py").read_text() == "print('two')\n"
    # What was there before the step is not part of it.
    assert (repo / "README.md").read_text() == "mine\n"


def test_an_undo_from_another_repository_is_not_run_without_asking(repo, tmp_path):
    ok(repo, "save")
    command(repo, 0, "run", "--step", "make", "--undo", "touch pwned", "--", "true")
    (repo / ".git/gitcp/key").unlink()
    said = fails(repo, 3, "undo", "--effects", "--to", "1", "--yes")
    assert "another repository" in said
    assert not (repo / "pwned").exists()
    ok(repo, "undo", "--effects", "--to", "1", "--yes", "--trust")
    assert (repo / "pwned").exists()


# --- on the command line ----------------------------------------------------------


def test_a_command_is_run_once_and_undone_by_its_command(repo):
    ok(repo, "save", "-m", "before")
    words = ("run", "--step", "make", "--undo", 'rm "$GITCP_STEP.txt"', "--")
    given = ("sh", "-c", 'test -n "$GITCP_STEP_KEY" && echo x >> make.txt')
    first = command(repo, 0, *words, *given)
    assert (first["exit"], first["replayed"]) == (0, False)
    assert command(repo, 0, *words, *given)["replayed"]
    assert (repo / "make.txt").read_text() == "x\n"
    shown = ok(repo, "steps", "show", "make")
    assert shown["value"] == {"exit": 0, "output": ""}
    assert [one["kind"] for one in shown["records"]] == ["intent", "result"]
    assert shown["step"]["undo"]["command"][0] == "sh"
    assert ok(repo, "steps")["steps"] == [shown["step"]]
    plan = ok(repo, "undo", "--effects", "--to", "1", "--dry-run")
    assert [one["name"] for one in plan["steps"]] == ["make"]
    fails(repo, 23, "undo", "--effects", "--to", "1")
    done = ok(repo, "undo", "--effects", "--to", "1", "--yes")
    assert done["undone"] == [shown["step"]["id"]]
    assert not (repo / "make.txt").exists()
    fails(repo, 1, "undo", "--effects", "--to", "1", "--yes")
    assert not command(repo, 0, *words, *given)["replayed"]


def test_a_command_that_fails_may_run_again(repo):
    words = ("run", "--step", "try", "--effect", "none", "--", "sh", "-c")
    assert command(repo, 3, *words, "exit 3")["exit"] == 3
    step = ok(repo, "steps")["steps"][0]
    assert (step["state"], step["attempts"]) == ("failed", 1)
    assert command(repo, 0, *words, "exit 0")["exit"] == 0


def test_a_command_that_takes_too_long_is_stopped(repo):
    words = ("run", "--step", "slow", "--timeout", "100ms", "--", "sleep", "600")
    assert command(repo, 11, *words)["error"]["code"] == "step-timeout"
    assert [one["state"] for one in ok(repo, "steps")["steps"]] == ["unknown"]
    assert "interrupted" in command(repo, 23, *words)["error"]["message"]


def test_what_makes_no_sense_at_the_command_line_is_refused(repo):
    fails(repo, 2, "run", "--undo", "x", "--", "true")
    fails(repo, 2, "run", "--step", "a", "-m", "note", "--", "true")
    fails(repo, 2, "run", "--step", "a", "--effect", "reversible", "--", "true")
    fails(repo, 2, "undo", "--to", "1")
    fails(repo, 2, "steps", "frobnicate")
    fails(repo, 2, "steps", "show")
    fails(repo, 13, "steps", "show", "nothing")
    assert ok(repo, "steps")["steps"] == []


def test_names_cannot_steer_a_terminal(repo):
    session(repo).step("a\x1b[31m\nb", lambda: "\x1b[2J", effect="none")
    for words in (("steps",), ("steps", "show", "a\x1b[31m\nb")):
        out = invoke(repo, *words).stdout
        assert b"\x1b" not in out, out


# --- local repair -----------------------------------------------------------------


def pipeline(repo: Path, run: gitcp.Session, ran: list[str]) -> None:
    """fetch -> clean -> report, and beside it other -> mail."""

    def make(name: str, target: str) -> Any:
        def work() -> str:
            ran.append(name)
            write(repo, target, f"{name}\n")()
            return name

        return work

    run.step("fetch", make("fetch", "data/raw"), effect="local", writes=["data/raw"])
    run.step("other", make("other", "other.txt"), effect="local")
    run.step(
        "clean",
        make("clean", "data/clean"),
        effect="local",
        reads=["data/raw"],
        writes=["data/clean"],
    )
    run.step("report", make("report", "report.md"), effect="local", after=["clean"])


def test_only_what_depends_on_a_step_is_run_again(repo):
    ran: list[str] = []
    pipeline(repo, session(repo), ran)
    run = session(repo)
    found = run.affected("fetch")
    assert [one.name for one in found.steps] == ["fetch", "clean", "report"]
    assert found.refused == ()
    assert [one.name for one in run.affected("clean").steps] == ["clean", "report"]
    assert [one.name for one in run.affected("other").steps] == ["other"]
    run.repair(found)
    assert not any((repo / "data").iterdir())
    assert not (repo / "report.md").exists()
    assert (repo / "other.txt").exists()
    ran.clear()
    pipeline(repo, session(repo), ran)
    assert ran == ["fetch", "clean", "report"]


def test_a_repair_is_refused_where_others_used_what_would_be_undone(repo):
    ran: list[str] = []
    run = session(repo)
    pipeline(repo, run, ran)
    run.step("mail", lambda: None, reads=["report.md"])
    found = run.affected("fetch")
    assert [one.name for one in found.steps][-1] == "mail"
    assert found.refused == ("mail has sent it out",)
    with pytest.raises(gitcp.UsageError, match="mail has sent"):
        run.repair(found)
    assert (repo / "report.md").exists()
    assert run.affected("other").refused == ()
    # Another process wrote over it.
    run.step("more", write(repo, "other.txt", "more"), effect="local")
    assert run.affected("other").refused == ("more wrote what other had written",)
    (repo / "other.txt").write_text("by hand")
    assert "was changed since" in run.affected("more").refused[0]


def test_commands_are_taken_back_and_run_again(repo):
    def step(name: str, script: str, *options: str) -> None:
        words = ("run", "--step", name, "--effect", "local", *options)
        command(repo, 0, *words, "--", "sh", "-c", script)

    (repo / "count.log").write_text("")  # ignored
    step("a", "echo a >> count.log; cp README.md a.txt", "--writes", "a.txt")
    step("b", "echo b >> count.log; cp a.txt b.txt", "--reads", "a.txt")
    step("c", "echo c >> count.log; echo c > c.txt")
    (repo / "README.md").write_text("corrected\n")
    found = ok(repo, "steps", "affected", "a")
    assert [one["name"] for one in found["steps"]] == ["a", "b"]
    fails(repo, 23, "steps", "repair", "a")
    done = command(repo, 0, "steps", "repair", "a", "--yes")
    assert [one["name"] for one in done["run"]] == ["a", "b"]
    assert (repo / "b.txt").read_text() == "corrected\n"
    assert (repo / "count.log").read_text().split() == ["a", "b", "c", "a", "b"]
    assert [one["state"] for one in ok(repo, "steps")["steps"]] == ["done"] * 3


def brute_force(first: int, reads: list[set[int]], writes: list[set[int]]) -> set[int]:
    """The smallest set that holds `first` and all that read what one in it wrote."""
    found = {first}
    while True:
        more = {
            later
            for later in range(len(reads))
            for one in found
            if later > one and reads[later] & writes[one]
        }
        if more <= found:
            return found
        found |= more


@pytest.mark.parametrize("seed", range(40))
def test_what_is_affected_is_what_brute_force_finds(seed):
    chance = random.Random(seed)
    count = chance.randrange(1, 14)
    reads = [
        {chance.randrange(12) for _ in range(chance.randrange(3))} for _ in range(count)
    ]
    writes = [
        {chance.randrange(12) for _ in range(chance.randrange(3))} for _ in range(count)
    ]

    def call(number: int) -> Call:
        intent = record(number, reads[number], writes[number])
        return Call(f"c{number}", StepSlot("", f"s{number}", "1"), intent, number, DONE)

    calls = [call(number) for number in range(count)]
    chance.shuffle(calls)
    for first in calls:
        number = int(first.id[1:])
        found = {int(one.id[1:]) for one in repair.closure(first, calls)}
        assert found == brute_force(number, reads, writes)


def record(number: int, reads: set[int], writes: set[int]) -> Any:
    return Record(
        number + 1,
        "",
        INTENT,
        "main",
        id=f"c{number}",
        effect=IRREVERSIBLE,
        reads=tuple(f"d{one // 4}/f{one}" for one in reads),
        writes=tuple(f"d{one // 4}/f{one}" for one in writes),
    )


# --- damage -----------------------------------------------------------------------


def test_verify_finds_damage_in_a_ledger(repo):
    run = session(repo)
    run.save(note="x")
    run.step("a", lambda: "x" * 20_000)
    run.step("b", lambda: 1)
    assert ok(repo, "verify")["ok"]
    tip = git(repo, "rev-parse", "refs/gitcp/fx/main").decode().strip()
    body = git(repo, "cat-file", "commit", tip)

    def damaged(old: bytes, new: bytes) -> str:
        assert old in body
        made = git(
            repo,
            "hash-object",
            "-t",
            "commit",
            "-w",
            "--stdin",
            input=body.replace(old, new),
        )
        git(repo, "update-ref", "refs/gitcp/fx/main", made.decode().strip())
        found = invoke(repo, "verify", "--json")
        assert found.returncode == 15
        problems = json.loads(found.stdout)["problems"]
        return "; ".join(one["problem"] for one in problems)

    assert "(E3)" in damaged(b'"n":4', b'"n":5')
    assert "unknown kind" in damaged(b'"kind":"result"', b'"kind":"rumour"')
    assert "should be" in damaged(b'"n":4,', b'"n": 4,')
    assert "another session" in damaged(b"Gitcp-Ledger: main", b"Gitcp-Ledger: x")
    assert "not the ledger's" in damaged(b"Gitcp-Ledger: main", b"Other: x")
    git(repo, "update-ref", "refs/gitcp/fx/main", tip)
    assert ok(repo, "verify")["ok"]


# --- undos and steps that only begin when they are called ---------------------------


@pytest.mark.parametrize("inside", [False, True], ids=["plainly", "in a loop"])
def test_an_undo_that_is_a_coroutine_is_run_to_its_end(repo, inside):
    """It was called, not awaited, and the step counted as undone."""
    run = gitcp.open(repo).session("work")
    start = run.save()
    did: list[Any] = []

    async def book(what: str) -> str:
        return what

    async def cancel(result: str, idempotency_key: str) -> None:
        await asyncio.sleep(0)
        did.append((result, idempotency_key, gitcp.current_step().name))

    async def fails(_: str) -> None:
        await asyncio.sleep(0)
        raise RuntimeError("the hotel is closed")

    async def go() -> Any:
        await run.step("room", book, "room", undo=cancel)
        return run.compensate(start) if inside else None

    done = asyncio.run(go()) or run.compensate(start)
    assert [one.name for one in done.undone] == ["room"]
    (call,) = run.steps()
    assert did == [("room", f"undo:{call.intent.key}", "room")]
    asyncio.run(run.step("hall", book, "hall", undo=fails))
    with pytest.raises(gitcp.CompensationError, match="the hotel is closed"):
        run.compensate(start)
    assert [one.state for one in run.steps()] == ["undone", "stuck"]


def test_what_only_begins_when_it_is_called_is_not_taken_for_done(repo):
    run = gitcp.open(repo).session("work")
    start = run.save()
    did: list[str] = []

    async def send(what: str) -> None:
        did.append(what)

    def later(what: Any) -> Any:
        did.append(what)
        yield what

    for step in (lambda: run.step("gen", later, "x"), lambda: run.step("gen")(later)):
        with pytest.raises(gitcp.UsageError, match="is a generator"):
            step()
    assert run.steps() == []
    with pytest.raises(gitcp.UsageError, match="not awaited"):
        _ = run.step("mail", lambda: send("a"))
    # What the function did before it gave the coroutine is not known.
    assert [one.state for one in run.steps()] == ["open"]
    run.answer("mail", "failed")
    asyncio.run(gitcp.open(repo).session("work").step("mail", send, "a"))
    assert did == ["a"]
    run.step("room", lambda: 1, undo=later)
    with pytest.raises(gitcp.CompensationError, match="is a generator"):
        run.compensate(start)
    assert did == ["a"]


def test_a_step_to_keep_that_is_not_there_stops_before_anything_is_undone(repo):
    """`--keep mailx` must not undo the mail."""
    command(repo, 0, "save", "--allow-empty")
    for name in ("mail", "room"):
        words = ("--step", name, "--undo", f"touch undone-{name}", "--", "true")
        command(repo, 0, "run", *words)
    said = fails(repo, 13, "undo", "--effects", "--keep", "mailx", "--yes")
    assert "'mailx'" in said
    assert not list(repo.glob("undone-*"))
    command(repo, 0, "undo", "--effects", "--keep", "mail", "--yes")
    assert [path.name for path in repo.glob("undone-*")] == ["undone-room"]
    # The same again, as after an interrupted one.
    command(repo, 0, "run", "--step", "hall", "--undo", "true", "--", "true")
    command(repo, 0, "undo", "--effects", "--keep", "mail", "--yes")


def test_what_no_checkpoint_holds_is_not_said_to_be_taken_back(repo):
    (repo / ".gitignore").write_text("build/\n")
    command(repo, 0, "save")
    (repo / "build").mkdir()
    act = "echo new > build/out; echo new > seen.txt"
    words = ("--writes", "build", "--writes", "seen.txt", "--writes", "none", "--")
    command(
        repo, 0, "run", "--step", "make", "--effect", "local", *words, "sh", "-c", act
    )
    done = command(repo, 0, "undo", "--effects", "--yes")
    assert done["left"] == ["build"]
    assert not (repo / "seen.txt").exists()
    assert (repo / "build" / "out").read_text() == "new\n"
    command(
        repo, 0, "run", "--step", "more", "--effect", "local", *words, "sh", "-c", act
    )
    said = invoke(repo, "undo", "--effects", "--yes").stderr.decode()
    assert "build is in no checkpoint and was left as the step left it" in said
