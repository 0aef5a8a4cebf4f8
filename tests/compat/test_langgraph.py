"""A recorded thread of format 1 and a redo log beside it: both stay readable.

`python -m tests.compat.test_langgraph` records a new one, for a new format only: what was
recorded is never replaced.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from tests.support.gitrepo import git
from tests.support.graphs import at, chain, everything, opened, put

HERE = Path(__file__).parent
RECORDED = [path.with_suffix("") for path in sorted(HERE.glob("langgraph-*.bundle"))]
LOG = "langgraph-grown.redo"
LONG = 60


def shown(value: Any) -> Any:
    """A value as JSON that does not change with LangChain's releases."""
    if hasattr(value, "content"):
        return [type(value).__name__, value.id, shown(value.content)]
    if isinstance(value, dict):
        return {name: shown(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one) for one in value]
    if isinstance(value, bytes):
        return ["bytes", len(value), hashlib.sha256(value).hexdigest()]
    if isinstance(value, str) and len(value) > LONG:
        return [value[:20], len(value), hashlib.sha256(value.encode()).hexdigest()[:16]]
    return value


def state(saver: Any) -> Any:
    return json.loads(
        json.dumps(
            [
                shown(
                    [
                        one.config,
                        one.checkpoint,
                        one.metadata,
                        one.parent_config,
                        one.pending_writes,
                    ]
                )
                for one in everything(saver)
            ]
        )
    )


@pytest.mark.parametrize("name", RECORDED, ids=lambda path: path.name)
def test_a_recorded_thread_reads_as_it_did_and_goes_on(name, tmp_path):
    store = tmp_path / "store"
    git(tmp_path, "init", "--quiet", "--bare", store)
    bundle = name.with_suffix(".bundle")
    git(store, "fetch", "--quiet", bundle, "refs/gitcp/s/*:refs/gitcp/s/*")
    log = store / "gitcp" / "redo" / LOG
    log.parent.mkdir(parents=True)
    shutil.copy(name.with_suffix(".redo"), log)
    wanted = json.loads(name.with_suffix(".json").read_text())
    with opened(store, trust=True) as saver:
        assert state(saver) == wanted
        put(saver, saver.get_tuple(at("grown")).config, {"n": "goes on"}, 99)
        assert len(everything(saver)) == len(wanted) + 1
    assert not log.exists()
    git(store, "fsck", "--full", "--strict")


def test_there_is_a_recorded_thread():
    assert RECORDED


def record(name: Path) -> None:
    with tempfile.TemporaryDirectory() as base:
        store = Path(base) / "store"
        with opened(store) as saver:
            made = chain(saver, "grown", 18)
            put(saver, made[4], {"n": "fork", "bytes": b"\0\xff" * 800}, 5)
            config = put(saver, at("Größe/|:", namespace="node:1|two"), {"n": None})
            saver.put_writes(config, [("__interrupt__", "sure?")], "task", "p")
            saver.copy_thread("grown", "copied")
        # The refs as they are before the redo log is settled.
        bundle = name.with_suffix(".bundle")
        git(store, "bundle", "create", "--quiet", bundle, "--glob=refs/gitcp/s/*")
        saver = opened(store)
        saver._threads.drainer.note = lambda thread: None
        last = put(saver, made[-1], {"n": "only in the log", "text": "ü" * 2000}, 18)
        saver.put_writes(last, [("a", 1), ("b", "x" * 2000)], "task", "q")
        shutil.copy(store / "gitcp" / "redo" / LOG, name.with_suffix(".redo"))
        name.with_suffix(".json").write_text(json.dumps(state(saver)) + "\n")


if __name__ == "__main__":
    record(HERE / sys.argv[1])
