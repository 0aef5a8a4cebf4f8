"""The saver against LangGraph's own suite, and what that suite does not ask."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")
pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed")

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from gitcp.adapters.langgraph import BlockedClassError
from gitcp.errors import NotARepositoryError, UsageError
from tests.support.clones import clone, make_hub, results
from tests.support.gitrepo import git, git_line, gitcp_environment, run_gitcp
from tests.support.graphs import (
    GitcpSaver,
    at,
    chain,
    checkpoint,
    everything,
    opened,
    put,
)
from tests.support.inprocess import invoke

ODD = [
    "a/b",
    "..",
    ".",
    "x|y:z",
    " two  words ",
    "Größe 北京",
    "-rf",
    "n" * 300,
    "É.lock",
]


@pytest.fixture
def saver(tmp_path):
    with opened(tmp_path / "store") as made:
        yield made


class Shim(BaseCheckpointSaver):
    """The sync methods behind the names that the suite calls."""

    def __init__(self, inner: GitcpSaver) -> None:
        super().__init__(serde=inner.serde)
        self._inner = inner

    async def aput(self, *args, **named):
        return self._inner.put(*args, **named)

    async def aput_writes(self, *args, **named):
        self._inner.put_writes(*args, **named)

    async def aget_tuple(self, config):
        return self._inner.get_tuple(config)

    async def alist(self, *args, **named):
        for one in self._inner.list(*args, **named):
            yield one

    async def adelete_thread(self, *args, **named):
        self._inner.delete_thread(*args, **named)

    async def adelete_for_runs(self, *args, **named):
        self._inner.delete_for_runs(*args, **named)

    async def acopy_thread(self, *args, **named):
        self._inner.copy_thread(*args, **named)

    async def aprune(self, *args, **named):
        self._inner.prune(*args, **named)


@pytest.mark.parametrize("how", ["async", "sync"])
def test_the_official_suite_passes_whole(how, tmp_path):
    @checkpointer_test(name=f"gitcp-{how}")
    async def made():
        with opened(tmp_path / str(len(os.listdir(tmp_path)))) as inner:
            yield inner if how == "async" else Shim(inner)

    report = asyncio.run(validate(made))
    failures = [
        one for found in report.results.values() for one in found.failures or ()
    ]
    assert failures == []
    assert sum(found.tests_passed or 0 for found in report.results.values()) == 81
    assert len([found for found in report.results.values() if found.passed]) == 8
    for store in tmp_path.iterdir():
        git(store, "fsck", "--full", "--strict")


def test_pending_writes_come_in_the_order_they_take_effect(saver):
    config = put(saver, at("t"), {"n": 1})
    saver.put_writes(config, [("a", 1), ("b", 2)], "task-a", "path-2")
    saver.put_writes(config, [("a", 3)], "task-z", "path-1")
    saver.put_writes(config, [("a", 4)], "task-b", "path-2")
    found = saver.get_tuple(config)
    assert found.pending_writes == [
        ("task-z", "a", 3),
        ("task-a", "a", 1),
        ("task-a", "b", 2),
        ("task-b", "a", 4),
    ]


def test_who_is_given_a_checkpoint_may_change_it(saver):
    """LangGraph notes in an old one what it has seen, going on from there."""
    config = put(saver, at("t"), {"words": ["a"]}, about={"list": [1]})
    wanted = deepcopy(saver.get_tuple(config))
    for found in (saver.get_tuple(config), next(saver.list(at("t")))):
        found.checkpoint["versions_seen"]["__interrupt__"] = {"words": "9"}
        found.checkpoint["versions_seen"]["node"]["words"] = "9"
        found.checkpoint["channel_versions"].clear()
        found.checkpoint["channel_values"]["words"].append("b")
        found.checkpoint["updated_channels"].append("x")
        found.metadata["about"]["list"].append(2)
    assert saver.get_tuple(config) == wanted
    assert list(saver.list(at("t"))) == [wanted]


def test_writes_of_a_task_are_kept_and_special_ones_replaced(saver):
    config = put(saver, at("t"), {"n": 1})
    saver.put_writes(config, [("a", 1)], "task")
    saver.put_writes(config, [("a", 2)], "task")
    saver.put_writes(config, [("__interrupt__", "one")], "task")
    saver.put_writes(config, [("__interrupt__", "two")], "task")
    found = saver.get_tuple(config)
    assert found.pending_writes == [("task", "__interrupt__", "two"), ("task", "a", 1)]


def test_writes_may_come_before_their_checkpoint(saver):
    made = checkpoint(0, {"n": 1})
    saver.put_writes(at("t", made["id"]), [("a", 1)], "task")
    assert saver.get_tuple(at("t")) is None
    saver.put(at("t"), made, {"source": "loop", "step": 0, "parents": {}}, {})
    assert saver.get_tuple(at("t")).pending_writes == [("task", "a", 1)]


def test_late_writes_find_an_older_checkpoint(saver):
    made = chain(saver, "t", 4)
    saver.put_writes(made[1], [("late", 1)], "other")
    assert ("other", "late", 1) in saver.get_tuple(made[1]).pending_writes
    assert saver.get_tuple(at("t")).config == made[-1]


def test_the_same_id_again_replaces(saver):
    made = chain(saver, "t", 3)
    ident = made[1]["configurable"]["checkpoint_id"]
    again = {**checkpoint(1, {"n": "new"}), "id": ident}
    saver.put(made[0], again, {"source": "loop", "step": 1, "parents": {}}, {"n": 1})
    assert saver.get_tuple(made[1]).checkpoint["channel_values"] == {"n": "new"}
    assert len(list(saver.list(at("t")))) == 3


def test_a_channel_that_was_dropped_does_not_come_back(saver):
    first = put(saver, at("t"), {"a": 1, "big": "x" * 5000})
    put(saver, first, {"a": 2}, 1)
    assert saver.get_tuple(at("t")).checkpoint["channel_values"] == {"a": 2}


def test_a_channel_in_the_same_version_is_the_parents(saver, tmp_path):
    big = ["x" * 5000]
    made = checkpoint(0, {"a": 1, "big": big})
    config = saver.put(at("t"), made, {"step": 0}, made["channel_versions"])
    again = checkpoint(1, {"a": 2, "big": big})
    again["channel_versions"]["big"] = made["channel_versions"]["big"]
    saver.put(config, again, {"step": 1}, {"a": again["channel_versions"]["a"]})
    with opened(tmp_path / "store") as other:
        found = other.get_tuple(at("t"))
    assert found.checkpoint["channel_values"] == {"a": 2, "big": big}


VALUES: dict[str, list[Any]] = {
    "grown": [["a" * 900] * n for n in (3, 4, 9)],
    "shrunk": [["b" * 900] * n for n in (9, 4, 1)],
    "front cut": [[f"{i}" * 900 for i in range(k, k + 90)] for k in range(6)],
    "middle": [[f"{i}" * 900 if i != k else "!" for i in range(9)] for k in range(4)],
    "text": ["c" * n for n in (1500, 1600, 100, 0)],
    "bytes": [b"\x00\xff" * n for n in (1500, 2500)],
    "kinds": [None, b"x" * 2000, bytearray(b"y" * 2000), {"k": "v" * 2000}, 7],
    "maps": [{f"k{i}": "v" * 300 for i in range(n)} for n in (3, 12, 20)],
    "many": [[f"{i:04}" for i in range(n)] for n in (10, 500, 20_000)],
    "messages": [
        [HumanMessage(content="hé" * 700, id="1")],
        [HumanMessage(content="hé" * 700, id="1"), AIMessage(content="x" * 99, id="2")],
    ],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_equal_from_a_new_process(name, tmp_path):
    with opened(tmp_path / "s") as saver:
        config: Any = at("t")
        made = []
        for step, value in enumerate(VALUES[name]):
            config = put(saver, config, {"ch": value}, step)
            made.append((config, value))
            assert saver.get_tuple(config).checkpoint["channel_values"]["ch"] == value
    with opened(tmp_path / "s") as other:
        for config, value in made:
            found = other.get_tuple(config).checkpoint["channel_values"]["ch"]
            assert found == value
            assert type(found) is type(value)


def test_a_list_whose_front_is_cut_keeps_its_objects(tmp_path):
    """A sliding window of messages does not store what it holds already again."""
    with opened(tmp_path / "s") as saver:
        config: Any = at("t")
        texts = [os.urandom(600).hex() for _ in range(60)]
        for step in range(30):
            config = put(saver, config, {"w": texts[step : step + 30]}, step)
    size = sum(path.stat().st_size for path in (tmp_path / "s").rglob("*.pack"))
    # 30 windows of 30 texts of 600 random bytes are 540 kB; the texts alone 36 kB.
    assert size < 250_000, size


def test_ids_and_namespaces_are_any_text(tmp_path):
    made = []
    with opened(tmp_path / "s") as saver:
        for thread in ODD:
            for namespace in ("", *ODD):
                config = put(saver, at(thread, namespace=namespace), {"n": 1})
                saver.put_writes(config, [("a", 1)], "task:1|2", "p")
                made.append(config)
    with opened(tmp_path / "s") as other:
        for config in made:
            asked = config["configurable"]
            place = at(asked["thread_id"], namespace=asked["checkpoint_ns"])
            found = other.get_tuple(place)
            assert found.config == config
            assert found.pending_writes == [("task:1|2", "a", 1)]
        listed = [one.config for one in other.list(None)]
        assert sorted(map(str, listed)) == sorted(map(str, made))
    git(tmp_path / "s", "fsck", "--strict")


def test_an_id_beyond_every_limit_is_served(tmp_path):
    long = "t" * 5000
    with opened(tmp_path / "s") as saver:
        put(saver, at(long), {"n": 1})
        saver.copy_thread(long, long + "2")
    with opened(tmp_path / "s") as other:
        threads = {one.config["configurable"]["thread_id"] for one in other.list(None)}
    assert threads == {long, long + "2"}


def test_looking_for_a_thread_leaves_nothing(saver, tmp_path):
    assert saver.get_tuple(at("none")) is None
    assert list(saver.list(at("none"))) == []
    saver.delete_thread("none")
    saver.prune(["none"])
    assert not list((tmp_path / "store" / "gitcp").rglob("*.redo"))


def test_all_is_equal_after_gc_and_in_a_clone_of_a_remote(tmp_path):
    here, remote, there = tmp_path / "here", tmp_path / "remote", tmp_path / "there"
    with opened(here) as saver:
        made = chain(saver, "t:1|x y", 70)
        put(saver, made[10], {"fork": True}, 11)
        chain(saver, "other", 3)
        saver.put_writes(made[-1], [("__interrupt__", "ask")], "task")
        before = everything(saver)
        saver.compact()
    git(here, "gc", "--prune=now", "--quiet")
    git(here, "fsck", "--full", "--strict")
    form = git_line(here, "rev-parse", "--show-object-format")
    git(tmp_path, "init", "--quiet", "--bare", f"--object-format={form}", remote)
    git(here, "push", "--quiet", remote, "refs/gitcp/s/*:refs/gitcp/s/*")
    git(tmp_path, "init", "--quiet", "--bare", f"--object-format={form}", there)
    git(there, "fetch", "--quiet", remote, "refs/gitcp/s/*:refs/gitcp/s/*")
    for place in (here, there):
        with opened(place, trust=place == there) as other:
            assert everything(other) == before
    with opened(there, trust=True) as other:
        put(other, made[-1], {"n": "continued"}, 70)
        assert other.get_tuple(at("t:1|x y")).checkpoint["channel_values"] == {
            "n": "continued"
        }


def test_a_fork_is_a_named_branch_and_verify_is_content(repo):
    with opened(repo) as saver:
        made = chain(saver, "t", 5)
        fork = put(saver, made[1], {"n": "other way"}, 2)
        put(saver, fork, {"n": "on"}, 3)
        put(saver, made[-1], {"n": "main goes on"}, 5)
    listed = json.loads(run_gitcp(repo, "sessions", "--json").stdout)
    (session,) = listed["sessions"]
    assert session["name"] == "langgraph-t"
    names = [branch["name"] for branch in session["branches"]]
    ident = fork["configurable"]["checkpoint_id"]
    assert names == ["main", f"fork-{ident[:13]}"]
    done = run_gitcp(repo, "verify")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = run_gitcp(repo, "log", "-s", f"langgraph-t/fork-{ident[:13]}", "-n", "3")
    assert b"loop 3" in shown.stdout, shown.stdout + shown.stderr


def test_commands_see_what_is_still_in_the_redo_log(repo):
    """The first process to open the store drains the log: here another one."""
    saver: Any = GitcpSaver(repo)
    saver._threads.drainer.note = lambda thread: None  # no background drain
    chain(saver, "t", 3)
    assert list((repo / ".git" / "gitcp" / "redo").iterdir())
    assert not git_line(repo, "for-each-ref", "refs/gitcp")
    done = run_gitcp(repo, "log", "-s", "langgraph-t")
    assert b"loop 2" in done.stdout, done.stderr
    assert not list((repo / ".git" / "gitcp" / "redo").iterdir())
    made = put(saver, saver.get_tuple(at("t")).config, {"n": "after"}, 3)
    assert saver.get_tuple(at("t")).config == made
    assert len(list(saver.list(at("t")))) == 4
    saver.close()


def test_a_branch_that_others_moved_meanwhile_loses_nothing(repo):
    saver: Any = GitcpSaver(repo)
    saver._threads.drainer.note = lambda thread: None
    made = chain(saver, "t", 3)
    saver._threads.thread("t").drain()
    first = git_line(repo, "rev-parse", "refs/gitcp/s/langgraph-t/main")
    acked = put(saver, made[-1], {"n": "acknowledged"}, 3)
    # Another process moves the branch back.
    git(repo, "update-ref", "refs/gitcp/s/langgraph-t/main", f"{first}~2")
    again = put(saver, acked, {"n": "and on"}, 4)
    listed = {
        one.config["configurable"]["checkpoint_id"] for one in saver.list(at("t"))
    }
    assert {one["configurable"]["checkpoint_id"] for one in (acked, again)} <= listed
    saver._threads.thread("t").drain()
    assert run_gitcp(repo, "verify").returncode == 0
    assert "aside" in git_line(repo, "for-each-ref", "refs/gitcp")


def test_a_thread_that_another_process_deleted_is_gone(tmp_path):
    with opened(tmp_path / "s") as saver, opened(tmp_path / "s") as other:
        chain(saver, "t", 3)
        saver.flush()
        other.delete_thread("t")
        assert saver.get_tuple(at("t")) is None
        assert not list(saver.list(at("t")))


def test_deleted_checkpoints_leave_the_repository(tmp_path):
    secret = "hunter2-" * 200
    with opened(tmp_path / "s") as saver:
        first = put(saver, at("t"), {"n": secret}, 0, run_id="r1")
        second = put(saver, first, {"n": "clean"}, 1, run_id="r2")
        saver.put_writes(second, [("a", 1)], "task")
        saver.copy_thread("t", "u")
        saver.delete_for_runs(["r1"])
        assert saver.get_tuple(first) is None
        for thread in ("t", "u"):
            (left,) = saver.list(at(thread))
            assert left.checkpoint["channel_values"] == {"n": "clean"}
            assert left.pending_writes == [("task", "a", 1)]
        saver.compact()
    git(tmp_path / "s", "gc", "--prune=now", "--quiet")
    git(tmp_path / "s", "fsck", "--full", "--strict")
    listing = git(tmp_path / "s", "cat-file", "--batch-all-objects", "--batch")
    assert b"hunter2" not in listing
    with opened(tmp_path / "s") as other:
        put(other, other.get_tuple(at("u")).config, {"n": "goes on"}, 2)
        assert len(list(other.list(at("u")))) == 2


def test_a_thread_goes_on_after_gitcp_pruned_all_but_it(repo):
    with opened(repo) as saver:
        made = chain(saver, "t", 30)
        fork = put(saver, made[4], {"n": "fork"}, 5)
        saver.flush()
        pruned = run_gitcp(repo, "prune", "--keep-last", "5", "--yes", "--json")
        assert pruned.returncode == 0, pruned.stderr
        assert run_gitcp(repo, "gc").returncode == 0
        git(repo, "gc", "--prune=now", "--quiet")
        # The same saver, with what it remembers of before.
        found = saver.get_tuple(made[-1])
        assert len(found.checkpoint["channel_values"]["messages"]) == 30
        # Only the saver itself may take a thread's checkpoints (docs/decisions/0022).
        assert saver.get_tuple(made[5]) is not None
        assert json.loads(pruned.stdout)["threads"] == ["langgraph-t"]
        messages = [*found.checkpoint["channel_values"]["messages"], "one more"]
        put(saver, made[-1], {"messages": messages}, 30)
        put(saver, fork, {"n": "on"}, 6)
        before = everything(saver)
        saver.delete_for_runs(["none"])
    with opened(repo) as other:
        assert everything(other) == before
        other.prune(["t"])
        assert len(everything(other)) == 1
    assert run_gitcp(repo, "verify").returncode == 0
    git(repo, "fsck", "--strict")


def test_deleting_a_packed_thread_works(tmp_path):
    with opened(tmp_path / "s") as saver:
        chain(saver, "t", 3)
        chain(saver, "kept", 2)
        saver.flush()
        git(tmp_path / "s", "pack-refs", "--all")
        saver.delete_thread("t")
        assert list(saver.list(at("t"))) == []
        assert len(list(saver.list(None))) == 2
        chain(saver, "t", 1)
        assert len(list(saver.list(at("t")))) == 1


def test_a_copy_lives_on_when_its_source_is_deleted(tmp_path):
    with opened(tmp_path / "s") as saver:
        chain(saver, "t", 5)
        saver.copy_thread("t", "u")
        with pytest.raises(UsageError):
            saver.copy_thread("t", "u")
        wanted = [one.checkpoint for one in saver.list(at("u"))]
        saver.delete_thread("t")
        saver.compact()
        git(tmp_path / "s", "gc", "--prune=now", "--quiet")
    with opened(tmp_path / "s") as other:
        assert [one.checkpoint for one in other.list(at("u"))] == wanted


EVIL = """
import pathlib
pathlib.Path({mark!r}).write_text("imported")
class Thing:
    def __init__(self, *args, **named): pass
