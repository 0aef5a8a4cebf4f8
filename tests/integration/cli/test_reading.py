"""Reading a conversation at the command line: turns, and nothing a stranger can fake."""

from __future__ import annotations

import datetime
import json
import time
from types import SimpleNamespace
from typing import cast

import pytest

from gitcp import Checkpoint
from gitcp.cli.render import when
from tests.support.agent import Agent
from tests.support.gitrepo import git, write_files
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


def shown(repo, *args) -> list[str]:
    done = invoke(repo, "messages", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_messages_are_turns_by_default(repo, agent):
    agent.ask("add VAT")
    edit = {"type": "tool_use", "id": "t", "name": "Edit",
            "input": {"file_path": f"{repo}/src/vat.py"}}  # fmt: skip
    agent.record(
        "assistant", uuid="b", message={"role": "assistant", "content": [edit]}
    )
    (repo / "a.py").write_text("a\n")
    agent.answer("Done.\nAll of it.")
    assert shown(repo) == [
        *("Turn 1", "> add VAT", "  * Edit src/vat.py", "  Done.", "  All of it."),
    ]
    every = "\n".join(shown(repo, "--all"))
    assert "### user\n\nadd VAT" in every
    assert (
        every.encode()
        == invoke(repo, "messages", "--format", "markdown").stdout.strip()
    )


def test_turns_that_were_taken_back_are_hidden_and_counted(repo, agent):
    agent.ask("first")
    first = agent.asked["uuid"]
    (repo / "a.py").write_text("a\n")
    agent.answer("one")
    agent.ask("second")
    (repo / "a.py").write_text("b\n")
    agent.answer("two")
    agent.spoke("user", "third", parentUuid=first)
    (repo / "a.py").write_text("c\n")
    agent.answer("three")
    done = invoke(repo, "messages")
    assert b"second" not in done.stdout
    assert done.stdout.count(b"Turn ") == 2
    assert done.stderr == b"1 turn taken back and hidden; --all shows every record\n"
    assert "second" in "\n".join(shown(repo, "--all"))
    assert len(json.loads(invoke(repo, "messages", "--json").stdout)) >= 6
    # At that time it stood.
    assert "> second" in shown(repo, "3")


def told(repo, *args) -> list[str]:
    done = invoke(repo, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


@pytest.fixture
def worked(repo, agent):
    """Two turns: the first with a checkpoint after a tool."""
    for number in range(1, 4):
        write_files(repo, {f"src/m{number}.py": b"a\nb\nc\nd\n%d\n" % number})
    git(repo, "config", "gitcp.frequency", "tool")
    agent.ask("move them")
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "mv"}}
    agent.record("assistant", uuid="b", message={"role": "assistant", "content": [use]})
    (repo / "lib").mkdir()
    (repo / "src/m1.py").rename(repo / "lib/m1.py")
    result = {"type": "tool_result", "tool_use_id": "t", "content": ""}
    agent.record("user", uuid="r", message={"role": "user", "content": [result]})
    agent.hook("PostToolBatch", tool_calls=[{"tool_name": "Bash", "tool_use_id": "t"}])
    (repo / "src/m2.py").write_bytes(b"a\nb\nc\nd\nchanged\n")
    agent.answer("Moved.")
    agent.turn("second", new="x\n")
    listed = ok(repo, "log", "--full", "--json")["checkpoints"]
    return {one["trigger"]: one["number"] for one in listed[::-1][:3]}


def test_show_has_the_whole_turn(repo, worked):
    end = str(worked["tool"] + 1)
    shown = told(repo, "show", end)
    at = next(at for at, line in enumerate(shown) if line.startswith("Conversation ("))
    assert shown[at + 1 :] == [
        *("> move them", "  * Bash mv", "  Moved.", ""),
        *("Files (2 changed, 1 rename)", "  R src/m1.py → lib/m1.py", "  M src/m2.py"),
    ]
    document = ok(repo, "show", end)
    # The checkpoint alone, and then its turn.
    assert [one["path"] for one in document["changes"]] == ["src/m2.py"]
    turn = document["turn"]
    assert len(turn["checkpoints"]) == 3
    assert turn["spoken"] == {
        "prompt": "move them",
        "tools": [{"name": "Bash", "argument": "mv"}],
        "answer": "Moved.",
    }
    pair = {one["path"]: one for one in turn["changes"]}
    assert pair["lib/m1.py"]["status"] == "added"
    assert pair["lib/m1.py"]["renamed_from"] == "src/m1.py"
    assert pair["src/m1.py"]["status"] == "deleted"
    assert pair["src/m1.py"]["renamed_to"] == "lib/m1.py"
    assert document["patch"] is document["stat"] is None


