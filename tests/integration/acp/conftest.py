"""A proxy between an editor and an agent, all in this process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest

from gitcp.cli import acp_worker
from tests.support.acp_wire import Answer, Wire, folding, state


class Start(Protocol):
    def __call__(
        self, answer: Answer | None = None, words: Sequence[str] = ("/bin/agent",)
    ) -> Wire: ...


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts proxies whose conversations are recorded; `answer` makes the checkpoints."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    started: list[Wire] = []

    def begin(
        answer: Answer | None = None, words: Sequence[str] = ("/bin/agent",)
    ) -> Wire:
        made = folding(state()) if answer is None else answer
        started.append(Wire(monkeypatch, state(), made, words))
        return started[-1]

    yield begin
    for one in started:
        one.end()


@pytest.fixture
def saving(start: Start, repo: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts proxies in a repository that make checkpoints there."""
    monkeypatch.chdir(repo)

    def begin(
        answer: Answer | None = None, words: Sequence[str] = ("/bin/agent",)
    ) -> Wire:
        return start(answer or (lambda request: acp_worker._answer(request)[0]), words)

    return begin