"""


def test_a_class_that_is_not_allowed_is_not_imported(tmp_path, monkeypatch):
    import ormsgpack

    mark = tmp_path / "mark"
    (tmp_path / "evil_module.py").write_text(EVIL.format(mark=str(mark)))
    monkeypatch.syspath_prepend(tmp_path)
    inner = ormsgpack.packb(["evil_module", "Thing", ["x"]])
    payload = ormsgpack.packb(ormsgpack.Ext(1, inner))

    class Writes(JsonPlusSerializer):
        def dumps_typed(self, obj):
            return ("msgpack", payload) if obj == "evil" else super().dumps_typed(obj)

    with opened(tmp_path / "s", serde=Writes()) as saver:
        config = put(saver, at("t"), {"ch": "evil"})
        saver.put_writes(config, [("ch", "evil")], "task")
    with opened(tmp_path / "s") as other:
        with pytest.raises(BlockedClassError, match=r"evil_module\.Thing"):
            other.get_tuple(at("t"))
        assert "evil_module" not in sys.modules
        assert not mark.exists()
    # The payload is what it is meant to be: a permissive reader imports it.
    with opened(tmp_path / "s", serde=JsonPlusSerializer()) as open_minded:
        open_minded.get_tuple(at("t"))
    assert mark.exists()


def test_metadata_is_filtered_by_each_key(saver):
    for number in range(4):
        put(saver, at(f"t{number % 2}"), {"n": number}, number, who=f"w{number % 2}")
    found = list(saver.list(None, filter={"who": "w1", "step": 3}))
    assert [one.checkpoint["channel_values"] for one in found] == [{"n": 3}]
    newest = list(saver.list(None, limit=2))
    assert [one.checkpoint["channel_values"]["n"] for one in newest] == [3, 2]


def test_a_directory_with_other_things_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(NotARepositoryError):
        GitcpSaver(tmp_path)


def test_a_work_tree_of_another_repository_is_refused(repo, tmp_path):
    with pytest.raises(UsageError):
        GitcpSaver(tmp_path / "store", workspace=repo)


def test_a_thread_of_numbers_continues_with_numbers(saver):
    assert saver.get_next_version(3, None) == 4
    assert saver.get_next_version(None, None) > "0"
    one = saver.get_next_version("00000000000000000000000000000007.0.42", None)
    assert one > "00000000000000000000000000000007.0.42"


def test_the_parent_process_and_its_child_both_go_on(tmp_path):
    """A fork shares descriptors, and with them locks: the child opens its own."""
    script = textwrap.dedent(
        """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from tests.support.graphs import GitcpSaver, at, chain, put
        saver = GitcpSaver(sys.argv[1])
        made = chain(saver, "t", 3)
        child = os.fork()
        if child == 0:
            put(saver, made[-1], {"n": "child"}, 3)
            chain(saver, "of the child", 2)
            saver.close()
            os._exit(0)
        put(saver, made[-1], {"n": "parent"}, 3)
        status = os.waitpid(child, 0)[1]
        saver.close()
        raise SystemExit(status)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "s"],
        env=gitcp_environment({"PYTHONPATH": str(Path(__file__).parents[3])}),
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with opened(tmp_path / "s") as saver:
        found = [
            one.checkpoint["channel_values"].get("n") for one in saver.list(at("t"))
        ]
        assert {"child", "parent"} <= set(found)
        assert len(found) == 5
        assert len(list(saver.list(at("of the child")))) == 2


