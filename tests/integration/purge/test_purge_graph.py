"""A secret is taken out of a thread of LangGraph, which can be read and goes on."""

from __future__ import annotations

import base64
import json
import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")
pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from tests.support.gitrepo import git
from tests.support.graphs import START, Command, StateGraph, at, interrupt, opened
from tests.support.inprocess import invoke, ok

SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
HIDDEN = base64.b64encode(b"key=" + SECRET.encode()).decode()


# Stands for any character of a fingerprint, or of base64.
ANY = "\N{MIDDLE DOT}"


class Trip(TypedDict):
    notes: Annotated[list[str], operator.add]
    one: str
    more: Any


def find(_: Trip) -> Any:
    """In what is kept inline, in a list that grows, in bytes, in a key, encoded."""
    return {
        "notes": [f"short {SECRET}", f"{'x' * 3000}{SECRET} two\nlines", HIDDEN],
        "one": SECRET,
        "more": {"list": [SECRET.encode(), 2.5], SECRET: 1, "é": f"é{SECRET}é"},
    }


def ask(_: Trip) -> Any:
    return {"notes": [f"said {interrupt(f'use {SECRET}?')}"]}


def end(_: Trip) -> Any:
    return {"notes": ["end"]}


def build(saver: Any) -> Any:
    builder: Any = StateGraph(Trip)
    builder.add_sequence([find, ask, end])
    builder.add_edge(START, "find")
    return builder.compile(checkpointer=saver)


def everything(repo: Path) -> bytes:
    return git(repo, "cat-file", "--batch-all-objects", "--batch", "--unordered")


def covered(value: Any) -> Any:
    """The value as it is to be: of the same shape and length."""
    if isinstance(value, dict):
        return {covered(name): covered(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [covered(inner) for inner in value]
    if isinstance(value, bytes):
        return covered(value.decode())
    if not isinstance(value, str):
        return value
    cover = ("[purged:" + ANY * 12 + "]") * 4
    value = value.replace(HIDDEN, ANY * len(HIDDEN))
    return value.replace(SECRET, cover[: len(SECRET)])


def alike(found: Any, wanted: Any) -> bool:
    """Whether two values are equal but for the fingerprint in markers."""
    if isinstance(wanted, dict):
        return len(found) == len(wanted) and all(
            alike(one, other) and alike(found[one], wanted[other])
            for one, other in zip(found, wanted, strict=True)
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(alike, found, wanted))
    if isinstance(wanted, str):
        found = found.decode() if isinstance(found, bytes) else found
        pairs = zip(found, wanted, strict=True)
        return all(other in (ANY, one) for one, other in pairs)
    return bool(found == wanted)


def told(graph: Any) -> list[Any]:
    return [
        [one.values, one.next, [i.value for task in one.tasks for i in task.interrupts]]
        for one in graph.get_state_history(at("t"))
    ]


@pytest.mark.parametrize("how", ["value", "fingerprint"])
def test_a_thread_is_whole_without_the_secret(repo, how):
    with opened(repo) as saver:
        build(saver).invoke({"notes": ["in"]}, at("t"), durability="sync")
        wanted = covered(told(build(saver)))
    words, given = ["--value-from-stdin"], SECRET.encode()
    if how == "fingerprint":
        (found,) = json.loads(invoke(repo, "scan", "--json").stdout)["secrets"]
        words, given = [found["fingerprint"]], b""
    done = ok(repo, "purge", *words, "--yes", input=given)
    assert done["checkpoints"]
    assert done["left"] == []
    assert SECRET.encode() not in everything(repo)
    assert HIDDEN.encode() not in everything(repo)
    assert ok(repo, "verify")["ok"]
    assert ok(repo, "scan")["secrets"] == []
    with opened(repo) as saver:
        graph = build(saver)
        assert alike(told(graph), wanted)
        found = graph.invoke(Command(resume="yes"), at("t"))
        assert found["notes"][-2:] == ["said yes", "end"]
        # The list goes on from the one that was covered.
        assert alike(found["notes"][:4], wanted[0][0]["notes"])
    assert ok(repo, "verify")["ok"]
    git(repo, "fsck", "--strict", "--no-dangling")
