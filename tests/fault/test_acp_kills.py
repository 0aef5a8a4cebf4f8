"""`gitcp acp` killed at any moment: what the editor has seen is saved by the next start."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import threading
from typing import Any

import pytest

from tests.e2e.test_acp import Editor
from tests.support.gitrepo import run_gitcp

SEED = int(os.environ.get("SEED", "1"))


def _seen(raw: bytes) -> str:
    """The text of the updates that came whole."""
    texts = []
    for line in raw[: raw.rfind(b"\n") + 1].splitlines():
        update = json.loads(line).get("params", {}).get("update")
        if update is not None:
            texts.append(update["content"]["text"])
    return "".join(texts)


def _talk(repo) -> str:
    """The answers of every session that is saved."""
    done = run_gitcp(repo, "log", "--all", "--json", "--full")
    ends: dict[str, int] = {}
    for one in json.loads(done.stdout)["checkpoints"]:
        if one["conversation"] is not None:
            number = max(one["number"], ends.get(one["session"], 0))
            ends[one["session"]] = number
    said = []
    for number in ends.values():
        raw = run_gitcp(repo, "messages", str(number), "--format", "jsonl").stdout
        for line in raw.splitlines():
            message: dict[str, Any] = json.loads(line)
            if message["role"] == "assistant":
                said += [block["text"] for block in message["content"]]
    return "|".join(said)


def _killed(editor: Editor, after: float) -> str:
    """Has turns until the proxy is killed; returns what the editor saw of the last two."""
    timer = threading.Timer(after, editor.process.kill)
    with contextlib.suppress(AssertionError, BrokenPipeError, OSError):
        session = editor.open()
        timer.start()
        for _ in range(1000):
            editor.turn(session, "stream 300")
    timer.cancel()
    editor.process.kill()
    editor.close()
    return _seen(editor.got)


@pytest.mark.parametrize(
    "kills",
    [2, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])],
)
def test_what_the_editor_has_seen_is_saved_by_the_next_start(
    repo, tmp_path, monkeypatch, kills
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    drawn = random.Random(SEED)
    for number in range(kills):
        after = drawn.uniform(0, 1.5)
        seen = _killed(Editor(repo, tmp_path / "heard", {}), after)
        other = Editor(repo, tmp_path / "heard", {})
        other.turn(other.open(), "write done")
        assert other.close() == 0
        # The numbers of each answer begin at 0.
        answers = re.split(r"(?<!\d)(?=0 )", seen)
        saved = _talk(repo)
        assert all(answer in saved for answer in answers), (number, after, SEED)
        assert run_gitcp(repo, "verify").returncode == 0
        state = tmp_path / "state" / "gitcp" / "acp"
        left = [
            path for path in state.rglob("*") if path.suffix in {".turn", ".adding"}
        ]
        assert left == []