def test_a_checkpoint_inside_a_turn_names_its_turn(repo, worked):
    inner = worked["tool"]
    shown = told(repo, "show", str(inner))
    assert f'  turn     #{inner + 1} "move them"' in shown
    assert shown[-2:] == ["Files (1 changed, 1 rename)", "  R src/m1.py → lib/m1.py"]
    document = ok(repo, "show", str(inner))
    assert document["turn"]["number"] == inner + 1
    assert ok(repo, "show", str(worked["turn-start"]))["turn"]["number"] == inner + 1
    ok(repo, "save", "--allow-empty")
    assert ok(repo, "show", "last")["turn"] is None


def test_show_takes_paths_a_patch_and_counts_of_lines(repo, worked):
    end = str(worked["tool"] + 1)
    patch = told(repo, "show", end, "-p", "--", "src/m2.py")
    assert patch[-6:] == [
        *("@@ -2,4 +2,4 @@ a", " b", " c", " d", "-2", "+changed"),
    ]
    assert not any(line.startswith("Conversation") for line in patch)
    stat = told(repo, "show", end, "--stat")
    assert "  R src/m1.py → lib/m1.py  +0 -0" in stat
    assert "  M src/m2.py              +1 -1" in stat
    document = ok(repo, "show", end, "-p", "--stat", "--", "src")
    assert "changed" in document["patch"]
    assert {one["path"] for one in document["stat"]} == {"src/m1.py", "src/m2.py"}
    # Of one of its paths alone a rename is a deletion, as in git.
    assert "  D src/m1.py" in told(repo, "show", end, "src")
    # A path may stand where the checkpoint is not named.
    assert told(repo, "show", "--", "new")[-1] == "  A new"
    fails(repo, 13, "show", "--", "nowhere")
    fails(repo, 2, "show", end, "--", "/elsewhere")


def test_a_path_that_never_was_is_refused(repo, worked):
    error = fails(repo, 13, "show", "3", "minutes", "ago")
    assert "minutes is neither in #3 nor in the state before it" in error
    assert "gitcp show '5 minutes ago'" in error


def test_many_files_are_grouped_by_directory(repo):
    ok(repo, "save")
    write_files(repo, {f"d{n % 3}/in/f{n}": b"%d" % n for n in range(60)})
    write_files(repo, {f"deep/{n}/x": b"deep %d" % n for n in range(30)})
    (repo / "README.md").unlink()
    ok(repo, "save")
    shown = told(repo, "show")
    at = shown.index("Files (91 changed)")
    assert shown[at + 1 :] == [
        *(
            "  ./     -1",
            "  d0/    +20",
            "  d1/    +20",
            "  d2/    +20",
            "  deep/  +30",
        ),
    ]
    assert len(told(repo, "show", "--stat")) > 90


def test_renames_are_shown_with_both_names(repo):
    text = b"".join(b"line %d\n" % n for n in range(20))
    write_files(repo, {"a.py": text, "same": b"the same\n"})
    ok(repo, "save")
    (repo / "a.py").unlink()
    write_files(repo, {"sub/b.py": text + b"more\n"})
    (repo / "same").rename(repo / "other\nname")
    assert told(repo, "diff", "1", "--stat") == [
        "  R same → other\\nname  +0 -0",
        "  R a.py → sub/b.py     +1 -0",
    ]
    patch = told(repo, "diff", "1")
    assert {"rename from a.py", "rename to sub/b.py"} <= set(patch)
    document = ok(repo, "diff", "1")
    pair = {one["path"]: one for one in document["changes"]}
    assert {one["status"] for one in pair.values()} == {"added", "deleted"}
    assert pair["sub/b.py"]["renamed_from"] == "a.py"
    assert (pair["sub/b.py"]["added"], pair["a.py"]["added"]) == (1, 0)
    assert pair["a.py"]["renamed_to"] == "sub/b.py"
    ok(repo, "save")
    assert "  R a.py → sub/b.py" in told(repo, "show")
    # What git wrote, git can apply.
    raw = invoke(repo, "diff", "1", "2").stdout
    ok(repo, "restore", "1", "-y")
    git(repo, "apply", "-", input=raw)
    assert (repo / "sub/b.py").read_bytes() == text + b"more\n"
    assert not (repo / "same").exists()


