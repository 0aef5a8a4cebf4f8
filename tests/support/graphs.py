"""Threads of LangGraph for the tests: made by hand, or by a real graph."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")
pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from gitcp.adapters.langgraph import GitcpSaver

__all__ = ["END", "START", "Command", "GitcpSaver", "StateGraph", "interrupt"]

Config = Any


def opened(path: Path, **named: Any) -> Any:
    """A saver; untyped, for a test looks into what may be None."""
    return GitcpSaver(path, **named)


def at(thread: str, ident: str | None = None, namespace: str = "") -> Config:
    """A config that names a thread, a checkpoint."""
    named: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": namespace}
    if ident is not None:
        named["checkpoint_id"] = ident
    return {"configurable": named}


def checkpoint(step: int, values: dict[str, Any], version: Any = None) -> Any:
    """A checkpoint as LangGraph makes it; every channel has one version."""
    mark = version if version is not None else f"{step + 1:032}.0"
    return {
        "v": 4,
        "id": str(uuid6(clock_seq=step)),
        "ts": "2026-11-21T12:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, mark),
        "versions_seen": {"node": dict.fromkeys(values, mark)},
        "updated_channels": sorted(values),
    }


def put(
    saver: BaseCheckpointSaver,
    config: Config,
    values: dict[str, Any],
    step: int = 0,
    **metadata: Any,
) -> Any:
    """Puts one checkpoint after the one in `config`."""
    made = checkpoint(step, values)
    said: Any = {"source": "loop", "step": step, "parents": {}, **metadata}
    return saver.put(config, made, said, made["channel_versions"])


def chain(saver: BaseCheckpointSaver, thread: str, count: int) -> list[Any]:
    """Puts a line of checkpoints with a growing list of messages, and writes."""
    config: Any = at(thread)
    made: list[Any] = []
    messages: list[Any] = []
    for step in range(count):
        message = HumanMessage(content=f"{step} " + "word " * 200, id=f"m{step}")
        messages = [*messages, message]
        if made:
            saver.put_writes(config, [("messages", [message])], f"task{step}", "p")
        config = put(saver, config, {"messages": messages, "n": step}, step)
        made.append(config)
    return made


def everything(saver: Any) -> list[Any]:
    """All checkpoints of all threads, in an order of their own."""
    return sorted(
        saver.list(None),
        key=lambda one: (
            one.config["configurable"]["thread_id"],
            one.config["configurable"]["checkpoint_ns"],
            one.checkpoint["id"],
        ),
    )


class State(TypedDict):
    """What the graphs of the tests work on."""

    words: Annotated[list[str], operator.add]


def write(directory: Path, name: str, text: str) -> None:
    """Writes a file as a node would."""
    (directory / name).write_text(text)


def history(graph: Any, config: Config) -> Iterator[Any]:
    """The states of a thread, newest first."""
    yield from graph.get_state_history(config)
