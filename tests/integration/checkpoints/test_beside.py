"""Two agents at work in one work tree at the same time: what is said of their turns."""

from __future__ import annotations

import time

import pytest

from gitcp.format.checkpoint import timestamp
from tests.support.agent import Agent
from tests.support.gitrepo import git
from tests.support.inprocess import invoke, ok


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return tmp_path / "claude"


class Timed(Agent):
    """An agent whose client notes when something was said, as the real ones do."""

    def spoke(self, role, text, **more):
        # What the client notes of its request repeats what was said before.
        asked = {"role": "user", "content": [{"type": "text", "text": "<x>\nearlier"}]}
        self.record("api-request-blob", message=asked)
        return super().spoke(role, text, timestamp=timestamp(time.time()), **more)


@pytest.fixture
def one(repo, config):
    return Timed(repo, config)


@pytest.fixture
def other(repo, config):
    return Timed(repo, config)


def rows(repo, *args):
    return {
        row["note"]: row
        for row in ok(repo, "log", *args)["checkpoints"]
        if "turn" in row
    }


def beside(row):
    return [each["number"] for each in row["turn"]["beside"]]


def shown(repo, *args):
    done = invoke(repo, *args)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_turns_that_overlap_name_each_other(repo, one, other):
    one.turn("alone", a="1")
    one.ask("outer")
    other.ask("inner")
    (repo / "b").write_text("2")
    inner = other.answer("done")
    (repo / "c").write_text("3")
    outer = one.answer("done")
    other.turn("afterwards", d="4")
    found = rows(repo)
    assert beside(found["outer"]) == [inner.number]
    assert beside(found["inner"]) == [outer.number]
    assert beside(found["alone"]) == beside(found["afterwards"]) == []
    (named,) = found["inner"]["turn"]["beside"]
    assert (named["id"], named["agent"], named["prompt"], named["session"]) == (
        *(outer.id, "claude-code", "outer", outer.session),
    )
    assert rows(repo, "-s", inner.session)["inner"] == found["inner"]
    assert rows(repo, "--all")["inner"] == found["inner"]
    document = ok(repo, "show", str(inner.number))
    assert document["turn"]["beside"] == [named]

    log = shown(repo, "log")
    assert log.count(" beside ") == 2
    assert f"beside #{outer.number}" in log
    assert f'  beside   #{inner.number} Claude Code: "inner"\n' in shown(
        repo, "show", str(outer.number)
    )
    assert "beside" not in shown(repo, "show", "last")
    # A checkpoint inside a turn may have what another agent did, too.
    assert shown(repo, "log", "--full").count(f"beside #{outer.number}") == 2
    inner_end = shown(repo, "show", str(inner.number))
    assert f"beside   #{outer.number}" in inner_end


def test_turns_that_have_no_checkpoint_of_their_beginning_overlap_by_the_clock(
    repo, one, other
):
    one.turn("first", a="1")
    other.turn("second", b="2")
    one.ask("third")
    one.answer("done")
    assert other.ask("fourth") is None
    assert one.ask("fifth") is None
    (repo / "a").write_text("3")
    fourth = other.answer("done")
    (repo / "b").write_text("3")
    fifth = one.answer("done")
    found = rows(repo)
    assert len(found["fourth"]["turn"]["checkpoints"]) == 1
    assert beside(found["fourth"]) == [fifth.number]
    assert beside(found["fifth"]) == [fourth.number]
    assert beside(found["third"]) == beside(found["second"]) == []


# --- what is whose -----------------------------------------------------------------------


def uses(agent, tool, **given):
    """A call of a tool that the client writes down before it runs it."""
    ident = f"toolu_{len(agent.transcript.read_bytes())}"
    call = {"type": "tool_use", "id": ident, "name": tool, "input": given}
    agent.record(
        "assistant",
        uuid=f"u-{ident}",
        message={"role": "assistant", "content": [call]},
    )
    return ident


