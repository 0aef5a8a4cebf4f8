"""Real graphs on the saver: files that follow, interrupts, forks, subgraphs, deltas."""

from __future__ import annotations

import asyncio
import json
import operator
import threading
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")
pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Send

import gitcp
from gitcp.adapters.langgraph import DeltaChainError
from gitcp.errors import RestoreInterruptedError, UsageError
from gitcp.maintenance.verify import verify
from gitcp.project.adapter_store import store_at
from tests.support.gitrepo import git_line, run_gitcp
from tests.support.graphs import (
    END,
    START,
    Command,
    State,
    StateGraph,
    at,
    interrupt,
    opened,
    put,
    write,
)

STEPS = 12


def counting(directory: Path, saver: Any) -> Any:
    """A graph whose node writes a file as soon as it starts: the worst case."""

    def work(state: State) -> Any:
        number = len(state["words"])
        write(directory, "step.txt", f"{number}\n")
        write(directory, f"own-{number}.txt", "x")
        return {"words": [f"w{number}"]}

    def more(state: State) -> str:
        return "work" if len(state["words"]) < STEPS else END

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", more, ["work", END])
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_files_that_go_back_and_forth_are_followed(repo, durability):
    """The same files again, while what was taken of them before is still held."""

    def work(state: State) -> Any:
        write(repo, "step.txt", "ab"[len(state["words"]) % 2])
        return {"words": ["w"]}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges(
        "work",
        lambda state: "work" if len(state["words"]) < STEPS else END,
        ["work", END],
    )
    saver = opened(repo, workspace=repo)
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"words": []}, at("t"), durability=durability)
    history = list(graph.get_state_history(at("t")))
    for state in history:
        count = len(state.values.get("words", ()))
        if count:
            assert files_at(repo, saver, state.config) == "ab"[(count - 1) % 2]
    assert len(history) == (1 if durability == "exit" else STEPS + 2)


def files_at(repo: Path, saver: Any, config: Any) -> str | None:
    """What step.txt holds in the commit of a checkpoint."""
    commit = saver.checkpoint(config).commit
    if "step.txt" not in git_line(repo, "ls-tree", "--name-only", commit).split():
        return None
    return git_line(repo, "show", f"{commit}:step.txt")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("how", ["invoke", "ainvoke"])
def test_each_checkpoint_holds_the_files_of_its_step(repo, durability, how):
    with opened(repo, workspace=repo) as saver:
        graph = counting(repo, saver)
        config: Any = {**at("t"), "recursion_limit": 100}
        if how == "invoke":
            graph.invoke({"words": []}, config, durability=durability)
        else:
            asyncio.run(graph.ainvoke({"words": []}, config, durability=durability))
        seen = 0
        for state in graph.get_state_history(config):
            done = len(state.values.get("words", []))
            if state.metadata["source"] != "loop" or not done:
                continue
            assert files_at(repo, saver, state.config) == str(done - 1)
            seen += 1
        assert seen == (1 if durability == "exit" else STEPS)
    verified = run_gitcp(repo, "verify")
    assert verified.returncode == 0, verified.stdout
    assert git_line(repo, "status", "--short", "--", "src") == ""


def test_it_is_used_as_langgraphs_own_asynchronous_savers_are(repo):
    async def go() -> None:
        async with opened(repo, workspace=repo) as saver:
            config: Any = {**at("t"), "recursion_limit": 100}
            await counting(repo, saver).ainvoke({"words": []}, config)

    asyncio.run(go())
    # What was acknowledged is in git when the block has ended.
    assert git_line(repo, "show", "refs/gitcp/s/langgraph-t/main:step.txt") == "11"


def test_the_version_is_asked_for_once_a_step_in_the_graphs_thread(tmp_path):
    """What the files rely on: pinned here for each release of LangGraph."""
    asked: list[str] = []
    with opened(tmp_path / "s") as saver:
        plain = saver.get_next_version

        def counted(current, channel):
            asked.append(threading.current_thread().name)
            return plain(current, channel)

        saver.get_next_version = counted
        graph = counting(tmp_path, saver)
        graph.invoke({"words": []}, {**at("t"), "recursion_limit": 100})
    assert set(asked) == {threading.main_thread().name}
    # One for the input, one for each step, and the hand-over from START.
    assert len(asked) <= STEPS + 2


def test_a_thread_with_numbers_as_versions_is_refused_with_files(repo):
    with opened(repo, workspace=repo) as saver, pytest.raises(UsageError):
        saver.get_next_version(3, None)


def test_an_interrupted_restore_is_not_captured(repo):
    (repo / ".git" / "gitcp").mkdir(exist_ok=True)
    with opened(repo, workspace=repo) as saver:
        saver.get_next_version(None, None)
        (repo / ".git" / "gitcp" / "restore.json").write_text("{}")
        with pytest.raises(gitcp.GitcpError) as caught:
            saver.get_next_version(None, None)
        assert isinstance(caught.value, RestoreInterruptedError | gitcp.CorruptError)