@pytest.mark.parametrize("damage", ["gone", "garbage", "cut", "another", "old", "kept"])
def test_the_index_that_is_left_for_the_next_process_is_never_trusted(damage, tmp_path):
    store = tmp_path / "s"
    with opened(store) as saver:
        made = chain(saver, "t", 40)
        chain(saver, "u", 40)
        saver.flush()
        left = {path.name: path for path in (store / "gitcp" / "graph").iterdir()}
        index = left["langgraph-t.index"]
        old = index.read_bytes()
        saver.delete_thread("u")
        put(saver, made[9], {"n": "fork"}, 10)
        config = made[-1]
        for step in range(40, 80):
            config = put(saver, config, {"n": step}, step)
        before = everything(saver)
    match damage:
        case "gone":
            index.unlink()
        case "garbage":
            index.write_bytes(b"\x92\x01" + os.urandom(500))
        case "cut":
            index.write_bytes(index.read_bytes()[:-40])
        case "old":
            index.write_bytes(old)
        case "another":
            with opened(store) as saver:
                chain(saver, "v", 40)
            (store / "gitcp" / "graph" / "langgraph-v.index").rename(index)
            with opened(store) as saver:
                saver.delete_thread("v")
        case _:
            assert damage == "kept"
    with opened(store) as other:
        assert everything(other) == before
        made = put(other, at("t"), {"n": "root"}, 0)
        assert other.get_tuple(made).checkpoint["channel_values"] == {"n": "root"}