def answered(agent, ident, **more):
    result = {"type": "tool_result", "tool_use_id": ident, "content": "ok", **more}
    agent.record(
        "user", uuid=f"r-{ident}", message={"role": "user", "content": [result]}
    )


def writes(agent, name, content):
    ident = uses(agent, "Write", file_path=str(agent.top / name), content=content)
    (agent.top / name).write_text(content)
    answered(agent, ident)


def begins(agent, command):
    """The agent is about to run a command; its hook is called."""
    ident = uses(agent, "Bash", command=command)
    agent.about_to_run(command)
    return ident


def parts(repo, row):
    turn = ok(repo, "show", str(row["number"]))["turn"]
    return {
        name: {each["path"]: each.get("numbers") for each in turn[name]}
        for name in ("changes", "unsure", "others")
    }


def own(*paths):
    return dict.fromkeys(paths)


def test_each_change_is_shown_in_the_turn_that_made_it(repo, one, other):
    (repo / "vat").write_text("1")
    ok(repo, "save", "-m", "start")
    other.ask("off by a cent")
    one.ask("write a test")
    writes(one, "test", "1")
    command = begins(other, "sed -i s/1/2/ vat")
    (repo / "vat").write_text("2")
    answered(other, command)
    second = other.answer("done")
    first = one.answer("done")
    found = rows(repo)
    test, cent = found["write a test"], found["off by a cent"]
    assert parts(repo, test) == {
        "changes": own("test"),
        "unsure": {},
        "others": {"vat": [second.number]},
    }
    assert parts(repo, cent) == {
        "changes": own("vat"),
        "unsure": {},
        "others": {"test": [first.number]},
    }
    assert test["changed"] == {"added": 1, "modified": 0, "deleted": 0}
    assert cent["changed"] == {"added": 0, "modified": 1, "deleted": 0}
    assert list(rows(repo, "--", "test")) == ["write a test"]
    assert list(rows(repo, "-S", "2", "--", "vat")) == ["off by a cent"]
    for path, prompt in (("test", "write a test"), ("vat", "off by a cent")):
        (line,) = ok(repo, "why", path)["lines"]
        assert (line["by"], line["prompt"], line["beside"]) == ("agent", prompt, [])
    text = shown(repo, "show", str(first.number))
    assert "\nFiles (1 changed)\n  A test\n" in text
    assert f"\nChanged meanwhile by #{second.number} (1 file)\n  M vat\n" in text
    assert "vat" not in shown(repo, "show", str(first.number), "-p")
    assert "vat" not in shown(repo, "show", str(first.number), "--stat")


def test_a_file_that_both_have_changed_is_listed_with_the_other(repo, one, other):
    one.ask("one")
    writes(one, "both", "first")
    writes(one, "page", "first")
    assert other.ask("other") is not None
    command = begins(other, "make")
    (repo / "both").write_text("second")
    answered(other, command)
    writes(other, "page", "first and more")
    second = other.answer("done")
    first = one.answer("done")
    turn = ok(repo, "show", str(first.number))["turn"]
    assert {one["path"]: one["numbers"] for one in turn["also"]} == {
        "both": [second.number],
        "page": [second.number],
    }
    assert f"\nOf these, also changed by #{second.number} (2 files)\n" in shown(
        repo, "show", str(first.number)
    )
    # Its edit was earlier: what is there now the other's command may have made.
    assert parts(repo, rows(repo)["other"]) == {
        "changes": own("page"),
        "unsure": {"both": [first.number]},
        "others": {},
    }


