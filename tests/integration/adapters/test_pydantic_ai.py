"""Pydantic AI's agents, with its own model for tests."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelResponse,
    ToolCallPart,
)
from pydantic_ai.models.test import TestModel

import gitcp
from gitcp.adapters.pydantic_ai import GitcpDurability, message_history, save_run
from gitcp.errors import UsageError
from tests.support.clones import clone, make_hub, results
from tests.support.gitrepo import write_files


class Counted(TestModel):
    """Counts the requests that it was sent."""

    __test__ = False
    requests = 0

    async def request(self, *given: Any, **named: Any) -> Any:
        self.requests += 1
        return await super().request(*given, **named)


def run(agent: Agent, prompt: str, **given: Any) -> Any:
    """Runs an agent, in a loop that is closed at the end with its threads."""
    return asyncio.run(agent.run(prompt, **given))


def agent(top: Path, **given: Any) -> tuple[Agent, GitcpDurability, Counted]:
    """Returns an agent as a program makes it that is started again."""
    durable: GitcpDurability = GitcpDurability(
        gitcp.open(top).session("orders"), **given
    )
    model = Counted()
    return Agent(model, name="clerk", capabilities=[durable]), durable, model


def test_messages_come_back_equal_with_the_files(repo: Path):
    session = gitcp.open(repo).session("notes")
    assert message_history(session) == []
    helper = Agent(TestModel(), name="helper")

    @helper.tool_plain
    def note(text: str) -> str:
        return f"noted {text}"

    first = run(helper, "Note it", message_history=message_history(session))
    write_files(repo, {"notes": b"1"})
    saved = save_run(session, first, label="noted")
    assert (saved.note, saved.label, saved.trigger) == ("Note it", "noted", "turn-end")
    assert message_history(session) == first.all_messages()
    again = run(helper, "Once more", message_history=message_history(session))
    write_files(repo, {"notes": b"2"})
    save_run(session, again)
    assert message_history(session) == again.all_messages()
    session.restore(saved)
    assert message_history(session) == first.all_messages()
    assert (repo / "notes").read_bytes() == b"1"


def test_a_strangers_messages_and_answers_call_no_tools(tmp_path: Path):
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    called: list[str] = []

    def start(top: Path, **given: Any) -> str:
        clerk, durable, _ = agent(top, **given)

        @clerk.tool_plain
        def order(what: str) -> str:
            called.append(what)
            return what

        with durable.run("one"):
            said: str = run(clerk, "Order").output
        return said

    asked = ModelResponse([ToolCallPart("order", {"what": "evil"})])
    dumped = ModelMessagesTypeAdapter.dump_python([asked], mode="json")
    gitcp.open(ann).session("orders").save(messages=dumped)
    start(ann)
    gitcp.open(ann).session("orders").flush()
    results(ann, "push")
    results(bob, "pull")
    called.clear()
    session = gitcp.open(bob).session("orders")
    with pytest.raises(UsageError, match="made elsewhere"):
        message_history(session)
    with pytest.raises(UsageError, match="recorded elsewhere"):
        start(bob)
    assert message_history(session, trust=True) == [asked]
    assert start(bob, trust=True) == '{"order":"a"}'
    assert called == []


def test_a_run_that_is_started_again_does_nothing_twice(repo: Path):
    called: list[str] = []

    def start(name: str | None) -> tuple[str, str, int]:
        clerk, durable, model = agent(repo)

        @clerk.tool_plain
        def order(what: str) -> str:
            called.append(what)
            return f"ordered {what}"

        with durable.run(name) if name else contextlib.nullcontext():
            outputs = [run(clerk, prompt).output for prompt in ("Order", "More")]
        return outputs[0], outputs[1], model.requests

    said = '{"order":"ordered a"}'
    assert start("one") == (said, said, 4)
    assert start("one") == (said, said, 0)
    assert len(called) == 2
    assert start("two") == (said, said, 4)
    assert start(None) == (said, said, 4)
    assert len(called) == 6


def test_an_interrupted_tool_is_asked_about(repo: Path):
    called: list[str] = []

    class Killed(BaseException):
        """Ends the program, as far as the step can see."""

    def start(*, dies: bool = False, **metadata: Any) -> str:
        clerk, durable, _ = agent(repo)

        @clerk.tool_plain(metadata=metadata or None)
        def order(what: str) -> str:
            called.append(what)
            if dies:
                raise Killed
            return f"ordered {what}"

        with durable.run("one"):
            return str(run(clerk, "Order").output)

    with pytest.raises(Killed):
        start(dies=True)
    with pytest.raises(gitcp.StepUnknownError):
        start()
    assert called == ["a"]
    session = gitcp.open(repo).session("orders")
    (step,) = [one for one in session.steps() if one.name.endswith(":order")]
    session.answer(step.name, "done", "as I saw", scope="one")
    assert start() == '{"order":"as I saw"}'
    assert called == ["a"]


def test_the_metadata_of_a_tool_are_its_options(repo: Path):
    called: list[str] = []

    def start() -> None:
        clerk, durable, _ = agent(repo, tools={"effect": "none"})

        @clerk.tool_plain(metadata={"gitcp": {"effect": "irreversible"}})
        def order(what: str) -> str:
            return what

        @clerk.tool_plain
        def look(what: str) -> str:
            return what

        @clerk.tool_plain(metadata={"gitcp": False})
        def call(what: str) -> str:
            called.append(what)
            return what

        with durable.run("one"):
            run(clerk, "Order")

    start()
    start()
    session = gitcp.open(repo).session("orders")
    effects = {one.name.rpartition(":")[2]: one.effect for one in session.steps()}
    assert (effects["order"], effects["look"]) == ("irreversible", "none")
    assert "call" not in effects
    assert len(called) == 2


def test_what_makes_no_sense_is_refused(repo: Path):
    clerk, durable, _ = agent(repo)

    @clerk.tool_plain(metadata={"gitcp": "once"})
    def order(what: str) -> str:
        return what

    with (
        pytest.raises(gitcp.UsageError, match="'order' has 'once'"),
        durable.run("one"),
    ):
        run(clerk, "Order")
    with pytest.raises(gitcp.UsageError, match="needs a name"), durable.run(""):
        pass
    with (
        durable.run("one"),
        pytest.raises(gitcp.UsageError, match="inside another"),
        durable.run("two"),
    ):
        pass