def test_threads_go_with_gitcp_push_and_pull_and_part_as_branches(tmp_path):
    hub = make_hub(tmp_path)
    one, two = clone(hub, "one"), clone(hub, "two")
    with opened(one) as saver:
        made = chain(saver, "t", 8)
        saver.put_writes(made[-1], [("__interrupt__", "sure?")], "task")
        before = everything(saver)
    assert results(one, "push") == {"langgraph-t/main": ("created", "main")}
    assert results(two, "pull") == {"langgraph-t/main": ("created", "main")}
    with opened(two, trust=True) as saver:
        assert everything(saver) == before
        theirs = put(saver, made[-1], {"n": "theirs"}, 8)
    results(two, "push")
    with opened(one) as saver:
        mine = put(saver, made[-1], {"n": "mine"}, 8)
    ((result, name),) = results(one, "pull").values()
    assert result == "forked"
    with opened(one, trust=True) as saver:
        ids = {
            found.config["configurable"]["checkpoint_id"] for found in everything(saver)
        }
        for config in (mine, theirs):
            assert config["configurable"]["checkpoint_id"] in ids
        on = put(saver, theirs, {"n": "on theirs"}, 9)
        assert saver.checkpoint(on).branch == name
    assert run_gitcp(one, "verify").returncode == 0


