"""The worker that makes the checkpoints of `gitcp acp`, as a process."""

from __future__ import annotations

import contextlib
import os
import queue
from typing import Any

import pytest

from gitcp.acp import checkpointer
from gitcp.acp.checkpointer import Checkpointer, Outcome


@pytest.fixture
def asked(monkeypatch):
    """Has a shell's script answer requests; returns the outcomes."""

    def run(script: str, *requests: dict[str, Any] | None) -> list[Outcome]:
        monkeypatch.setattr(checkpointer, "_WORKER", ("/bin/sh", "-c", script))
        outcomes: queue.Queue[Outcome] = queue.Queue()
        made = Checkpointer()
        made.start()
        for request in requests:
            made.ask(request, outcomes.put)
        made.finish()
        return [outcomes.get_nowait() for _ in requests]

    return run


def test_requests_are_answered_in_their_order_by_one_worker(asked):
    script = """while read -r line; do echo '{"tell":"'$$'"}'; done"""
    first, none, second = asked(script, {"event": "a"}, None, {"event": "b"})
    assert none == Outcome()
    assert first.tell == second.tell != None  # noqa: E711


def test_an_answer_may_come_in_parts(asked):
    script = r"""read -r a; printf '{"code":"x",'; printf '"error":"%s"}\n{"tell"' y
    read -r b; printf ':"z"}\n'; read -r c"""
    assert asked(script, {}, {}) == [Outcome("x", "y"), Outcome(tell="z")]


def test_a_worker_that_ends_is_followed_by_another(asked):
    script = """read -r line; echo '{"tell":"'$$'"}'"""
    first, second = asked(script, {}, None, {})[::2]
    assert first.code is None
    found = {first.tell, second.tell or second.code}
    assert len(found) == 2
    (ended,) = asked("exit 3", {})
    assert ended.code == "internal"


def test_a_worker_that_does_not_end_is_killed(asked, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpointer, "_PATIENCE", 0.2)
    monkeypatch.setattr(checkpointer, "_GRACE", 0.01)
    pid = tmp_path / "pid"
    (outcome,) = asked(f"echo $$ >{pid}; exec sleep 1000", {})
    assert outcome.error == "ValueError: no checkpoint was made within 0.2 s"
    with contextlib.suppress(FileNotFoundError), pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text() or 0) or 1 << 22, 0)


def test_a_worker_that_cannot_be_started_is_an_outcome(monkeypatch):
    monkeypatch.setattr(checkpointer, "_WORKER", ("/no/such/program",))
    outcomes: queue.Queue[Outcome] = queue.Queue()
    made = Checkpointer()
    made.start()
    made.ask({}, outcomes.put)
    made.finish()
    assert outcomes.get_nowait().code == "internal"