def test_what_cannot_be_told_apart_is_said_to_be_either_s(repo, one, other):
    one.ask("format")
    other.ask("build")
    commands = [begins(one, "make format"), begins(other, "make all")]
    (repo / "generated").write_text("1")
    for agent, command in zip((one, other), commands, strict=True):
        answered(agent, command)
    second = other.answer("done")
    writes(one, "notes", "1")
    first = one.answer("done")
    found = rows(repo)
    assert parts(repo, found["format"]) == {
        "changes": own("notes"),
        "unsure": {"generated": [second.number]},
        "others": {},
    }
    assert parts(repo, found["build"]) == {
        "changes": {},
        "unsure": {"generated": [first.number]},
        "others": {},
    }
    assert found["build"]["changed"]["added"] == 0
    assert found["build"]["turn"]["unsure"]["added"] == 1
    log = shown(repo, "log")
    assert f"+1 +1?  beside #{second.number}" in log
    assert f"+1?  beside #{first.number}" in log
    assert (
        f"\nPossibly also changed by #{first.number} (1 file)\n  A generated\n"
        in shown(repo, "show", str(second.number))
    )
    assert set(rows(repo, "--", "generated")) == {"format", "build"}
    (line,) = ok(repo, "why", "generated")["lines"]
    assert (line["prompt"], line["beside"]) == ("build", [first.number])


def test_a_checkpoint_before_a_command_tells_what_was_there_before_it(repo, one, other):
    one.ask("one")
    other.ask("other")
    running = begins(one, "make one")
    (repo / "by-one").write_text("1")
    # Nothing of this one's has run yet as its hook saves.
    later = begins(other, "make other")
    answered(one, running)
    (repo / "by-other").write_text("1")
    answered(other, later)
    one.answer("done")
    other.answer("done")
    found = rows(repo)
    assert parts(repo, found["one"])["changes"] == own("by-one")
    assert "by-other" in parts(repo, found["one"])["unsure"]
    assert parts(repo, found["other"])["changes"] == {}
    assert "by-one" in parts(repo, found["other"])["others"]


@pytest.mark.parametrize(
    ("command", "ends"),
    [("make one", True), ("npm run dev &", False), ("nohup make", False)],
)
def test_a_command_that_goes_on_may_change_files_later(repo, one, other, command, ends):
    git(repo, "config", "gitcp.frequency", "tool")
    one.ask("serve")
    other.ask("build")
    ident = begins(one, command)
    answered(one, ident)
    call = {"tool_use_id": ident, "tool_name": "Bash"}
    assert one.hook("PostToolBatch", tool_calls=[call]) is not None
    building = begins(other, "make")
    (repo / "new").write_text("1")
    answered(other, building)
    other.answer("done")
    one.answer("done")
    found = parts(repo, rows(repo)["build"])
    assert "new" in found["changes" if ends else "unsure"]


def test_an_edit_while_a_command_of_the_other_runs_is_the_editor_s(repo, one, other):
    one.ask("write")
    other.ask("build")
    command = begins(other, "make")
    writes(one, "page", "1")
    (repo / "built").write_text("1")
    answered(other, command)
    second = other.answer("done")
    first = one.answer("done")
    found = rows(repo)
    assert parts(repo, found["write"]) == {
        "changes": own("page"),
        "unsure": {},
        "others": {"built": [second.number]},
    }
    assert parts(repo, found["build"]) == {
        "changes": own("built"),
        "unsure": {},
        "others": {"page": [first.number]},
    }


def test_an_edit_that_failed_changed_nothing(repo, one, other):
    (repo / "a").write_text("1")
    ok(repo, "save", "-m", "start")
    one.ask("edit")
    other.ask("build")
    ident = uses(one, "Edit", file_path=str(repo / "a"), old_string="x")
    answered(one, ident, is_error=True)
    command = begins(other, "make")
    (repo / "a").write_text("2")
    answered(other, command)
    other.answer("done")
    one.answer("done")
    found = rows(repo)
    assert parts(repo, found["build"])["changes"] == own("a")
    assert parts(repo, found["edit"])["changes"] == {}


def test_a_turn_that_was_killed_may_have_done_more(repo, one, other):
    one.ask("killed")
    other.ask("build")
    begins(one, "make")
    (repo / "a").write_text("1")
    begins(one, "make more")
    command = begins(other, "make")
    (repo / "new").write_text("1")
    answered(other, command)
    other.answer("done")
    assert "new" in parts(repo, rows(repo)["build"])["unsure"]