# --- what was made elsewhere ---------------------------------------------------------


def calling(command: str) -> Any:
    call = {"name": "shell", "args": {"command": command}, "id": "1"}
    return AIMessage("", tool_calls=[call])


@pytest.fixture
def pulled(tmp_path):
    """A clone with a thread of another clone, as it is pulled."""
    hub = make_hub(tmp_path)
    ann, bob = clone(hub, "ann"), clone(hub, "bob")
    with opened(ann) as saver:
        put(saver, at("t"), {"messages": [calling("rm -rf ~")]})
    results(ann, "push")
    results(bob, "pull")
    return bob


@pytest.mark.parametrize("workspace", [False, True])
def test_a_strangers_thread_is_no_state_of_a_graph(pulled, workspace):
    """A graph calls the tools that its state names."""
    named = {"workspace": pulled} if workspace else {}
    with opened(pulled, **named) as saver:
        with pytest.raises(UsageError, match="made elsewhere"):
            saver.get_tuple(at("t"))
        with pytest.raises(UsageError, match="made elsewhere"):
            list(saver.list(at("t")))
        saver.get_next_version(None, None)
        own = put(saver, at("own"), {"n": "mine"})
        assert [one.config for one in everything(saver)] == [own]
    with opened(pulled, **named, trust=True) as saver:
        first = saver.get_tuple(at("t"))
        version = saver.get_next_version(None, None)
        made = checkpoint(1, first.checkpoint["channel_values"], version)
        said: Any = {"source": "loop", "step": 1, "parents": {}}
        on = saver.put(first.config, made, said, made["channel_versions"])
        origin = saver.checkpoint(on).origin
        assert origin.logs == "origin"
        assert (origin.files is None) is workspace
    # One's own checkpoint that continues it holds its state.
    with (
        opened(pulled, **named) as saver,
        pytest.raises(UsageError, match="made elsewhere"),
    ):
        saver.get_tuple(at("t"))