def asking(directory: Path, saver: Any) -> Any:
    """A draft, a question to a person, and the effect of the answer."""

    def draft(state: State) -> Any:
        write(directory, "draft.txt", "draft\n")
        return {"words": ["draft"]}

    def review(state: State) -> Any:
        return {"words": [f"said {interrupt('is it good?')}"]}

    def publish(state: State) -> Any:
        write(directory, "published.txt", state["words"][-1] + "\n")
        return {"words": ["published"]}

    builder = StateGraph(State)
    for node in (draft, review, publish):
        builder.add_node(node)
    builder.add_edge(START, "draft")
    builder.add_edge("draft", "review")
    builder.add_edge("review", "publish")
    return builder.compile(checkpointer=saver)


def test_a_human_is_asked_and_time_travel_forks_with_its_files(repo):
    config = at("review")
    with opened(repo, workspace=repo) as saver:
        asking(repo, saver).invoke({"words": []}, config)
    # Another process goes on.
    with opened(repo, workspace=repo) as saver:
        graph = asking(repo, saver)
        (question,) = graph.get_state(config).interrupts
        assert question.value == "is it good?"
        done = graph.invoke(Command(resume="yes"), config)
        assert done["words"] == ["draft", "said yes", "published"]
        assert (repo / "published.txt").read_text() == "said yes\n"

        before = next(
            state
            for state in graph.get_state_history(config)
            if state.next == ("publish",)
        )
        session = gitcp.open(repo).session("main")
        plan = session.plan_restore(saver.checkpoint(before.config), conversation=False)
        session.restore(plan)
        assert not (repo / "published.txt").exists()
        assert (repo / "draft.txt").read_text() == "draft\n"

        fork = graph.update_state(before.config, {"words": ["on second thought"]})
        done = graph.invoke(None, fork)
        assert done["words"] == [
            "draft",
            "said yes",
            "on second thought",
            "published",
        ]
        assert (repo / "published.txt").read_text() == "on second thought\n"
        newest = graph.get_state(config)
        assert newest.values == done
        commit = saver.checkpoint(newest.config).commit
        shown = git_line(repo, "show", f"{commit}:published.txt")
        assert shown == "on second thought"
    listed = json.loads(
        run_gitcp(repo, "branches", "-s", "langgraph-review", "--json").stdout
    )
    assert "fork-" in json.dumps(listed)
    assert run_gitcp(repo, "verify").returncode == 0


def test_a_subgraph_is_asked_and_goes_on_in_another_process(tmp_path):
    def ask(state: State) -> Any:
        return {"words": [f"inner {interrupt('inner?')}"]}

    def build(saver: Any) -> Any:
        inner = StateGraph(State)
        inner.add_node("ask", ask)
        inner.add_edge(START, "ask")
        outer = StateGraph(State)
        outer.add_node("first", lambda state: {"words": ["first"]})
        outer.add_node("inner", inner.compile(checkpointer=True))
        outer.add_edge(START, "first")
        outer.add_edge("first", "inner")
        return outer.compile(checkpointer=saver)

    config = at("t")
    with opened(tmp_path / "s") as saver:
        build(saver).invoke({"words": ["begin"]}, config)
    with opened(tmp_path / "s") as saver:
        graph = build(saver)
        state = graph.get_state(config, subgraphs=True)
        assert state.tasks[0].interrupts[0].value == "inner?"
        done = graph.invoke(Command(resume="ok"), config)
        assert done["words"][-1] == "inner ok"
        spaces = {
            one.config["configurable"]["checkpoint_ns"] for one in saver.list(None)
        }
        assert len(spaces) == 2
        # All of it is one line: a subgraph is not a fork.
        assert len(saver._threads.thread("t").index.lines) == 1


def test_parallel_tasks_keep_their_writes_when_one_fails(tmp_path):
    class Wide(TypedDict):
        found: Annotated[list[int], operator.add]

    broken = {"on": True}
    runs: list[int] = []

    def work(state: Any) -> Any:
        runs.append(state["n"])
        if state["n"] == 3 and broken["on"]:
            raise RuntimeError("task 3 failed")
        return {"found": [state["n"]]}

    def build(saver: Any) -> Any:
        builder = StateGraph(Wide)
        builder.add_node("spread", lambda state: {})
        builder.add_node("work", work)
        builder.add_edge(START, "spread")
        builder.add_conditional_edges(
            "spread", lambda state: [Send("work", {"n": n}) for n in range(6)], ["work"]
        )
        return builder.compile(checkpointer=saver)

    config: Any = {**at("t"), "max_concurrency": 1}
    with opened(tmp_path / "s") as saver, pytest.raises(RuntimeError):
        build(saver).invoke({"found": []}, config)
    before = list(runs)
    broken["on"] = False
    with opened(tmp_path / "s") as saver:
        done = build(saver).invoke(None, config)
    assert done["found"] == [0, 1, 2, 3, 4, 5]
    again = runs[len(before) :]
    # What had finished is not run twice.
    assert 3 in again
    assert set(again).isdisjoint(set(before) - {3})


