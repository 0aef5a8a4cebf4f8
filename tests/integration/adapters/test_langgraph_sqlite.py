"""Threads of a SqliteSaver database come over equal, and nothing is imported for it."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import json
import sqlite3
import sys
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite", reason="not installed")
pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Interrupt

from gitcp.adapters.langgraph import BlockedClassError
from gitcp.errors import NotFoundError, UsageError
from tests.support.gitrepo import git
from tests.support.graphs import at, chain, checkpoint, everything, opened, put


@dataclasses.dataclass
class Mine:
    """A class that no allow list names."""

    text: str


def database(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, check_same_thread=False)


def fill(saver: Any) -> None:
    """Threads of every shape: growing, forked, with subgraphs, interrupts and classes."""
    made = chain(saver, "grown", 12)
    put(saver, made[3], {"messages": [HumanMessage(content="other way", id="x")]}, 4)
    config = put(saver, at("Größe/|:", namespace="node:1|two"), {"n": None, "b": b"\0"})
    saver.put_writes(
        config, [("__interrupt__", (Interrupt("sure?", id="i"),))], "t1", "p"
    )
    saver.put_writes(config, [("a", Mine("one")), ("b", [1, {"k": 2}])], "t2", "q")
    kinds = {
        "mine": [Mine("in a list" * 200)],
        "date": datetime.datetime(2026, 11, 21, tzinfo=datetime.UTC),
        "ids": {uuid.UUID(int=7)},
        "ai": AIMessage(content="x", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
        "float": 0.1,
        "text": "ü" * 3000,
        "map": {"nested": {"deep": [None, True]}, 5: "number as key"},
    }
    put(saver, at("kinds"), kinds, 0, run_id="run-1", who="me")
    legacy = checkpoint(0, {"v": 1}, version=3)
    legacy["pending_sends"] = []
    saver.put(at("numbers"), legacy, {"source": "input", "step": -1}, {"v": 3})


def test_tuples_are_equal_before_and_after(tmp_path):
    serde = JsonPlusSerializer(
        allowed_msgpack_modules=[(Mine.__module__, Mine.__qualname__)]
    )
    with closing(database(tmp_path / "x.db")) as connection:
        source = SqliteSaver(connection, serde=serde)
        fill(source)
        before = everything(source)
    with opened(tmp_path / "s", serde=serde) as saver:
        assert saver.import_sqlite(tmp_path / "x.db") == len(before)
        assert everything(saver) == before
        # Again changes nothing.
        assert saver.import_sqlite(tmp_path / "x.db") == 0
        assert everything(saver) == before
        ident = saver.get_tuple(at("grown")).config
        put(saver, ident, {"n": "goes on"}, 99)
    with opened(tmp_path / "s", serde=serde) as saver:
        assert len(everything(saver)) == len(before) + 1
        lines = saver._threads.thread("grown").index.lines
    assert sorted(name.split("-")[0] for name in lines) == ["fork", "main"]
    git(tmp_path / "s", "fsck", "--strict")


def test_a_class_of_the_database_is_not_imported(tmp_path, monkeypatch):
    (tmp_path / "their_module.py").write_text(
        "import dataclasses\n@dataclasses.dataclass\nclass Theirs:\n    text: str\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    their_module = importlib.import_module("their_module")

    with closing(database(tmp_path / "x.db")) as connection:
        source = SqliteSaver(connection)
        config = put(source, at("t"), {"ch": their_module.Theirs("kept")})
        source.put_writes(config, [("ch", their_module.Theirs("too"))], "task")
    del sys.modules["their_module"]
    with opened(tmp_path / "s") as saver:
        assert saver.import_sqlite(tmp_path / "x.db") == 1
        with pytest.raises(BlockedClassError, match=r"their_module\.Theirs"):
            saver.get_tuple(at("t"))
    assert "their_module" not in sys.modules
    allowed = JsonPlusSerializer(allowed_msgpack_modules=[("their_module", "Theirs")])
    with opened(tmp_path / "s", serde=allowed) as saver:
        # It was not lost: allowing the class brings it back.
        found = saver.get_tuple(at("t"))
        assert found.checkpoint["channel_values"]["ch"].text == "kept"
        assert found.pending_writes[0][2].text == "too"


def test_the_json_form_of_old_releases_is_read(tmp_path):
    with closing(database(tmp_path / "x.db")) as connection:
        source = SqliteSaver(connection)
        config = put(source, at("t"), {"ch": {"a": 1}})
        held = {**checkpoint(0, {"ch": {"a": [1, None]}})}
        held["id"] = config["configurable"]["checkpoint_id"]
        connection.execute(
            "UPDATE checkpoints SET type = 'json', checkpoint = ?", [json.dumps(held)]
        )
        connection.commit()
        before = everything(source)
    with opened(tmp_path / "s") as saver:
        saver.import_sqlite(tmp_path / "x.db")
        assert everything(saver) == before


def test_what_is_no_such_database_is_refused(tmp_path):
    (tmp_path / "text.db").write_text("not a database, and long enough to be read")
    with closing(database(tmp_path / "other.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    with opened(tmp_path / "s") as saver:
        for name in ("text.db", "other.db"):
            with pytest.raises(UsageError):
                saver.import_sqlite(tmp_path / name)
        with pytest.raises(NotFoundError):
            saver.import_sqlite(tmp_path / "none.db")
        with closing(database(tmp_path / "x.db")) as connection:
            put(SqliteSaver(connection), at("t"), {"n": 1})
            connection.execute("UPDATE checkpoints SET type = 'msgpack+aes'")
            connection.commit()
        with pytest.raises(UsageError, match="aes"):
            saver.import_sqlite(tmp_path / "x.db")
        assert everything(saver) == []