def test_a_strangers_writes_to_ones_own_thread_are_none_of_it(pulled, tmp_path):
    with opened(pulled) as saver:
        made = chain(saver, "own", 2)
    results(pulled, "push")
    ann = tmp_path / "ann"
    results(ann, "pull")
    with opened(ann, trust=True) as saver:
        saver.put_writes(made[-1], [("messages", calling("rm -rf ~"))], "task")
    results(ann, "push")
    results(pulled, "pull")
    with opened(pulled) as saver:
        with pytest.raises(UsageError, match="made elsewhere"):
            saver.get_tuple(at("own"))
        assert saver.get_tuple(made[0]) is not None


def test_a_remote_is_trusted_with_threads_once(pulled):
    assert run_gitcp(pulled, "trust", "origin").returncode == 0
    with opened(pulled) as saver:
        assert len(everything(saver)) == 1
        config = saver.get_tuple(at("t")).config
        for step in range(3):
            config = put(saver, config, {"n": step}, step)
        assert len(everything(saver)) == 4
    assert run_gitcp(pulled, "trust", "origin", "--remove").returncode == 0
    with opened(pulled) as saver:
        assert everything(saver) == []


def test_a_copied_seal_vouches_for_no_state(pulled, tmp_path):
    """The seal covers files and logs, not the event beside them."""
    with opened(pulled) as saver:
        put(saver, at("own"), {"n": "mine"})
    results(pulled, "push")
    ann = tmp_path / "ann"
    results(ann, "pull")
    ref = "refs/gitcp/s/langgraph-{}/main"
    own, theirs = (ref.format(name) for name in ("own", "t"))
    paths = {}
    for name in (own, theirs):
        listed = git(ann, "ls-tree", f"{name}:.gitcp").decode().splitlines()
        paths[name] = {line.partition("\t")[2]: line for line in listed}
    paths[own]["graph.json"] = paths[theirs]["graph.json"]
    about = json.loads(git(ann, "show", f"{own}:.gitcp/checkpoint.json"))
    about["seq"] = 2
    blob = git(
        ann, "hash-object", "-w", "--stdin", input=json.dumps(about, indent=2).encode()
    )
    line = f"100644 blob {blob.decode().strip()}\tcheckpoint.json"
    paths[own]["checkpoint.json"] = line
    mixed = "".join(f"{line}\n" for line in paths[own].values())
    inner = git(ann, "mktree", input=mixed.encode()).decode().strip()
    root = git(ann, "mktree", input=f"040000 tree {inner}\t.gitcp\n".encode())
    said = git(ann, "cat-file", "commit", own).split(b"\n", 1)[1]
    text = b"tree " + root.strip() + b"\nparent " + git(ann, "rev-parse", own).strip()
    raw = text + b"\n" + said.replace(b"Gitcp-Seq: 1", b"Gitcp-Seq: 2")
    made = git(ann, "hash-object", "-t", "commit", "-w", "--stdin", input=raw)
    git(ann, "push", "-q", "origin", f"{made.decode().strip()}:{own}")
    assert results(pulled, "pull")["langgraph-own/main"][0] == "fast-forward"
    with (
        opened(pulled) as saver,
        pytest.raises(UsageError, match="made elsewhere"),
    ):
        saver.get_tuple(at("own"))


def test_a_bare_store_is_looked_after_where_it_is_named(tmp_path):
    with opened(tmp_path / "s") as saver:
        chain(saver, "t", 3)
    store = ("-C", tmp_path / "s")

    def looked_after(*words: str) -> Any:
        done = invoke(tmp_path, *store, *words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    found = looked_after("log")["checkpoints"]
    assert [one["session"] for one in found] == ["langgraph-t"] * 5
    checked = looked_after("verify")
    assert (checked["ok"], checked["checked"]) == (True, 5)
    for words in (["verify", "--repair"], ["gc"], ["du"], ["sessions"]):
        looked_after(*words)
    # What needs files says that there are none.
    for words in (["save"], ["status"], ["restore", "langgraph-t:1", "--yes"]):
        assert invoke(tmp_path, *store, *words).returncode == 17
    # One that is only found around the directory is not taken.
    assert invoke(tmp_path / "s", "log").returncode == 17
    assert invoke(tmp_path, "-C", tmp_path / "s" / "refs", "log").returncode == 17