def join(state: list[str], updates: Any) -> list[str]:
    """A reducer for which the order matters."""
    return [*state, *(word for update in updates for word in update)]


class Deltas(TypedDict):
    words: Annotated[list[str], DeltaChannel(join, snapshot_frequency=5)]


def test_a_delta_channel_is_rebuilt_whole(tmp_path):
    def work(state: Any) -> Any:
        return {"words": [f"w{len(state['words'])}"]}

    builder: Any = StateGraph(Deltas)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_conditional_edges(
        "work", lambda state: "work" if len(state["words"]) < 13 else END
    )
    config: Any = {**at("t"), "recursion_limit": 100}
    with opened(tmp_path / "s") as saver:
        builder.compile(checkpointer=saver).invoke({"words": []}, config)
    with opened(tmp_path / "s") as saver:
        graph = builder.compile(checkpointer=saver)
        wanted = [f"w{n}" for n in range(13)]
        assert graph.get_state(config).values["words"] == wanted
        for state in graph.get_state_history(config):
            found = state.values.get("words", [])
            assert found == wanted[: len(found)]
        with pytest.raises(DeltaChainError):
            saver.prune(["t"])
        assert graph.get_state(config).values["words"] == wanted
        saver.copy_thread("t", "u")
        assert graph.get_state(at("u")).values["words"] == wanted
        saver.prune(["t"], strategy="delete")
        assert graph.get_state(at("u")).values["words"] == wanted


def test_files_of_two_threads_share_their_objects(repo):
    with opened(repo, workspace=repo) as saver:
        version = saver.get_next_version(None, None)
        for thread in ("a", "b"):
            made = {
                "v": 4,
                "id": f"{thread}-1",
                "ts": "",
                "channel_values": {"n": 1},
                "channel_versions": {"n": version},
                "versions_seen": {},
            }
            saver.put(at(thread), made, {"step": 0}, {"n": version})
        trees = {saver.checkpoint(at(one)).files_tree for one in ("a", "b")}
        assert len(trees) == 1
        assert saver.checkpoint(at("a")).holds_files
    with opened(repo) as plain:
        config = plain.get_tuple(at("a")).config
        # Without workspace= the files of the line stay what they were.
        put(plain, config, {"n": 2}, 1)
        assert plain.checkpoint(at("a")).files_tree in trees


def test_versions_that_something_else_makes_are_warned_of_once(repo):
    """As under LangGraph's server, which wraps a saver and counts by itself."""

    class Wrapped(BaseCheckpointSaver[Any]):
        def __init__(self, inner: Any) -> None:
            super().__init__()
            self.inner = inner

        def get_tuple(self, config: Any) -> Any:
            return self.inner.get_tuple(config)

        def put(self, *args: Any) -> Any:
            return self.inner.put(*args)

        def put_writes(self, *args: Any) -> None:
            self.inner.put_writes(*args)

        def get_next_version(self, current: Any, channel: Any) -> Any:
            return f"{int(str(current or 0).split('.')[0]) + 1:032}.0"

    saver = opened(repo, workspace=repo)
    graph = counting(repo, Wrapped(saver))
    with pytest.warns(RuntimeWarning, match="workspace=") as caught:
        graph.invoke({"words": []}, at("t"))
    assert len(caught) == 1
    # Warnings are errors in these tests: a second one would raise.
    graph.invoke({"words": []}, at("t"))
    saver.close()


def test_parents_that_go_round_come_to_an_end_and_are_reported(tmp_path):
    saver = opened(tmp_path / "s")
    first = put(saver, at("t"), {"value": 1})
    second = put(saver, first, {"value": 2}, 1)
    third = put(saver, second, {"value": 3}, 2)
    # The first once more, after the last: as a stranger's thread may say.
    again = saver.get_tuple(first).checkpoint
    saver.put(third, again, {"source": "loop", "step": 3, "parents": {}}, {})
    way = []
    config: Any = third
    while config is not None:
        way.append(config["configurable"]["checkpoint_id"])
        config = saver.get_tuple(config).parent_config
    assert way == [
        one["configurable"]["checkpoint_id"] for one in (third, second, first)
    ]
    found = saver.get_delta_channel_history(config=third, channels=["missing"])
    assert found["missing"]["writes"] == []
    assert len(list(saver.list(at("t")))) == 3
    saver.close()
    problems = verify(store_at(tmp_path / "s")).problems
    assert ["lead back to it" in one.problem for one in problems] == [True]
