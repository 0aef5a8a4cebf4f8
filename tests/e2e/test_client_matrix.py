"""What gitcp does for each client, with the client itself: a cell of the table, a test.

Rows are clients, columns what a user wants of them; `docs/clients.md` shows the result. The
cells of one client share a project, and its first two turns: starting a client is what takes the
time. Each cell makes what else it needs.
"""

from __future__ import annotations

import json

import pytest

from tests.support.client_matrix import COLUMNS, PAGE, ROWS, page
from tests.support.gitrepo import make_repo, tree_bytes
from tests.support.real_clients import running
from tests.support.stand_in import say

pytestmark = pytest.mark.timeout(600)


def script(shell) -> dict:
    """What the model does when it is asked for these things."""
    return {
        "turn one": [[shell("sed -i s/alpha/ALPHA/ keep.txt")], [say("turn one done")]],
        "turn two": [
            [shell("rm keep.txt; mkdir d; echo 2 > d/two")],
            [say("two done")],
        ],
        "lose it": [
            [shell("echo hours > work")],
            [shell("rm work")],
            [say("lost it")],
        ],
        "die in it": [[shell("echo more > work")], [shell("touch reached; sleep 20")]],
        "another way": [[shell("echo n > new.txt")], [say("ok")]],
        "a third way": [[say("a third answer")]],
        "grow": [[shell("true")], [say("grown")]],
        "after it": [[say("after all")]],
        "back again": [[say("back")]],
        "alone": [[shell("echo a > alone.txt")], [say("by itself")]],
    }


class Story:
    """A client that took two turns, with the files after each."""

    def __init__(self, project) -> None:
        self.project = project
        project.install()
        first = project.turn("turn one")
        self.session = first["conversation"]["agent_session"]
        self.trees = [tree_bytes(project.top)]
        second = project.turn("turn two", self.session)
        self.trees.append(tree_bytes(project.top))
        self.ends = [first, second]


@pytest.fixture(scope="module", params=ROWS, ids=[one.name for one in ROWS])
def story(request, tmp_path_factory):
    client = request.param
    if client.found is None:
        if client.program == "claude":
            pytest.skip("needs Claude Code: `pip install claude-agent-sdk`")
        pytest.skip(f"there is no {client.program} (npm i {client.package})")
    scratch = tmp_path_factory.mktemp(client.name)
    top = make_repo(scratch / "project", {"keep.txt": b"alpha\n"})
    with running(client, top, scratch / "home", script(client.shell)) as project:
        yield Story(project)


def checkpoint_per_turn(story) -> None:
    first, second = story.ends
    assert [first["note"], second["note"]] == ["turn one", "turn two"]
    for end in story.ends:
        assert end["conversation"]["agent_session"] == story.session
    assert (first["session"], first["branch"]) == (second["session"], "main")
    told = json.dumps(story.project.gitcp("messages", second["id"]))
    for words in ("turn one", "turn one done", "turn two", "two done"):
        assert words in told


def before_a_risky_command(story) -> None:
    project = story.project
    project.turn("lose it")
    assert not (project.top / "work").exists()
    before = [
        one for one in project.checkpoints() if one["trigger"] == "before-command"
    ]
    assert before[-1]["note"].startswith("before `rm work`")
    project.gitcp("restore", before[-1]["id"], "work", "-y")
    assert (project.top / "work").read_bytes() == b"hours\n"


def restore_files(story) -> None:
    project = story.project
    for end, tree in zip(story.ends, story.trees, strict=True):
        project.gitcp("restore", end["id"], "--files", "-y")
        assert tree_bytes(project.top) == tree


def resume_verbatim(story) -> None:
    project, (first, _) = story.project, story.ends
    restored = project.gitcp("restore", first["id"], "-y")
    assert tree_bytes(project.top) == story.trees[0]
    session = project.ready(restored)
    assert session != story.session
    end = project.turn("another way", session)
    assert (project.top / "new.txt").read_bytes() == b"n\n"
    assert project.sent("another way") == project.sent("turn two")
    assert (end["note"], end["session"]) == ("another way", first["session"])


def fork(story) -> None:
    project, (first, _) = story.project, story.ends
    forked = project.gitcp("fork", first["id"], "second", "-y")
    assert tree_bytes(project.top) == story.trees[0]
    end = project.turn("a third way", project.ready(forked))
    assert project.sent("a third way") == project.sent("turn two")
    assert (end["session"], end["branch"]) == (first["session"], "second")


def compaction(story) -> None:
    project, (_, second) = story.project, story.ends
    before = spoken(project.sent("turn two"))
    session = project.ready(project.gitcp("restore", second["id"], "-y"))
    project.client.compacts(project, session)
    project.turn("after it", session)
    assert spoken(project.sent("after it"))[: len(before)] != before
    # The client has summed it up; what was said before is in the checkpoint.
    session = project.ready(project.gitcp("restore", second["id"], "-y"))
    project.turn("back again", session)
    told = spoken(project.sent("back again"))
    assert told[: len(before)] == before
    assert "two done" in json.dumps(told[-1])


def spoken(messages: list) -> list:
    """Messages without those in which a client lists the files as they are now.

    Each part of a message counts once: Gemini CLI stores what a tool said in two places, and
    some of its resumes send it once more than the one before.
    """
    return [
        {**one, "parts": once(one["parts"])} if "parts" in one else one
        for one in messages
        if "up the context for our chat" not in json.dumps(one)
    ]


def once(parts: list) -> list:
    return [part for at, part in enumerate(parts) if part not in parts[:at]]


def kill_9(story) -> None:
    project = story.project
    project.kill("die in it", once=project.top / "reached")
    before = [
        one for one in project.checkpoints() if one["trigger"] == "before-command"
    ]
    assert before[-1]["note"].startswith("before `touch reached")
    (project.top / "work").unlink()
    project.gitcp("restore", before[-1]["id"], "-y")
    assert (project.top / "work").read_bytes() == b"more\n"
    assert project.gitcp("verify")["ok"]


def uninstall_byte_for_byte(story) -> None:
    project = story.project
    assert not project.is_unchanged
    project.gitcp("uninstall", project.client.name)
    assert project.is_unchanged
    before = project.checkpoints("--all")
    project.run("alone")
    assert (project.top / "alone.txt").read_bytes() == b"a\n"
    assert project.checkpoints("--all") == before
    assert project.is_unchanged
    taken_in(project)
    project.install()


def taken_in(project) -> None:
    """What the client did without gitcp can be imported later, once."""
    words = ("import-history", project.client.name)
    made = [one["checkpoint"] for one in project.gitcp(*words)["conversations"]]
    assert [one["note"].strip('" ') for one in made] == ["alone"]
    assert "by itself" in json.dumps(project.gitcp("messages", made[0]["id"]))
    assert project.gitcp(*words)["conversations"] == []


BODIES = {
    "checkpoint per turn": checkpoint_per_turn,
    "before a risky command": before_a_risky_command,
    "restore files": restore_files,
    "resume verbatim": resume_verbatim,
    "fork": fork,
    "compaction": compaction,
    "kill -9": kill_9,
    "uninstall byte for byte": uninstall_byte_for_byte,
}


@pytest.mark.parametrize(
    "column", COLUMNS, ids=[one.replace(" ", "-") for one in COLUMNS]
)
def test_the_client_itself(story, column):
    BODIES[column](story)
    assert story.project.log() == ""


def test_the_page_has_the_table_of_these_cells():
    assert tuple(BODIES) == COLUMNS
    # After a change: python -m tests.support.client_matrix
    assert page() == PAGE.read_text("utf-8")