def test_a_turn_that_still_runs_may_have_written_what_another_saved(repo, one, other):
    (repo / "by-hand").write_text("1")
    start = one.ask("long work")
    writes(one, "mine", "1")
    other.ask("quick")
    writes(other, "theirs", "1")
    command = begins(other, "make")
    (repo / "built").write_text("1")
    answered(other, command)
    other.answer("done")
    quick = rows(repo)["quick"]
    assert beside(quick) == [start.number]
    assert parts(repo, quick) == {
        "changes": own("theirs"),
        "unsure": {"built": [start.number]},
        # `mine` was there as this turn began.
        "others": {},
    }
    later = other.turn("later", more="1")
    assert beside(rows(repo)["later"]) == [start.number]
    end = one.answer("done")
    found = rows(repo)
    assert beside(found["quick"]) == beside(found["later"]) == [end.number]
    assert parts(repo, found["long work"])["changes"] == own("mine")
    assert parts(repo, found["quick"]) == {
        "changes": own("built", "theirs"),
        "unsure": {},
        "others": {},
    }
    assert beside(found["long work"]) == [quick["number"], later.number]


def test_a_turn_that_was_given_up_does_not_run_on(repo, one, other):
    (repo / "by-hand").write_text("1")
    one.ask("given up")
    (repo / "half").write_text("1")
    assert one.hook("SessionEnd", reason="other") is not None
    other.turn("instead", a="1")
    assert beside(rows(repo)["instead"]) == []


def test_a_turn_without_a_checkpoint_of_its_beginning_shows_all_of_its_own(
    repo, one, other
):
    one.turn("first", a="1")
    other.turn("second", b="1")
    one.turn("third", a="2")
    assert other.ask("rewrite b") is not None
    other.answer("done")
    one.turn("again", a="2")
    assert other.ask("rewrite c") is None
    assert one.ask("rewrite d") is None
    writes(one, "d", "1")
    writes(other, "c", "1")
    one.answer("done")
    other.answer("done")
    found = rows(repo)
    assert parts(repo, found["rewrite c"])["changes"] == own("c")
    assert parts(repo, found["rewrite d"])["changes"] == own("d")


def test_a_conversation_that_was_rewritten_tells_new_calls_from_old_ones(
    repo, one, other
):
    one.ask("write")
    other.ask("build")
    writes(one, "early", "1")
    begins(one, "gitcp restore 1 --dry-run")
    # As OpenCode does with the message that is still being made.
    raw = one.transcript.read_bytes()
    one.transcript.write_bytes(raw.replace(b'"name": "Write"', b'"name":  "Write"'))
    command = begins(other, "make")
    (repo / "built").write_text("1")
    answered(other, command)
    writes(one, "late", "1")
    other.answer("done")
    one.answer("done")
    found = parts(repo, rows(repo)["write"])
    assert found["changes"] == own("early", "late")
    assert "built" not in found["others"]


def test_what_an_older_turn_edited_is_no_trace_of_a_rewritten_one(repo, one, other):
    one.ask("first")
    writes(one, "x", "1")
    one.answer("done")
    one.ask("second")
    other.ask("build")
    raw = one.transcript.read_bytes()
    one.transcript.write_bytes(raw.replace(b'"name": "Write"', b'"name":  "Write"'))
    command = begins(other, "make")
    (repo / "x").write_text("2")
    answered(other, command)
    other.answer("done")
    one.answer("done")
    assert parts(repo, rows(repo)["build"])["changes"] == own("x")


def test_a_conversation_that_brings_older_turns_along_tells_nothing(repo, one, other):
    one.ask("an older turn")
    one.hook("SessionStart", source="startup")
    old = uses(one, "Write", file_path=str(repo / "built"))
    answered(one, old)
    one.spoke("user", "the turn that is saved")
    other.ask("build")
    command = begins(other, "make")
    (repo / "built").write_text("1")
    answered(other, command)
    other.answer("done")
    one.answer("done")
    assert parts(repo, rows(repo)["build"])["unsure"].keys() == {"built"}
