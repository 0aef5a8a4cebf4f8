"""States made of the program's own classes: what comes back, and what is refused."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, TypedDict

import pytest

pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")
pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from pydantic import BaseModel

from gitcp.adapters.langgraph import BlockedClassError
from gitcp.adapters.langgraph.classes import LoadedClasses, default_serializer
from tests.support.graphs import (
    END,
    START,
    Command,
    StateGraph,
    at,
    interrupt,
    opened,
    put,
)


class Colour(Enum):
    RED = "red"


@dataclass
class Rate:
    country: str
    percent: int


class Point(NamedTuple):
    x: int
    y: int


class Invoice(BaseModel):
    rates: list[Rate]
    colour: Colour


class Billing(TypedDict):
    invoice: Invoice
    rate: Rate
    colour: Colour
    point: Point


STATE = {
    "invoice": Invoice(rates=[Rate("DE", 19)], colour=Colour.RED),
    "rate": Rate("FR", 20),
    "colour": Colour.RED,
    "point": Point(1, 2),
}


def asking(saver: Any, seen: list[Any]) -> Any:
    def ask(state: Billing) -> Any:
        interrupt("go on?")
        seen.append(state)
        # As a node would: with what a dict does not have.
        return {"rate": Rate(state["rate"].country, state["invoice"].rates[0].percent)}

    builder = StateGraph(Billing)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def test_a_graph_resumes_with_the_classes_of_its_state(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("LANGGRAPH_STRICT_MSGPACK", raising=False)
    with opened(tmp_path / "s") as saver:
        asking(saver, []).invoke(STATE, at("t"))
    seen: list[Any] = []
    with opened(tmp_path / "s") as saver:
        done = asking(saver, seen).invoke(Command(resume="yes"), at("t"))
    assert seen == [STATE]
    assert done["rate"] == Rate("FR", 19)
    assert [type(value) for value in seen[0].values()] == [Invoice, Rate, Colour, Point]
    assert "Blocked" not in caplog.text


def named(module: str, name: str) -> Any:
    """An object whose class says that it is another one."""
    made: Any = dataclass(type(name, (), {"__annotations__": {"args": str}}))
    made.__module__ = module
    made.__qualname__ = name
    return made("touch /tmp/never")


@pytest.mark.parametrize(
    ("module", "name", "why"),
    [
        ("a_module_that_is_not_there", "State", "is not imported"),
        ("subprocess", "Popen", "not a class of plain data"),
        ("os", "system", "not a class of plain data"),
        ("builtins", "eval", "not a class of plain data"),
    ],
)
def test_what_is_no_loaded_data_is_refused_by_name(tmp_path, module, name, why):
    stored = JsonPlusSerializer().dumps_typed({"deep": [named(module, name)]})
    with pytest.raises(BlockedClassError, match=rf"{module}\.{name}.*{why}") as caught:
        LoadedClasses().loads_typed(stored)
    hint = str(caught.value.hint)
    assert f"[({module!r}, {name!r})]" in hint
    assert hint.startswith(
        "the user who wrote the state chose that class; if you trust them"
    )
    assert "a_module_that_is_not_there" not in sys.modules
    with opened(tmp_path / "s") as saver:
        put(saver, at("t"), {"value": named(module, name)})
        with pytest.raises(BlockedClassError):
            saver.get_tuple(at("t"))


def test_a_module_that_imports_on_demand_is_not_asked_to():
    stored = JsonPlusSerializer().dumps_typed(named(__name__, "LAZY"))
    assert LoadedClasses().loads_typed(stored) == {"args": "touch /tmp/never"}


def __getattr__(name: str) -> Any:
    if name == "LAZY":
        pytest.fail("the module was asked for what it has not loaded")
    raise AttributeError(name)


def test_a_class_inside_a_function_comes_back_as_sqlites_saver_has_it(tmp_path):
    @dataclass
    class Local:
        x: int

    ours = opened(tmp_path / "s")
    with ours, SqliteSaver.from_conn_string(str(tmp_path / "db")) as theirs:
        found = []
        for saver in (ours, theirs):
            put(saver, at("t"), {"value": Local(1)})
            got = saver.get_tuple(at("t"))
            assert got is not None
            found.append(got.checkpoint["channel_values"]["value"])
        assert found[0] == found[1]


def test_one_class_allowed_is_allowed_again_at_once(monkeypatch):
    serde = LoadedClasses()
    stored = serde.dumps_typed(Rate("DE", 19))
    assert serde.loads_typed(stored) == Rate("DE", 19)
    monkeypatch.setattr(
        "gitcp.adapters.langgraph.classes._judge", lambda *_: pytest.fail("asked again")
    )
    assert serde.loads_typed(stored) == Rate("DE", 19)


def test_in_strict_mode_langgraph_alone_says_what_is_allowed(monkeypatch):
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "true")
    assert type(default_serializer()) is JsonPlusSerializer
    stored = JsonPlusSerializer().dumps_typed(Rate("DE", 19))
    assert default_serializer().loads_typed(stored) == {"country": "DE", "percent": 19}
