"""What `log` shows of a work tree, whatever is in the conversations."""

from __future__ import annotations

import uuid

import pytest

from tests.support.agent import Agent
from tests.support.inprocess import invoke, ok


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Agent(repo, tmp_path / "claude")


def lines(repo, *args):
    done = invoke(repo, "log", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_a_tool_s_name_adds_no_line(repo, agent):
    agent.ask("do it")
    name = "Edit\n  #99  now  deleted everything\x1b[2J"
    agent.record(
        "assistant",
        uuid=str(uuid.uuid4()),
        message={
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": name, "input": {}}],
        },
    )
    agent.answer("done")
    shown = lines(repo)
    assert not any(line.startswith("  #99") for line in shown)
    assert not any("\x1b" in line for line in shown)
    (row,) = [line for line in shown if "do it" in line and "#" in line]
    assert "Edit" in row


def test_a_graph_keeps_to_what_was_asked_for(repo, agent):
    agent.turn("one", a="1")
    (repo / "b").write_text("2")
    ok(repo, "save", "-m", "by hand", "-s", "other")
    everything = lines(repo, "--graph")
    assert sum("#" in line for line in everything) == 3
    (row,) = lines(repo, "--graph", "-s", "other")
    assert "by hand" in row
    assert not lines(repo, "--graph", "--grep", "nothing like it")


def test_the_first_turn_counts_what_it_changed_and_not_what_was_there(repo, agent):
    (repo / "there").write_text("1")
    agent.ask("go")
    (repo / "new").write_text("2")
    agent.about_to_run("make")
    (repo / "there").write_text("3")
    agent.answer("done")
    (row,) = ok(repo, "log")["checkpoints"]
    assert row["changed"] == {"added": 1, "modified": 1, "deleted": 0}


def test_what_was_done_by_hand_before_a_turn_is_a_row_of_its_own(repo, agent):
    agent.turn("one", f="1\n")
    (repo / "f").write_text("1\nmine\n")
    (repo / "gone").write_text("soon")
    ok(repo, "save", "-m", "both", "-s", "main")
    (repo / "gone").unlink()
    agent.turn("two", g="2\n")
    turn, by_hand, *_ = ok(repo, "log")["checkpoints"]
    assert turn["changed"] == {"added": 1, "modified": 0, "deleted": 0}
    assert by_hand["changed"] == {"added": 0, "modified": 0, "deleted": 1}
    assert (turn["by_hand"], by_hand["by_hand"]) == (False, True)
    assert "turn" in turn
    assert "turn" not in by_hand
    assert by_hand["id"] == turn["turn"]["checkpoints"][0]
    (line,) = [line for line in lines(repo) if "[by hand]" in line]
    assert "before: two" in line
    assert line.endswith(" -1")
    # The turn that comes after it is not to blame.
    found = ok(repo, "log", "--", "gone")["checkpoints"]
    assert [one["note"] for one in found] == ["before: two", "both"]
    number = str(turn["number"])
    assert [one["path"] for one in ok(repo, "show", number)["turn"]["changes"]] == ["g"]
    number = str(by_hand["number"])
    shown = invoke(repo, "show", number).stdout.decode()
    assert "  D gone" in shown.splitlines()


def test_paths_are_counted_alone_and_a_single_file_says_what_happened_to_it(
    repo, agent
):
    (repo / "docs").mkdir()
    (repo / "docs/a.md").write_text("1")
    (repo / "kept").write_text("1")
    agent.ask("write")
    (repo / "docs/b.md").write_text("1")
    (repo / "docs/c.md").write_text("1")
    agent.answer("done")
    agent.turn("another file", other="1")
    (repo / "docs/a.md").write_text("2")
    ok(repo, "save", "-m", "by hand", "-s", "main")
    agent.ask("clean up")
    (repo / "docs/a.md").unlink()
    (repo / "docs/b.md").unlink()
    (repo / "kept").write_text("2")
    agent.answer("done")

    def found(*args: str) -> list[tuple[str, str]]:
        rows = [line for line in lines(repo, *args) if line.lstrip().startswith("#")]
        return [
            (row.rsplit("  ", 1)[1], row.split("now")[1].split("  ")[1]) for row in rows
        ]

    assert found("--", "docs/a.md") == [("D", "clean up"), ("M", "by hand")]
    assert found("--", "docs/b.md") == [("D", "clean up"), ("A", "write")]
    folder = found("--", "docs")
    assert folder == [("-2", "clean up"), ("~1", "by hand"), ("+2", "write")]
    assert found("--", "docs/b.md", "kept")[0] == ("~1 -1", "clean up")
    # The folder became a file, and `kept` has always been one.
    (repo / "docs/c.md").unlink()
    (repo / "docs").rmdir()
    (repo / "docs").write_text("1")
    ok(repo, "save", "-m", "a folder before", "-s", "main")
    assert found("-n", "1", "--", "docs") == [("+1 -1", "a folder before")]
    assert found("--", "kept/x") == []
    newest = ok(repo, "log", "--", "docs")["checkpoints"][0]
    assert [(one["path"], one["status"]) for one in newest["touched"]] == [
        ("docs", "added"),
        ("docs/c.md", "deleted"),
    ]
    assert newest["changed"] == {"added": 1, "modified": 0, "deleted": 1}
    assert "touched" not in ok(repo, "log")["checkpoints"][0]


def test_a_turn_says_what_was_saved_before_its_commands(repo, agent):
    agent.ask("make it worse")
    (repo / "vat").write_text("1")
    first = agent.about_to_run("sed -i s/1/2/ vat")
    (repo / "vat").write_text("2")
    second = agent.about_to_run("rm -rf vat")
    (repo / "vat").unlink()
    agent.answer("It is worse now.")
    (row,) = [line for line in lines(repo) if "make it worse" in line and "#" in line]
    assert row.endswith(f"inside #{second.number} +1")
    shown = invoke(repo, "show").stdout.decode().splitlines()
    assert f"  inside   #{first.number} before `sed -i s/1/2/ vat`" in shown
    assert f"  inside   #{second.number} before `rm -rf vat`" in shown
    # Whole, they are rows of their own, and of a turn that has ended none is unfinished.
    assert not [line for line in lines(repo, "--full") if "unfinished" in line]
    agent.ask("still at it")
    (repo / "b").write_text("1")
    agent.about_to_run("make")
    assert "[unfinished]" in "\n".join(lines(repo))


def test_a_search_that_finds_nothing_says_so(repo, agent):
    agent.turn("one", f="1")
    done = invoke(repo, "log", "--", "nowhere")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"no checkpoint here matches" in done.stderr
    assert invoke(repo, "log", "--", "f").stderr == b""