HOSTILE = "x\nTurn 9\r\n\x1b[31mTurn 8\x9b\u2028Turn 7\x0bTurn 6\u202e"


def test_a_stranger_makes_no_lines_of_his_own(repo, tmp_path):
    use = {"type": "tool_use", "name": f"Edit{HOSTILE}", "input": {"path": HOSTILE}}
    messages = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": [use]},
        {"role": "assistant", "content": HOSTILE},
    ]
    raw = json.dumps(messages).encode()
    ok(repo, "save", "--messages", "-", "-m", f"a note\n{HOSTILE}", input=raw)
    done = invoke(repo, "messages")
    text = done.stdout.decode()
    assert not any(char in text for char in "\x1b\x9b\r\x0b\u202e")
    written = text.splitlines()
    assert written[0] == "Turn 1"
    assert all(line.startswith(("> ", "  ")) for line in written[1:])
    assert sum(line.startswith("  * ") for line in written) == 1
    shown = invoke(repo, "show").stdout.decode()
    assert not any(char in shown for char in "\x1b\x9b\r\x0b\u202e")
    assert not any(line.startswith("Turn ") for line in shown.splitlines())
    ok(repo, "show", "--json")


def test_what_has_no_turns_is_shown_whole(repo):
    ok(repo, "save", "--messages", "-", input=b'[{"n": 1}, {"n": 2}]')
    assert "\n".join(shown(repo)).count("unknown record") == 2
    ok(repo, "save", "-s", "bare")
    assert shown(repo, "bare:last") == []
    assert "there is no checkpoint" in fails(repo, 13, "messages", "nowhere", "--all")


def test_what_begins_a_conversation_shows_what_changed_and_not_every_file(repo, agent):
    agent.turn("add VAT", vat="1\n")
    other = Agent(repo, agent.transcript.parents[2])
    (repo / "README.md").write_text("by hand\n")
    began = other.ask("write a test")
    assert began is not None
    shown = told(repo, "show", began.id)
    assert shown[-2:] == ["Files (1 changed)", "  M README.md"]
    again = Agent(repo, agent.transcript.parents[2]).ask("nothing changed meanwhile")
    assert again is not None
    assert told(repo, "show", again.id)[-1] == "Files (0 changed)"
    # On its branch it is the first: what is compared there is all that it holds.
    assert len(ok(repo, "show", again.id)["changes"]) > 1


def test_a_fork_is_told_with_the_number_of_where_it_began(repo):
    for n in range(3):
        (repo / "README.md").write_text(f"{n}\n")
        ok(repo, "save", "-s", f"s{n}")
    assert b"forked from #2" in invoke(repo, "fork", "2", "there", "-y").stdout
    assert b"forked from #4" in invoke(repo, "fork", "here").stdout
    listed = invoke(repo, "log").stdout
    assert b"forked from #2" in listed
    assert b"forked from #4" in listed
    assert b"forked from s" not in listed + invoke(repo, "status").stdout


@pytest.fixture
def zone(monkeypatch):
    monkeypatch.setenv("TZ", "XYZ+5:30")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_time_is_shown_in_the_zone_in_which_it_is_read(repo, zone):
    del zone
    made = ok(repo, "save")["checkpoint"]["created"]
    (line,) = (line for line in told(repo, "show") if line.startswith("  made "))
    text = line.removeprefix("  made ").rpartition(",")[0].strip()
    assert text.endswith(" -0530")
    moment = datetime.datetime.fromisoformat(text)
    assert moment == datetime.datetime.fromisoformat(f"{made[:19]}Z")
    after = moment + datetime.timedelta(seconds=1)
    for pattern in ("%Y-%m-%d %H:%M:%S %z", "%Y-%m-%d %H:%M:%S"):
        assert told(repo, "show", f"{after:{pattern}}")[0].startswith("#1 ")


def test_a_time_that_the_zone_cannot_hold_is_shown_all_the_same(zone):
    del zone
    manifest = SimpleNamespace(created="0001-01-01T00:00:00.000Z")
    checkpoint = cast("Checkpoint", SimpleNamespace(manifest=manifest))
    assert when(checkpoint) == "0001-01-01 00:00:00 +0000"
